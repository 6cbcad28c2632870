"""Words: cut at whitespace, clitics and punctuation, with a mark that lets the text be put back together.

Or cut at whitespace alone, for text in which somebody has set the words apart already.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, Literal

from regard.text.special import END, PAD, START
from regard.text.tokenizer import Tokenizer, describe
from regard.text.vocabulary import Vocabulary

JOINER: Final = "￭"  # stands before a piece that had no space before it
TIE: Final = "‿"  # the same as people are shown it, because few fonts have the other
VOCABULARY: Final = "vocabulary.tsv"

_SILENT = frozenset((PAD, START, END))

_RULES = r"""
    aujourd['’]hui                                                        # one word all the same
  | (?<!{letter})(?:(?:jus|lors|puis|quoi)?qu|[cdjlmnst])['’](?={letter}) # l'ours: l' ours, qu'il: qu' il
  | (?<={letter})n['’]t(?!{letter})                                       # doesn't: does n't
  | (?<={letter})['’](?:s|re|ve|ll|d|m)(?!{letter})                       # bear's: bear 's, we'll: we 'll
  | \d+(?:[.,]\d+)+                                                       # 3.14 and 10,000 stay whole
  | {letter}+?(?=n['’]t(?!{letter}))                                      # the part of doesn't before n't
  | {letter}+                                                             # a word, or a plain number
  | \.{{2,}} | -{{2,}}                                                    # an ellipsis, a dash
  | \S                                                                    # any other mark stands alone
"""


@cache
def _pattern() -> re.Pattern[str]:
    """The rules above, compiled when first needed.

    `\\w` alone would tear Hindi words apart: Python does not count vowel signs and other combining marks as
    word characters, so they are listed here, with the two joiners that Indic and Persian spelling uses.
    """
    marks = "".join(chr(code) for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M")
    return re.compile(_RULES.format(letter=rf"(?:[^\W_]|[{marks}\u200c\u200d])"), re.VERBOSE | re.IGNORECASE)


def split_words(text: str) -> list[str]:
    """Cut text into words and punctuation; a piece glued to the one before it begins with the joiner."""
    return [piece for word in text.split() for piece in _cut(word)]


@lru_cache(maxsize=1 << 16)
def _cut(word: str) -> tuple[str, ...]:
    """The pieces of one whitespace word, remembered because a few words make up most of any text."""
    first, *rest = _pattern().findall(word)
    return first, *(JOINER + piece for piece in rest)


def join_words(pieces: Iterable[str]) -> str:
    """Undo `split_words`. A bare joiner is a real character of the text: a mark always marks something."""
    text = "".join(piece[1:] if _is_glued(piece) else f" {piece}" for piece in pieces)
    return text.removeprefix(" ")


def _is_glued(piece: str) -> bool:
    return len(piece) > 1 and piece[0] == JOINER


@dataclass(frozen=True)
class WordTokenizer(Tokenizer):
    """Whole words by frequency: short sequences and readable pieces, but rare words become `<unk>`."""

    vocabulary: Vocabulary
    kind: Literal["word"] = field(default="word", init=False)

    @classmethod
    def learn(cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1) -> WordTokenizer:
        """Count the words of a stream of lines."""
        words = (piece for line in lines for piece in split_words(line))
        return cls(Vocabulary.count(words, size=size, minimum=minimum))

    def extended(self, words: Iterable[str]) -> WordTokenizer:
        """The same with more words, which were never counted; see `Vocabulary.extended`."""
        return WordTokenizer(self.vocabulary.extended(words))

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        return split_words(text)

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(split_words(text))

    def decode(self, ids: Iterable[int]) -> str:
        return join_words(self.vocabulary.token(number) for number in ids if number not in _SILENT)

    def token(self, number: int) -> str:
        return self.vocabulary.token(number)

    def id(self, piece: str) -> int:
        return self.vocabulary.id(piece)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        word, words = -1, []
        for piece in pieces:
            word += word < 0 or not _is_glued(piece)
            words.append(word)
        return words

    def files(self) -> dict[str, bytes]:
        return describe(self.kind) | {VOCABULARY: self.vocabulary.to_bytes()}


@dataclass(frozen=True)
class SpaceTokenizer(Tokenizer):
    """What stands between spaces, as it is: for text whose words are set apart already, as in a treebank."""

    vocabulary: Vocabulary
    kind: Literal["space"] = field(default="space", init=False)

    @classmethod
    def learn(cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1) -> SpaceTokenizer:
        """Count the words of a stream of lines."""
        words = (word for line in lines for word in line.split())
        return cls(Vocabulary.count(words, size=size, minimum=minimum))

    def extended(self, words: Iterable[str]) -> SpaceTokenizer:
        """The same with more words, which were never counted; see `Vocabulary.extended`."""
        return SpaceTokenizer(self.vocabulary.extended(words))

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        return text.split()

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(text.split())

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.vocabulary.token(number) for number in ids if number not in _SILENT)

    def token(self, number: int) -> str:
        return self.vocabulary.token(number)

    def id(self, piece: str) -> int:
        return self.vocabulary.id(piece)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return list(range(len(pieces)))

    def files(self) -> dict[str, bytes]:
        return describe(self.kind) | {VOCABULARY: self.vocabulary.to_bytes()}


def legible(piece: str) -> str:
    """A piece in signs that fonts have."""
    return piece.replace(JOINER, TIE)
