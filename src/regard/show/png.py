"""Heat maps as PNG by matplotlib, for print: the same picture and colours as the SVG, 200 dots an inch.

Matplotlib 3.11 shapes text itself (Arabic, Devanagari) if a font has the letters. Fonts are chosen from those of the
machine; letters that no font has are returned, so that the caller can warn.
"""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from regard.errors import ResourceError
from regard.explain.heatmap import HeatMap, brief
from regard.files import new_file
from regard.show import colours
from regard.show.markup import shortened, wrapped
from regard.show.pictures import Grid
from regard.show.svg_heatmap import Layout, has_numbers, layout
from regard.show.svg_vectors import CHANNELS, GAP, LOWERED, PANEL, RAISED, ROWS, cut_of, strengths
from regard.text.vectors import pixels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS = 200  # an inch
PIXELS = 96  # of the layout, an inch
LABEL, NUMBER = 9.0, 7.5  # points
MARGIN, BAR, LINE, SMALL = 12, 8, 14, 10  # pixels: margin, height of the scale, a line, letters
SOFT = "#59606b"
UNREADABLE = {"Last Resort", "Last Resort High-Efficiency", "Noto Color Emoji"}  # they draw boxes or bitmaps
UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp", "Zs"))  # categories without a glyph
FAMILY = "DejaVu Sans"  # comes with matplotlib


def save_png(picture: HeatMap | Grid, path: str | Path) -> str:
    """Write a file; returns the letters that no font has."""
    labels = [picture.origin, *picture.rows, *picture.columns] if isinstance(picture, HeatMap) else []
    with _drawing([picture.title, *labels]) as (families, missing), new_file(Path(path)) as file:
        if isinstance(picture, HeatMap):
            figure = heat_figure(picture, layout(picture), families)
        else:
            figure = _grid_figure(picture, families)
        figure.savefig(file, format="png", dpi=DOTS, facecolor="white", metadata={"Software": None})
    return missing


