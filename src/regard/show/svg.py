"""Pictures as SVG: inside a page, which has their style sheet, or as a file that contains it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from markupsafe import Markup

from regard.explain.heatmap import HeatMap
from regard.show import colours, svg_charts, svg_heatmap, svg_tree
from regard.show.markup import Attributes, Painted, element
from regard.show.pictures import Chart, Grid

if TYPE_CHECKING:
    from regard.explain.beam import Searched

    Picture: TypeAlias = HeatMap | Grid | Chart | Searched

TEMPLATES = Path(__file__).parent / "templates"
WIDE, NARROW = 720, 340  # pixels: for desktop and print, for phones
MARGIN = 12  # around the picture in a file


def svg(picture: Picture, width: float = WIDE) -> Markup:
    """The picture for a page, which has its caption."""
    kind, title, (drawn, wide, high) = _painted(picture, width, caption=False)
    return element("svg", {"class": kind, "role": "img", "aria-label": title, **_size(wide, high)}, *drawn)


def document(picture: Picture) -> str:
    """The picture as a file, with its title and the origin of its numbers."""
    kind, title, (drawn, wide, high) = _painted(picture, WIDE, caption=True)
    size = _size(wide + 2 * MARGIN, high + 2 * MARGIN)
    inside = (
        element("title", {}, title),
        element("style", {}, style("heat" if kind == "heat" else "pictures")),
        element("rect", {"class": "ground", "width": "100%", "height": "100%"}),
        element("g", {"transform": f"translate({MARGIN} {MARGIN})"}, *drawn),
    )
    return f"{element('svg', {'xmlns': 'http://www.w3.org/2000/svg', 'class': kind, **size}, *inside)}\n"


@cache
def style(name: str) -> Markup:
    """A style sheet of the templates; that of heat maps with the colours of their scales."""
    written = (TEMPLATES / f"{name}.css").read_text(encoding="utf-8")
    if name == "heat":
        written += f"{colours.rules('light')}@media (prefers-color-scheme:dark){{{colours.rules('dark')}}}"
    return Markup(written)


def _painted(picture: Picture, width: float, *, caption: bool) -> tuple[str, str, Painted]:
    """The class of a picture in the style sheet, its text for screen readers, and its elements."""
    match picture:
        case HeatMap():
            return "heat", picture.title, svg_heatmap.heat(picture, width, caption=caption)
        case Grid():
            return "heat", picture.title, svg_heatmap.grid(picture, caption=caption)
        case Chart():
            return "chart", picture.title, svg_charts.chart(picture, width)
        case _:
            return "tree", svg_tree.spoken(picture), svg_tree.tree(picture)


def _size(wide: float, high: float) -> Attributes:
    return {"viewBox": f"0 0 {wide:.0f} {high:.0f}", "width": round(wide), "height": round(high)}
