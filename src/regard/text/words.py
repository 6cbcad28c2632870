"""Words: cut at whitespace, clitics and punctuation, with a mark that lets the text be put back together.

A no-break space (U+00A0, U+202F) is no whitespace here: it stays with the punctuation that it belongs to, as in French.
Or cut at whitespace alone, for text whose words are already separated.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, Literal

from regard.text.casing import MARKS, Case, lowered, raised
from regard.text.special import SPECIAL_TOKENS, UNK
from regard.text.tokenizer import SILENT, Tokenizer, describe
from regard.text.vocabulary import Vocabulary

JOINER: Final = "￭"  # stands before a piece that had no space before it
TIE: Final = "‿"  # the same as people are shown it, because few fonts have the other
NO_BREAK: Final = "\u00a0\u202f"  # spaces that divide no words
VOCABULARY: Final = "vocabulary.tsv"


_RULES = r"""
    aujourd['’]hui                                                        # one word all the same
  | (?:https?://|www\.)\S*[^\W_][/]?  | [\w.+-]+@[\w-]+(?:\.[\w-]+)+       # an address stays whole
  | (?<!{letter})(?:(?:jus|lors|puis|quoi)?qu|[cdjlmnst])['’](?={letter}) # l'ours: l' ours, qu'il: qu' il
  | (?<={letter})n['’]t(?!{letter})                                       # doesn't: does n't
  | (?<={letter})['’](?:s|re|ve|ll|d|m)(?!{letter})                       # bear's: bear 's, we'll: we 'll
  | \d+(?:[.,\u00a0\u202f]\d+)+                                           # 3.14 and 10,000 stay whole
  | {letter}+?(?=n['’]t(?!{letter}))                                      # the part of doesn't before n't
  | {letter}+                                                             # a word, or a plain number
  | \.{{2,}} | -{{2,}}                                                    # an ellipsis, a dash
  | [«‹][\u00a0\u202f]                                                    # what opens a quotation, with its space
  | [\u00a0\u202f]+[^\w\s]?                                               # a mark with the space before it
  | \S                                                                    # any other mark stands alone
"""


_SPACED = re.compile(rf"[\S{NO_BREAK}]+")


def space_words(text: str) -> list[str]:
    """What stands between whitespace; a no-break space does not divide words."""
    return _SPACED.findall(text) if any(space in text for space in NO_BREAK) else text.split()


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
    return [piece for word in space_words(text) for piece in _cut(word)]


def space_spans(text: str) -> list[tuple[int, int]]:
    """Where each of `space_words` begins and ends, in characters."""
    return [word.span() for word in _SPACED.finditer(text)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each piece of `split_words` begins and ends, in characters."""
    cut = _pattern().finditer
    return [(at + piece.start(), at + piece.end()) for at, end in space_spans(text) for piece in cut(text[at:end])]


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
    case: Case = "keep"  # whether a capital is a mark of its own; see `regard.text.casing`
    kind: Literal["word"] = field(default="word", init=False)

    @classmethod
    def learn(
        cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1, case: Case = "keep"
    ) -> WordTokenizer:
        """Count the words of a stream of lines."""
        words = (piece for line in lines for piece in _cased(split_words(line), case))
        always = MARKS if case == "mark" else ()
        return cls(Vocabulary.count(words, size=size, minimum=minimum, always=always), case)

    def extended(self, words: Iterable[str]) -> WordTokenizer:
        """The same with more words, which were never counted; see `Vocabulary.extended`."""
        return WordTokenizer(self.vocabulary.extended(words), self.case)

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        return list(_cased(split_words(text), self.case))

    def encode(self, text: str) -> list[int]:
        """The ids of the pieces. One that has none of its own gets that of the same piece with or without a space."""
        pieces = self.pieces(text)
        ids = self.vocabulary.ids(pieces)
        if UNK in ids:
            return [self.id(piece) if number == UNK else number for piece, number in zip(pieces, ids, strict=True)]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        return self.join(self.vocabulary.token(number) for number in ids if number not in SILENT)

    def join(self, pieces: Iterable[str]) -> str:
        """The text of pieces."""
        return join_words(_uncased(pieces) if self.case == "mark" else pieces)

    def knows(self, piece: str) -> bool:
        """Whether a piece of `split_words` can be read here, its capitals as marks where there are such."""
        return all(self.id(part) != UNK for part in _cased([piece], self.case))

    def token(self, number: int) -> str:
        return self.vocabulary.token(number)

    def id(self, piece: str) -> int:
        number = self.vocabulary.id(piece)
        return self.vocabulary.id(piece[1:] if _is_glued(piece) else JOINER + piece) if number == UNK else number

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        """A mark belongs to the word that follows, and at the end to the word before."""
        word, words, begun = -1, [], False
        for place, piece in enumerate(pieces):
            mark = self.case == "mark" and piece in MARKS
            told_by = next((other for other in pieces[place:] if other not in MARKS), JOINER * 2) if mark else piece
            word += word < 0 or not (begun or _is_glued(told_by))
            begun = mark
            words.append(word)
        return words

    def files(self) -> dict[str, bytes]:
        details = {"case": self.case} if self.case != "keep" else {}
        return describe(self.kind, details) | {VOCABULARY: self.vocabulary.to_bytes()}


def _cased(pieces: Iterable[str], case: Case) -> Iterable[str]:
    return _marked(pieces) if case == "mark" else pieces


def _marked(pieces: Iterable[str]) -> Iterator[str]:
    """Each capital as a mark before its piece, which keeps the joiner: d' ￭Anna is d' ⇧ ￭anna."""
    for piece in pieces:
        glue = JOINER if _is_glued(piece) else ""
        mark, low = lowered(piece[len(glue) :])
        if mark:
            yield mark
        yield glue + low


def _uncased(pieces: Iterable[str]) -> Iterator[str]:
    """Undo `_marked`; a mark without a piece behind it is lost."""
    mark = ""
    for piece in pieces:
        if piece in MARKS:
            mark = piece
        elif piece == SPECIAL_TOKENS[UNK]:
            yield piece
            mark = ""
        else:
            glue = JOINER if _is_glued(piece) else ""
            yield glue + raised(mark, piece[len(glue) :])
            mark = ""


@dataclass(frozen=True)
class SpaceTokenizer(Tokenizer):
    """What stands between spaces, as it is: for text whose words are set apart already, as in a treebank."""

    vocabulary: Vocabulary
    kind: Literal["space"] = field(default="space", init=False)

    @classmethod
    def learn(cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1) -> SpaceTokenizer:
        """Count the words of a stream of lines."""
        words = (word for line in lines for word in space_words(line))
        return cls(Vocabulary.count(words, size=size, minimum=minimum))

    def extended(self, words: Iterable[str]) -> SpaceTokenizer:
        """The same with more words, which were never counted; see `Vocabulary.extended`."""
        return SpaceTokenizer(self.vocabulary.extended(words))

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        return space_words(text)

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(space_words(text))

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.vocabulary.token(number) for number in ids if number not in SILENT)

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
