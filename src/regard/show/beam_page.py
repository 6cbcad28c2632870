"""The search for one sentence as a page: its tree, every candidate in words, and what other beams would write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.show import tree
from regard.show.markup import Html, element
from regard.show.page import items, more, page, paragraph, scrolled, section, sentence, table

if TYPE_CHECKING:
    from regard.explain.beam import OtherBeam, Searched


def beam_page(one: Searched) -> str:
    """The whole page."""
    name = [element("code", {}, one.name), "; "] if one.name else []
    body = [
        element("h1", {}, sentence(one.text)),
        paragraph("lead", sentence(one.source)),
        paragraph("note", *name, f"beam {one.beam}, length penalty {one.length_penalty:g}"),
        section("The search", drawing(one)),
        section("What other beams would write", other_beams(one.beams, one.beam)),
        section("How to read this", _notes()),
    ]
    return page(f"{one.source} → {one.text}: beam {one.beam}", body, one.numbers(), style=tree.STYLE)


def drawing(one: Searched) -> Html:
    """The tree, with how to read it and every candidate below."""
    drawn = scrolled(tree.tree_svg(one), caption(one))
    return element("div", {}, drawn, more("Every candidate", tree.candidates_table(one), kind="screen"))


def caption(one: Searched) -> str:
    pruned = sum(node.fate == "pruned" for node in one.nodes)
    return (
        f"Every step is a column; of {len(one.nodes) - 1:,} candidates {pruned:,} were pruned, of which the best "
        f"{tree.PRUNED} of each step are drawn. In a box: the piece (with · before it, glued to the last one), how "
        "probable it was there · and all that is written so far, and why it left. A thick frame is finished, a dashed "
        "one pruned; the thick line leads to the output."
    )


def other_beams(others: Sequence[OtherBeam], beam: int) -> Html:
    rows = [
        [
            f"{other.beam} (this one)" if other.beam == beam else f"{other.beam}",
            sentence(other.text),
            tree.percent(other.log_probability),
            tree.number(other.log_probability),
            tree.number(other.score),
        ]
        for other in others
    ]
    return table(["beam", "writes", "probability", "log-probability", "normalised"], rows, left=(1,))


def _notes() -> Html:
    return items(
        "A wider beam finds what the model holds more probable, which need not be a better output.",
        "Outputs are compared by the normalised score; a higher log-probability may lose to a longer output.",
        "All numbers are in this file as JSON, in the element with the id “data”.",
    )
