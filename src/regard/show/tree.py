"""The beam as a tree: every step a column, every candidate a box, and the way each came and went.

Fates are told apart by the frame, not by colour alone: kept is a line, finished a thick one, pruned a dashed one. The
way to the output is drawn thick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from typing import TYPE_CHECKING

from regard.show.letters import extent, right_to_left, shortened
from regard.show.markup import Attributes, Html, element
from regard.show.page import table

if TYPE_CHECKING:
    from regard.explain.beam import Searched, SearchNode

SIZE, LINE = 12, 15  # letters, and from one line to the next
HIGH, GAP, ALLEY = 3 * LINE + 6, 8, 30  # of a box, between boxes, between columns
NARROWEST, WIDEST = 108, 150  # of a box: two scores fit
HEAD = LINE + 4  # above the boxes: which step it is
PRUNED = 3  # of a step that are drawn, best first

WHY = {
    "": "went on",
    "beam": "pruned: others were better",
    "repeated": "pruned: written by another group already",
    "output": "finished: this is the output",
    "worse": "finished, but others were better",
    "full": "left: enough had finished",
    "beaten": "left: it could not win any more",
    "limit": "left: nothing more may be written",
}
SHORT = {
    "": "",
    "beam": "pruned",
    "repeated": "repeated",
    "output": "✓ output",
    "worse": "finished",
    "full": "enough finished",
    "beaten": "cannot win",
    "limit": "at the limit",
}

STYLE = """
svg.tree{font:12px/1 system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif;display:block}
svg.tree text{fill:currentColor}
svg.tree .soft{fill:var(--soft);font-size:11px}
svg.tree .box{fill:var(--panel);stroke:var(--soft);stroke-width:1}
svg.tree .pruned .box{fill:none;stroke-dasharray:3 3}
svg.tree .finished .box{stroke:currentColor;stroke-width:2}
svg.tree .way .box{stroke:var(--s0);stroke-width:2.5}
svg.tree .edge{fill:none;stroke:var(--grid);stroke-width:1.5}
svg.tree .edge.way{stroke:var(--s0);stroke-width:3}
svg.tree .edge.pruned{stroke-dasharray:3 3}
.scroll:has(>svg.tree){scrollbar-width:thin;padding-bottom:.5rem;
background:linear-gradient(90deg,var(--paper) 30%,transparent) left/3rem 100% no-repeat local,
linear-gradient(270deg,var(--paper) 30%,transparent) right/3rem 100% no-repeat local,
linear-gradient(90deg,var(--grid),transparent) left/.9rem 100% no-repeat scroll,
linear-gradient(270deg,var(--grid),transparent) right/.9rem 100% no-repeat scroll}
"""


@dataclass(frozen=True)
class Place:
    """The box of a candidate."""

    left: float
    top: float
    width: float

    @property
    def middle(self) -> float:
        return self.top + HIGH / 2


def drawn_nodes(tree: Searched) -> list[list[SearchNode]]:
    """By step: what was kept or finished, best first; then the best of what was pruned."""
    steps: list[list[SearchNode]] = [[] for _ in range(max((node.step for node in tree.nodes), default=0) + 1)]
    for node in sorted(tree.nodes, key=lambda one: -one.score):
        steps[node.step].append(node)
    return [
        [*(one for one in step if one.fate != "pruned"), *[one for one in step if one.fate == "pruned"][:PRUNED]]
        for step in steps
    ]


def tree_svg(tree: Searched) -> Html:
    """The drawing; as wide as it has to be."""
    columns = drawn_nodes(tree)
    places = _places(columns)
    way = way_to(tree, tree.outputs[0]) if tree.outputs else set()
    edges = [
        _edge(places[node.parent], places[node.number], node, way)
        for column in columns
        for node in column
        if node.parent is not None and node.parent in places
    ]
    boxes = [_box(tree, node, places[node.number], way) for column in columns for node in column]
    steps = [
        _soft(f"step {step}", places[column[0].number].left, float(SIZE))
        for step, column in enumerate(columns)
        if step and column
    ]
    wide = max(place.left + place.width for place in places.values()) + 2
    high = max(place.top for place in places.values()) + HIGH + 2
    size: Attributes = {"viewBox": f"0 0 {wide:.0f} {high:.0f}", "width": round(wide), "height": round(high)}
    spoken = f"The beam search for “{tree.source}”, {len(columns) - 1} steps; the table below has every candidate"
    return element("svg", {"class": "tree", "role": "img", "aria-label": spoken, **size}, *steps, *edges, *boxes)


def way_to(tree: Searched, number: int) -> set[int]:
    """A candidate and all that it continues."""
    parents = {node.number: node.parent for node in tree.nodes}
    found: set[int] = set()
    place: int | None = number
    while place is not None:
        found.add(place)
        place = parents[place]
    return found


def reason_of(tree: Searched, node: SearchNode) -> str:
    """Of what finished, one is the output; the others are only the next best."""
    return "worse" if node.reason == "output" and tree.outputs[:1] != (node.number,) else node.reason


def written(tree: Searched, number: int) -> list[str]:
    """The pieces at a candidate, from the first."""
    by_number = {node.number: node for node in tree.nodes}
    return [by_number[one].shown for one in sorted(way_to(tree, number), key=lambda one: by_number[one].step)][1:]


def candidates_table(tree: Searched) -> Html:
    """Every candidate in words, best of each step first."""
    rows = [
        [
            f"{node.step}",
            element("bdi", {}, " ".join(written(tree, node.number))),
            percent(node.log_probability),
            number(node.log_probability),
            number(node.score),
            WHY.get(reason_of(tree, node), node.reason),
        ]
        for node in sorted(tree.nodes, key=lambda one: (one.step, -one.score))
        if node.parent is not None
    ]
    return table(
        ["step", "written", "probability", "log-probability", "normalised", "what became of it"], rows, left=(1, 5)
    )


def percent(log_probability: float) -> str:
    """Of a log-probability: 99.6 %, 41 %, < 0.1 %."""
    share = 100 * exp(log_probability)
    if share >= 99.95:
        return "100 %" if share >= 99.9999 else "> 99.9 %"
    if share < 0.1:
        return "< 0.1 %"
    return f"{share:.1f} %" if share < 9.95 or share > 99 else f"{share:.0f} %"


def number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _places(columns: Sequence[Sequence[SearchNode]]) -> dict[int, Place]:
    widths = [_width(column) for column in columns]
    lefts = accumulate(widths[:-1], lambda left, width: left + width + ALLEY, initial=1.0)
    return {
        node.number: Place(left, HEAD + row * (HIGH + GAP), width)
        for column, left, width in zip(columns, lefts, widths, strict=True)
        for row, node in enumerate(column)
    }


def _width(column: Sequence[SearchNode]) -> float:
    longest = max((extent(node.shown, SIZE) for node in column), default=0.0)
    return max(NARROWEST, min(WIDEST, longest + 2 * GAP))


def _edge(start: Place, end: Place, node: SearchNode, way: set[int]) -> Html:
    """From the right of one box to the left of the next, in a gentle curve."""
    x1, x2 = start.left + start.width, end.left
    half = (x1 + x2) / 2
    y1, y2 = start.middle, end.middle
    path = f"M{x1:.1f} {y1:.1f}C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    kind = "edge way" if node.number in way else f"edge {node.fate}"
    return element("path", {"class": kind, "d": path})


def _box(tree: Searched, node: SearchNode, place: Place, way: set[int]) -> Html:
    kind = f"{node.fate} way" if node.number in way else node.fate
    frame = {"x": place.left, "y": place.top, "width": place.width, "height": HIGH, "rx": 5}
    token = shortened(node.shown, place.width - 2 * GAP, SIZE)
    lines = [_text(token, place.left + GAP, place.top + LINE, place.width - 2 * GAP)]
    why = reason_of(tree, node)
    if node.parent is not None:
        own = node.log_probability - next(one for one in tree.nodes if one.number == node.parent).log_probability
        shares = f"{percent(own)} · {percent(node.log_probability)}"
        lines.append(_soft(shares, place.left + GAP, place.top + 2 * LINE))
        lines.append(_soft(SHORT.get(why, why), place.left + GAP, place.top + 3 * LINE))
    told = f"{' '.join(written(tree, node.number))}: log-probability {number(node.log_probability)}, normalised "
    told += f"{number(node.score)}; {WHY.get(why, why)}"
    title = [element("title", {}, told)] if node.parent is not None else []
    return element("g", {"class": kind}, *title, element("rect", {"class": "box", **frame}), *lines)


def _text(words: str, x: float, y: float, width: float) -> Html:
    """A piece in its own direction."""
    if right_to_left(words):
        return element("text", {"x": x + width, "y": y, "direction": "rtl"}, words)
    return element("text", {"x": float(x), "y": float(y)}, words)


def _soft(words: str, x: float, y: float) -> Html:
    return element("text", {"class": "soft", "x": float(x), "y": float(y)}, words)
