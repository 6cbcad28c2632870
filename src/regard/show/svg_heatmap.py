"""Heat maps as SVG: one large map, or many small ones in a picture.

Each row is a group with its numbers in ``data-values``, so that they can be read back. Cells of one colour in a row are
one path, and cells of zero are not drawn, so that 60 × 60 numbers stay small. Colours are classes (`colours.rules`) for
light and dark; attributes have the light colours, for notebooks that remove style sheets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from regard.explain.heatmap import HeatMap, Scale, brief
from regard.show import colours
from regard.show.colours import INK, LEVELS, PREFIX
from regard.show.markup import Attributes, Painted, element, extent, label, shortened, wrapped
from regard.show.pictures import Grid
from regard.show.svg_vectors import panels

SIZE, SMALL = 12, 10  # of letters: labels, numbers in cells
LINE, GAP = 17, 6
LARGEST, SMALLEST = 40, 17  # side of a cell
LONGEST = 120  # of a label
WIDE, NARROWEST = 720, 250.0  # target and minimum width of a drawing
TILTED = 0.7072  # cos 45°: distance of tilted labels as a share of the column's width
THUMB = 112  # pixels of a small one


@dataclass(frozen=True)
class Layout:
    """The positions of a heat map's parts, in pixels."""

    cell: float
    left: float  # of the grid
    top: float
    angle: int  # of the labels of columns: 0, 45 or 90 degrees
    rows: int
    columns: int
    sums: float  # width of the column of sums

    @property
    def right(self) -> float:
        return self.left + self.cell * self.columns

    @property
    def bottom(self) -> float:
        return self.top + self.cell * self.rows


def layout(picture: HeatMap, *, width: float = WIDE, above: float = 0.0) -> Layout:
    """The largest layout that fits. Column labels are horizontal if they fit, else tilted, else vertical."""
    rows, columns = len(picture.rows), max(1, len(picture.columns))
    left = min(LONGEST, max((extent(row, SIZE) for row in picture.rows), default=0.0)) + GAP + 2
    sums = 38.0 if picture.sums else 0.0
    longest = min(LONGEST, max((extent(column, SIZE) for column in picture.columns), default=0.0))
    cell = min(LARGEST, max(SMALLEST, (width - left - max(sums, longest * TILTED / 2) - 2 * GAP) / columns))
    if longest <= cell - GAP:
        angle, height = 0, float(LINE)
    elif cell * TILTED >= SIZE * 1.3:
        angle, height = 45, longest * TILTED + LINE
    else:
        angle, height = 90, longest + GAP
    lean = (longest + SIZE) * TILTED - cell / 2 if angle == 45 else 0.0  # beyond the last column
    named = LINE if picture.column_name else 0
    return Layout(float(round(cell)), float(round(left)), above + named + height, angle, rows, columns, max(sums, lean))


def has_numbers(picture: HeatMap, place: Layout) -> bool:
    """Whether cells have room for their numbers."""
    found = (brief(value, picture.most) for row in picture.values for value in row)
    return max((extent(words, SMALL) for words in found), default=0.0) <= place.cell - 2


def heat(picture: HeatMap, width: float, *, caption: bool) -> Painted:
    """``caption`` puts its title and origin into it."""
    place = layout(picture, width=width, above=LINE + GAP if caption else 0)
    wide, high = max(place.right + place.sums + GAP, NARROWEST), place.bottom + GAP
    drawn = [
        *_columns(picture, place),
        *_rows(picture, place),
        _frame(place.left, place.top, place.right - place.left, place.bottom - place.top),
        _legend(picture, place.left, high),
    ]
    high += LINE + GAP
    if picture.curve:
        found, across, down = panels(picture, width)
        drawn.append(element("g", {"transform": f"translate(0 {high + GAP:g})"}, *found))
        wide, high = max(wide, across), high + down + 2 * GAP
    if caption:
        drawn.append(_title(shortened(picture.title, wide, SIZE)))
        for line in wrapped(picture.origin, wide, SIZE):
            high += LINE
            drawn.append(label(0, high - 4, line, "soft"))
    return drawn, wide, high + GAP


def _title(words: str) -> Markup:
    return label(0, SIZE + 1, words, more={"font-weight": "600"})


def _columns(picture: HeatMap, place: Layout) -> Iterator[Markup]:
    base = place.top - GAP
    for number, column in enumerate(picture.columns):
        yield _column(column, place.left + (number + 0.5) * place.cell, base, place.angle, number)
    if picture.column_name:
        yield label(place.left, base - GAP - _tallest(picture, place), picture.column_name, "soft")
    if picture.sums:
        yield label(place.right + GAP, base, "Σ", "soft")


def _tallest(picture: HeatMap, place: Layout) -> float:
    longest = min(LONGEST, max((extent(column, SIZE) for column in picture.columns), default=0.0))
    return {0: SIZE * 0.9, 45: longest * TILTED + SIZE * 0.8, 90: longest}[place.angle]


def _column(words: str, x: float, y: float, angle: int, number: int) -> Markup:
    """A label above its column. A tilted or vertical one begins at the column and runs upwards."""
    if angle == 0:
        return _name(x, y, words, {"data-column": number}, anchor="middle")
    shift = SIZE * 0.36  # half the height of a letter, to centre it on the column
    turn = f"translate({x + shift:.1f} {y:.1f}) rotate(-{angle})"
    return _name(0, 0, words, {"transform": turn, "data-column": number})


def _name(x: float, y: float, words: str, more: Attributes, *, anchor: str = "start") -> Markup:
    return label(x, y, shortened(words, LONGEST, SIZE), anchor=anchor, full=words, more=more)


