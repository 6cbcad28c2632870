"""Pictures as data: charts, and grids of heat maps. `regard.explain.heatmap` has the heat map itself.

A picture has what is drawn, not how: `regard.show.svg`, `regard.show.terminal` and `regard.show.png` draw it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from regard.explain.heatmap import HeatMap


@dataclass(frozen=True)
class Point:
    """A value with its interval. A line is interrupted where there is no value."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""  # a tooltip


@dataclass(frozen=True)
class Series:
    """Points under one name, from left to right."""

    name: str
    points: Sequence[Point]
    note: str = ""


@dataclass(frozen=True)
class Axis:
    """An axis: its ends, and labels at some values. A label may have several lines."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    start: float = 0.0  # the pixels of its ends
    end: float = 1.0

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


NO_AXIS = Axis("", 0.0, 1.0, ())


@dataclass(frozen=True)
class Chart:
    """Series as lines; as bars, one for the first point of each series; or as planes, a small scatter plot for each
    series, all to the same scale.

    Bars have one axis, y; planes have none.
    """

    title: str  # for screen readers
    series: Sequence[Series]
    x: Axis = NO_AXIS
    y: Axis = NO_AXIS
    kind: Literal["lines", "bars", "planes"] = "lines"


@dataclass(frozen=True)
class Grid:
    """Small heat maps in rows, such as the heads of a model, a row for each layer."""

    title: str
    rows: Sequence[Sequence[HeatMap]]
    values: bool = True  # write them into the SVG, which doubles its size


def linear(label: str, values: Sequence[float], *, zero: bool = False, count: int = 5) -> Axis:
    """An axis of numbers with round labels that covers `values`, and 0 if asked or if it is near."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if zero or 0 < low < (high - low) / 2:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = round_step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    decimals = max(0, -math.floor(math.log10(step)))
    ticks = tuple((number * step, f"{number * step:,.{decimals}f}") for number in range(first, last + 1))
    return Axis(label, ticks[0][0], ticks[-1][0], ticks)


def logarithmic(label: str, values: Sequence[float]) -> Axis:
    """An axis of powers of ten for values above 0; points on it are at `math.log10` of their value."""
    powers = [math.log10(value) for value in values if value > 0]
    low, high = min(powers, default=0.0), max(powers, default=1.0)
    factors = (1, 2, 5) if high - low < 2.5 else (1,)
    exponents = range(math.floor(low) - 1, math.ceil(high) + 2)
    marks = [math.log10(factor) + exponent for exponent in exponents for factor in factors]
    first = max(mark for mark in marks if mark <= low + 1e-9)
    last = min(mark for mark in marks if mark >= max(high, first + 1e-3) - 1e-9)
    ticks = tuple((mark, _power(10**mark)) for mark in marks if first <= mark <= last)
    return Axis(label, first, last, ticks)


def _power(value: float) -> str:
    """A power of ten, written out if that is short."""
    return f"{value:,.0f}" if 1000 <= value * 1.001 < 1e7 else f"{value:.3g}"


def round_step(step: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step * (1 - 1e-9)), 10 * power)


def categories(label: str, names: Sequence[str]) -> Axis:
    """An axis of names, one at each whole number from 0."""
    return Axis(label, -0.5, len(names) - 0.5, tuple((float(place), name) for place, name in enumerate(names)))
