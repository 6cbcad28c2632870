"""Heat maps as SVG, written by hand: one large, or many small ones in a picture.

Each row is a group that holds its numbers in ``data-values``, so that what is drawn can be read back. Cells of one
colour in a row are one path, and cells that are nothing are not drawn at all: 60 × 60 numbers stay small. Colours are
classes (`STYLE`), so that one drawing serves light and dark; a file of its own (`document`) carries them with it.
Where style sheets are taken away, as some notebooks do, the attributes beside them still paint it in light colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from regard.explain.heatmap import HeatMap, Scale, brief
from regard.show import colours
from regard.show.colours import INK, LEVELS, PREFIX
from regard.show.letters import extent, right_to_left, shortened, wrapped
from regard.show.markup import Attributes, Html, element

SIZE, SMALL = 12, 10  # of letters: labels, numbers in cells
LINE, GAP = 17, 6
LARGEST, SMALLEST = 40, 17  # of a cell
LONGEST = 120  # of a label
WIDE = 720  # what a drawing tries to keep within
TILTED = 0.7072  # cos 45°: labels that lean keep this share of a column's width between them
THUMB = 112  # pixels of a small one

STYLE = (
    "svg.heat{font:12px/1 system-ui,-apple-system,'Segoe UI','Noto Sans',sans-serif;display:block}"
    "svg.heat text{fill:#1b1e24}svg.heat .soft{fill:#59606b}svg.heat .ground{fill:#fff}"
    "svg.heat path,svg.heat rect{fill:currentColor;shape-rendering:crispEdges}"
    "svg.heat .thumb path{fill:none;stroke:currentColor}"
    "svg.heat .frame{fill:none;stroke:#b9bfc9}svg.heat .number{font-size:10px;text-anchor:middle}"
    f"{colours.rules('light')}"
    "@media (prefers-color-scheme:dark){"
    "svg.heat text{fill:#e8eaee}svg.heat .soft{fill:#a4acb8}svg.heat .ground{fill:#16181d}"
    "svg.heat .frame{stroke:#4a505b}"
    f"{colours.rules('dark')}}}"
    "@media print{svg.heat text{fill:#000}}"
)


@dataclass(frozen=True)
class Layout:
    """Where things lie, in pixels."""

    cell: float
    left: float  # of the grid
    top: float
    angle: int  # of the labels of columns: 0, 45 or 90 degrees
    rows: int
    columns: int
    sums: float  # what the column of sums takes

    @property
    def right(self) -> float:
        return self.left + self.cell * self.columns

    @property
    def bottom(self) -> float:
        return self.top + self.cell * self.rows


def layout(picture: HeatMap, *, width: float = WIDE, above: float = 0.0) -> Layout:
    """As large as there is room for. Labels of columns lie where they fit; else they lean; else they stand."""
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


def heat_svg(picture: HeatMap, *, caption: bool = True, width: float = WIDE) -> Html:
    """The picture for a page that has `STYLE`. ``caption`` puts its title and origin into it."""
    drawn, wide, high = _drawn(picture, width, caption=caption)
    return _svg(drawn, picture.title, wide, high)


def document(picture: HeatMap, *, width: float = WIDE) -> str:
    """The picture as a file of its own."""
    drawn, wide, high = _drawn(picture, width, caption=True)
    return _file(drawn, picture.title, wide, high)


def multiples_svg(grid: Sequence[Sequence[HeatMap]], *, title: str, origin: str = "", values: bool = True) -> Html:
    """Many small ones: a line for each row of the grid, as the layers of a model, with its heads beside one another.

    Without ``values`` there are only colours, which is half the size.
    """
    drawn, wide, high = _multiples(grid, "", origin, values=values)
    return _svg(drawn, title, wide, high)


def multiples_document(grid: Sequence[Sequence[HeatMap]], *, title: str, origin: str = "") -> str:
    """The same as a file of its own."""
    drawn, wide, high = _multiples(grid, title, origin, values=True)
    return _file(drawn, title, wide, high)


def _drawn(picture: HeatMap, width: float, *, caption: bool) -> tuple[list[Html], float, float]:
    place = layout(picture, width=width, above=LINE + GAP if caption else 0)
    wide = max(place.right + place.sums + GAP, 250.0)
    drawn = [
        *_columns(picture, place),
        *_rows(picture, place),
        _frame(place.left, place.top, place.right - place.left, place.bottom - place.top),
    ]
    high = place.bottom + GAP
    drawn.append(_legend(picture, place.left, high))
    high += LINE + GAP
    if caption:
        drawn.append(_label(0, SIZE + 1, shortened(picture.title, wide, SIZE), weight="600"))
        for line in wrapped(picture.origin, wide, SIZE):
            high += LINE
            drawn.append(_label(0, high - 4, line, kind="soft"))
    return drawn, wide, high + GAP


def _columns(picture: HeatMap, place: Layout) -> list[Html]:
    drawn = []
    base = place.top - GAP
    for number, column in enumerate(picture.columns):
        middle = place.left + (number + 0.5) * place.cell
        drawn.append(_column(column, middle, base, place.angle, number))
    if picture.column_name:
        drawn.append(
            _label(place.left, base - (place.top - base) - _tallest(picture, place), picture.column_name, kind="soft")
        )
    if picture.sums:
        drawn.append(_label(place.right + GAP, base, "Σ", kind="soft"))
    return drawn


def _tallest(picture: HeatMap, place: Layout) -> float:
    longest = min(LONGEST, max((extent(column, SIZE) for column in picture.columns), default=0.0))
    return {0: SIZE * 0.9, 45: longest * TILTED + SIZE * 0.8, 90: longest}[place.angle]


def _column(label: str, x: float, y: float, angle: int, number: int) -> Html:
    """A label above its column. One that leans or stands begins at the column and runs upwards."""
    if angle == 0:
        return _label(x, y, label, anchor="middle", name=("data-column", number))
    shift = SIZE * 0.36  # half the height of a letter, so that its middle is the column's
    turn = f"translate({x + shift:.1f} {y:.1f}) rotate(-{angle})"
    return _label(0, 0, label, turn=turn, name=("data-column", number))


def _rows(picture: HeatMap, place: Layout) -> list[Html]:
    numbered = has_numbers(picture, place)
    drawn = []
    for number, (row, values, levels) in enumerate(
        zip(picture.rows, picture.values, colours.levels(picture), strict=True)
    ):
        top = place.top + number * place.cell
        middle = place.cell / 2 + SIZE * 0.36
        inside = [
            _label(place.left - GAP, middle, row, anchor="end", name=("data-row", number)),
            *_cells(picture, values, levels, place, numbered=numbered),
        ]
        if picture.sums:
            inside.append(_label(place.right + GAP, middle, f"{sum(values):.2f}", kind="soft"))
        about = {"transform": f"translate(0 {top:g})", "data-values": written(values)}
        drawn.append(element("g", about, *inside))
    return drawn


def _cells(
    picture: HeatMap, values: Sequence[float], levels: Sequence[int], place: Layout, *, numbered: bool
) -> list[Html]:
    """One path for each colour of a row, then the numbers where they fit."""
    size, table = place.cell, colours.table(picture.scale, "light")
    drawn = _paths(levels, colours.nothing(picture), picture.scale, place.left, size)
    if numbered:
        for column, (value, level) in enumerate(zip(values, levels, strict=True)):
            if words := brief(value, picture.most):
                kind, ink = f"number {INK[picture.scale]}{level}", colours.code(colours.ink(table[level]))
                middle = {"x": place.left + (column + 0.5) * size, "y": size / 2 + SMALL * 0.36}
                drawn.append(element("text", {"class": kind, "fill": ink, **middle}, words))
    return drawn


def _paths(levels: Sequence[int], nothing: int, scale: Scale, left: float, size: float) -> list[Html]:
    """A row's cells, those beside one another of one colour joined; none where there is nothing."""
    squares: dict[int, str] = {}
    column = 0
    for level, group in groupby(levels):
        count = len(list(group))
        if level != nothing:
            start, run = left + column * size, count * size
            squares[level] = squares.get(level, "") + f"M{start:g} 0h{run:g}v{size:g}h-{run:g}z"
        column += count
    return [element("path", {**_paint(scale, level), "d": path}) for level, path in sorted(squares.items())]


