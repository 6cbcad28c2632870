"""The beam as a tree: every step a column, every candidate a box, and the way each came and went.

Fates are told apart by the frame, not by colour alone: kept is a line, finished a thick one, pruned a dashed one. The
way to the output is drawn thick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from regard.report.beam_tree import BeamTree, Twig
from regard.report.letters import extent, right_to_left, shortened
from regard.report.markup import Attributes, Html, element
from regard.report.page import table

SIZE, LINE = 12, 15  # letters, and from one line to the next
HIGH, GAP, ALLEY = 3 * LINE + 6, 8, 30  # of a box, between boxes, between columns
NARROWEST, WIDEST = 108, 150  # of a box: two scores fit
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
    "worse": "finished, worse",
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
    wide = max(place.left + place.width for place in places.values()) + 2
    high = max(place.top for place in places.values()) + HIGH + 2
    size: Attributes = {"viewBox": f"0 0 {wide:.0f} {high:.0f}", "width": round(wide), "height": round(high)}
    spoken = f"The beam search for “{tree.source}”, {len(columns) - 1} steps; the table below has every candidate"
    return element("svg", {"class": "tree", "role": "img", "aria-label": spoken, **size}, *edges, *boxes)


def way_to(tree: BeamTree, number: int) -> set[int]:
    """A candidate and all that it continues."""
    parents = {twig.number: twig.parent for twig in tree.twigs}
    found: set[int] = set()
    place: int | None = number
    while place is not None:
        found.add(place)
        place = parents[place]
    return found


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
            number(twig.log_probability),
            number(twig.score),
            WHY.get(twig.reason, twig.reason),
        ]
        for twig in sorted(tree.twigs, key=lambda one: (one.step, -one.score))
        if twig.parent is not None
    ]
    return table(["step", "written", "log-probability", "normalised", "what became of it"], rows, left=(1, 4))


def number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _places(columns: Sequence[Sequence[Twig]]) -> dict[int, Place]:
    widths = [_width(column) for column in columns]
    lefts = accumulate(widths[:-1], lambda left, width: left + width + ALLEY, initial=1.0)
    return {
        twig.number: Place(left, 1 + row * (HIGH + GAP), width)
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
    if twig.parent is not None:
        scores = f"{_brief(twig.log_probability)} · {_brief(twig.score)}"
        lines.append(_soft(scores, place.left + GAP, place.top + 2 * LINE))
        lines.append(_soft(SHORT.get(twig.reason, twig.reason), place.left + GAP, place.top + 3 * LINE))
    told = f"{' '.join(written(tree, twig.number))}: log-probability {number(twig.log_probability)}, normalised "
    told += f"{number(twig.score)}; {WHY.get(twig.reason, twig.reason)}"
    title = [element("title", {}, told)] if twig.parent is not None else []
    return element("g", {"class": kind}, *title, element("rect", {"class": "box", **frame}), *lines)


def _text(words: str, x: float, y: float, width: float) -> Html:
    """A piece in its own direction."""
    if right_to_left(words):
        return element("text", {"x": x + width, "y": y, "direction": "rtl"}, words)
    return element("text", {"x": float(x), "y": float(y)}, words)


def _soft(words: str, x: float, y: float) -> Html:
    return element("text", {"class": "soft", "x": float(x), "y": float(y)}, words)


def _brief(value: float) -> str:
    return "≈ 0" if abs(value) < 0.005 else f"{value:.2f}".replace("-", "−")
