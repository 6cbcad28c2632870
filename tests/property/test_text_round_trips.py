"""Whatever the text, it comes back: exactly, or with single spaces where whitespace is not kept."""

import string
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text import ByteTokenizer, CharacterTokenizer, SubwordTokenizer, Tokenizer, Vocabulary, learn
from regard.text.words import join_words, split_words

LETTERS = st.sampled_from(string.ascii_letters + "éß'’.-,! \t\u00a0 कि्षाش😀\u200d￭▁0123456789")
SYLLABLES = ("ba", "ri", "to", "lun", "ke", "men")
TEXT = st.one_of(st.text(LETTERS), st.text())


@cache
def subwords(kind: str) -> Tokenizer:
    words = [f"{a}{b}{c} {c}{a} {b}{b}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
    return learn(kind, [f"the {word} l'ours किताब" for word in words], size=310)


def single_spaces(text: str) -> str:
    return " ".join(text.split())


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
    assert len(set(words)) == len(text.replace("▁", " ").split())


@settings(max_examples=23)
@given(st.lists(TEXT))
def test_a_vocabulary_survives_its_file(tokens: list[str]) -> None:
    vocabulary = Vocabulary.count(tokens)
    assert Vocabulary.from_bytes(vocabulary.to_bytes(), "here") == vocabulary