def _paint(scale: Scale, level: int) -> dict[str, str]:
    return {"class": f"{PREFIX[scale]}{level}", "fill": colours.code(colours.table(scale, "light")[level])}


def _frame(x: float, y: float, width: float, height: float) -> Html:
    drawn = {"class": "frame", "fill": "none", "stroke": "#b9bfc9"}
    return element("rect", {**drawn, "x": float(x), "y": float(y), "width": float(width), "height": float(height)})


def _legend(picture: HeatMap, left: float, top: float) -> Html:
    """The scale, with its ends."""
    step, height = 2.0, 10
    low, high = (f"{end:.3g}".replace("-", "−") for end in (picture.low, picture.most))
    start = extent(low, SIZE) + GAP
    end = start + (LEVELS + 1) * step
    bar = []
    for level in range(LEVELS + 1):
        box = {"x": start + level * step, "y": 3, "width": step + 0.2, "height": height}
        bar.append(element("rect", {**_paint(picture.scale, level), **box}))
    labels = [_label(0, SIZE, low, kind="soft"), _label(end + GAP, SIZE, f"{high} {picture.unit}", kind="soft")]
    frame = _frame(start, 3, end - start, height)
    return element("g", {"transform": f"translate({left:g} {top:g})"}, *bar, frame, *labels)


