"""What holds of every sentence, whatever the seed, the length and the language."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from regard.fable import LANGUAGES, LONGEST, SHORTEST, SPLITS, Language, ParallelSentence, Split, generate, split_of
from regard.fable.forms.french import ASPIRATED

TAGS = {
    "NOUN",
    "VERB",
    "ADJ",
    "ADV",
    "DET",
    "PRON",
    "AUX",
    "ADP",
    "NUM",
    "PART",
    "CCONJ",
    "SCONJ",
    "PROPN",
    "INTJ",
    "PUNCT",
}
CONTENT = {"NOUN", "VERB", "ADJ", "ADV", "NUM", "PROPN"}
ELIDED = ("l'", "d'", "qu'", "j'", "n'")


@st.composite
def sentences(draw: st.DrawFn, language: Language | None = None) -> ParallelSentence:
    size = draw(st.integers(SHORTEST, LONGEST))
    chosen: Language = draw(st.sampled_from(LANGUAGES)) if language is None else language
    seed = draw(st.integers(0, 2**20))
    unknown = draw(st.sampled_from((0.0, 0.5)))
    return next(generate(chosen, count=1, seed=seed, minimum_words=size, maximum_words=size, unknown=unknown))


def source_words(sentence: ParallelSentence) -> list[str]:
    return sentence.source.split(" ")


def target_words(sentence: ParallelSentence) -> list[str]:
    """A no-break space divides nothing."""
    return sentence.target.split(" ")


def tagged_words(sentence: ParallelSentence) -> Iterator[tuple[int, str, str]]:
    """For each token the number of its word, the token and its tag."""
    word, left = -1, ""
    for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
        if not left:
            word, left = word + 1, source_words(sentence)[word + 1]
        assert left.startswith(token)
        left = left.removeprefix(token)
        yield word, token, tag


@settings(max_examples=150)
@given(sentences())
def test_links_content_words_and_tags_are_what_they_claim(sentence: ParallelSentence) -> None:
    """One drawing for all three: to draw a sentence of eighty words takes longer than to look at it."""
    links_are_sorted_unique_and_inside_both_sentences(sentence)
    every_content_word_is_aligned(sentence)
    tags_and_text_are_what_they_claim(sentence)


def links_are_sorted_unique_and_inside_both_sentences(sentence: ParallelSentence) -> None:
    source, target = source_words(sentence), target_words(sentence)
    assert list(sentence.alignment) == sorted(set(sentence.alignment))
    assert all(0 <= one < len(source) and 0 <= other < len(target) for one, other in sentence.alignment)


def every_content_word_is_aligned(sentence: ParallelSentence) -> None:
    aligned = {one for one, _ in sentence.alignment}
    missing = [
        token
        for at, token, tag in tagged_words(sentence)
        if tag in CONTENT and at not in aligned and not short_answer(sentence)
    ]
    assert missing == []


@settings(max_examples=100)
@given(sentences("fr"))
def test_every_english_and_every_french_word_is_aligned(sentence: ParallelSentence) -> None:
    if not short_answer(sentence):
        assert {one for one, _ in sentence.alignment} == set(range(len(source_words(sentence))))
    assert {other for _, other in sentence.alignment} == set(range(len(target_words(sentence))))


def short_answer(sentence: ParallelSentence) -> bool:
    """Yes, I do: French and Hindi only say yes."""
    return len(target_words(sentence)) == 1


@settings(max_examples=100)
@given(sentences("fr"))
def test_no_french_elision_is_forgotten(sentence: ParallelSentence) -> None:
    words = [word.lower() for word in target_words(sentence)]
    for word, following in pairwise(words):
        if following.strip(".,!?\u202f») ") in ASPIRATED or following == "y":
            continue
        if word in {"le", "la", "de", "que", "je", "ne", "ma", "sa"}:
            assert following[0] not in "aeiouyàâéèêîôûœ"
        assert (word, following) not in {("de", "le"), ("de", "les"), ("à", "le"), ("à", "les")}
    assert not any(word.startswith(ELIDED) and word.partition("'")[2][0] in "bcdfgjklmnpqrstv" for word in words)


@settings(max_examples=100)
@given(sentences("hi"))
def test_hindi_is_devanagari_throughout(sentence: ParallelSentence) -> None:
    invented = set(sentence.tokens)
    for word in target_words(sentence):
        letters = word.strip('.,!?"')
        plain = letters.isdigit() or all("\u0900" <= letter <= "\u097f" or letter in "-" for letter in letters)
        assert plain or letters in invented


def tags_and_text_are_what_they_claim(sentence: ParallelSentence) -> None:
    assert len(sentence.tags) == len(sentence.tokens)
    assert set(sentence.tags) <= TAGS
    assert "".join(sentence.tokens) == sentence.source.replace(" ", "")
    assert "  " not in sentence.target
    by_word: dict[int, set[str]] = {}
    for word, _, tag in tagged_words(sentence):
        by_word.setdefault(word, set()).add(tag)
    for pronoun, noun in sentence.referents:
        assert "PRON" in by_word[pronoun]
        assert "NOUN" in by_word[noun]
        assert noun < pronoun


@settings(max_examples=60)
@given(
    st.integers(SHORTEST, LONGEST),
    st.integers(0, 10),
    st.sampled_from(SPLITS),
    st.sampled_from(LANGUAGES),
    st.integers(0, 2**20),
)
def test_length_and_split_are_as_asked(size: int, more: int, split: Split, language: Language, seed: int) -> None:
    longest = min(size + more, LONGEST)
    asked = generate(language, count=2, split=split, seed=seed, minimum_words=size, maximum_words=longest)
    for sentence in asked:
        assert size <= len(source_words(sentence)) <= longest
        assert split_of(sentence.source) == split
