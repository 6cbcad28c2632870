"""A beam search in a terminal: one line a candidate, below what it continues, its scores before it.

Marks tell fates apart without colour: ● went on, ✓ on the way to the output, ■ finished, × pruned, ○ left at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from regard.show.terminal import cut, padded
from regard.show.tree import SHORT, WHY, drawn_nodes, number, reason_of, way_to

if TYPE_CHECKING:
    from regard.explain.beam import Searched, SearchNode

WIDE = 110  # cells of a terminal in which reasons stand in full
WORD = 14  # cells that a piece should have; where it has fewer, a level is one cell wide, not two
NARROWEST = 24  # cells for the tree, whatever the terminal
SCORE = 9  # cells of a number
STYLES = {"✓": "bold green", "■": "bold", "○": "dim", "×": "dim"}


def tree_lines(tree: Searched, width: int = 100) -> list[Text]:
    """The drawn part of a tree: all that was kept or finished, and the best of what was pruned at each step.

    In a terminal the way to the output stands out, and what left the beam stands back.
    """
    drawn = {node.number: node for step in drawn_nodes(tree) for node in step}
    children: dict[int, list[SearchNode]] = {}
    for node in drawn.values():
        if node.parent is not None:
            children.setdefault(node.parent, []).append(node)
    way = way_to(tree, tree.outputs[0]) if tree.outputs else set()
    reasons = WHY if width >= WIDE else SHORT
    room = max(NARROWEST, width - 2 * SCORE - 3 - max(map(len, reasons.values())))
    deep = 2 * max((node.step for node in drawn.values()), default=0) > room - WORD
    lines = [Text(f"{'log p':>{SCORE}}{'normed':>{SCORE}}  <start>", "bold")]
    for stem, node in _walk(children, 0, "", deep=deep):
        mark, reason = _mark(node, way), reason_of(tree, node)
        line = _line(node, f"{stem}{mark} ", room, reasons.get(reason, reason))
        lines.append(Text(line.rstrip(), STYLES.get(mark, "")))
    return lines


def _walk(
    children: dict[int, list[SearchNode]], parent: int, stem: str, *, deep: bool
) -> Iterator[tuple[str, SearchNode]]:
    """Every candidate with the lines that lead to it, depth first, the better before the worse."""
    several = sorted(children.get(parent, []), key=lambda node: -node.score)
    for place, node in enumerate(several):
        last = place == len(several) - 1
        corner, below = ("└", " ") if last else ("├", "│")
        dash, gap = ("", "") if deep else ("─", " ")
        yield f"{stem}{corner}{dash}", node
        yield from _walk(children, node.number, f"{stem}{below}{gap}", deep=deep)


def _mark(node: SearchNode, way: set[int]) -> str:
    if node.number in way:
        return "✓"
    if node.fate == "kept":
        return "○" if node.reason else "●"
    return {"finished": "■", "pruned": "×"}[node.fate]


def _line(node: SearchNode, stem: str, room: int, reason: str) -> str:
    scores = f"{number(node.log_probability):>{SCORE}}{number(node.score):>{SCORE}}"
    token = cut(node.shown, max(4, room - cell_len(stem)))
    told = padded(f"{stem}{token}", max(room, cell_len(stem) + 4), "start")
    return f"{scores}  {told} {reason if node.reason else ''}"
