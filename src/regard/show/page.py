"""Pages: one HTML file each that needs nothing else. The templates in templates/ say what stands where.

No request, no script that runs, light and dark, on paper too. Whatever a template is given as text is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from regard.metrics import numbers
from regard.show.markup import element, shown
from regard.show.pictures import Chart, Point, Series, categories, linear
from regard.show.svg import TEMPLATES, document, style, svg
from regard.show.svg_tree import PRUNED, WHY, reason_of, written

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regard.explain.beam import Searched
    from regard.explain.heatmap import HeatMap
    from regard.explain.meaning import Compared


def render(template: str, content: Mapping[str, Any]) -> str:
    """A template with what it shows. A page has its ``title`` and ``data``, the numbers that it holds as JSON."""
    return environment().get_template(template).render(content)


@cache
def environment() -> Environment:
    """How templates are read, and what all of them may call."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False}
    made.globals |= {"svg": svg, "style": style, "sentence": sentence, "unknown": numbers.UNKNOWN}
    made.filters |= {
        "count": numbers.count,
        "duration": numbers.duration,
        "milliseconds": numbers.milliseconds,
        "percent": numbers.percent,
        "probability": numbers.probability,
        "score": numbers.score,
        "signed": numbers.signed,
        "thousands": lambda value: f"{value:,}",
    }
    return made


def several(names: Sequence[str]) -> str:
    """``a, b and c``"""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sentence(words: str, wrong: Sequence[bool] = (), kind: str = "") -> Markup:
    """A text of any language in its own direction; ``wrong`` says which of its words to mark, and ``kind`` how."""
    if not any(wrong):
        return element("span", {"dir": "auto"}, words)
    parts: list[str] = []
    for bad, group in groupby(zip(words.split(), wrong, strict=True), key=lambda item: item[1]):
        part = " ".join(word for word, _ in group)
        parts += [" ", element("mark", {"class": kind} if kind else {}, part) if bad else part]
    return element("span", {"dir": "auto"}, *parts[1:])


# The search for one sentence as a page: its tree, every candidate in words, and what other beams would write.


def beam_page(tree: Searched) -> str:
    """The whole page."""
    title = f"{tree.source} → {tree.text}: beam {tree.beam}"
    return render("beam.html", {"title": title, "data": tree.numbers(), "search": search_section(tree)})


def search_section(tree: Searched) -> dict[str, Any]:
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


# One word in several sentences, layer by layer, as a page and as a picture.

PAIRS = 6  # lines in a chart, beside the control's


def forecast_page(quantiles: NDArray[np.float64], picture: HeatMap) -> str:
    """A forecast as a table, with an interval of 90 %, and which moments it hangs on."""
    lines = [
        (f"+{moment + 1}", channel + 1, *(f"{each[place]:.4g}" for place in (0, each.size // 2, -1)))
        for moment, channels in enumerate(quantiles)
        for channel, each in enumerate(channels)
    ]
    data = {"quantiles": quantiles.tolist()}
    return render("forecast.html", {"title": "How a series goes on", "lines": lines, "picture": picture, "data": data})


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
