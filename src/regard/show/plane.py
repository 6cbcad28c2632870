"""Points on two axes, one small picture for each layer, all to the same scale, so that a word's way can be followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from regard.show.charts import COLOURS, GAP, LINE, SIZE
from regard.show.letters import extent, shortened
from regard.show.markup import Attributes, Html, element

SIDE, MARGIN = 210, 16  # pixels of a picture, and inside it
DOT = 4.5
NEAR = 14  # pixels between points whose labels would lie on one another

STYLE = """
svg.plane{font:12px/1 system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif;display:block}
svg.plane text{fill:currentColor}
svg.plane .soft{fill:var(--soft,#59606b)}
svg.plane .box{fill:none;stroke:var(--grid)}
svg.plane .cross{stroke:var(--grid)}
svg.plane .dot{fill:var(--hue)}
"""


@dataclass(frozen=True)
class Dot:
    """A point with its label; points of one group have one colour."""

    x: float
    y: float
    label: str
    group: int = 0
    note: str = ""  # shown when pointed at


@dataclass(frozen=True)
class Panel:
    """One picture."""

    title: str
    note: str
    dots: tuple[Dot, ...]


def plane_svg(panels: Sequence[Panel], *, title: str, across: int = 3) -> Html:
    """The pictures side by side, as many in a line as asked."""
    reach = max((max(abs(dot.x), abs(dot.y)) for panel in panels for dot in panel.dots), default=1.0) or 1.0
    high = SIDE + 2 * LINE + GAP
    drawn = [
        element("g", {"transform": f"translate({place % across * (SIDE + GAP)} {place // across * high})"}, *parts)
        for place, parts in enumerate(_panel(panel, reach) for panel in panels)
    ]
    wide = min(across, len(panels)) * (SIDE + GAP)
    tall = -(-len(panels) // across) * high
    size: Attributes = {"viewBox": f"0 0 {wide} {tall}", "width": wide, "height": tall}
    return element("svg", {"class": "plane", "role": "img", "aria-label": title, **size}, *drawn)


def _panel(panel: Panel, reach: float) -> list[Html]:
    top, middle = 2 * LINE, SIDE / 2
    title = shortened(panel.title, SIDE, SIZE)
    frame = {"x": 0.5, "y": top + 0.5, "width": SIDE - 1, "height": SIDE - 1}
    drawn = [
        element("text", {"x": 0.0, "y": float(SIZE)}, title),
        element("text", {"class": "soft", "x": 0.0, "y": float(SIZE + LINE)}, shortened(panel.note, SIDE, SIZE)),
        element("rect", {"class": "box", **frame}),
        element("line", {"class": "cross", "x1": 0, "x2": SIDE, "y1": top + middle, "y2": top + middle}),
        element("line", {"class": "cross", "x1": middle, "x2": middle, "y1": top, "y2": top + SIDE}),
    ]
    places = [
        (middle + dot.x / reach * (middle - MARGIN), top + middle - dot.y / reach * (middle - MARGIN))
        for dot in panel.dots
    ]
    drawn += [_dot(dot, *place) for dot, place in zip(panel.dots, places, strict=True)]
    return drawn + _labels(panel.dots, places)


def _dot(dot: Dot, x: float, y: float) -> Html:
    note = [element("title", {}, dot.note)] if dot.note else []
    circle = element("circle", {"class": "dot", "cx": x, "cy": y, "r": DOT})
    return element("g", {"class": f"s{dot.group % COLOURS}"}, *note, circle)


def _labels(dots: Sequence[Dot], places: Sequence[tuple[float, float]]) -> list[Html]:
    """A label stands beside its point; points that lie on one another share one: ``1, 2``."""
    groups: list[tuple[tuple[float, float], list[str]]] = []
    for dot, place in zip(dots, places, strict=True):
        near = next((names for at, names in groups if hypot(at[0] - place[0], at[1] - place[1]) < NEAR), None)
        if near is None:
            groups.append((place, [dot.label]))
        else:
            near.append(dot.label)
    return [_label(", ".join(filter(None, names)), *place) for place, names in groups]


def _label(words: str, x: float, y: float) -> Html:
    """Right of the point, or left of it where the picture ends."""
    left = x + DOT + 3
    if left + extent(words, SIZE) > SIDE:
        return element("text", {"x": x - DOT - 3, "y": y + 4, "text-anchor": "end"}, words)
    return element("text", {"x": left, "y": y + 4}, words)
