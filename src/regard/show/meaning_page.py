"""One word in several sentences, layer by layer, as a page and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.show.page import render
from regard.show.pictures import Chart, Point, Series, categories, linear
from regard.show.svg import document

if TYPE_CHECKING:
    from regard.explain.meaning import Compared

PAIRS = 6  # lines in a chart, beside the control's


def meaning_page(report: Compared) -> str:
    """The whole page."""
    names = [f"{one + 1} and {other + 1}" for one, other in report.pairs]
    columns = [report.of_pair(pair) for pair in report.pairs]
    control = report.of_control() if names else []
    if control:
        names, columns = [*names, f"“{report.control}”, mean of all pairs"], [*columns, control]
    kept = [place for place in range(len(names)) if place < PAIRS or place >= len(report.pairs)]
    series = [Series(names[one], [Point(x, y) for x, y in enumerate(columns[one])]) for one in kept]
    levels = [value for one in kept for value in columns[one]]
    layers = categories("layer", report.layers)
    content = {
        "title": f"{report.word}: meaning by layer",
        "data": report.numbers(),
        "report": report,
        "names": names,
        "cosines": list(zip(*columns, strict=True)),
        "lines": Chart("cosine by layer", series, layers, linear("cosine", [*levels, 1.0])),
        "planes": planes(report),
    }
    return render("meaning.html", content)


def meaning_svg(report: Compared) -> str:
    """The word's way through the layers as a file of its own."""
    return document(planes(report))


def planes(report: Compared) -> Chart:
    """Every layer's points on the same two axes."""
    series = []
    for layer, points, share in zip(report.layers, report.own_points, report.explained, strict=True):
        notes = [place.sentence for place in report.places]
        own = [Point(x, y, note=note) for (x, y), note in zip(points, notes, strict=True)]
        series.append(Series(layer, own, f"{share:.0%} of the variance"))
    return Chart(f"{report.word} on two axes, layer by layer", series, kind="planes")
