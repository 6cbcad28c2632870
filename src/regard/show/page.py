"""Pages as self-contained HTML files, rendered from the templates in templates/.

They make no requests, run no scripts, and suit light, dark and print. Text that a template gets is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from regard.metrics import numbers
from regard.metrics.groups import FEWEST, Bucket
from regard.show.markup import element, shown
from regard.show.pictures import Chart, Point, Series, categories, linear
from regard.show.svg import TEMPLATES, document, style, svg
from regard.show.svg_tree import PRUNED, WHY, reason_of, written

if TYPE_CHECKING:
    from regard.explain.beam import Searched
    from regard.explain.forecast import Forecasted
    from regard.explain.heatmap import HeatMap
    from regard.explain.meaning import Compared


def render(template: str, content: Mapping[str, Any]) -> str:
    """Render a template. A page has a ``title``, and ``data``, its numbers as JSON."""
    return environment().get_template(template).render(content)


@cache
def environment() -> Environment:
    """The jinja2 environment with our functions and filters."""
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


def notebook_fragment(source: str, text: str, picture: HeatMap | None, note: str = "") -> str:
    """The source, the output and, where one pass wrote it, the heat map of its words, for a notebook.

    It has no script, ids or links, so that it works in a sandboxed frame and several fit on one page. It brings its own
    colours, so that it can be read in a dark notebook on a light system, too.
    """
    return render("notebook.html", {"source": source, "text": text, "note": note, "picture": picture})


def several(names: Sequence[str]) -> str:
    """``a, b and c``"""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sentence(words: str, wrong: Sequence[bool] = (), kind: str = "") -> Markup:
    """A text in its own direction; ``wrong`` says which of its words to mark, with the class ``kind``."""
    if not any(wrong):
        return element("span", {"dir": "auto"}, words)
    parts: list[str] = []
    for bad, group in groupby(zip(words.split(), wrong, strict=True), key=lambda item: item[1]):
        part = " ".join(word for word, _ in group)
        parts += [" ", element("mark", {"class": kind} if kind else {}, part) if bad else part]
    return element("span", {"dir": "auto"}, *parts[1:])


# A search as a page: its tree, a table of candidates, and the outputs of other beam sizes.


def beam_page(tree: Searched) -> str:
    """The whole page."""
    title = f"{tree.source} → {tree.text}: beam {tree.beam}"
    return render("beam.html", {"title": title, "data": tree.numbers(), "search": search_section(tree)})


def search_section(tree: Searched) -> dict[str, Any]:
    """The content of a section about a search."""
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

PAIRS = 6  # lines in a chart, without the control's


def forecast_page(found: Forecasted) -> str:
    """A forecast as a table, with an interval of 90 %, and which moments it hangs on."""
    lines = [
        (f"+{moment + 1}", channel + 1, *(f"{each[place]:.4g}" for place in (0, len(each) // 2, -1)))
        for moment, channels in enumerate(found.quantiles)
        for channel, each in enumerate(channels)
    ]
    about = {"title": "How a series goes on", "lines": lines, "picture": found.picture(), "data": found.plain()}
    return render("forecast.html", about)


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
    """The points of a word in each layer as an SVG file."""
    return document(planes(report))


def planes(report: Compared) -> Chart:
    """Every layer's points on the same two axes."""
    series = []
    for layer, points, share in zip(report.layers, report.own_points, report.explained, strict=True):
        notes = [place.sentence for place in report.places]
        own = [Point(x, y, note=note) for (x, y), note in zip(points, notes, strict=True)]
        series.append(Series(layer, own, f"{share:.0%} of the variance"))
    return Chart(f"{report.word} on two axes, layer by layer", series, kind="planes")


# A score by groups of sentences: a chart if groups are large enough, and a table.

Named = tuple[int, str, Sequence[Bucket]]  # the number of a series, its name, its groups


def groups(rows: Sequence[Named], metric: str, label: str, unit: str, kind: str) -> dict[str, Any]:
    """``label`` names the axis, ``unit`` what a group's name counts, ``kind`` the groups."""
    buckets = rows[0][2]
    series = [Series(name, [_group_point(name, unit, *one) for one in enumerate(each)]) for _, name, each in rows]
    points = [point for one in series for point in one.points]
    ends = [end for point in points for end in (point.low, point.y, point.high) if end is not None]
    spoken = f"{metric} by {label} for {several([name for _, name, _ in rows])}; the table below has the numbers"
    x = categories(label, [f"{bucket.name}\n{bucket.count:,}" for bucket in buckets])
    return {
        "chart": Chart(spoken, series, x, linear(metric, ends)) if ends else None,
        "metric": metric,
        "kind": kind,
        "unit": unit,
        "fewest": FEWEST,
        "few": any(bucket.count < FEWEST for bucket in buckets),
        "buckets": buckets,
        "rows": [(number, name, [_quality(bucket) for bucket in each]) for number, name, each in rows],
    }


def _group_point(name: str, unit: str, place: int, bucket: Bucket) -> Point:
    quality = bucket.quality
    if quality is None:
        return Point(place, None)
    note = f"{name}, {bucket.name} {unit}: {_quality(bucket)}, {bucket.count:,} sentences"
    return Point(place, quality.score, quality.low, quality.high, note)


def _quality(bucket: Bucket) -> str:
    quality = bucket.quality
    return numbers.UNKNOWN if quality is None else numbers.score(quality.score, quality.margin)
