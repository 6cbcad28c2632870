"""Charts as SVG: lines with intervals, bars, and planes of points.

Series differ in colour, marker and dash, so that they can be told apart without colour. The colours are CSS variables
(templates/pictures.css) for light and dark: six hues in the order of Okabe and Ito's colour-blind-safe set, adjusted to
a contrast of 4 to 1 with the background.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import hypot

from markupsafe import Markup

from regard.show import markup
from regard.show.markup import Painted, element, label, noted
from regard.show.pictures import Axis, Chart, Point, Series

SIZE = 12  # of letters
LINE = 16  # from one line of text to the next
GAP = 8  # between two labels, at least
MOST_MARKED = 24  # points of a series that get a marker each
COLOURS, DASHES = 6, ("none", "7 3", "2 3", "9 3 2 3")
MARKERS = (  # five, so that pairs of colour and marker repeat late
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z",  # circle
    "M-4 -4h8v8h-8Z",  # square
    "M0 -5.5L5 4H-5Z",  # triangle
    "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",  # diamond
    "M0 5.5L5 -4H-5Z",  # upside-down triangle
)
SIDE, MARGIN, ACROSS = 210, 16, 3  # of planes: side, margin, and how many in a row
DOT, NEAR = 4.5, 14  # pixels: radius of a dot, and distance below which dots share a label


def chart(picture: Chart, width: float) -> Painted:
    match picture.kind:
        case "lines":
            return _lines(picture, width)
        case "bars":
            return _bars(picture, width)
        case "planes":
            return _planes(picture.series)


def extent(words: str) -> float:
    """The approximate width of a text in pixels, of its longest line."""
    return max(markup.extent(line, SIZE) for line in words.split("\n"))


def thinned(places: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Every label, or only every second, third, …, so that there is a gap between neighbours."""
    for every in range(1, len(places) + 1):
        kept = list(places[::every])
        pairs = pairwise(kept)
        if all(b - a >= (extent(first) + extent(second)) / 2 + GAP for (a, first), (b, second) in pairs):
            return kept
    return []


def _coloured(number: int, *inside: str) -> Markup:
    return element("g", {"class": f"s{number % COLOURS}"}, *inside)


# Lines


def _lines(picture: Chart, width: float) -> Painted:
    """A line chart; intervals of several series at one x are drawn side by side."""
    series = picture.series
    left = max((extent(words) for _, words in picture.y.ticks), default=0.0) + GAP
    alone = [one.name for one in series] == [picture.y.label]  # the axis has the name already
    legend, legend_height = _legend([] if alone else [one.name for one in series], width)
    top = LINE + legend_height + LINE
    beyond = max((extent(words) / 2 for place, words in picture.x.ticks if place == picture.x.high), default=0.0)
    x = replace(picture.x, start=left, end=width - max(GAP, beyond))
    y = replace(picture.y, start=top + min(260.0, 0.7 * width), end=top)
    dodge = _dodge(series, x)
    drawn = [
        label(0, SIZE, y.label),
        element("g", {"transform": f"translate(0 {LINE + GAP})"}, *legend),
        *_axes(x, y),
        *(_line(number, one, x, y, dodge * (number - (len(series) - 1) / 2)) for number, one in enumerate(series)),
    ]
    return drawn, width, _foot(x, y)


def _foot(x: Axis, y: Axis) -> float:
    """The height below the x axis with its labels."""
    lines = max((words.count("\n") + 1 for _, words in x.ticks), default=0)
    return y.start + GAP + LINE * (lines + 1) + GAP


def _axes(x: Axis, y: Axis) -> Iterator[Markup]:
    for value, words in y.ticks:
        height = y.at(value)
        yield element("line", {"class": "grid", "x1": x.start, "x2": x.end, "y1": height, "y2": height})
        yield label(x.start - GAP / 2, height + 4, words, anchor="end")
    for place, words in thinned([(x.at(value), words) for value, words in x.ticks]):
        for number, line in enumerate(words.split("\n")):
            yield label(place, y.start + GAP + SIZE + number * LINE, line, anchor="middle")
    yield label((x.start + x.end) / 2, _foot(x, y) - GAP, x.label, anchor="middle")


def _dodge(series: Sequence[Series], x: Axis) -> float:
    """The horizontal distance of series at one x: smaller where points are close, none without intervals."""
    if not any(point.low is not None for one in series for point in one.points):
        return 0.0
    places = sorted({x.at(point.x) for one in series for point in one.points})
    room = min((b - a for a, b in pairwise(places)), default=x.end - x.start)
    return min(10.0, 0.6 * room / len(series))


