"""The search for one sentence as a page: its tree, every candidate in words, and what other beams would write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.show.page import render
from regard.show.tree import PRUNED, WHY, reason_of, written

if TYPE_CHECKING:
    from regard.explain.beam import Searched


def beam_page(tree: Searched) -> str:
    """The whole page."""
    title = f"{tree.source} → {tree.text}: beam {tree.beam}"
    return render("beam.html", {"title": title, "data": tree.numbers(), "search": search(tree)})


def search(tree: Searched) -> dict[str, Any]:
    """What a page shows of a search."""
    ordered = sorted(tree.nodes, key=lambda one: (one.step, -one.score))
    return {
        "tree": tree,
        "drawn": PRUNED,
        "pruned": sum(node.fate == "pruned" for node in tree.nodes),
        "candidates": [
            (node, " ".join(written(tree, node.number)), WHY.get(reason := reason_of(tree, node), reason))
            for node in ordered
            if node.parent is not None
        ],
    }
