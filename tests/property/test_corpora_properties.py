"""What holds of every sentence, whatever the seed, the length and the language."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora import LANGUAGES, LONGEST, SHORTEST, SPLITS, Language, Sentence, Split, generate, split_of

TAGS = {"NOUN", "VERB", "ADJ", "ADV", "DET", "PRON", "AUX", "ADP", "NUM", "PART", "CCONJ", "SCONJ"}
CONTENT = {"NOUN", "VERB", "ADJ", "ADV", "NUM"}
ELIDED = ("l'", "d'", "qu'", "j'", "n'")


@st.composite
def sentences(draw: st.DrawFn, language: Language | None = None) -> Sentence:
    size = draw(st.integers(SHORTEST, LONGEST))
    chosen = language or draw(st.sampled_from(LANGUAGES))
    seed = draw(st.integers(0, 2**20))
    return next(generate(chosen, count=1, seed=seed, minimum_words=size, maximum_words=size))


@settings(max_examples=150)
@given(sentences())
def test_links_are_sorted_unique_and_inside_both_sentences(sentence: Sentence) -> None:
    source, target = sentence.source.split(), sentence.target.split()
    assert list(sentence.alignment) == sorted(set(sentence.alignment))
    assert all(0 <= one < len(source) and 0 <= other < len(target) for one, other in sentence.alignment)


@settings(max_examples=150)
@given(sentences())
def test_every_content_word_is_aligned(sentence: Sentence) -> None:
    aligned = {one for one, _ in sentence.alignment}
    missing = [
        word
        for at, (word, tag) in enumerate(zip(sentence.source.split(), sentence.tags, strict=True))
        if tag in CONTENT and at not in aligned
    ]
    assert missing == []


@settings(max_examples=100)
@given(sentences("fr"))
def test_every_english_and_every_french_word_is_aligned(sentence: Sentence) -> None:
    assert {one for one, _ in sentence.alignment} == set(range(len(sentence.source.split())))
    assert {other for _, other in sentence.alignment} == set(range(len(sentence.target.split())))


@settings(max_examples=100)
@given(sentences("fr"))
def test_no_french_elision_is_forgotten(sentence: Sentence) -> None:
    words = sentence.target.split()
    for word, following in pairwise(words):
        if word in {"le", "la", "de", "que", "je", "ne", "ce", "ma"}:
            assert following[0] not in "aeiouyàâéèêîôûœ"
        assert (word, following) not in {("de", "le"), ("de", "les"), ("à", "le"), ("à", "les")}
    assert not any(word.startswith(ELIDED) and word.partition("'")[2][0] in "bcdfgjklmnpqrstv" for word in words)


@settings(max_examples=100)
@given(sentences("hi"))
def test_hindi_is_devanagari_throughout(sentence: Sentence) -> None:
    assert all("\u0900" <= letter <= "\u097f" or letter in " -" for letter in sentence.target)


@settings(max_examples=100)
@given(sentences())
def test_tags_and_text_are_what_they_claim(sentence: Sentence) -> None:
    assert len(sentence.tags) == len(sentence.source.split())
    assert set(sentence.tags) <= TAGS
    assert sentence.source == sentence.source.lower()
    assert "  " not in sentence.target
    for pronoun, noun in sentence.referents:
        assert (sentence.tags[pronoun], sentence.tags[noun]) == ("PRON", "NOUN")
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
        assert size <= len(sentence.source.split()) <= longest
        assert split_of(sentence.source) == split
