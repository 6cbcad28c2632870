"""Tokenizers for words, characters and bytes; capitals as separate marks; the letters of a word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from typing import Final, Literal

from regard.text.vocabulary import (
    END,
    PAD,
    SILENT,
    SPECIAL_TOKENS,
    START,
    UNK,
    Tokenizer,
    Vocabulary,
    VocabularyTokenizer,
    without_surrogates,
)

# Words: cut at whitespace, clitics and punctuation, with a mark that lets the text be put back together; or cut at
# whitespace alone, for text whose words are already separated.
#
# A no-break space (U+00A0, U+202F) does not separate words: it stays with its punctuation mark, as in French.

JOINER: Final = "￭"  # stands before a piece that had no space before it
TIE: Final = "‿"  # what is shown in its place, because few fonts have it
NO_BREAK: Final = "\u00a0\u202f"  # spaces that do not separate words


_RULES = r"""
    aujourd['’]hui                                                        # one word, despite its apostrophe
  | (?:https?://|www\.)\S*[^\W_][/]?  | [\w.+-]+@[\w-]+(?:\.[\w-]+)+       # an address stays whole
  | (?<!{letter})(?:(?:jus|lors|puis|quoi)?qu|[cdjlmnst])['’](?={letter}) # l'ours: l' ours, qu'il: qu' il
  | (?<={letter})n['’]t(?!{letter})                                       # doesn't: does n't
  | (?<={letter})['’](?:s|re|ve|ll|d|m)(?!{letter})                       # bear's: bear 's, we'll: we 'll
  | [$€£¥]\d++(?:[.,]\d++)*+(?!{letter})                                  # $5 and €10,000 stay whole
  | \d+(?:[.,:/\u00a0\u202f–-]\d+)+                                       # 3.14, 10,000, 10:30, 3/4/2024, 555-1234 too
  | (?<!{letter})(?:[^\W\d_]\.){{2,}}                                     # U.S. and p.m.
  | {letter}+?(?=n['’]t(?!{letter}))                                      # the part of doesn't before n't
  | {letter}+                                                             # a word, or a plain number
  | \.{{2,}} | -{{2,}}                                                    # an ellipsis, a dash
  | [«‹][\u00a0\u202f]                                                    # what opens a quotation, with its space
  | [\u00a0\u202f]+[^\w\s]?                                               # a mark with the space before it
  | \S                                                                    # any other mark stands alone
"""


_SPACED = re.compile(rf"[\S{NO_BREAK}]+")


def space_words(text: str) -> list[str]:
    """The words of a text, cut at whitespace; a no-break space does not separate words."""
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
    """Undo `split_words`. A joiner alone is a character of the text, not a mark.

    What follows an elided word is glued to it, also if a vocabulary has it only without the joiner."""
    text, elided = "", False
    for piece in pieces:
        text += piece[1:] if _is_glued(piece) else piece if elided else f" {piece}"
        elided = _is_elided(piece)
    return text.removeprefix(" ")


def _is_glued(piece: str) -> bool:
    return len(piece) > 1 and piece[0] == JOINER


def _is_elided(piece: str) -> bool:
    """Whether it is a word that ends in an apostrophe, such as l', which `split_words` cuts from a word alone."""
    word = piece.removeprefix(JOINER)
    return len(word) > 1 and word[-1] in "'’" and word[-2].isalpha()


@dataclass(frozen=True)
class WordTokenizer(VocabularyTokenizer):
    """Whole words by frequency: short sequences and readable pieces, but rare words become `<unk>`."""

    case: Case = "keep"  # "mark": capitals are separate marks, see below
    kind: Literal["word"] = field(default="word", init=False)

    @classmethod
    def learn(
        cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1, case: Case = "keep"
    ) -> WordTokenizer:
        """Count the words of a stream of lines."""
        words = (piece for line in lines for piece in _cased(split_words(line), case))
        always = MARKS if case == "mark" else ()
        return cls(Vocabulary.count(words, size=size, minimum=minimum, always=always), case)

    def pieces(self, text: str) -> list[str]:
        return list(_cased(split_words(text), self.case))

    def encode(self, text: str) -> list[int]:
        """The ids of the pieces. A piece without one gets the id of the same piece with, or without, a joiner."""
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
        """Whether a piece of `split_words` has ids other than `<unk>`."""
        return all(self.id(part) != UNK for part in _cased([piece], self.case))

    def id(self, piece: str) -> int:
        number = self.vocabulary.id(piece)
        return self.vocabulary.id(piece[1:] if _is_glued(piece) else JOINER + piece) if number == UNK else number

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        """A mark belongs to the word that follows, and at the end to the word before."""
        word, words, begun = -1, [], False
        for index, piece in enumerate(pieces):
            mark = self.case == "mark" and piece in MARKS
            marked = next((other for other in pieces[index:] if other not in MARKS), JOINER * 2) if mark else piece
            word += word < 0 or not (begun or _is_glued(marked))
            begun = mark or _is_elided(piece)
            words.append(word)
        return words

    def details(self) -> dict[str, object]:
        return {"case": self.case} if self.case != "keep" else {}


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
class SpaceTokenizer(VocabularyTokenizer):
    """Text cut at spaces alone, for text whose words are already separated, as in a treebank."""

    kind: Literal["space"] = field(default="space", init=False)

    @classmethod
    def learn(cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1) -> SpaceTokenizer:
        """Count the words of a stream of lines."""
        words = (word for line in lines for word in space_words(line))
        return cls(Vocabulary.count(words, size=size, minimum=minimum))

    def pieces(self, text: str) -> list[str]:
        return space_words(text)

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.vocabulary.token(number) for number in ids if number not in SILENT)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return list(range(len(pieces)))


def legible(piece: str) -> str:
    """A piece in characters that most fonts have."""
    return piece.replace(JOINER, TIE)


# Capitals as separate marks, so that *The* and *the* are one word to a model: The → ⇧ the, NATO → ⇪ nato.
#
# A word gets a mark only if the mark restores it exactly; one of mixed case (McDonald, iPhone) stays as it is.
# A mark that the text itself contains is written twice.

Case = Literal["keep", "mark"]
CAPITAL: Final = "⇧"  # the first letter of the next word is a capital
CAPITALS: Final = "⇪"  # all its letters are, two at the least
MARKS: Final = (CAPITAL, CAPITALS)


@lru_cache(maxsize=1 << 16)
def lowered(word: str) -> tuple[str, str]:
    """The mark for a word's capitals, or "", and what is written after the mark."""
    if word.startswith(MARKS):
        return "", word[0] + word
    low = word.lower()
    if low != word and not low.startswith(MARKS):
        for mark in MARKS:
            if _raised(mark, low) == word:
                return mark, low
    return "", word


def raised(mark: str, word: str) -> str:
    """The word that `lowered` was given."""
    if word.startswith(MARKS) and word[1:2] == word[0]:
        return word[1:]
    return _raised(mark, word)


def _raised(mark: str, word: str) -> str:
    if mark == CAPITALS:
        return word.upper()
    if mark == CAPITAL:
        first = next((index for index, letter in enumerate(word) if letter.upper() != letter), len(word))
        return word[:first] + word[first : first + 1].upper() + word[first + 1 :]
    return word


def mark_words(words: Iterable[str]) -> Iterator[str]:
    """Words, each mark as a separate word before its own."""
    for word in words:
        mark, low = lowered(word)
        if mark:
            yield mark
        yield low


def unmark_words(words: Iterable[str]) -> Iterator[str]:
    """Undo `mark_words`. A mark may be glued to its word, as models sometimes write it; one without a word is lost."""
    mark = ""
    for word in words:
        if word in MARKS:
            mark = word
        elif word.startswith(MARKS) and word[1] != word[0]:
            yield raised(word[0], word[1:])
            mark = ""
        else:
            yield raised(mark, word)
            mark = mark if not word else ""


# Characters and bytes: the smallest vocabularies, the longest sequences; every text comes back exactly.

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_FIRST_BYTE: Final = len(SPECIAL_TOKENS)
_BYTE_TOKENS = (*SPECIAL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256)))
_BYTE_IDS = {token: number for number, token in enumerate(_BYTE_TOKENS)}


@dataclass(frozen=True)
class CharacterTokenizer(VocabularyTokenizer):
    """One piece for each Unicode character of the corpus."""

    kind: Literal["character"] = field(default="character", init=False)

    @classmethod
    def learn(cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1) -> CharacterTokenizer:
        """Count the characters of a stream of lines."""
        return cls(Vocabulary.count(chain.from_iterable(lines), size=size, minimum=minimum))

    def pieces(self, text: str) -> list[str]:
        return list(text)

    def decode(self, ids: Iterable[int]) -> str:
        printed = (number for number in ids if number not in SILENT)
        return "".join(_UNKNOWN if number == UNK else self.vocabulary.token(number) for number in printed)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return _words_of_characters(pieces)


@dataclass(frozen=True)
class ByteTokenizer(Tokenizer):
    """The 256 bytes of UTF-8: nothing to learn, and nothing is ever unknown."""

    kind: Literal["byte"] = field(default="byte", init=False)

    @property
    def size(self) -> int:
        return len(_BYTE_TOKENS)

    def pieces(self, text: str) -> list[str]:
        return [_BYTE_TOKENS[number] for number in self.encode(text)]

    def encode(self, text: str) -> list[int]:
        return [byte + _FIRST_BYTE for byte in without_surrogates(text).encode()]

    def decode(self, ids: Iterable[int]) -> str:
        printed = (number for number in ids if number not in SILENT)
        data = b"".join(bytes([number - _FIRST_BYTE]) if number != UNK else _UNKNOWN.encode() for number in printed)
        return data.decode("utf-8", "replace")

    def token(self, number: int) -> str:
        return _BYTE_TOKENS[number]

    def id(self, piece: str) -> int:
        return _BYTE_IDS.get(piece, UNK)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        data = bytes(self.id(piece) - _FIRST_BYTE for piece in pieces)
        characters = data.decode("utf-8", "surrogateescape")  # a stray byte stays one character
        words = _words_of_characters(characters)
        widths = (len(character.encode("utf-8", "surrogateescape")) for character in characters)
        return [word for word, width in zip(words, widths, strict=True) for _ in range(width)]


def _words_of_characters(characters: Iterable[str]) -> list[int]:
    """A space belongs to the word before it, and leading spaces to the first word."""
    word, inside, words = -1, False, []
    for character in characters:
        solid = not character.isspace() or character in NO_BREAK
        word += not inside and solid
        inside = solid
        words.append(max(word, 0))
    return words


# How a word is written, for models that read letters: the bytes of UTF-8, numbered as in `ByteTokenizer`, between
# `<start>` and `<end>`, which tell a model where a word begins and ends.

LETTERS: Final = ByteTokenizer().size  # different letters, special ones included


@lru_cache(maxsize=1 << 16)
def spell(piece: str, places: int) -> tuple[int, ...]:
    """A piece's letters in exactly `places` numbers. The middle of a long one is left out: endings say most."""
    letters = [START, *ByteTokenizer().encode(piece), END]
    if len(letters) > places:
        letters = letters[: places // 2] + letters[-((places + 1) // 2) :]
    return (*letters, *[PAD] * (places - len(letters)))


def word_ids(tokenizer: Tokenizer, word: str) -> list[int]:
    """The ids of one word, at least one: a word without pieces is `<unk>`."""
    return tokenizer.encode(word) or [UNK]


def own_piece(tokenizer: Tokenizer, word: str) -> int:
    """The index of the piece that has the word's label: the first that is not a mark for capitals."""
    if getattr(tokenizer, "case", "keep") != "mark":
        return 0
    pieces = tokenizer.pieces(word)
    return next((index for index, piece in enumerate(pieces) if piece.lstrip("▁") not in ("", *MARKS)), 0)


def word_letters(tokenizer: Tokenizer, word: str, places: int) -> list[int]:
    """The letters of a word's pieces, one after the other."""
    pieces = tokenizer.pieces(word) or [word]
    return [letter for piece in pieces for letter in spell(piece, places)]
