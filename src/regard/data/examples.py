"""Encoded examples: rows of numbers of different lengths, in memory or mapped from disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.encoding import Column, RowEncoder, encode_rows


@dataclass(frozen=True)
class Ragged:
    """Rows end to end in one array; row i is `numbers[offsets[i]:offsets[i + 1]]`."""

    numbers: NDArray[np.unsignedinteger]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """A few rows, in memory."""
        return cls(
            np.array([number for row in rows for number in row], np.uint32), _offsets([len(row) for row in rows])
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.unsignedinteger]:
        return self.numbers[self.offsets[row] : self.offsets[row + 1]]

    def lengths(self) -> NDArray[np.int32]:
        """The length of every row."""
        return np.subtract(self.offsets[1:], self.offsets[:-1], dtype=np.int32, casting="unsafe")

    def padded(self, rows: NDArray[np.integer], width: int, fill: int) -> NDArray[np.int64]:
        """The given rows as a matrix, cut off or filled up on the right to one width."""
        begins = self.offsets[rows]
        lengths = np.minimum(self.offsets[rows + 1] - begins, width)
        spans = zip(begins.tolist(), (begins + lengths).tolist(), strict=True)
        matrix = np.full((len(rows), width), fill, dtype=np.int64)
        if len(rows):
            matrix[np.arange(width) < lengths[:, None]] = np.concatenate([self.numbers[a:b] for a, b in spans])
        return matrix


@dataclass(frozen=True)
class Examples:
    """The columns of a corpus; which ones there are depends on the task (see `regard.data.encoding`)."""

    columns: Mapping[Column, Ragged]

    def __len__(self) -> int:
        return min(len(column) for column in self.columns.values())

    def release(self) -> None:
        """Give back memory that reading has filled, where the rows can be read again from disk."""


def encode_examples(rows: Iterable[Sequence[str]], encoder: RowEncoder) -> Examples:
    """Encode a small corpus in memory, without shards."""
    encoded = encode_rows(encoder, enumerate(rows, start=1))
    columns = [Ragged(numbers, _offsets(lengths)) for numbers, lengths in encoded]
    return Examples(dict(zip(encoder.sizes, columns, strict=True)))


def _offsets(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
