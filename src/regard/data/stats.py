"""A corpus in numbers: how many pairs, how long, how many different words."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from regard.data.check import SIDES, Seen
from regard.data.lines import in_blocks
from regard.data.readers import Corpus
from regard.data.series import read_series
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import parse
from regard.text.vocabulary import Tokenizer


@dataclass(frozen=True)
class Spread:
    """The distribution of lengths."""

    total: int
    mean: float
    median: int
    ninety_five: int  # the 95th percentile
    longest: int


@dataclass(frozen=True)
class SideStats:
    """One side of a corpus. Words are separated by whitespace."""

    side: str
    characters: Spread
    words: Spread
    different_words: int
    tokens: Spread | None = None  # if a tokenizer was given


@dataclass(frozen=True)
class StatsReport:
    """A corpus in numbers."""

    files: tuple[str, ...]
    pairs: int
    sides: tuple[SideStats, ...]


class _SideSums:
    """The lengths of one side, in a dozen bytes a row."""

    def __init__(self, name: str, tokenizer: Tokenizer | None) -> None:
        self._name, self._tokenizer = name, tokenizer
        self._characters, self._words, self._tokens = array("I"), array("I"), array("I")
        self._different = Seen()

    def add(self, texts: list[str]) -> None:
        words = [text.split() for text in texts]
        self._characters.extend(map(len, texts))
        self._words.extend(map(len, words))
        self._different.add(set(chain.from_iterable(words)))
        if self._tokenizer is not None:
            self._tokens.extend(len(self._tokenizer.encode(text)) for text in texts)

    def report(self) -> SideStats:
        tokens = _spread(self._tokens) if self._tokenizer is not None else None
        return SideStats(self._name, _spread(self._characters), _spread(self._words), len(self._different), tokens)


def stats(corpus: Corpus, tokenizers: Tokenizers | None = None, names: Sequence[str] = SIDES) -> StatsReport:
    """Measure the columns of a corpus, also in tokens if tokenizers are given; labels have no tokens."""
    given = (None, None) if tokenizers is None else (tokenizers.source, tokenizers.target)
    cut = [tokenizer if name not in ("tags", "label") else None for name, tokenizer in zip(names, given, strict=False)]
    sides = [_SideSums(name, tokenizer) for name, tokenizer in zip(names, cut, strict=True)]
    pairs = 0
    for block in in_blocks(corpus.rows(names)):
        for place, side in enumerate(sides):
            side.add([row[place] for _, row in block])
        pairs += len(block)
    return StatsReport(corpus.paths, pairs, tuple(side.report() for side in sides))


@dataclass(frozen=True)
class ChannelStats:
    """One channel of a series; None where it has no number."""

    file: str
    series: int  # its line, from 1
    channel: int  # from 1
    moments: int
    missing: int
    mean: float | None
    deviation: float | None
    least: float | None
    most: float | None


def series_stats(corpus: Corpus) -> list[ChannelStats]:
    """Every channel of every series of every file."""
    found = []
    for path in corpus.paths:
        for line, (text,) in read_series(path, corpus.columns):
            for channel, numbers in enumerate(parse(text, 1, 1)[0].T, start=1):
                known = numbers[~np.isnan(numbers)]
                told = [float(each(known)) for each in (np.mean, np.std, np.min, np.max)] if len(known) else [None] * 4
                found.append(ChannelStats(path, line, channel, len(numbers), len(numbers) - len(known), *told))
    return found


def _spread(lengths: array[int]) -> Spread:
    numbers = np.frombuffer(lengths, np.uint32)
    if len(numbers) == 0:
        return Spread(0, 0.0, 0, 0, 0)
    median, ninety_five = np.quantile(numbers, (0.5, 0.95), method="inverted_cdf").tolist()
    total = int(numbers.sum(dtype=np.int64))
    return Spread(total, total / len(numbers), int(median), int(ninety_five), int(numbers.max()))
