"""Cutting loses nothing, whatever the text."""

from hypothesis import given
from hypothesis import strategies as st

from regard.text.sentences import cut

_WORDS = ("The cat", "mr", "Dr", "I", "12", "3.14", "http://a.b?c", "it", "Mai", ":)", "- ", "• ", "1. ", "\ufe0f")
_BITS = st.sampled_from((*_WORDS, "...", *'.!?…।。؟ \n\u00a0\u202f"«»()🙂\u2028🏽'))


@given(st.one_of(st.text(), st.lists(_BITS, max_size=30).map("".join)))
def test_sentences_and_what_is_between_them_are_the_text(text: str) -> None:
    found = cut(text)
    assert len(found.between) == len(found.sentences) + 1
    assert found.join(found.sentences) == text
    assert [text[start:end] for start, end in found.spans] == list(found.sentences)
    assert all(sentence == sentence.strip() and any(map(str.isalpha, sentence)) for sentence in found.sentences)


@given(st.one_of(st.text(), st.lists(_BITS, max_size=30).map("".join)))
def test_a_sentence_is_within_one_line(text: str) -> None:
    assert all(len(sentence.splitlines()) == 1 for sentence in cut(text).sentences)
