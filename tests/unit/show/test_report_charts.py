"""Charts: axes with round numbers, labels that keep apart, shapes where the values are."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.show.pictures import Axis, Chart, Point, Series, categories, linear, round_step
from regard.show.svg import NARROW, WIDE, document, svg
from regard.show.svg_charts import GAP, extent, thinned

SEVERAL = [
    Series("lstm", [Point(0, 31.0, 29.0, 33.0, "lstm: 31"), Point(1, 20.0, 18.5, 21.5), Point(2, None)]),
    Series("transformer", [Point(0, 30.0, 28.0, 32.0), Point(1, None), Point(2, 27.0, 25.0, 29.0)]),
]
LENGTHS = categories("words", ["up to 10\n97", "11 to 20\n89", "over 20\n41"])


def shapes(drawn: str, kind: str) -> list[dict[str, str]]:
    """The attributes of all elements of a class. XML is stricter than HTML: the chart must be good for both."""
    return [found.attrib for found in ElementTree.fromstring(drawn).iter() if found.get("class") == kind]


def words(drawn: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(drawn).iter("text")]


def bar_chart(*bars: tuple[str, Point], values: tuple[float, ...] = (0, 1)) -> Chart:
    axis = linear("BLEU", values, zero=True)
    return Chart("t", [Series(name, [point]) for name, point in bars], y=axis, kind="bars")


@settings(max_examples=23)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 9), st.booleans())
def test_an_axis_holds_its_values_and_has_few_even_round_ticks(low: float, size: float, count: int, zero: bool) -> None:
    axis = linear("y", [low, low + size], zero=zero, count=count)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low <= low + slack
    assert axis.high >= low + size - slack
    assert not zero or axis.low <= 0 <= axis.high
    assert 2 <= len(axis.ticks) <= count + 3
    steps = [b - a for (a, _), (b, _) in pairwise(axis.ticks)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-3)


def test_ticks_are_labelled_with_as_many_places_as_they_need() -> None:
    assert [label for _, label in linear("y", [0.0, 0.9]).ticks] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [label for _, label in linear("y", [0, 9_000]).ticks][-1] == "10,000"
    assert [label for _, label in linear("y", [7.0, 7.0], count=2).ticks] == ["6.5", "7.0", "7.5"]
    assert linear("y", []).ticks


@pytest.mark.parametrize(("step", "expected"), [(0.3, 0.5), (1, 1), (1.1, 2), (2.1, 5), (5.1, 10), (99, 100)])
def test_a_step_is_one_two_or_five(step: float, expected: float) -> None:
    assert round_step(step) == pytest.approx(expected)


@settings(max_examples=23)
@given(st.lists(st.text("abm1 世", min_size=1, max_size=12), max_size=23), st.integers(20, 700))
def test_labels_never_touch(names: list[str], width: int) -> None:
    places = [(width * place / max(1, len(names)), name) for place, name in enumerate(names)]
    kept = thinned(places)
    assert bool(kept) == bool(places)
    for (a, first), (b, second) in pairwise(kept):
        assert a + extent(first) / 2 + GAP <= b - extent(second) / 2 + 1e-9


def test_a_long_name_is_cut_to_its_place() -> None:
    bars = bar_chart(("a name that is much longer than its place, which is that of a telephone", Point(0, 1.0)))
    shown = "".join(re.findall(r">([^<>]*…)<", svg(bars, NARROW)))
    assert shown.startswith("a name that is much longer")
    assert extent(shown) <= NARROW


def test_points_lie_where_their_values_are() -> None:
    one = Series("one", [Point(0, 0.0), Point(2, 10.0)])
    drawn = svg(Chart("t", [one], linear("x", [0, 2]), linear("y", [0, 10])))
    (path,) = shapes(drawn, "path")
    (x0, y0), (x1, y1) = re.findall(r"([\d.]+) ([\d.]+)", path["d"])
    grid = shapes(drawn, "grid")
    assert float(x0) == pytest.approx(float(grid[0]["x1"]), abs=0.1)
    assert float(x1) == pytest.approx(float(grid[0]["x2"]), abs=0.1)
    assert float(y0) == pytest.approx(max(float(line["y1"]) for line in grid), abs=0.1)
    assert float(y1) == pytest.approx(min(float(line["y1"]) for line in grid), abs=0.1)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_line_chart_shows_names_labels_counts_intervals_and_notes(width: int) -> None:
    drawn = svg(Chart('BLEU & "length"', SEVERAL, LENGTHS, linear("BLEU", [18, 33])), width)
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'BLEU & "length"'
    assert {"lstm", "transformer", "BLEU", "words", "up to 10", "97", "over 20", "41"} <= set(words(drawn))
    assert len(shapes(drawn, "interval")) == 4
    assert len(shapes(drawn, "marker")) == 4 + 2  # and two in the legend
    assert [found.text for found in root.iter("title")] == ["lstm: 31"]
    assert float(root.get("width", "0")) == width


def test_where_there_is_no_value_the_line_is_broken() -> None:
    drawn = svg(Chart("t", SEVERAL, LENGTHS, linear("BLEU", [18, 33])))
    first, second = (path["d"] for path in shapes(drawn, "path"))
    assert (first.count("M"), first.count("L")) == (1, 1)
    assert (second.count("M"), second.count("L")) == (2, 0)


def test_series_without_intervals_stand_on_their_place_and_many_points_get_no_markers() -> None:
    points = [Point(place, float(place)) for place in range(29)]
    both = [Series("a", points), Series("b", points)]
    drawn = svg(Chart("t", both, linear("x", [0, 28]), linear("y", [0, 28])))
    first, second = (path["d"] for path in shapes(drawn, "path"))
    assert first == second
    assert len(shapes(drawn, "marker")) == 2


def test_thirty_series_differ_in_colour_marker_or_dash() -> None:
    series = [Series(f"run {number}", [Point(0, float(number)), Point(1, 1.0)]) for number in range(30)]
    drawn = svg(Chart("t", series, categories("x", ["a", "b"]), linear("y", [0, 30])))
    looks = set()
    for group in ElementTree.fromstring(drawn).iter("g"):
        marker, line = (group.find(f"path[@class='{kind}']") for kind in ("marker", "path"))
        if marker is not None and line is not None:
            looks.add((group.get("class"), marker.get("d"), line.get("stroke-dasharray")))
    assert len(looks) == 30


def test_nothing_to_draw_is_an_empty_frame() -> None:
    drawn = svg(Chart("t", [], categories("x", []), linear("y", [])))
    assert shapes(drawn, "path") == []
    assert words(drawn)[0] == "y"
    alone = svg(Chart("t", [Series("a", [Point(0, None)])], LENGTHS, Axis("y", 0, 1, ())))
    assert shapes(alone, "path") == []


def test_bars_are_as_long_as_their_values_and_end_in_them() -> None:
    bars = ("a", Point(0, 20.0, 18.0, 22.0)), ("b", Point(0, 10.0)), ("c", Point(0, 0.0))
    drawn = svg(bar_chart(*bars, values=(20, 22)))
    long, short, none = (float(bar["width"]) for bar in shapes(drawn, "bar"))
    assert long == pytest.approx(2 * short, abs=0.05)
    assert none == pytest.approx(0.5)
    assert len(shapes(drawn, "whisker")) == 1
    assert words(drawn) == ["a", "20.0", "b", "10.0", "c", "0.0"]
    assert words(svg(bar_chart(("a", Point(0, 1234.5)), values=(1234.5,)))) == ["a", "1,234"]
    assert "class" in ElementTree.fromstring(svg(bar_chart())).attrib


def test_a_chart_as_a_file_brings_its_style_and_asks_for_nothing() -> None:
    written = document(bar_chart(("a", Point(0, 1.0))))
    assert not re.search(r"url\(|@import|href|https?://(?!www\.w3\.org/2000/svg\")", written)
    style = next(each for each in ElementTree.fromstring(written).iter() if each.tag.endswith("style"))
    assert "svg.chart .bar" in (style.text or "")
    assert "prefers-color-scheme:dark" in (style.text or "")


def test_text_from_right_to_left_keeps_its_edge() -> None:
    drawn = svg(bar_chart(("القط", Point(0, 1.0))))
    name = next(each for each in ElementTree.fromstring(drawn).iter("text") if each.text == "القط")
    assert (name.get("direction"), name.get("text-anchor"), name.get("x")) == ("rtl", "end", "0")
