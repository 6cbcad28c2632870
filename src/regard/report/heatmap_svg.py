"""Heat maps as SVG, written by hand: one large, or many small ones in a picture.

Each row is a group that holds its numbers in ``data-values``, so that what is drawn can be read back. Cells of one
colour in a row are one path, and cells that are nothing are not drawn at all: 60 × 60 numbers stay small. Colours are
classes (`STYLE`), so that one drawing serves light and dark; a file of its own (`document`) carries them with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.report import colours
from regard.report.colours import INK, LEVELS, PREFIX
from regard.report.heatmap import HeatMap, brief
from regard.report.letters import extent, right_to_left, shortened, wrapped
from regard.report.markup import Attributes, Html, element

SIZE, SMALL = 12, 10  # of letters: labels, numbers in cells
LINE, GAP = 17, 6
NUMBERED = 26  # pixels of a cell that has room for its number
LARGEST, SMALLEST = 40, 15  # of a cell
LONGEST = 120  # of a label
WIDE = 720  # what a drawing tries to keep within
TILTED = 0.7072  # cos 45°: labels that lean keep this share of a column's width between them
THUMB = 112  # pixels of a small one

STYLE = (
    "svg.heat{font:12px/1 system-ui,-apple-system,'Segoe UI','Noto Sans',sans-serif;display:block}"
    "svg.heat text{fill:#1b1e24}svg.heat .soft{fill:#59606b}svg.heat .ground{fill:#fff}"
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
    cell = min(LARGEST, max(SMALLEST, (width - left - sums - 2 * GAP) / columns))
    longest = min(LONGEST, max((extent(column, SIZE) for column in picture.columns), default=0.0))
    if longest <= cell - GAP:
        angle, height = 0, float(LINE)
    elif cell * TILTED >= SIZE * 1.3:
        angle, height = 45, longest * TILTED + LINE
    else:
        angle, height = 90, longest + GAP
    lean = max(0.0, longest * TILTED - sums) if angle == 45 else 0.0
    named = LINE if picture.column_name else 0
    return Layout(float(round(cell)), float(round(left)), above + named + height, angle, rows, columns, max(sums, lean))


def heat_svg(picture: HeatMap, *, caption: bool = True, width: float = WIDE) -> Html:
    """The picture for a page that has `STYLE`. ``caption`` puts its title and origin into it."""
    drawn, wide, high = _drawn(picture, width, caption=caption)
    return _svg(drawn, picture.title, wide, high)


def document(picture: HeatMap, *, width: float = WIDE) -> str:
    """The picture as a file of its own."""
    drawn, wide, high = _drawn(picture, width, caption=True)
    return _file(drawn, picture.title, wide, high)


def multiples_svg(grid: Sequence[Sequence[HeatMap]], *, title: str, origin: str = "") -> Html:
    """Many small ones: a line for each row of the grid, as the layers of a model, with its heads beside one another."""
    drawn, wide, high = _multiples(grid, title if origin else "", origin)
    return _svg(drawn, title, wide, high)


def multiples_document(grid: Sequence[Sequence[HeatMap]], *, title: str, origin: str = "") -> str:
    drawn, wide, high = _multiples(grid, title, origin)
    return _file(drawn, title, wide, high)


def _drawn(picture: HeatMap, width: float, *, caption: bool) -> tuple[list[Html], float, float]:
    place = layout(picture, width=width, above=LINE + GAP if caption else 0)
    wide = max(place.right + place.sums + GAP, 250.0)
    drawn = [*_columns(picture, place), *_rows(picture, place), _frame(place)]
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
    numbered = place.cell >= NUMBERED
    drawn = []
    for number, (row, values, levels) in enumerate(zip(picture.rows, picture.values, picture.levels, strict=True)):
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
    size, prefix = place.cell, PREFIX[picture.scale]
    drawn = _paths(levels, picture.nothing, prefix, place.left, size)
    if numbered:
        for column, (value, level) in enumerate(zip(values, levels, strict=True)):
            if words := brief(value, picture.scale, picture.most):
                middle = {"x": place.left + (column + 0.5) * size, "y": size / 2 + SMALL * 0.36}
                drawn.append(element("text", {"class": f"number {INK[picture.scale]}{level}", **middle}, words))
    return drawn


def _paths(levels: Sequence[int], nothing: int, prefix: str, left: float, size: float) -> list[Html]:
    squares: dict[int, str] = {}
    column = 0
    while column < len(levels):
        level, first = levels[column], column
        while column < len(levels) and levels[column] == level:
            column += 1
        if level != nothing:
            start, run = left + first * size, (column - first) * size
            squares[level] = squares.get(level, "") + f"M{start:g} 0h{run:g}v{size:g}h-{run:g}z"
    return [element("path", {"class": f"{prefix}{level}", "d": path}) for level, path in sorted(squares.items())]


def _frame(place: Layout) -> Html:
    size = {"width": place.right - place.left, "height": place.bottom - place.top}
    return element("rect", {"class": "frame", "x": place.left, "y": place.top, **size})


def _legend(picture: HeatMap, left: float, top: float) -> Html:
    """The scale, with its ends."""
    prefix, step = PREFIX[picture.scale], 2.0
    low, high = (f"{end:.3g}".replace("-", "−") for end in (picture.low, picture.most))
    start = extent(low, SIZE) + GAP
    bar = [
        element(
            "rect", {"class": f"{prefix}{level}", "x": start + level * step, "y": 3, "width": step + 0.2, "height": 10}
        )
        for level in range(LEVELS + 1)
    ]
    end = start + (LEVELS + 1) * step
    frame = element("rect", {"class": "frame", "x": start, "y": 3, "width": end - start, "height": 10})
    labels = [_label(0, SIZE, low, kind="soft"), _label(end + GAP, SIZE, f"{high} {picture.unit}", kind="soft")]
    return element("g", {"transform": f"translate({left:g} {top:g})"}, *bar, frame, *labels)


def _multiples(grid: Sequence[Sequence[HeatMap]], title: str, origin: str) -> tuple[list[Html], float, float]:
    across = max(map(len, grid), default=0)
    first = grid[0][0]
    size = min(12.0, max(1.5, THUMB / max(len(first.columns), len(first.rows), 1)))
    wide, high = len(first.columns) * size, len(first.rows) * size
    pitch = max(wide, 96.0) + 2 * GAP
    drawn = [_label(0, SIZE + 1, title, weight="600")] if title else []
    top = float(LINE + GAP if title else 0)
    for line in grid:
        for number, picture in enumerate(line):
            drawn.append(_thumb(picture, number * pitch, top, size))
        top += high + LINE + 2 * GAP
    for words in wrapped(origin, max(across * pitch, 250.0), SIZE):
        top += LINE
        drawn.append(_label(0, top - 4, words, kind="soft"))
    return drawn, max(across * pitch, 250.0), top + GAP


def _thumb(picture: HeatMap, left: float, top: float, size: float) -> Html:
    """One small one under its title; its numbers to three decimals, which is finer than its colours."""
    inside = [_label(0, SMALL + 2, picture.title, kind="soft"), element("title", {}, picture.origin)]
    for number, (values, levels) in enumerate(zip(picture.values, picture.levels, strict=True)):
        about = {"transform": f"translate(0 {LINE + number * size:g})", "data-values": written(values, 3)}
        inside.append(element("g", about, *_paths(levels, picture.nothing, PREFIX[picture.scale], 0, size)))
    frame = {"width": len(picture.columns) * size, "height": len(picture.rows) * size}
    inside.append(element("rect", {"class": "frame", "x": 0, "y": LINE, **frame}))
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