def _line(number: int, series: Series, across: Axis, up: Axis, shift: float) -> Markup:
    """One series, shifted by some pixels: intervals, then the line, then markers on top."""
    marked = len(series.points) <= MOST_MARKED
    intervals, markers, path, pen = [], [], "", "M"
    for point in series.points:
        if point.y is None:
            pen = "M"
            continue
        x, y = across.at(point.x) + shift, up.at(point.y)
        path, pen = f"{path}{pen}{x:.1f} {y:.1f}", "L"
        if point.low is not None and point.high is not None:
            low, high = up.at(point.low), up.at(point.high)
            ends = f"M{x - 3:.1f} {low:.1f}h6M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {high:.1f}h6"
            intervals.append(element("path", {"class": "interval", "d": ends}))
        if marked or point.note:
            markers.append(_marker(number, x, y, point.note))
    dash = DASHES[number // COLOURS % len(DASHES)]
    line = [element("path", {"class": "path", "stroke-dasharray": dash, "d": path})] if path else []
    return _coloured(number, *intervals, *line, *markers)


def _marker(number: int, x: float, y: float, note: str = "") -> Markup:
    place = {"class": "marker", "transform": f"translate({x:.1f} {y:.1f})"}
    return element("path", {**place, "d": MARKERS[number % len(MARKERS)]}, *noted(note))


def _legend(names: Sequence[str], width: float) -> tuple[list[Markup], float]:
    """Markers with their names, in as many lines as they need, and the height of that."""
    x, y, drawn = 0.0, 0.0, []
    for number, name in enumerate(markup.shortened(name, width - 2 * LINE, SIZE) for name in names):
        size = 20 + extent(name) + 2 * GAP
        if x and x + size > width:
            x, y = 0.0, y + LINE
        drawn.append(_coloured(number, _marker(number, x + 6, y + 6), label(x + 16, y + 10, name)))
        x += size
    return drawn, y + LINE if names else 0.0


# Bars


def _bars(picture: Chart, width: float) -> Painted:
    """Horizontal bars, each under its name, with its value at the end."""
    bars = [(one.name, one.points[0]) for one in picture.series]
    decimals = 0 if picture.y.high >= 1000 else 1
    values = [f"{point.y or 0.0:,.{decimals}f}".replace("-", "−") for _, point in bars]
    axis = replace(picture.y, end=width - max(map(extent, values), default=0.0) - 2 * GAP)
    drawn, height = [], LINE + 18 + GAP
    for number, ((name, point), value) in enumerate(zip(bars, values, strict=True)):
        top = number * height
        zero, tip = axis.at(0.0), axis.at(point.y or 0.0)
        middle, last = top + LINE + 9, max(zero, tip)
        box = {"x": min(zero, tip), "y": top + LINE, "width": max(0.5, abs(tip - zero)), "height": 18}
        shapes = [element("rect", {"class": "bar", **box})]
        if point.low is not None and point.high is not None:
            low, high = axis.at(point.low), axis.at(point.high)
            ends = f"M{low:.1f} {middle - 4:.1f}v8M{low:.1f} {middle:.1f}H{high:.1f}M{high:.1f} {middle - 4:.1f}v8"
            shapes.append(element("path", {"class": "whisker", "d": ends}))
            last = max(last, high)
        shapes += [label(0, top + SIZE, markup.shortened(name, width, SIZE)), label(last + GAP, middle + 4, value)]
        drawn.append(_coloured(number, *shapes))
    return drawn, width, len(bars) * height


# Planes


def _planes(series: Sequence[Series]) -> Painted:
    """A small plot for each series, all to the same scale, so that a point can be followed."""
    reach = max((max(abs(one.x), abs(one.y or 0.0)) for each in series for one in each.points), default=1.0) or 1.0
    wide, high = SIDE + GAP, SIDE + 2 * LINE + GAP
    drawn = [
        element("g", {"transform": f"translate({place % ACROSS * wide} {place // ACROSS * high})"}, *_plane(one, reach))
        for place, one in enumerate(series)
    ]
    return drawn, min(ACROSS, len(series)) * wide, -(-len(series) // ACROSS) * high


def _plane(series: Series, reach: float) -> list[Markup]:
    top, middle = 2 * LINE, SIDE / 2
    frame = {"x": 0.5, "y": top + 0.5, "width": SIDE - 1, "height": SIDE - 1}
    places = [
        (middle + one.x / reach * (middle - MARGIN), top + middle - (one.y or 0.0) / reach * (middle - MARGIN))
        for one in series.points
    ]
    return [
        label(0, SIZE, markup.shortened(series.name, SIDE, SIZE)),
        label(0, SIZE + LINE, markup.shortened(series.note, SIDE, SIZE), "soft"),
        element("rect", {"class": "box", **frame}),
        element("line", {"class": "cross", "x1": 0, "x2": SIDE, "y1": top + middle, "y2": top + middle}),
        element("line", {"class": "cross", "x1": middle, "x2": middle, "y1": top, "y2": top + SIDE}),
        *(_dot(number, one, *places[number]) for number, one in enumerate(series.points)),
        *_numbers(places),
    ]


def _dot(number: int, point: Point, x: float, y: float) -> Markup:
    return _coloured(number, *noted(point.note), element("circle", {"class": "dot", "cx": x, "cy": y, "r": DOT}))


def _numbers(places: Sequence[tuple[float, float]]) -> Iterator[Markup]:
    """The number of each dot, from 1; overlapping dots share a label: ``1, 2``."""
    groups: list[tuple[tuple[float, float], list[str]]] = []
    for number, place in enumerate(places, start=1):
        near = next((names for at, names in groups if hypot(at[0] - place[0], at[1] - place[1]) < NEAR), None)
        if near is None:
            groups.append((place, [str(number)]))
        else:
            near.append(str(number))
    for (x, y), names in groups:
        words, left = ", ".join(names), x + DOT + 3
        fits = left + extent(words) <= SIDE  # else it is left of its dot
        yield label(left, y + 4, words) if fits else label(x - DOT - 3, y + 4, words, anchor="end")
