"""Points on two axes, one small picture for each layer, all to the same scale, so that a word's way can be followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.report.charts import COLOURS, GAP, LINE, SIZE
from regard.report.letters import extent, shortened
from regard.report.markup import Attributes, Html, element

SIDE, MARGIN = 210, 16  # pixels of a picture, and inside it
DOT = 4.5

STYLE = """
svg.plane{font:12px/1 system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif;display:block}
svg.plane text{fill:currentColor}
svg.plane .soft{fill:var(--soft,#59606b)}
svg.plane .box{fill:none;stroke:var(--grid)}
svg.plane .cross{stroke:var(--grid)}
svg.plane .dot{fill:var(--hue)}
svg.plane .hollow{fill:none;stroke:var(--hue);stroke-width:1.5}
"""


@dataclass(frozen=True)
class Dot:
    """A point with its label; points of one group have one colour, and hollow ones are there for comparison."""

    x: float
    y: float
    label: str
    group: int = 0
    hollow: bool = False
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
    taken: list[tuple[float, float, float]] = []
    for dot in panel.dots:
        x = middle + dot.x / reach * (middle - MARGIN)
        y = top + middle - dot.y / reach * (middle - MARGIN)
        drawn.append(_dot(dot, x, y, _beside(dot.label, x, y, taken) if dot.label else None))
    return drawn


def _beside(label: str, x: float, y: float, taken: list[tuple[float, float, float]]) -> float | None:
    """The baseline of a label right of its point, moved down past labels that are there; none where it has no room."""
    width = extent(label, SIZE)
    for step in range(6):
        base = y + 4 + step * (SIZE + 1)
        if base > 2 * LINE + SIDE - 2:
            return None
        free = all(abs(base - other) > SIZE or x + DOT + width < left or x > left + span for left, other, span in taken)
        if free:
            taken.append((x, base, width + 3 * DOT))
            return base
    return None


def _dot(dot: Dot, x: float, y: float, base: float | None) -> Html:
    circle = element("circle", {"class": "hollow" if dot.hollow else "dot", "cx": x, "cy": y, "r": DOT})
    note = [element("title", {}, dot.note)] if dot.note else []
    label = []
    if base is not None:
        left = x + DOT + 3
        anchor: Attributes = {"x": left, "y": base}
        if left + extent(dot.label, SIZE) > SIDE:
            anchor = {"x": x - DOT - 3, "y": base, "text-anchor": "end"}
        label = [element("text", anchor, dot.label)]
    return element("g", {"class": f"s{dot.group % COLOURS}"}, *note, circle, *label)
