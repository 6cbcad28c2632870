"""The beam as a tree: every step a column, every candidate a box, and the way each came and went.

Fates are told apart by the frame, not by colour alone: kept is a line, finished a thick one, pruned a dashed one. The
way to the output is drawn thick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp

from regard.explain.beam_tree import BeamTree, Twig
from regard.show.letters import extent, right_to_left, shortened
from regard.show.markup import Attributes, Html, element
from regard.show.page import table

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


def drawn_twigs(tree: BeamTree) -> list[list[Twig]]:
    """By step: what was kept or finished, best first; then the best of what was pruned."""
    steps: list[list[Twig]] = [[] for _ in range(max((twig.step for twig in tree.twigs), default=0) + 1)]
    for twig in sorted(tree.twigs, key=lambda one: -one.score):
        steps[twig.step].append(twig)
    return [
        [*(one for one in step if one.fate != "pruned"), *[one for one in step if one.fate == "pruned"][:PRUNED]]
        for step in steps
    ]


def tree_svg(tree: BeamTree) -> Html:
    """The drawing; as wide as it has to be."""
    columns = drawn_twigs(tree)
    places = _places(columns)
    way = way_to(tree, tree.outputs[0]) if tree.outputs else set()
    edges = [
        _edge(places[twig.parent], places[twig.number], twig, way)
        for column in columns
        for twig in column
        if twig.parent is not None and twig.parent in places
    ]
    boxes = [_box(tree, twig, places[twig.number], way) for column in columns for twig in column]
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


def way_to(tree: BeamTree, number: int) -> set[int]:
    """A candidate and all that it continues."""
    parents = {twig.number: twig.parent for twig in tree.twigs}
    found: set[int] = set()
    place: int | None = number
    while place is not None:
        found.add(place)
        place = parents[place]
    return found


def reason_of(tree: BeamTree, twig: Twig) -> str:
    """Of what finished, one is the output; the others are only the next best."""
    return "worse" if twig.reason == "output" and tree.outputs[:1] != (twig.number,) else twig.reason


def written(tree: BeamTree, number: int) -> list[str]:
    """The pieces at a candidate, from the first."""
    by_number = {twig.number: twig for twig in tree.twigs}
    return [by_number[one].token for one in sorted(way_to(tree, number), key=lambda one: by_number[one].step)][1:]


def candidates_table(tree: BeamTree) -> Html:
    """Every candidate in words, best of each step first."""
    rows = [
        [
            f"{twig.step}",
            element("bdi", {}, " ".join(written(tree, twig.number))),
            percent(twig.log_probability),
            number(twig.log_probability),
            number(twig.score),
            WHY.get(reason_of(tree, twig), twig.reason),
        ]
        for twig in sorted(tree.twigs, key=lambda one: (one.step, -one.score))
        if twig.parent is not None
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


def _places(columns: Sequence[Sequence[Twig]]) -> dict[int, Place]:
    widths = [_width(column) for column in columns]
    lefts = accumulate(widths[:-1], lambda left, width: left + width + ALLEY, initial=1.0)
    return {
        twig.number: Place(left, HEAD + row * (HIGH + GAP), width)
        for column, left, width in zip(columns, lefts, widths, strict=True)
        for row, twig in enumerate(column)
    }


def _width(column: Sequence[Twig]) -> float:
    longest = max((extent(twig.token, SIZE) for twig in column), default=0.0)
    return max(NARROWEST, min(WIDEST, longest + 2 * GAP))


def _edge(start: Place, end: Place, twig: Twig, way: set[int]) -> Html:
    """From the right of one box to the left of the next, in a gentle curve."""
    x1, x2 = start.left + start.width, end.left
    half = (x1 + x2) / 2
    y1, y2 = start.middle, end.middle
    path = f"M{x1:.1f} {y1:.1f}C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    kind = "edge way" if twig.number in way else f"edge {twig.fate}"
    return element("path", {"class": kind, "d": path})


def _box(tree: BeamTree, twig: Twig, place: Place, way: set[int]) -> Html:
    kind = f"{twig.fate} way" if twig.number in way else twig.fate
    frame = {"x": place.left, "y": place.top, "width": place.width, "height": HIGH, "rx": 5}
    token = shortened(twig.token, place.width - 2 * GAP, SIZE)
    lines = [_text(token, place.left + GAP, place.top + LINE, place.width - 2 * GAP)]
    why = reason_of(tree, twig)
    if twig.parent is not None:
        own = twig.log_probability - next(one for one in tree.twigs if one.number == twig.parent).log_probability
        shares = f"{percent(own)} · {percent(twig.log_probability)}"
        lines.append(_soft(shares, place.left + GAP, place.top + 2 * LINE))
        lines.append(_soft(SHORT.get(why, why), place.left + GAP, place.top + 3 * LINE))
    told = f"{' '.join(written(tree, twig.number))}: log-probability {number(twig.log_probability)}, normalised "
    told += f"{number(twig.score)}; {WHY.get(why, why)}"
    title = [element("title", {}, told)] if twig.parent is not None else []
    return element("g", {"class": kind}, *title, element("rect", {"class": "box", **frame}), *lines)


def _text(words: str, x: float, y: float, width: float) -> Html:
    """A piece in its own direction."""
    if right_to_left(words):
        return element("text", {"x": x + width, "y": y, "direction": "rtl"}, words)
    return element("text", {"x": float(x), "y": float(y)}, words)


def _soft(words: str, x: float, y: float) -> Html:
    return element("text", {"class": "soft", "x": float(x), "y": float(y)}, words)
