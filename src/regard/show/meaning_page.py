"""One word in several sentences, layer by layer, as a page and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.show import charts, plane
from regard.show.charts import Point, Series
from regard.show.markup import Html, element, join
from regard.show.page import figure, items, page, paragraph, scrolled, section, sentence, table
from regard.show.plane import Dot, Panel

if TYPE_CHECKING:
    from regard.explain.meaning import Compared, Neighbour, WordPlace

PAIRS = 6  # lines in a chart, beside the control's


def meaning_page(report: Compared) -> str:
    """The whole page."""
    name = [element("code", {}, report.name), "; "] if report.name else []
    about = f"{len(report.places)} sentences, {len(report.layers) - 1} layers"
    body = [
        element("h1", {}, sentence(report.word), " in its sentences"),
        paragraph("note", *name, about),
        section("Where it stands", _places(report)),
        section("How alike, layer by layer", *_cosines(report)),
        section("On two axes", _plane(report)),
        section("What stands near, at the last layer", *_neighbours(report)),
        section("How this was made", _notes(report)),
    ]
    return page(f"{report.word}: meaning by layer", body, report.numbers(), style=plane.STYLE)


def meaning_svg(report: Compared) -> str:
    """The word's way through the layers as a file of its own."""
    drawn = plane_of(report)
    style = element("style", {}, charts.STYLE + plane.STYLE + "svg{color:#1b1e24;background:#fff}")
    opening, _, rest = str(drawn).partition(">")
    return f'{opening} xmlns="http://www.w3.org/2000/svg">{style}{rest}\n'


def _places(report: Compared) -> Html:
    rows = [
        [str(number), _marked(place), sentence(place.translation), sentence(place.whole)]
        for number, place in enumerate(report.places, start=1)
    ]
    if not any(place.whole for place in report.places):
        return table(["", "sentence"], [row[:2] for row in rows], left=(1,))
    return table(["", "sentence", "the word's translation", "the sentence's"], rows, left=(1, 2, 3))


def _marked(place: WordPlace) -> Html:
    words = place.sentence.split()
    return sentence(place.sentence, [number == place.place for number in range(len(words))])


def _cosines(report: Compared) -> list[Html]:
    pairs = report.pairs
    if not pairs:
        return [paragraph("note", "One sentence has nothing to be compared with.")]
    names = [f"{one + 1} and {other + 1}" for one, other in pairs]
    columns = [report.of_pair(pair) for pair in pairs]
    if control := report.of_control():
        names, columns = [*names, f"“{report.control}”, mean of all pairs"], [*columns, control]
    rows = [[layer, *(_number(column[place]) for column in columns)] for place, layer in enumerate(report.layers)]
    kept = list(range(min(PAIRS, len(pairs)))) + list(range(len(pairs), len(names)))
    series = [Series(names[one], [Point(x, y) for x, y in enumerate(columns[one])]) for one in kept]
    levels = [value for one in kept for value in columns[one]]
    x, y = charts.categories("layer", report.layers), charts.linear("cosine", [*levels, 1.0])
    drawn = figure(lambda width: charts.line_chart(series, x, y, title="cosine by layer", width=width))
    return [drawn, table(["layer", *names], rows)]


def plane_of(report: Compared) -> Html:
    """Every layer's points on the same two axes."""
    panels = []
    for layer, points, share in zip(report.layers, report.own_points, report.explained, strict=True):
        own = [
            Dot(*point, str(number + 1), number, note=report.places[number].sentence)
            for number, point in enumerate(points)
        ]
        panels.append(Panel(layer, f"{share:.0%} of the variance", tuple(own)))
    return plane.plane_svg(panels, title=f"{report.word} on two axes, layer by layer")


def _plane(report: Compared) -> Html:
    words = (
        "Principal components of the word's unit vectors of all layers together; the axes are the same in each "
        "picture, except where the embedding is narrower than the layers. The control word is not among them: axes "
        "that tell two words apart would have nothing left for two meanings."
    )
    return scrolled(plane_of(report), words)


def _neighbours(report: Compared) -> list[Html]:
    rows = [
        [
            str(number),
            join([element("span", {}, _near(one)) for one in several], ", "),
        ]
        for number, several in enumerate(report.neighbours[-1][: len(report.places)], start=1)
    ]
    return [table(["", "nearest words"], rows, left=(1,)), paragraph("note", f"Among {report.among}.")]


def _near(one: Neighbour) -> Html:
    return join([element("bdi", {"title": one.sentence}, one.word), f" {_number(one.cosine)}"])


def _notes(report: Compared) -> Html:
    control = f"The control “{report.control}” says how much sentences alone move a word." if report.control else ""
    notes = [
        "The embedding is the same wherever a word stands; each layer mixes in more of the sentence.",
        "A word of several pieces is the mean of their vectors.",
        *([control] if control else []),
        "All numbers are in this file as JSON, in the element with the id “data”.",
    ]
    return items(*notes)


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