def heat_figure(picture: HeatMap, place: Layout, families: Sequence[str]) -> Figure:
    """The picture as a figure, laid out as the SVG is."""
    wide = max(place.right + place.sums + 3 * MARGIN, 320.0)
    origin = wrapped(picture.origin, wide - 2 * MARGIN, SMALL)
    across = max(1, int((wide - 2 * MARGIN + GAP) // (PANEL + GAP)))
    below = -(-min(len(picture.rows), ROWS) // across) * (PANEL + 2 * LINE) if picture.curve else 0
    high = place.bottom + 5 * MARGIN + BAR + LINE * len(origin) + below
    figure = _figure(wide, high)
    if below:
        _panels(figure, picture, families, (across, wide, high, high - below))
    bottom = place.bottom + 2 * MARGIN
    box = (place.left + MARGIN) / wide, 1 - bottom / high
    axes = figure.add_axes((*box, (place.right - place.left) / wide, (place.bottom - place.top) / high))
    _image(axes, picture)
    _ticks(axes, picture, place, families)
    if has_numbers(picture, place):
        _cell_numbers(axes, picture, families)
    if picture.sums:
        _sums(axes, picture, families)
    _bar(figure, picture, families, (box[0], 1 - (bottom + MARGIN + BAR) / high, 90 / wide, BAR / high))
    left, last = MARGIN / wide, bottom + 2 * MARGIN + BAR
    figure.text(left, 1 - 14 / high, picture.title, family=families, size=LABEL + 1, weight="bold", va="center")
    for number, line in enumerate(origin):
        at = 1 - (last + LINE * number) / high
        figure.text(left, at, line, family=families, size=NUMBER, color=SOFT, va="top")
    return figure


def _panels(figure: Figure, picture: HeatMap, families: Sequence[str], room: tuple[int, float, float, float]) -> None:
    """The map on what was read, once for every row, as many side by side as there is room for, from ``top`` on."""
    from matplotlib.colors import to_rgb

    across, wide, high, top = room
    for place, (name, values) in enumerate(list(zip(picture.rows, picture.values, strict=True))[:ROWS]):
        x, y = MARGIN + place % across * (PANEL + GAP), top + place // across * (PANEL + 2 * LINE)
        axes = figure.add_axes((x / wide, 1 - (y + PANEL) / high, PANEL / wide, PANEL / high))
        squares = [(*to_rgb(RAISED if each >= 0 else LOWERED), strength) for each, strength in strengths(values)]
        extent, grid = (0.0, 1.0, 0.0, 1.0), [squares]
        if picture.image:
            width, height, side = cut_of(picture)
            pixels, across_it = pixels_of(picture.image), -(-width // int(side))
            shown = pixels if pixels.shape[2] == 3 else pixels[..., 0]
            axes.imshow(shown, cmap="gray", vmin=0, vmax=1, extent=extent, aspect="auto", interpolation="nearest")
            grid = [squares[begin : begin + across_it] for begin in range(0, len(squares), across_it)]
            extent = (0.0, across_it * side / width, 1 - len(grid) * side / height, 1.0)
        for channel in () if picture.image else picture.curve[:CHANNELS]:
            low, size = min(channel), (max(channel) - min(channel)) or 1.0
            times = [(moment + 0.5) / len(channel) for moment in range(len(channel))]
            axes.plot(times, [0.03 + 0.94 * (one - low) / size for one in channel], color=SOFT, linewidth=0.8)
        axes.imshow(grid, extent=extent, aspect="auto", interpolation="nearest", zorder=2)
        axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
        axes.set_xlabel(name, family=families, size=NUMBER, labelpad=2)


def _sums(axes: Axes, picture: HeatMap, families: Sequence[str]) -> None:
    right = len(picture.columns) - 0.3
    axes.text(right, -0.6, "Σ", va="bottom", family=families, size=LABEL, color=SOFT)
    for row, total in enumerate(picture.totals):
        axes.text(right, row, f"{total:.2f}", va="center", family=families, size=NUMBER, color=SOFT)


def _bar(figure: Figure, picture: HeatMap, families: Sequence[str], box: tuple[float, float, float, float]) -> None:
    """The scale, with its ends."""
    axes = figure.add_axes(box)
    steps = range(colours.LEVELS + 1)
    _image(
        axes, replace(picture, values=(tuple(map(float, steps)),), scale=picture.scale, most=float(steps[-1])), low=0.0
    )
    axes.set_axis_off()
    ends = ((-0.03, "right", f"{picture.low:.3g}"), (1.03, "left", f"{picture.most:.3g} {picture.unit}"))
    for place, side, words in ends:
        shown = words.replace("-", "−")
        axes.text(place, 0.5, shown, transform=axes.transAxes, ha=side, va="center", family=families, size=NUMBER)


def _grid_figure(grid: Grid, families: Sequence[str]) -> Figure:
    first = grid.rows[0][0]
    share = len(first.rows) / max(1, len(first.columns))
    across, down = max(map(len, grid.rows)), len(grid.rows)
    figure = _figure(across * 130 + 20, down * (112 * share + 28) + 40)
    figure.suptitle(grid.title, family=families, size=LABEL + 1, weight="bold", x=0.02, ha="left")
    every = figure.subplots(down, across, squeeze=False)
    for line, pictures in zip(every, grid.rows, strict=True):
        for axes, picture in zip(line, pictures, strict=True):
            _image(axes, picture)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(picture.title, family=families, size=NUMBER, pad=3)
    figure.tight_layout()
    return figure


def _figure(wide: float, high: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(wide, 320) / PIXELS, high / PIXELS), dpi=DOTS)
    FigureCanvasAgg(figure)
    return figure


def _image(axes: Axes, picture: HeatMap, low: float | None = None) -> None:
    from matplotlib.colors import ListedColormap

    table = [colours.code(colour) for colour in colours.table(picture.scale, "light")]
    axes.imshow(
        picture.values,
        cmap=ListedColormap(table),
        vmin=picture.low if low is None else low,
        vmax=picture.most,
        aspect="auto",
        interpolation="nearest",
    )
    for spine in axes.spines.values():
        spine.set_color("#b9bfc9")
        spine.set_linewidth(0.6)


def _ticks(axes: Axes, picture: HeatMap, place: Layout, families: Sequence[str]) -> None:
    """Labels above and at the left, tilted as in the SVG."""
    limit, size = 120.0, 12.0
    rows, columns = ([shortened(label, limit, size) for label in side] for side in (picture.rows, picture.columns))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=3)
    anchor: dict[str, Any] = {0: {"ha": "center"}, 45: {"ha": "left", "rotation_mode": "anchor"}}.get(place.angle, {})
    axes.set_xticks(range(len(columns)), columns, rotation=place.angle, family=families, size=LABEL, **anchor)
    axes.set_yticks(range(len(rows)), rows, family=families, size=LABEL)


def _cell_numbers(axes: Axes, picture: HeatMap, families: Sequence[str]) -> None:
    table = colours.table(picture.scale, "light")
    for row, (values, levels) in enumerate(zip(picture.values, colours.levels(picture), strict=True)):
        for column, (value, level) in enumerate(zip(values, levels, strict=True)):
            if words := brief(value, picture.most):
                shade = colours.code(colours.ink(table[level]))
                axes.text(column, row, words, ha="center", va="center", family=families, size=NUMBER, color=shade)


@contextmanager
def _drawing(texts: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """Set matplotlib up; gives the font families that the texts need, and the letters that no font has."""
    if "MPLCONFIGDIR" not in os.environ and not os.access(Path.home(), os.W_OK):
        os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp()  # it caches a list of fonts
    try:
        import matplotlib as mpl
    except ImportError:
        raise ResourceError("PNG: matplotlib is missing; pip install matplotlib") from None
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns of missing weights
    families, missing = fonts_for("".join(texts))
    with mpl.rc_context({"text.usetex": False, "text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the caller reports missing letters
        yield families, missing


def fonts_for(text: str) -> tuple[list[str], str]:
    """Font families that cover a text, chosen greedily, and the letters that none has."""
    needed = {letter for letter in text if category(letter) not in UNSEEN and not "\ufe00" <= letter <= "\ufe0f"}
    families = [FAMILY]
    needed -= _letters(FAMILY)
    while needed:
        best = max(_families(), key=lambda name: (len(needed & _letters(name)), name.startswith("Noto Sans"), name))
        if not needed & _letters(best):
            break
        families.append(best)
        needed -= _letters(best)
    return families, "".join(sorted(needed))


@cache
def _families() -> dict[str, str]:
    """The file of each family on this machine: its upright font nearest to normal weight."""
    from matplotlib.font_manager import fontManager, weight_dict

    found: dict[str, tuple[float, str]] = {}
    for font in fontManager.ttflist:
        weight = font.weight if isinstance(font.weight, int) else weight_dict.get(font.weight, 400)
        away = abs(weight - 400) + 1000 * (font.style != "normal")
        if font.name not in UNREADABLE and away < found.get(font.name, (float("inf"),))[0]:
            found[font.name] = away, font.fname
    return {name: path for name, (_, path) in sorted(found.items())}


@cache
def _letters(family: str) -> frozenset[str]:
    """The letters of a family; none if its font cannot be read."""
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(_families()[family]).get_charmap()))
    except (KeyError, OSError, RuntimeError):
        return frozenset()
