"""Whatever the text, it comes back: exactly, or with single spaces where whitespace is not kept."""

import string
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text import ByteTokenizer, CharacterTokenizer, SubwordTokenizer, Tokenizer, Vocabulary, learn
from regard.text.words import join_words, space_words, split_words

LETTERS = st.sampled_from(string.ascii_letters + "ÉẞİǅΣς⇧⇪«»\u202féß'’.-,! \t\u00a0 कि्षाش😀\u200d￭▁0123456789")
SYLLABLES = ("ba", "ri", "to", "lun", "ke", "men")
TEXT = st.one_of(st.text(LETTERS), st.text())


@cache
def subwords(kind: str) -> Tokenizer:
    words = [f"{a}{b}{c} {c}{a} {b}{b}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
    return learn(kind, [f"the {word} l'ours किताब" for word in words], size=310)


def single_spaces(text: str) -> str:
    return " ".join(space_words(text))


@settings(max_examples=23)
@given(TEXT)
def test_bytes_come_back_exactly(text: str) -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.word_of(tokenizer.pieces(text))) == len(tokenizer.encode(text))


@settings(max_examples=23)
@given(TEXT)
def test_characters_come_back_exactly(text: str) -> None:
    tokenizer = CharacterTokenizer.learn([text])
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(max_examples=23)
@given(TEXT)
def test_words_come_back_with_single_spaces(text: str) -> None:
    assert join_words(split_words(text)) == single_spaces(text)


@settings(max_examples=23)
@given(TEXT, st.sampled_from(["bpe", "unigram"]), st.randoms(use_true_random=False))
def test_subwords_come_back_with_single_spaces(text: str, kind: str, random) -> None:
    tokenizer = subwords(kind)
    assert isinstance(tokenizer, SubwordTokenizer)
    expected = single_spaces(text.replace("▁", " "))
    assert tokenizer.decode(tokenizer.encode(text)) == expected
    assert tokenizer.decode(tokenizer.sample(text, random)) == expected


@settings(max_examples=23)
@given(TEXT, st.sampled_from(["bpe", "unigram"]))
def test_subwords_fold_into_as_many_words_as_the_text_has(text: str, kind: str) -> None:
    tokenizer = subwords(kind)
    words = tokenizer.word_of(tokenizer.pieces(text))
    assert len(set(words)) == len(space_words(text.replace("▁", " ")))


@settings(max_examples=23)
@given(st.lists(TEXT))
def test_a_vocabulary_survives_its_file(tokens: list[str]) -> None:
    vocabulary = Vocabulary.count(tokens)
    assert Vocabulary.from_bytes(vocabulary.to_bytes(), "here") == vocabulary


@cache
def marking(kind: str) -> Tokenizer:
    return learn(kind, ["the cat l'ours NATO It's d'Anna"], size=310, case="mark")


@settings(max_examples=53)
@given(TEXT)
def test_words_with_marks_for_capitals_come_back(text: str) -> None:
    tokenizer = learn("word", [text], size=10_000, case="mark")
    assert tokenizer.decode(tokenizer.encode(text)) == single_spaces(text)
    words = tokenizer.word_of(tokenizer.pieces(text))
    assert sorted(set(words)) == list(range(len(space_words(text))))
    assert words == sorted(words)


@settings(max_examples=53)
@given(TEXT, st.sampled_from(["bpe", "unigram"]), st.randoms(use_true_random=False))
def test_subwords_with_marks_for_capitals_come_back(text: str, kind: str, random) -> None:
    tokenizer = marking(kind)
    expected = single_spaces(text.replace("▁", " "))
    assert tokenizer.decode(tokenizer.encode(text)) == expected
    assert tokenizer.decode(tokenizer.sample(text, random)) == expected
    assert len(set(tokenizer.word_of(tokenizer.pieces(text)))) == len(space_words(expected))