def _rows(picture: HeatMap, place: Layout) -> Iterator[Markup]:
    numbered, middle = has_numbers(picture, place), place.cell / 2 + SIZE * 0.36
    rows = zip(picture.rows, picture.values, colours.levels(picture), strict=True)
    for number, (row, values, levels) in enumerate(rows):
        inside = [
            _name(place.left - GAP, middle, row, {"data-row": number}, anchor="end"),
            *_cells(picture, values, levels, place, numbered=numbered),
        ]
        if picture.sums:
            inside.append(label(place.right + GAP, middle, f"{sum(values):.2f}", "soft"))
        top = place.top + number * place.cell
        yield element("g", {"transform": f"translate(0 {top:g})", "data-values": written(values)}, *inside)


def _cells(
    picture: HeatMap, values: Sequence[float], levels: Sequence[int], place: Layout, *, numbered: bool
) -> list[Markup]:
    """One path for each colour of a row, then the numbers where they fit."""
    size, table = place.cell, colours.table(picture.scale, "light")
    squares: dict[int, str] = {}
    for level, first, count in _runs(levels, colours.nothing(picture)):
        start, run = place.left + first * size, count * size
        squares[level] = squares.get(level, "") + f"M{start:g} 0h{run:g}v{size:g}h-{run:g}z"
    drawn = [element("path", {**_paint(picture.scale, level), "d": path}) for level, path in sorted(squares.items())]
    if numbered:
        for column, (value, level) in enumerate(zip(values, levels, strict=True)):
            if words := brief(value, picture.most):
                kind, ink = f"number {INK[picture.scale]}{level}", colours.code(colours.ink(table[level]))
                middle = {"x": place.left + (column + 0.5) * size, "y": size / 2 + SMALL * 0.36}
                drawn.append(element("text", {"class": kind, "fill": ink, **middle}, words))
    return drawn


def _runs(levels: Sequence[int], nothing: int) -> Iterator[tuple[int, int, int]]:
    """Runs of cells of one colour: level, first cell, count; runs of zero are left out."""
    first = 0
    for level, group in groupby(levels):
        count = len(list(group))
        if level != nothing:
            yield level, first, count
        first += count


def _paint(scale: Scale, level: int) -> dict[str, str]:
    return {"class": f"{PREFIX[scale]}{level}", "fill": colours.code(colours.table(scale, "light")[level])}


def _frame(x: float, y: float, width: float, height: float) -> Markup:
    drawn = {"class": "frame", "fill": "none", "stroke": "#b9bfc9"}
    return element("rect", {**drawn, "x": float(x), "y": float(y), "width": float(width), "height": float(height)})


def _legend(picture: HeatMap, left: float, top: float) -> Markup:
    """The scale, with its ends."""
    step, height = 2.0, 10
    low, high = (f"{end:.3g}".replace("-", "−") for end in (picture.low, picture.most))
    start = extent(low, SIZE) + GAP
    end = start + (LEVELS + 1) * step
    bar = []
    for level in range(LEVELS + 1):
        box = {"x": start + level * step, "y": 3, "width": step + 0.2, "height": height}
        bar.append(element("rect", {**_paint(picture.scale, level), **box}))
    labels = [label(0, SIZE, low, "soft"), label(end + GAP, SIZE, f"{high} {picture.unit}", "soft")]
    frame = _frame(start, 3, end - start, height)
    return element("g", {"transform": f"translate({left:g} {top:g})"}, *bar, frame, *labels)


def grid(picture: Grid, *, caption: bool) -> Painted:
    """``caption`` puts its title into it."""
    first = picture.rows[0][0]
    size = min(12, max(2, THUMB // max(len(first.columns), len(first.rows), 1)))
    pitch = max(len(first.columns) * size, 96) + 2 * GAP
    drawn, top = ([_title(picture.title)], LINE + GAP) if caption else ([], 0)
    for row in picture.rows:
        drawn += [_thumb(one, place * pitch, top, size, values=picture.values) for place, one in enumerate(row)]
        top += len(first.rows) * size + LINE + 2 * GAP
    return drawn, max(float(max(map(len, picture.rows)) * pitch), NARROWEST), top + GAP


def _thumb(picture: HeatMap, left: float, top: float, size: float, *, values: bool) -> Markup:
    """A small map under its title, a cell one unit wide; its numbers have three decimals, finer than its colours."""
    strokes: dict[int, str] = {}
    for row, levels in enumerate(colours.levels(picture)):
        for level, first, count in _runs(levels, colours.nothing(picture)):
            strokes[level] = strokes.get(level, "") + f"M{first} {row}h{count}"
    cells = []
    for level, path in sorted(strokes.items()):
        paint = _paint(picture.scale, level)
        cells.append(element("path", {"class": paint["class"], "stroke": paint["fill"], "fill": "none", "d": path}))
    about = {"transform": f"translate(0 {LINE}) scale({size:g}) translate(0 .5)"}
    if values:
        about["data-values"] = ";".join(written(row, 3) for row in picture.values)
    inside = [
        element("title", {}, picture.origin),
        label(0, SMALL + 2, picture.title, "soft"),
        element("g", about, *cells),
        _frame(0, LINE, len(picture.columns) * size, len(picture.rows) * size),
    ]
    return element("g", {"transform": f"translate({left:g} {top:g})", "class": "thumb"}, *inside)


def written(values: Sequence[float], decimals: int | None = None) -> str:
    """Numbers as text, with six significant digits or so many decimals."""
    return " ".join(f"{value:.6g}" if decimals is None else f"{round(value, decimals):g}" for value in values)
