"""Subword sampling at the speed of a look-up: some ways to cut each word of a corpus are drawn beforehand, and a batch
takes one of them for each of its words.

Words are cut independently of each other, so drawing for words is drawing for sentences; that there are only `MOST`
cuts of a word, fewer of a rare one, is the approximation. `Tokenizer.sample` draws anew every time: the written-out
twin.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.encoding import Ragged
from regard.text.subwords import SubwordTokenizer

MOST, FEWEST = 16, 3  # cuts of a word: one for each time that it occurs, and so many more
LARGEST = 100_000_000  # pieces of a column at the most: what is kept in memory for each is four bytes

Numbers = NDArray[np.uint64]
_ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)


@dataclass(frozen=True)
class WordCuts:
    """The words of each row of a column, and the cuts of each word."""

    words: Ragged  # numbers of the words of each row
    cuts: Ragged  # the pieces of each cut, all cuts of a word one after another
    first: NDArray[np.int64]  # the first cut of each word; one more number at the end

    @classmethod
    def of(cls, column: Ragged, tokenizer: SubwordTokenizer, seed: int) -> WordCuts:
        """Draw the cuts of all words that occur. Special tokens are words with one cut."""
        known, words, lengths = dict[bytes, int](), list[NDArray[np.uint32]](), list[int]()
        begins = np.array([tokenizer.begins_word(number) for number in range(tokenizer.size)])
        for row in range(len(column)):
            ids = column[row]
            edges = np.flatnonzero(begins[ids])
            edges = edges if len(edges) and edges[0] == 0 else np.concatenate(([0], edges))
            pieces = (ids[a:b].tobytes() for a, b in zip(edges, [*edges[1:], len(ids)], strict=True))
            words.append(np.array([known.setdefault(piece, len(known)) for piece in pieces if piece], np.uint32))
            lengths.append(len(words[-1]))
        numbers = np.concatenate(words) if words else np.zeros(0, np.uint32)
        often = np.bincount(numbers, minlength=len(known))
        chance, found, counts = Random(seed), list[list[int]](), list[int]()
        for word, times in zip(known, often.tolist(), strict=True):
            ids = np.frombuffer(word, column.numbers.dtype).tolist()
            drawn = [tokenizer.resample(ids, chance) for _ in range(min(MOST, FEWEST + times))]
            drawn = drawn[:1] if all(each == drawn[0] for each in drawn) else drawn
            found += drawn
            counts.append(len(drawn))
        return cls(Ragged(numbers, _offsets(lengths)), Ragged.of(found), _offsets(counts))

    def draw(self, rows: NDArray[np.int64], key: int) -> Ragged:
        """Rows, each word cut at random. A row's cuts follow from the key and its number alone."""
        counts = self.words.offsets[rows + 1] - self.words.offsets[rows]
        places = _ranges(self.words.offsets[rows], counts)  # of all words of these rows
        words = self.words.numbers[places]
        chance = _mixed(np.uint64(key & (2**64 - 1)) + places.astype(np.uint64) * _ODD[0])
        many = (self.first[words + 1] - self.first[words]).astype(np.uint64)
        chosen = self.first[words] + (chance % many).astype(np.int64)
        starts, lengths = self.cuts.offsets[chosen], np.diff(self.cuts.offsets)[chosen]
        owners = np.repeat(np.arange(len(rows)), counts)
        each = np.bincount(owners, lengths, minlength=len(rows)).astype(np.int64)
        return Ragged(self.cuts.numbers[_ranges(starts, lengths)], _offsets(each))

    def fitting(self, usual: Ragged, rows: NDArray[np.int64], room: int, key: int, draws: int) -> Ragged:
        """The same, with at most ``room`` pieces a row: one that is too long is drawn again, up to ``draws`` times, and
        then taken from ``usual``."""
        parts, starts, lengths = list[NDArray[Any]](), np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        waiting, end = np.arange(len(rows)), 0
        for turn in range(draws + 1):
            drawn = self.draw(rows[waiting], _key(key, turn)) if turn < draws else _taken(usual, rows[waiting])
            parts.append(drawn.numbers)
            starts[waiting], lengths[waiting] = end + drawn.offsets[:-1], drawn.lengths()
            waiting, end = waiting[drawn.lengths() > room], end + len(drawn.numbers)
            if not len(waiting):
                break
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)[_ranges(starts, lengths)]
        return Ragged(numbers, _offsets(lengths))


def _taken(column: Ragged, rows: NDArray[np.int64]) -> Ragged:
    """Some rows of a column."""
    counts = column.offsets[rows + 1] - column.offsets[rows]
    return Ragged(column.numbers[_ranges(column.offsets[rows], counts)], _offsets(counts))


def _key(key: int, turn: int) -> int:
    return (key + turn * int(_ODD[1])) & (2**64 - 1)


def _mixed(numbers: Numbers) -> Numbers:
    """Well mixed bits of each number (SplitMix64; Steele et al., 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _ODD[1]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _ODD[2]
    return numbers ^ (numbers >> np.uint64(31))


def _ranges(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """``begin, begin + 1, …`` of each, so many, end to end."""
    before = np.cumsum(counts) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()), dtype=np.int64)


def _offsets(lengths: list[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
