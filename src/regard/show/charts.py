"""Charts as SVG, written by hand: lines with intervals, and bars.

A series is told apart by colour, by marker and by dash, so that no one of them is needed alone. The colours are
CSS variables (`STYLE`), dark and light; six hues in the order of Okabe and Ito's colour-blind-safe set, made
darker or lighter until each stands out from its background by 4 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.show import letters
from regard.show.markup import Html, element, join

WIDE, NARROW = 720, 340  # pixels: for a desk or paper, for a telephone
SIZE = 12  # of letters
LINE = 16  # from one line of text to the next
GAP = 8  # between two labels, at least
MOST_MARKED = 24  # points of a series that get a marker each
COLOURS, DASHES = 6, ("none", "7 3", "2 3", "9 3 2 3")

STYLE = """
:root{--s0:#0072b2;--s1:#c84e00;--s2:#007a58;--s3:#9c4a7b;--s4:#856900;--s5:#555555;--grid:#dcdfe4;--paper:#ffffff}
@media (prefers-color-scheme:dark){:root{--s0:#56b4e9;--s1:#ff9455;--s2:#2fd0a0;--s3:#e59ac8;--s4:#e8c547;--s5:#c4c8cf;
--grid:#3a3f47;--paper:#16181d}}
svg.chart{font:12px/1 system-ui,sans-serif;display:block;overflow:visible}
svg.chart text{fill:currentColor}
svg.chart .grid{stroke:var(--grid);stroke-width:1}
svg.chart .path{fill:none;stroke:var(--hue);stroke-width:2;stroke-linejoin:round}
svg.chart .interval{fill:none;stroke:var(--hue);stroke-width:1.5}
svg.chart .whisker{fill:none;stroke:currentColor;stroke-width:1.5}
svg.chart .marker{fill:var(--hue);stroke:var(--paper);stroke-width:1}
svg.chart .bar{fill:var(--hue);opacity:.55}
.s0{--hue:var(--s0)}.s1{--hue:var(--s1)}.s2{--hue:var(--s2)}.s3{--hue:var(--s3)}.s4{--hue:var(--s4)}.s5{--hue:var(--s5)}
"""


@dataclass(frozen=True)
class Point:
    """A value at a place, with its interval. Where there is no value, the line is broken."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""  # shown when pointed at


@dataclass(frozen=True)
class Series:
    """Points under one name, from left to right."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Bar:
    """A value with its interval."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Axis:
    """What a direction means: its ends, and labels at some places. A label may have several lines."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float, start: float, end: float) -> float:
        """The pixel of a value, when the axis goes from pixel `start` to pixel `end`."""
        return start + (end - start) * (value - self.low) / (self.high - self.low)


def linear(label: str, values: Sequence[float], *, zero: bool = False, count: int = 5) -> Axis:
    """An axis of numbers with round labels that holds all of `values`, and 0 if asked or if it is near."""
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
    """As people write it, as long as that is short."""
    return f"{value:,.0f}" if 1000 <= value * 1.001 < 1e7 else f"{value:.3g}"


def round_step(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten that is not smaller."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step * (1 - 1e-9)), 10 * power)


def categories(label: str, names: Sequence[str]) -> Axis:
    """An axis of names, one at each whole number from 0."""
    return Axis(label, -0.5, len(names) - 0.5, tuple((float(place), name) for place, name in enumerate(names)))


def line_chart(series: Sequence[Series], x: Axis, y: Axis, *, title: str, width: int = WIDE) -> Html:
    """Lines over an axis. Intervals of several series at one place stand beside one another."""
    left = max((extent(label) for _, label in y.ticks), default=0.0) + GAP
    alone = [one.name for one in series] == [y.label]  # the axis says it already
    legend, legend_height = _legend([] if alone else [one.name for one in series], width)
    top = LINE + legend_height + LINE
    bottom = top + min(260.0, 0.7 * width)
    beyond = max((extent(label) / 2 for place, label in x.ticks if place == x.high), default=0.0)
    frame = _Frame(x, y, left, width - max(GAP, beyond), top, bottom)
    dodge = _dodge(series, frame)
    drawn = [
        _label(0, SIZE, y.label, "start"),
        element("g", {"transform": f"translate(0 {LINE + GAP})"}, legend),
        *frame.grid(),
        *(_line(number, one, frame, dodge * (number - (len(series) - 1) / 2)) for number, one in enumerate(series)),
    ]
    return _chart(drawn, title, width, frame.foot)


def bar_chart(bars: Sequence[Bar], axis: Axis, *, title: str, width: int = WIDE, decimals: int = 1) -> Html:
    """Bars that lie, each under its name, with its value at the end."""
    room = max((extent(_number(bar.value, decimals)) for bar in bars), default=0.0) + 2 * GAP
    end, height = width - room, LINE + 18
    drawn: list[Html] = []
    for number, bar in enumerate(bars):
        top = number * (height + GAP)
        zero, tip = (axis.at(value, 0, end) for value in (0.0, bar.value))
        middle, last = top + LINE + 9, tip
        shapes = [
            element("rect", {"class": "bar", "x": zero, "y": top + LINE, "width": max(0.5, tip - zero), "height": 18})
        ]
        if bar.low is not None and bar.high is not None:
            low, high = (axis.at(value, 0, end) for value in (bar.low, bar.high))
            shapes.append(element("path", {"class": "whisker", "d": _whisker(low, high, middle)}))
            last = max(last, high)
        shapes += [
            _label(0, top + SIZE, letters.shortened(bar.name, width, SIZE), "start"),
            _label(last + GAP, middle + 4, _number(bar.value, decimals), "start"),
        ]
        drawn.append(element("g", {"class": f"s{number % COLOURS}"}, *shapes))
    return _chart(drawn, title, width, len(bars) * (height + GAP))


def extent(label: str) -> float:
    """About how many pixels a text takes, its longest line if it has several."""
    return max(letters.extent(line, SIZE) for line in label.split("\n"))


def thinned(places: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Labels at pixels, every one or only every second, third, …: whatever leaves a gap between neighbours."""
    for every in range(1, len(places) + 1):
        kept = list(places[::every])
        pairs = pairwise(kept)
        if all(b - a >= (extent(first) + extent(second)) / 2 + GAP for (a, first), (b, second) in pairs):
            return kept
    return []


@dataclass(frozen=True)
class _Frame:
    """Where a chart's axes lie in pixels."""

    x: Axis
    y: Axis
    left: float
    right: float
    top: float
    bottom: float

    def across(self, value: float) -> float:
        return self.x.at(value, self.left, self.right)

    def up(self, value: float) -> float:
        return self.y.at(value, self.bottom, self.top)

    @property
    def foot(self) -> float:
        """Below the labels of the x axis and its own."""
        lines = max((label.count("\n") + 1 for _, label in self.x.ticks), default=0)
        return self.bottom + GAP + LINE * (lines + 1) + GAP

    def grid(self) -> Iterator[Html]:
        for value, label in self.y.ticks:
            height = self.up(value)
            ends = {"x1": self.left, "x2": self.right, "y1": height, "y2": height}
            yield element("line", {"class": "grid", **ends})
            yield _label(self.left - GAP / 2, height + 4, label, "end")
        for place, label in thinned([(self.across(value), label) for value, label in self.x.ticks]):
            for number, line in enumerate(label.split("\n")):
                yield _label(place, self.bottom + GAP + SIZE + number * LINE, line, "middle")
        yield _label((self.left + self.right) / 2, self.foot - GAP, self.x.label, "middle")


def _dodge(series: Sequence[Series], frame: _Frame) -> float:
    """How far apart series stand at one place: less where places are close together; not at all without intervals."""
    if not any(point.low is not None for one in series for point in one.points):
        return 0.0
    places = sorted({frame.across(point.x) for one in series for point in one.points})
    room = min((b - a for a, b in pairwise(places)), default=frame.right - frame.left)
    return min(10.0, 0.6 * room / len(series))


def _line(number: int, series: Series, frame: _Frame, shift: float) -> Html:
    """One series, beside its place by some pixels: intervals below, then the line, then markers."""
    marked = len(series.points) <= MOST_MARKED
    intervals, markers, path, pen = [], [], "", "M"
    for point in series.points:
        if point.y is None:
            pen = "M"
            continue
        x, y = frame.across(point.x) + shift, frame.up(point.y)
        path, pen = f"{path}{pen}{x:.1f} {y:.1f}", "L"
        if point.low is not None and point.high is not None:
            low, high = frame.up(point.low), frame.up(point.high)
            ends = f"M{x - 3:.1f} {low:.1f}h6M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {high:.1f}h6"
            intervals.append(element("path", {"class": "interval", "d": ends}))
        if marked or point.note:
            markers.append(_marker(number, x, y, point.note))
    dash = DASHES[number // COLOURS % len(DASHES)]
    line = element("path", {"class": "path", "stroke-dasharray": dash, "d": path}) if path else Html()
    return element("g", {"class": f"s{number % COLOURS}"}, *intervals, line, *markers)


def _marker(number: int, x: float, y: float, note: str = "") -> Html:
    """Circle, square, triangle, diamond, upside-down triangle: they go round as colours do, but five, not six."""
    shapes = (
        "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z",
        "M-4 -4h8v8h-8Z",
        "M0 -5.5L5 4H-5Z",
        "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
        "M0 5.5L5 -4H-5Z",
    )
    shape = {"class": "marker", "transform": f"translate({x:.1f} {y:.1f})", "d": shapes[number % len(shapes)]}
    return element("path", shape, *([element("title", {}, note)] if note else []))


def _legend(names: Sequence[str], width: float) -> tuple[Html, float]:
    """Markers with their names, in as many lines as they need, and the height of that."""
    x, y, drawn = 0.0, 0.0, []
    for number, name in enumerate(letters.shortened(name, width - 2 * LINE, SIZE) for name in names):
        size = 20 + extent(name) + 2 * GAP
        if x and x + size > width:
            x, y = 0.0, y + LINE
        inside = [_marker(number, x + 6, y + 6), _label(x + 16, y + 10, name, "start")]
        drawn.append(element("g", {"class": f"s{number % COLOURS}"}, *inside))
        x += size
    return join(drawn), y + LINE if names else 0.0


def _whisker(low: float, high: float, y: float) -> str:
    return f"M{low:.1f} {y - 4:.1f}v8M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 4:.1f}v8"


def _label(x: float, y: float, label: str, anchor: str) -> Html:
    return element("text", {"x": float(x), "y": float(y), "text-anchor": anchor}, label)


def _number(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}"


def _chart(drawn: Sequence[Html], title: str, width: float, height: float) -> Html:
    box = f"0 0 {width:.0f} {height:.0f}"
    size = {"width": round(width), "height": round(height)}
    return element("svg", {"class": "chart", "role": "img", "aria-label": title, "viewBox": box, **size}, *drawn)
