"""Rows of text to rows of numbers, for each task: which columns it reads, and which it makes.

All tasks use the same few columns, so that shards and batches need no code for a task:

    source   ids that an encoder reads          translation, tagging, classification
    target   ids that a decoder writes          translation, language modelling
    labels   one label for each piece           tagging; stored plus one, because 0 is "no label"
    label    one label for the row              classification; likewise
    vectors  the numbers of a source that consists of vectors (`regard.text.vectors`), the same count for each
    letters  how each piece of the source is written, a fixed number of bytes a piece (`regard.text.words`)
    futures  the numbers of each vector of a target that has these, and which of them are missing (`regard.data.series`)
    links    which pieces go together: source, target, source, target, …

A source to be translated ends with `<end>`, so that even an empty one is not empty for the encoder; in a corpus the
source of a pair with an empty side has nothing. Targets have neither `<start>` nor `<end>`: these are added when a
batch is made.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, product
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError, did_you_mean
from regard.text.reading import is_unspaced
from regard.text.subwords import SPACE
from regard.text.tokenizers import Frame, Tokenizers
from regard.text.vectors import Vectors
from regard.text.vocabulary import Tokenizer, Vocabulary
from regard.text.words import JOINER, LETTERS, own_piece, space_words, spell, split_words, word_ids, word_letters

# Encoded examples: rows of numbers of different lengths, in memory or mapped from disk.


@dataclass(frozen=True)
class Ragged:
    """Rows end to end in one array; row i is `numbers[offsets[i]:offsets[i + 1]]`."""

    numbers: NDArray[np.number[Any]]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """A few rows, in memory."""
        return cls(np.array(list(chain.from_iterable(rows)), np.uint32), _offsets([len(row) for row in rows]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.number[Any]]:
        return self.numbers[self.offsets[row] : self.offsets[row + 1]]

    def lengths(self) -> NDArray[np.int32]:
        """The length of every row."""
        return np.subtract(self.offsets[1:], self.offsets[:-1], dtype=np.int32, casting="unsafe")

    def has(self, rows: Sequence[Sequence[int]]) -> list[bool]:
        """Which of some rows are among these. Only rows of equal length and with equal numbers at a few places are
        compared as a whole: a million rows take a fraction of a second."""
        alike = np.flatnonzero(np.isin(self._marks(), Ragged.of(rows)._marks()))
        found = {tuple(self[row].tolist()) for row in alike.tolist()}
        return [tuple(row) in found for row in rows]

    def _marks(self) -> NDArray[np.int64]:
        """A number for each row, equal for equal rows."""
        lengths = self.lengths().astype(np.int64)
        marks = lengths.copy()
        for quarter in range(4) if len(self.numbers) else ():
            places = np.minimum(self.offsets[:-1] + lengths * quarter // 4, len(self.numbers) - 1)
            marks = marks * 1_000_003 + np.where(lengths, self.numbers[places], 0)  # it may overflow: so do equal ones
        return marks

    def padded(self, rows: NDArray[np.integer], width: int, fill: int) -> NDArray[Any]:
        """The given rows as a matrix, cut off or filled up on the right to one width."""
        begins = self.offsets[rows]
        lengths = np.minimum(self.offsets[rows + 1] - begins, width)
        spans = zip(begins.tolist(), (begins + lengths).tolist(), strict=True)
        matrix = np.full((len(rows), width), fill, dtype=np.float32 if self.numbers.dtype.kind == "f" else np.int64)
        if len(rows):
            matrix[np.arange(width) < lengths[:, None]] = np.concatenate([self.numbers[a:b] for a, b in spans])
        return matrix


@dataclass(frozen=True)
class Examples:
    """The columns of a corpus; which ones there are depends on the task."""

    columns: Mapping[Column, Ragged]

    def __len__(self) -> int:
        return min(len(column) for column in self.columns.values())

    def release(self) -> None:
        """Free the memory of rows that can be read from disk again."""


def encode_examples(rows: Iterable[Sequence[str]], encoder: RowEncoder) -> Examples:
    """Encode a small corpus in memory, without shards."""
    encoded = encode_rows(encoder, enumerate(rows, start=1))
    columns = [Ragged(numbers, _offsets(lengths)) for numbers, lengths in encoded]
    return Examples(dict(zip(encoder.sizes, columns, strict=True)))


def _offsets(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


Column = Literal["source", "target", "labels", "label", "letters", "vectors", "futures", "links"]
REAL = 0  # the `size` of a column of real numbers


class RowEncoder(Protocol):
    """How one task turns a row of text into numbers. Plain data, so that it can be sent to other processes."""

    names: ClassVar[tuple[str, ...]]  # the text columns it reads

    @property
    def sizes(self) -> dict[Column, int]:
        """The columns it makes, and how many different numbers each can hold, or `REAL`."""

    def encode(self, row: Sequence[str]) -> tuple[list[Any], ...]:
        """The numbers of one row, in the order of `sizes`."""

    def fingerprint(self) -> str:
        """Changes if the same text would become other numbers."""


@dataclass(frozen=True)
class PairEncoder:
    """Translation: a source and a target sentence. A pair with an empty side teaches a model to make something up: its
    source has no pieces at all, not even `<end>`, and so it is in no batch (`plan`)."""

    tokenizers: Tokenizers
    names: ClassVar[tuple[str, ...]] = ("source", "target")

    @property
    def sizes(self) -> dict[Column, int]:
        sides: dict[Column, int] = {"source": self.tokenizers.source.size, "target": self.tokenizers.target.size}
        return sides | _vectors(self.tokenizers.source)

    def encode(self, row: Sequence[str]) -> tuple[list[Any], ...]:
        ids, *numbers = _apart(self.tokenizers.read(row[0]), self.tokenizers.source)
        target = self.tokenizers.written(row[1])
        if len(ids) <= len(self.tokenizers.framed(())) or len(target) <= len(self.tokenizers.begin):
            return [], target, *([] for _ in numbers)
        return ids, target, *numbers

    def fingerprint(self) -> str:
        sides, frame = (self.tokenizers.source, self.tokenizers.target), self.tokenizers.frame
        framed = () if frame == Frame() else (repr(frame),)
        return _digest("pair", *(side.fingerprint() for side in sides), *framed)


@dataclass(frozen=True)
class LinkEncoder:
    """Links between the words of a source and a target, in Pharaoh's format, as links between their pieces. Words are
    separated by spaces or, with ``parts``, also from their punctuation (`parts_of`)."""

    tokenizers: Tokenizers
    parts: bool = False
    names: ClassVar[tuple[str, ...]] = ("source", "target", "links")

    @property
    def sizes(self) -> dict[Column, int]:
        return {"links": 1 << 16}  # places of pieces

    def encode(self, row: Sequence[str]) -> tuple[list[int], ...]:
        ids = self.tokenizers.read(row[0]), self.tokenizers.written(row[1])
        both = zip((self.tokenizers.source, self.tokenizers.target), ids, row[:2], strict=True)
        source, target = (
            pieces_of_parts(each, numbers, text) if self.parts else pieces_of_words(each, numbers)
            for each, numbers, text in both
        )
        links = list[int]()
        for link in row[2].split():
            match = _LINK.fullmatch(link)
            if match is None or int(match[1]) >= len(source) or int(match[2]) >= len(target):
                sizes = f"of {len(source)} and {len(target)} words"
                raise DataError(f"link = {link[:40]}: not a link between sentences {sizes}; 0-0 is one, source first")
            links += chain.from_iterable(product(source[int(match[1])], target[int(match[2])]))
        return (links,)

    def fingerprint(self) -> str:
        return _digest("links", str(self.parts), PairEncoder(self.tokenizers).fingerprint())


_LINK = re.compile(r"(\d{1,9})[-?p](\d{1,9})", re.ASCII)


def pieces_of_words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[int]]:
    """For each word, as separated by spaces, the positions of its pieces."""
    positions = [position for position, number in enumerate(ids) if number not in tokenizer.silent]
    owners = tokenizer.word_of([tokenizer.token(ids[position]) for position in positions])
    words: list[list[int]] = [[] for _ in range(owners[-1] + 1 if owners else 0)]
    for position, owner in zip(positions, owners, strict=True):
        words[owner].append(position)
    return words


@lru_cache(maxsize=1 << 16)
def parts_of(word: str) -> tuple[str, ...]:
    """A word and its punctuation, separated; in a script without spaces, each letter by itself."""
    cut = (part[1:] if len(part) > 1 and part[0] == JOINER else part for part in split_words(word))
    return tuple(chain.from_iterable(part if is_unspaced(part[0]) else (part,) for part in cut))


def pieces_of_parts(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[list[int]]:
    """For each part of each word the positions of the pieces that have letters of it, or of all pieces of the word if
    these do not spell it letter by letter."""
    words, pieces = space_words(text), pieces_of_words(tokenizer, ids)
    if len(words) != len(pieces):  # the tokenizer changed the text
        return [[] for word in words for _ in parts_of(word)]
    parts = list[list[int]]()
    for word, positions in zip(words, pieces, strict=True):
        names = [tokenizer.token(ids[position]).removeprefix(SPACE).removeprefix(JOINER) for position in positions]
        owners = [position for position, name in zip(positions, names, strict=True) for _ in name]  # of each letter
        for end, part in zip(accumulate(map(len, parts_of(word))), parts_of(word), strict=True):
            own = owners[end - len(part) : end] if "".join(names) == word else positions
            parts.append(sorted(set(own)))
    return parts


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
    """Classification: a text and one label. With `letters`, also so many bytes of every piece."""

    tokenizer: Tokenizer
    labels: Vocabulary
    letters: int = 0
    names: ClassVar[tuple[str, ...]] = ("text", "label")
    column: ClassVar[Column] = "label"

    @property
    def sizes(self) -> dict[Column, int]:
        own: dict[Column, int] = {"source": self.tokenizer.size, self.column: len(self.labels) + 1}
        beside: dict[Column, int] = {"letters": LETTERS} if self.letters else _vectors(self.tokenizer)
        return own | beside

    def encode(self, row: Sequence[str]) -> tuple[list[Any], ...]:
        text, label = row
        if isinstance(self.tokenizer, Vectors):
            ids, numbers = _apart(self.tokenizer.encode(text), self.tokenizer)
            return ids, [self._number(label)], numbers
        letters = (spell(piece, self.letters) for piece in self.tokenizer.pieces(text))
        return self._row(self.tokenizer.encode(text), [self._number(label)], letters)

    def _row(self, ids: list[int], labels: list[int], letters: Iterable[Iterable[int]]) -> tuple[list[int], ...]:
        return (ids, labels, list(chain.from_iterable(letters))) if self.letters else (ids, labels)

    def _number(self, label: str) -> int:
        if label not in self.labels:
            raise DataError(f"label = {label!r}: not one of the labels learnt; {did_you_mean(label, self.labels)}")
        return self.labels.id(label) + 1

    def fingerprint(self) -> str:
        kind = "label" if self.column == "label" else "tag"
        return _digest(kind, str(self.letters), self.tokenizer.fingerprint(), *self.labels)


@dataclass(frozen=True)
class TagEncoder(LabelEncoder):
    """Tagging: words or vectors and tags. The first piece of a word that is not a mark for capitals has its tag."""

    names: ClassVar[tuple[str, ...]] = ("words", "tags")
    column: ClassVar[Column] = "labels"

    def encode(self, row: Sequence[str]) -> tuple[list[Any], ...]:
        words, tags = row[0].split(), row[1].split()
        if isinstance(self.tokenizer, Vectors):
            found, numbers = _apart(self.tokenizer.encode(row[0]), self.tokenizer)
            if len(found) != len(tags):
                raise DataError(f"{len(found)} vectors but {len(tags)} tags; every vector needs one tag")
            return found, [self._number(tag) for tag in tags], numbers
        if len(words) != len(tags):
            raise DataError(f"{len(words)} words but {len(tags)} tags; every word needs one tag")
        ids, labels = list[int](), list[int]()
        for word, tag in zip(words, tags, strict=True):
            own, tagged = word_ids(self.tokenizer, word), own_piece(self.tokenizer, word)
            ids += own
            labels += [self._number(tag) if piece == tagged else 0 for piece in range(len(own))]
        return self._row(ids, labels, (word_letters(self.tokenizer, word, self.letters) for word in words))


def _vectors(tokenizer: Tokenizer) -> dict[Column, int]:
    return {"vectors": REAL} if isinstance(tokenizer, Vectors) else {}


def _apart(read: list[Any], tokenizer: Tokenizer) -> tuple[list[Any], ...]:
    """The ids and, of vectors, all their numbers."""
    if not isinstance(tokenizer, Vectors):
        return (read,)
    return [frame[0] for frame in read], [number for frame in read for number in frame[1:]]


# A chunk of one column: its numbers end to end, and how many belong to each row.
EncodedChunk = tuple[NDArray[np.number[Any]], NDArray[np.int64]]


def encode_rows(encoder: RowEncoder, rows: Iterable[tuple[int, Sequence[str]]]) -> list[EncodedChunk]:
    """Encode a chunk of rows, column by column; errors name the line."""
    columns: list[list[list[Any]]] = [[] for _ in encoder.sizes]
    for line, row in rows:
        try:
            for column, numbers in zip(columns, encoder.encode(row), strict=True):
                column.append(numbers)
        except DataError as problem:
            raise DataError(f"line {line}: {problem}") from problem
    sizes = encoder.sizes.values()
    return [_flatten(column, number_type(size)) for column, size in zip(columns, sizes, strict=True)]


def number_type(size: int) -> np.dtype[np.number[Any]]:
    """The smallest type that holds numbers below `size`: two bytes do for most vocabularies."""
    return np.dtype("<f4" if size == REAL else "<u2" if size <= 1 << 16 else "<u4")


def _flatten(rows: list[list[Any]], kind: np.dtype[np.number[Any]]) -> EncodedChunk:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return np.fromiter(chain.from_iterable(rows), kind, int(lengths.sum())), lengths


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
