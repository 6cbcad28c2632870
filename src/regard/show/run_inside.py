"""A run from inside, as parts of its page: heat maps and one search."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from regard.evaluate.run_report import Look, Map, RunReport
from regard.explain.heatmap import HeatMap, reaching
from regard.show.beam_page import drawing
from regard.show.heatmap_svg import heat_svg, multiples_svg
from regard.show.markup import Html, element
from regard.show.page import more, paragraph, scrolled, sentence


def inside_part(report: RunReport) -> list[Html]:
    shown: list[Html] = []
    for number, look in enumerate(report.looks):
        drawn = list(_look(look))
        shown += drawn if number == 0 else [more(look.source, *drawn)]
    if not shown:
        return []
    words = (
        "A row is what the model looked at when it wrote that word; attention says where it looked, the effect of "
        "masking what it needed. They need not agree."
    )
    silent = (
        "This model has no attention: the encoder's last state is all the decoder gets. What is shown instead is how "
    )
    other = f"{silent}much each source word matters, by masking it and by the gradient."
    return [paragraph("note", words if attends(report) else other), *shown]


def attends(report: RunReport) -> bool:
    return any(one.kind == "attention" for look in report.looks for one in look.maps)


def _look(look: Look) -> Iterator[Html]:
    yield element("h3", {}, sentence(look.source), " → ", sentence(look.output))
    drawn = [scrolled(heat_svg(_picture(one), caption=False, width=640), _sentence(one.title)) for one in look.maps]
    yield element("div", {"class": "maps"}, *drawn)
    if look.heads:
        grid = [list(group) for _, group in groupby(map(_thumb, look.heads), key=lambda one: one.title.split(",")[0])]
        drawn_heads = len(look.heads)
        every = f"All {drawn_heads}" if drawn_heads == look.of_heads else f"{drawn_heads} of {look.of_heads}"
        title = f"{every} heads of the cross-attention, a layer a line"
        yield more(title, scrolled(multiples_svg(grid, title=title), "Rows and columns as above."))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _picture(one: Map) -> HeatMap:
    """Weights end at 1; effects end at the largest."""
    if one.kind == "attention":
        return HeatMap(one.title, one.rows, one.columns, one.values, one.title, "output", "source", sums=True)
    names = one.title, "output", "source"
    return reaching(HeatMap(one.title, one.rows, one.columns, one.values, *names, "diverging", unit=one.unit))


def _thumb(one: Map) -> HeatMap:
    return HeatMap(one.title, one.rows, one.columns, one.values, one.title)


def beam_part(report: RunReport) -> list[Html]:
    one = report.tree
    if one is None:
        return []
    return [
        paragraph("", sentence(one.source), " → ", sentence(one.text), f", beam {one.beam}"),
        drawing(one),
    ]
