"""Rows of text to rows of numbers, for each task: which columns it reads, and which it makes.

Every task's numbers go into the same few columns, so that shards and batches are written once:

    source   ids that an encoder reads          translation, tagging, classification
    target   ids that a decoder writes          translation, language modelling
    labels   one label for each piece           tagging; stored plus one, because 0 is "no label"
    label    one label for the row              classification; likewise
    letters  how each piece of the source is written, a fixed number of bytes a piece (`regard.text.spelling`)

A source to be translated ends with `<end>`, so that even an empty one is something to read. Targets are bare:
`<start>` and `<end>` are added when a batch is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError, did_you_mean
from regard.text.spelling import LETTERS, own_piece, spell, word_ids, word_letters
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizers import Frame, Tokenizers
from regard.text.vocabulary import Vocabulary

Column = Literal["source", "target", "labels", "label", "letters"]


class RowEncoder(Protocol):
    """How one task turns a row of text into numbers. Plain data, so that it can travel to other processes."""

    names: ClassVar[tuple[str, ...]]  # the text columns it reads

    @property
    def sizes(self) -> dict[Column, int]:
        """The columns it makes, and how many different numbers each can hold."""

    def encode(self, row: Sequence[str]) -> tuple[list[int], ...]:
        """The numbers of one row, in the order of `sizes`."""

    def fingerprint(self) -> str:
        """Changes when the same text would become other numbers."""


@dataclass(frozen=True)
class PairEncoder:
    """Translation: a source and a target sentence."""

    tokenizers: Tokenizers
    names: ClassVar[tuple[str, ...]] = ("source", "target")

    @property
    def sizes(self) -> dict[Column, int]:
        return {"source": self.tokenizers.source.size, "target": self.tokenizers.target.size}

    def encode(self, row: Sequence[str]) -> tuple[list[int], ...]:
        source, target = row
        return self.tokenizers.read(source), self.tokenizers.written(target)

    def fingerprint(self) -> str:
        sides, frame = (self.tokenizers.source, self.tokenizers.target), self.tokenizers.frame
        framed = () if frame == Frame() else (repr(frame),)
        return _digest("pair", *(side.fingerprint() for side in sides), *framed)


@dataclass(frozen=True)
class TextEncoder:
    """Language modelling: a text that is its own target."""

    tokenizer: Tokenizer
    names: ClassVar[tuple[str, ...]] = ("text",)

    @property
    def sizes(self) -> dict[Column, int]:
        return {"target": self.tokenizer.size}

    def encode(self, row: Sequence[str]) -> tuple[list[int], ...]:
        return (self.tokenizer.encode(row[0]),)

    def fingerprint(self) -> str:
        return _digest("text", self.tokenizer.fingerprint())


@dataclass(frozen=True)
class LabelEncoder:
    """Classification: a text and one label. With `letters`, so many bytes of every piece too."""

    tokenizer: Tokenizer
    labels: Vocabulary
    letters: int = 0
    names: ClassVar[tuple[str, ...]] = ("text", "label")

    @property
    def sizes(self) -> dict[Column, int]:
        return {"source": self.tokenizer.size, "label": len(self.labels) + 1, **_letter_size(self.letters)}

    def encode(self, row: Sequence[str]) -> tuple[list[int], ...]:
        text, label = row
        ids, numbers = self.tokenizer.encode(text), [_label(self.labels, label)]
        if not self.letters:
            return ids, numbers
        letters = (spell(piece, self.letters) for piece in self.tokenizer.pieces(text))
        return ids, numbers, list(chain.from_iterable(letters))

    def fingerprint(self) -> str:
        return _digest("label", str(self.letters), self.tokenizer.fingerprint(), *self.labels)


@dataclass(frozen=True)
class TagEncoder:
    """Tagging: words and their tags. One piece of a word has its tag, the first that is no mark of a capital."""

    tokenizer: Tokenizer
    tags: Vocabulary
    letters: int = 0
    names: ClassVar[tuple[str, ...]] = ("words", "tags")

    @property
    def sizes(self) -> dict[Column, int]:
        return {"source": self.tokenizer.size, "labels": len(self.tags) + 1, **_letter_size(self.letters)}

    def encode(self, row: Sequence[str]) -> tuple[list[int], ...]:
        words, tags = row[0].split(), row[1].split()
        if len(words) != len(tags):
            raise DataError(f"{len(words)} words but {len(tags)} tags; every word needs one tag")
        pieces = [word_ids(self.tokenizer, word) for word in words]
        ids, labels = list(chain.from_iterable(pieces)), list[int]()
        for word, own, tag in zip(words, pieces, tags, strict=True):
            place = own_piece(self.tokenizer, word)
            labels += [_label(self.tags, tag) if each == place else 0 for each in range(len(own))]
        if not self.letters:
            return ids, labels
        letters = (word_letters(self.tokenizer, word, self.letters) for word in words)
        return ids, labels, list(chain.from_iterable(letters))

    def fingerprint(self) -> str:
        return _digest("tag", str(self.letters), self.tokenizer.fingerprint(), *self.tags)


# A chunk of one column: its numbers end to end, and how many belong to each row.
EncodedChunk = tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]


def encode_rows(encoder: RowEncoder, rows: Iterable[tuple[int, Sequence[str]]]) -> list[EncodedChunk]:
    """Encode a chunk of rows, column by column; complaints say the line."""
    columns: list[list[list[int]]] = [[] for _ in encoder.sizes]
    for line, row in rows:
        try:
            for column, numbers in zip(columns, encoder.encode(row), strict=True):
                column.append(numbers)
        except DataError as problem:
            raise DataError(f"line {line}: {problem}") from problem
    sizes = encoder.sizes.values()
    return [_flatten(column, number_type(size)) for column, size in zip(columns, sizes, strict=True)]


def number_type(size: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type that holds numbers below `size`: two bytes do for most vocabularies."""
    return np.dtype("<u2" if size <= 1 << 16 else "<u4")


def _flatten(rows: list[list[int]], kind: np.dtype[np.unsignedinteger]) -> EncodedChunk:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return np.fromiter(chain.from_iterable(rows), kind, int(lengths.sum())), lengths


def _letter_size(letters: int) -> dict[Column, int]:
    return {"letters": LETTERS} if letters else {}


def _label(labels: Vocabulary, label: str) -> int:
    if label not in labels:
        raise DataError(f"label = {label!r}: not one of the labels learnt; {did_you_mean(label, labels)}")
    return labels.id(label) + 1


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