def _multiples(
    grid: Sequence[Sequence[HeatMap]], title: str, origin: str, *, values: bool
) -> tuple[list[Html], float, float]:
    first = grid[0][0]
    size = min(12, max(2, THUMB // max(len(first.columns), len(first.rows), 1)))
    pitch = max(len(first.columns) * size, 96) + 2 * GAP
    wide = max(float(max(map(len, grid)) * pitch), 250.0)
    drawn = [_label(0, SIZE + 1, title, weight="600")] if title else []
    top = LINE + GAP if title else 0
    for line in grid:
        drawn += [_thumb(picture, place * pitch, top, size, values=values) for place, picture in enumerate(line)]
        top += len(first.rows) * size + LINE + 2 * GAP
    for words in wrapped(origin, wide, SIZE):
        top += LINE
        drawn.append(_label(0, top - 4, words, kind="soft"))
    return drawn, wide, top + GAP


def _thumb(picture: HeatMap, left: float, top: float, size: float, *, values: bool) -> Html:
    """One small one under its title, a cell one unit wide; its numbers to three decimals, finer than its colours."""
    strokes: dict[int, str] = {}
    for row, levels in enumerate(colours.levels(picture)):
        column = 0
        for level, group in groupby(levels):
            count = len(list(group))
            if level != colours.nothing(picture):
                strokes[level] = strokes.get(level, "") + f"M{column} {row}h{count}"
            column += count
    cells = []
    for level, path in sorted(strokes.items()):
        paint = _paint(picture.scale, level)
        cells.append(element("path", {"class": paint["class"], "stroke": paint["fill"], "fill": "none", "d": path}))
    rows = ";".join(written(row, 3) for row in picture.values)
    about = {"transform": f"translate(0 {LINE}) scale({size:g}) translate(0 .5)"} | (
        {"data-values": rows} if values else {}
    )
    inside = [
        element("title", {}, picture.origin),
        _label(0, SMALL + 2, picture.title, kind="soft"),
        element("g", about, *cells),
        _frame(0, LINE, len(picture.columns) * size, len(picture.rows) * size),
    ]
    return element("g", {"transform": f"translate({left:g} {top:g})", "class": "thumb"}, *inside)


def written(values: Sequence[float], decimals: int | None = None) -> str:
    """As written into a drawing: six significant digits, or so many decimals."""
    return " ".join(f"{value:.6g}" if decimals is None else f"{round(value, decimals):g}" for value in values)


def _label(
    x: float,
    y: float,
    label: str,
    *,
    anchor: str = "start",
    kind: str = "",
    weight: str = "",
    turn: str = "",
    name: tuple[str, int] | None = None,
) -> Html:
    """A text in its own direction. From right to left its start is at the right, so the anchors change places."""
    shown = shortened(label, LONGEST, SIZE) if name else label
    about: dict[str, str | int | float] = {"x": float(x), "y": float(y)}
    if right_to_left(label):
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
        about |= {"direction": "rtl", "unicode-bidi": "plaintext"}
    about |= {"text-anchor": anchor} if anchor != "start" else {}
    about |= {"class": kind} if kind else {}
    about |= {"font-weight": weight} if weight else {}
    about |= {"transform": turn} if turn else {}
    about |= {name[0]: name[1]} if name else {}
    full = [element("title", {}, label)] if shown != label else []
    return element("text", about, *full, shown)


def _size(wide: float, high: float) -> dict[str, str | int | float]:
    return {"viewBox": f"0 0 {wide:.0f} {high:.0f}", "width": round(wide), "height": round(high)}


def _svg(drawn: Sequence[Html], title: str, wide: float, high: float) -> Html:
    about: Attributes = {"class": "heat", "role": "img", "aria-label": title, **_size(wide, high)}
    return element("svg", about, *drawn)


def _file(drawn: Sequence[Html], title: str, wide: float, high: float) -> str:
    margin = 12
    about = {"xmlns": "http://www.w3.org/2000/svg", "class": "heat", **_size(wide + 2 * margin, high + 2 * margin)}
    ground = element("rect", {"class": "ground", "width": "100%", "height": "100%"})
    inside = element("g", {"transform": f"translate({margin} {margin})"}, *drawn)
    style = Html(f"<style>{STYLE}</style>")
    return f"{element('svg', about, element('title', {}, title), style, ground, inside)}\n"
