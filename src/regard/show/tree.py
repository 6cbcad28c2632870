"""The beam as a tree: what of it is drawn, and what became of each candidate in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.explain.beam import Searched, SearchNode

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


def drawn_nodes(tree: Searched) -> list[list[SearchNode]]:
    """By step: what was kept or finished, best first; then the best of what was pruned."""
    steps: list[list[SearchNode]] = [[] for _ in range(max((node.step for node in tree.nodes), default=0) + 1)]
    for node in sorted(tree.nodes, key=lambda one: -one.score):
        steps[node.step].append(node)
    return [
        [*(one for one in step if one.fate != "pruned"), *[one for one in step if one.fate == "pruned"][:PRUNED]]
        for step in steps
    ]


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
