"""Tokenizers of imported models: they cut text as their own libraries do, and are never learned here.

Ids are the imported model's and are looked up by the spelling of a piece: OPUS-MT has one vocabulary for two
sentencepiece models, fairseq a dictionary for `@@` merges. The special tokens come first, as everywhere.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import accumulate, groupby, pairwise
from typing import Final, Literal

import sentencepiece

from regard.errors import ModelError
from regard.text.subwords import MODEL, SPACE, open_model, word_of_spaced
from regard.text.vocabulary import SILENT, UNK, Vocabulary, VocabularyTokenizer, decoded, without_surrogates
from regard.text.words import space_words

MERGES: Final = "merges.txt"
GOES_ON: Final = "@@"  # subword-nmt's mark: the word goes on with the next piece
BYTE_SPACE: Final = "Ġ"  # how a space is written among the letters of `_byte_letters`
_END_OF_WORD = "</w>"
_VERSIONS = {(0, 1), (0, 2)}


@dataclass(frozen=True)
class ForeignTokenizer(VocabularyTokenizer):
    """What they share: `control` tokens, such as names of languages, which never come from text and leave no text."""

    vocabulary: Vocabulary = field(repr=False)
    control: tuple[str, ...] = ()

    @cached_property
    def silent(self) -> frozenset[int]:
        return SILENT | {self.vocabulary.id(token) for token in self.control if token in self.vocabulary}

    def encode(self, text: str) -> list[int]:
        silent = self.silent
        return [UNK if number in silent else number for number in super().encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        return self.join([self.vocabulary.token(number) for number in ids if number not in self.silent])

    @abstractmethod
    def join(self, pieces: Sequence[str]) -> str:
        """The text of pieces."""

    def details(self) -> dict[str, object]:
        return {"control": list(self.control)} if self.control else {}


@dataclass(frozen=True, kw_only=True)
class SentencePieceTokenizer(ForeignTokenizer):
    """A sentencepiece model of any kind. Its normaliser may change a text; `decode` gives the changed text."""

    model: bytes = field(repr=False)
    kind: Literal["sentencepiece"] = field(default="sentencepiece", init=False)

    def pieces(self, text: str) -> list[str]:
        return self._processor.encode(without_surrogates(text), out_type=str)

    def join(self, pieces: Sequence[str]) -> str:
        text: str = self._processor.decode(list(pieces))
        return text.replace(SPACE, " ").removeprefix(
            " "
        )  # sentencepiece leaves pieces that it does not know as they are

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return word_of_spaced(pieces)

    def files(self) -> dict[str, bytes]:
        return super().files() | {MODEL: self.model}

    @cached_property
    def _processor(self) -> sentencepiece.SentencePieceProcessor:
        return open_model(self.model)


Merges = dict[tuple[str, str], int]  # which two pieces are merged, and the rank of the merge


@dataclass(frozen=True, kw_only=True)
class MergesTokenizer(ForeignTokenizer):
    """Byte-pair encoding by subword-nmt (Sennrich et al. 2016): `@@` says that a word goes on.

    `codes` is the file itself, of version 0.1 or 0.2, or fastBPE's with its counts. Words are separated by spaces: a
    model trained on text that was tokenized in another way needs its text tokenized so. `lower` reads small letters.
    """

    codes: str = field(repr=False)
    lower: bool = False
    kind: Literal["subword-nmt"] = field(default="subword-nmt", init=False)

    def pieces(self, text: str) -> list[str]:
        words = space_words(without_surrogates(text.lower() if self.lower else text))
        return [piece for word in words for piece in self._cut(word)]

    def join(self, pieces: Sequence[str]) -> str:
        return (" ".join(pieces) + " ").replace(f"{GOES_ON} ", "").rstrip(" ")

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        ends = (not piece.endswith(GOES_ON) for piece in pieces[:-1])
        return list(accumulate(ends, initial=0))[: len(pieces)]

    def details(self) -> dict[str, object]:
        return super().details() | ({"lower": True} if self.lower else {})

    def files(self) -> dict[str, bytes]:
        return super().files() | {MERGES: self.codes.encode()}

    @cached_property
    def _cut(self) -> Callable[[str], tuple[str, ...]]:
        merges, apart = read_merges(self.codes, _END_OF_WORD)

        def cut(word: str) -> tuple[str, ...]:
            if len(word) == 1:
                return (word,)
            ending = [word[-1], _END_OF_WORD] if apart else [word[-1] + _END_OF_WORD]
            merged = merge([*word[:-1], *ending], merges)
            last = merged[-1].removesuffix(_END_OF_WORD)
            *before, last = [*merged[:-1], last] if last else merged[:-1]
            return (*(piece + GOES_ON for piece in before), last)

        return lru_cache(maxsize=1 << 16)(cut)


@dataclass(frozen=True, kw_only=True)
class ByteMergesTokenizer(ForeignTokenizer):
    """Byte-pair encoding on bytes, as in GPT-2 and BART (Radford et al. 2019): no text is unknown.

    A text is first cut into words, numbers and marks, each with the space before it.
    """

    codes: str = field(repr=False)
    kind: Literal["byte-bpe"] = field(default="byte-bpe", init=False)

    def pieces(self, text: str) -> list[str]:
        return [piece for word in _byte_words().findall(without_surrogates(text)) for piece in self._cut(word)]

    def join(self, pieces: Sequence[str]) -> str:
        known = {letter: byte for byte, letter in enumerate(_byte_letters())}
        data = b"".join(
            bytes([known[letter]]) if letter in known else letter.encode() for piece in pieces for letter in piece
        )
        return data.decode("utf-8", "replace")

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return word_of_spaced(pieces, BYTE_SPACE)

    def files(self) -> dict[str, bytes]:
        return super().files() | {MERGES: self.codes.encode()}

    @cached_property
    def _cut(self) -> Callable[[str], tuple[str, ...]]:
        (merges, _), letters = read_merges(self.codes, ""), _byte_letters()
        return lru_cache(maxsize=1 << 16)(lambda word: tuple(merge([letters[byte] for byte in word.encode()], merges)))


def read_merges(codes: str, end: str) -> tuple[Merges, bool]:
    """The merges of a codes file by rank, and whether the end of a word is a piece of its own (version 0.1)."""
    lines = codes.rstrip("\n").split("\n")
    version: tuple[int, ...] = (0, 1)
    first, counted = 0, False
    if lines[0].startswith("#version:"):
        first, numbers = 1, re.sub(r"(\.0+)*$", "", lines[0].split()[-1]).split(".")
        version = tuple(int(number) if number.isdecimal() else -1 for number in numbers)
    if version not in _VERSIONS:
        raise ModelError(f"{MERGES} = {lines[0][:40]!r}: not a known version; 0.1 and 0.2 are known")
    merges: Merges = {}
    for number, line in enumerate(lines[first:], first + 1):
        parts = line.strip("\r\n ").split(" ")
        counted = counted or (len(parts) == 3 and parts[2].isdecimal())  # fastBPE, whose words end as in 0.2
        if len(parts) != 2 + counted or not all(parts):
            raise ModelError(f"{MERGES} line {number} = {line[:40]!r}: not two pieces to merge; is the file damaged?")
        merges.setdefault((parts[0], parts[1]), number)
    return merges, bool(end) and version == (0, 1) and not counted


def merge(pieces: list[str], merges: Merges) -> list[str]:
    """Merge neighbours, every pair of the lowest rank at once, until no merge is left."""
    while len(pieces) > 1:
        best = min((pair for pair in pairwise(pieces) if pair in merges), key=merges.__getitem__, default=None)
        if best is None:
            break
        pieces = joined(pieces, best)
    return pieces


def joined(pieces: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """The pieces with this pair merged wherever it occurs, from left to right."""
    merged, index = list[str](), 0
    while index < len(pieces):
        both = tuple(pieces[index : index + 2]) == pair
        merged.append("".join(pair) if both else pieces[index])
        index += 1 + both
    return merged


def read_dictionary(data: bytes, where: str) -> tuple[str, ...]:
    """The words of a fairseq dictionary (`dict.txt`: a word, a space, its count) in its order, without special ones."""
    words = []
    for number, line in enumerate(decoded(data, where).splitlines(), 1):
        word, space, count = line.rstrip().removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not space or not count.isdecimal():
            raise ModelError(f"{where} line {number} = {line[:40]!r}: not a word and its count; is the file damaged?")
        words.append(word)
    return tuple(words)


@cache
def _byte_letters() -> tuple[str, ...]:
    """A letter for each of the 256 bytes: its Latin-1 character if that is visible, else one from U+0100 on."""
    seen = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in seen else chr(next(others)) for byte in range(256))


@cache
def _byte_words() -> re.Pattern[str]:
    r"""GPT-2's rules. `re` has no \p{L} and no \p{N}, so both are listed here."""
    letter, number = _listed("L"), _listed("N")
    clitics = "'(?:[stmd]|ll|ve|re)"
    space = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    marks = rf" ?[^{space}{letter}{number}]+"
    return re.compile(rf"{clitics}| ?[{letter}]+| ?[{number}]+|{marks}|[{space}]+(?![^{space}])|[{space}]+")


def _listed(category: str) -> str:
    """All characters of a category, in the syntax of a character set of `re`."""
    codes = (code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == category)
    runs = [[code for _, code in run] for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0])]
    return "".join(f"\\U{run[0]:08x}-\\U{run[-1]:08x}" for run in runs)
