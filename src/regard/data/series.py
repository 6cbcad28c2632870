"""Series: files of numbers over time, the windows of them that a forecaster learns from, and these as numbers.

A window is a context, which is read, and the future after it. What is read is scaled by the context or by the training
text, and of the future the naive forecast is taken away where that is the anchor: the model then learns what is to be
added to it. `Window` knows the way back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from regard.data.encoding import REAL, Column
from regard.data.lines import PACKED, open_bytes
from regard.data.readers import Corpus, read_rows
from regard.data.tables import Row
from regard.errors import DataError
from regard.settings import ForecastSettings
from regard.text.vectors import VECTOR, Vectors, array, inlined, parse, sequences, table, written

Matrix = NDArray[np.float64]
Part = Literal["", "train", "valid"]
FLATTEST = 1e-3  # the least deviation of a context, as a share of that of the training text


def read_series(path: str, columns: Sequence[str] = ()) -> Iterator[Row]:
    """Each series as one text. A CSV file is one, with a channel a column, and so is an array of NumPy, of which an
    .npz file has several; any other corpus has one a row, which may be the name of a file beside it."""
    name = PurePath(path.lower())
    suffix = name.suffix if name.suffix not in PACKED else PurePath(name.stem).suffix
    if suffix not in (".csv", ".npy", ".npz"):
        for line, row in read_rows(path, ("series",), columns):
            yield line, (inlined(row[0], Path(path).parent),)
        return
    with open_bytes(path) as file:
        data = file.read()
    try:
        found = [table(data, columns)] if suffix == ".csv" else [array(data)] if suffix == ".npy" else None
        for number, values in enumerate(sequences(data) if found is None else found, start=1):
            yield number, (written(values),)
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from problem


def read_windows(corpus: Corpus, cut: ForecastSettings, part: Part) -> Iterator[tuple[int, Matrix, Matrix]]:
    """The windows of all series, each with its line, a context and its future. Of two files the second goes on with the
    series of the first, and futures are those in the second."""
    past, *later = (read_series(path, corpus.columns) for path in corpus.paths)
    found = 0
    for line, (text,) in past:
        values, begin = parse(text, 1, 1)[0], 0
        for more in later:
            begin, (_, (rest,)) = len(values), next(more, (0, ("",)))
            if not rest:
                raise DataError(f"{corpus.paths[1]}: has fewer series than {corpus.paths[0]}; one each would be right")
            following = parse(rest, 1, 1)[0]
            if following.shape[1] != values.shape[1]:
                widths = f"{following.shape[1]} channels, in {corpus.paths[0]} {values.shape[1]}"
                raise DataError(f"{corpus.paths[1]}: series {line} has {widths}; as many would be right")
            values = np.concatenate((values, following))
        for context, future in windows(values, cut, part, begin):
            found += 1
            yield line, context, future
    if any(next(more, None) for more in later):
        raise DataError(f"{corpus.paths[1]}: has more series than {corpus.paths[0]}; one each would be right")
    if not found:
        length = f"forecast.context + forecast.horizon = {cut.context + cut.horizon} moments"
        raise DataError(f"{corpus.paths[-1]}: no series has {length} to {part or 'test'} with; give longer ones")


def windows(values: Matrix, cut: ForecastSettings, part: Part, begin: int = 0) -> Iterator[tuple[Matrix, Matrix]]:
    """The windows of a series whose futures begin at this moment or later. Validation has those whose future lies in
    the part held out, training those that end before it. A window whose future is not known at all is none."""
    length, step = len(values), cut.stride if part == "train" else 1
    border = length - max(cut.horizon, round(cut.held_out * length)) if part else 0
    first, last = max(cut.context, begin, border if part == "valid" else 0), length - cut.horizon
    last = min(last, border - cut.horizon) if part == "train" else last
    for origin in range(first, last + 1, step):
        future = values[origin : origin + cut.horizon]
        if not np.isnan(future).all():
            yield values[origin - cut.context : origin], future


def mean(values: Matrix, axis: int | None = None) -> Matrix:
    """Of the numbers that are known; 0 where none is."""
    real = ~np.isnan(values)
    return np.where(real, values, 0.0).sum(axis) / np.maximum(real.sum(axis), 1)


def _seasons(history: Matrix, season: int) -> Matrix:
    """(N, season, F), the first filled up in front; seasons of one moment where the history is shorter than one."""
    season = season if len(history) >= season else 1
    filled = np.concatenate((np.full((-len(history) % season, history.shape[1]), np.nan), history))
    return filled.reshape(-1, season, history.shape[1])


def naive(history: Matrix, horizon: int, season: int) -> Matrix:
    """The last season once more, or the last value where there is none: (H, F). A number that is missing there is that
    of the season before, and at last the last one that is known."""

    def known(first: Matrix, second: Matrix) -> Matrix:
        return np.where(np.isnan(second), first, second)

    ahead = known(reduce(known, history), reduce(known, _seasons(history, season)))
    return ahead[np.arange(horizon) % len(ahead)]


def seasonal_mean(history: Matrix, horizon: int, season: int) -> Matrix:
    """The mean of all seasons, or of all values where there is none: (H, F)."""
    seasons = _seasons(history, season)
    found = mean(seasons, 0)
    ahead = np.where(np.isnan(seasons).all(0), naive(history, len(found), season), found)
    return ahead[np.arange(horizon) % len(ahead)]


@dataclass(frozen=True)
class Window:
    """How the numbers of one window are brought to one scale, and forecasts back from it."""

    level: Matrix  # (F,)
    spread: Matrix  # (F,)
    anchor: Matrix  # (H, F)
    before: Matrix  # (S, F), what the anchor would have said of the context; (S, 0) where there is none

    @staticmethod
    def of(context: Matrix, vectors: Vectors, cut: ForecastSettings) -> Window:
        """By what the context has, or by the scale of the training text."""
        level, spread = np.array(vectors.mean), np.array(vectors.deviation)
        if cut.scale != "corpus":
            known = ~np.isnan(context).all(0)
            level = np.where(known, mean(context, 0), level)
            apart = context - level
            if cut.scale == "season" and len(context) > cut.season:
                apart = context[cut.season :] - context[: -cut.season]
            deviation = np.sqrt(mean(apart**2, 0))
            spread = np.where(deviation > FLATTEST * spread, deviation, spread)
        anchor, length = np.tile(level, (cut.horizon, 1)), len(context)
        season = cut.season if length >= cut.season else 1
        match cut.anchor:
            case "none":
                ahead, before = anchor, context[:, :0]
            case "naive":
                ahead = naive(context, cut.horizon, season)
                before = np.concatenate((np.full_like(context[:season], np.nan), context))[:length]
            case "mean":
                ahead = seasonal_mean(context, cut.horizon, season)
                before = seasonal_mean(context, season, season)[np.arange(-length, 0) % season]
            case _:
                assert_never(cut.anchor)
        return Window(level, spread, np.where(np.isnan(ahead), anchor, ahead), before)

    def read(self, context: Matrix, missing: Sequence[int]) -> list[tuple[float, ...]]:
        """The context as a model reads it: each vector's id, its numbers, which of them are missing, and how far they
        are from what the anchor would have said."""
        holes = np.isnan(context)[:, missing] if missing else np.zeros((len(context), 0))
        scaled = (context - self.level) / self.spread
        apart = (context - self.before) / self.spread if self.before.size else self.before
        return [(VECTOR, *row) for row in np.nan_to_num(np.concatenate((scaled, holes, apart), 1)).tolist()]

    def written(self, future: Matrix) -> Matrix:
        """The future as it is to be forecast: (H, 2 F), numbers and which of them are missing."""
        scaled = (future - self.anchor) / self.spread
        return np.concatenate((np.nan_to_num(scaled), np.isnan(future)), 1)

    def back(self, scaled: Matrix) -> Matrix:
        """Quantiles (H, F, Q) as numbers of the series."""
        return scaled * self.spread[:, None] + self.anchor[:, :, None]


@dataclass(frozen=True)
class WindowEncoder:
    """Forecasting: a context and its future, both vectors."""

    vectors: Vectors
    cut: ForecastSettings
    names: ClassVar[tuple[str, ...]] = ("context", "future")

    @property
    def sizes(self) -> dict[Column, int]:
        return {"source": VECTOR + 1, "target": VECTOR + 1, "vectors": REAL, "futures": REAL}

    def encode(self, row: Sequence[str]) -> tuple[list[Any], ...]:
        context, future = (parse(text, 1, 1)[0] for text in row)
        if context.shape[1] != len(self.vectors.mean) or future.shape[1] != context.shape[1]:
            raise DataError(f"channels = {context.shape[1]}: {len(self.vectors.mean)} would be right")
        window = Window.of(context, self.vectors, self.cut)
        read = window.read(context, self.vectors.missing)
        numbers = [number for vector in read for number in vector[1:]]
        return [VECTOR] * len(read), [VECTOR] * len(future), numbers, window.written(future).ravel().tolist()

    def fingerprint(self) -> str:
        parts = ("forecast", self.vectors.fingerprint(), self.cut.model_dump_json())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
