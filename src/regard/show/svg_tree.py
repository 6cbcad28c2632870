"""The tree of a search as SVG: a column for each step, a box for each candidate, a line from its parent.

The frame shows what became of a candidate: thin if it was kept, thick if finished, dashed if pruned. The path to the
output is thick.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from markupsafe import Markup

from regard.metrics.numbers import probability, signed
from regard.show.markup import Painted, element, extent, label, noted, right_to_left, shortened

if TYPE_CHECKING:
    from regard.explain.beam import Searched, SearchNode


# What is drawn of the tree, and what became of each candidate in words.

PRUNED = 3  # pruned candidates of a step that are drawn, best first

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


def drawn_nodes(tree: Searched) -> list[list[SearchNode]]:
    """The candidates of each step: kept or finished ones, best first; then the best pruned ones."""
    steps: list[list[SearchNode]] = [[] for _ in range(max((node.step for node in tree.nodes), default=0) + 1)]
    for node in sorted(tree.nodes, key=lambda one: -one.score):
        steps[node.step].append(node)
    return [
        [*(one for one in step if one.fate != "pruned"), *[one for one in step if one.fate == "pruned"][:PRUNED]]
        for step in steps
    ]


def way_to(tree: Searched, number: int) -> set[int]:
    """A candidate and all its ancestors."""
    parents = {node.number: node.parent for node in tree.nodes}
    path: set[int] = set()
    ancestor: int | None = number
    while ancestor is not None:
        path.add(ancestor)
        ancestor = parents[ancestor]
    return path


def reason_of(tree: Searched, node: SearchNode) -> str:
    """The reason of a candidate; of the finished ones only the first is the output."""
    return "worse" if node.reason == "output" and tree.outputs[:1] != (node.number,) else node.reason


def written(tree: Searched, number: int) -> list[str]:
    """The pieces up to a candidate."""
    by_number = {node.number: node for node in tree.nodes}
    return [by_number[one].shown for one in sorted(way_to(tree, number), key=lambda one: by_number[one].step)][1:]


SIZE, LINE = 12, 15  # letters, and from one line to the next
HIGH, GAP, ALLEY = 3 * LINE + 6, 8, 30  # of a box, between boxes, between columns
NARROWEST, WIDEST = 108, 150  # of a box: two scores fit
HEAD = LINE + 4  # above the boxes: which step it is

Box = tuple[float, float, float]  # of a candidate: its left, its top, its width


def spoken(tree: Searched) -> str:
    steps = max(node.step for node in tree.nodes)
    return f"The beam search for “{tree.source}”, {steps} steps; the table below has every candidate"


def tree(picture: Searched) -> Painted:
    """The whole tree, as wide as needed."""
    columns = drawn_nodes(picture)
    boxes = _boxes(columns)
    way = way_to(picture, picture.outputs[0]) if picture.outputs else set()
    nodes = [node for column in columns for node in column]
    edges = [_edge(boxes[node.parent], boxes[node.number], node, way) for node in nodes if node.parent in boxes]
    steps = [
        label(boxes[column[0].number][0], SIZE, f"step {step}", "soft")
        for step, column in enumerate(columns)
        if step and column
    ]
    drawn = [*steps, *edges, *(_candidate(picture, node, boxes[node.number], way) for node in nodes)]
    wide = max(left + width for left, _, width in boxes.values()) + 2
    return drawn, wide, max(top for _, top, _ in boxes.values()) + HIGH + 2


def _boxes(columns: Sequence[Sequence[SearchNode]]) -> dict[int, Box]:
    widths = [_width(column) for column in columns]
    lefts = accumulate(widths[:-1], lambda left, width: left + width + ALLEY, initial=1.0)
    return {
        node.number: (left, HEAD + row * (HIGH + GAP), width)
        for column, left, width in zip(columns, lefts, widths, strict=True)
        for row, node in enumerate(column)
    }


def _width(column: Sequence[SearchNode]) -> float:
    longest = max((extent(node.shown, SIZE) for node in column), default=0.0)
    return max(NARROWEST, min(WIDEST, longest + 2 * GAP))


def _edge(start: Box, end: Box, node: SearchNode, way: set[int]) -> Markup:
    """A curve from the right of one box to the left of the next."""
    x1, x2 = start[0] + start[2], end[0]
    y1, y2 = start[1] + HIGH / 2, end[1] + HIGH / 2
    half = (x1 + x2) / 2
    path = f"M{x1:.1f} {y1:.1f}C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    kind = "edge way" if node.number in way else f"edge {node.fate}"
    return element("path", {"class": kind, "d": path})


def _candidate(tree: Searched, node: SearchNode, box: Box, way: set[int]) -> Markup:
    kind = f"{node.fate} way" if node.number in way else node.fate
    left, top, width = box
    frame = {"x": left, "y": top, "width": width, "height": HIGH, "rx": 5}
    piece = shortened(node.shown, width - 2 * GAP, SIZE)
    lines = [
        label(left + width - GAP, top + LINE, piece, anchor="end")
        if right_to_left(piece)
        else label(left + GAP, top + LINE, piece)
    ]
    told, why = "", reason_of(tree, node)
    if node.parent is not None:
        own = node.log_probability - next(one for one in tree.nodes if one.number == node.parent).log_probability
        shares = f"{probability(own)} · {probability(node.log_probability)}"
        lines.append(label(left + GAP, top + 2 * LINE, shares, "soft"))
        lines.append(label(left + GAP, top + 3 * LINE, SHORT.get(why, why), "soft"))
        told = f"{' '.join(written(tree, node.number))}: log-probability {signed(node.log_probability, 3)}, normalised "
        told += f"{signed(node.score, 3)}; {WHY.get(why, why)}"
    return element("g", {"class": kind}, *noted(told), element("rect", {"class": "box", **frame}), *lines)
