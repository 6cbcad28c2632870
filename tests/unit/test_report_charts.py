"""Charts: axes with round numbers, labels that keep apart, shapes where the values are."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.show.charts import (
    GAP,
    NARROW,
    WIDE,
    Axis,
    Bar,
    Point,
    Series,
    bar_chart,
    categories,
    extent,
    line_chart,
    linear,
    round_step,
    thinned,
)

SEVERAL = [
    Series("lstm", [Point(0, 31.0, 29.0, 33.0, "lstm: 31"), Point(1, 20.0, 18.5, 21.5), Point(2, None)]),
    Series("transformer", [Point(0, 30.0, 28.0, 32.0), Point(1, None), Point(2, 27.0, 25.0, 29.0)]),
]
LENGTHS = categories("words", ["up to 10\n97", "11 to 20\n89", "over 20\n41"])


def shapes(svg: str, kind: str) -> list[dict[str, str]]:
    """The attributes of all elements of a class. XML is stricter than HTML: the chart must be good for both."""
    return [found.attrib for found in ElementTree.fromstring(svg).iter() if found.get("class") == kind]


def words(svg: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(svg).iter("text")]


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
    bars = [Bar("a name that is much longer than its place, which is that of a telephone", 1.0)]
    shown = "".join(re.findall(r">([^<>]*…)<", str(bar_chart(bars, linear("x", [0, 1]), title="t", width=NARROW))))
    assert shown.startswith("a name that is much longer")
    assert extent(shown) <= NARROW


def test_points_lie_where_their_values_are() -> None:
    svg = line_chart(
        [Series("one", [Point(0, 0.0), Point(2, 10.0)])], linear("x", [0, 2]), linear("y", [0, 10]), title="t"
    )
    (path,) = shapes(svg, "path")
    (x0, y0), (x1, y1) = re.findall(r"([\d.]+) ([\d.]+)", path["d"])
    grid = shapes(svg, "grid")
    assert float(x0) == pytest.approx(float(grid[0]["x1"]), abs=0.1)
    assert float(x1) == pytest.approx(float(grid[0]["x2"]), abs=0.1)
    assert float(y0) == pytest.approx(max(float(line["y1"]) for line in grid), abs=0.1)
    assert float(y1) == pytest.approx(min(float(line["y1"]) for line in grid), abs=0.1)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_line_chart_shows_names_labels_counts_intervals_and_notes(width: int) -> None:
    svg = line_chart(SEVERAL, LENGTHS, linear("BLEU", [18, 33]), title='BLEU & "length"', width=width)
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'BLEU & "length"'
    assert {"lstm", "transformer", "BLEU", "words", "up to 10", "97", "over 20", "41"} <= set(words(svg))
    assert len(shapes(svg, "interval")) == 4
    assert len(shapes(svg, "marker")) == 4 + 2  # and two in the legend
    assert [found.text for found in root.iter("title")] == ["lstm: 31"]
    assert float(root.get("width", "0")) == width


def test_where_there_is_no_value_the_line_is_broken() -> None:
    svg = line_chart(SEVERAL, LENGTHS, linear("BLEU", [18, 33]), title="t")
    first, second = (path["d"] for path in shapes(svg, "path"))
    assert (first.count("M"), first.count("L")) == (1, 1)
    assert (second.count("M"), second.count("L")) == (2, 0)


def test_series_without_intervals_stand_on_their_place_and_many_points_get_no_markers() -> None:
    points = [Point(place, float(place)) for place in range(29)]
    svg = line_chart([Series("a", points), Series("b", points)], linear("x", [0, 28]), linear("y", [0, 28]), title="t")
    first, second = (path["d"] for path in shapes(svg, "path"))
    assert first == second
    assert len(shapes(svg, "marker")) == 2


def test_thirty_series_differ_in_colour_marker_or_dash() -> None:
    series = [Series(f"run {number}", [Point(0, float(number)), Point(1, 1.0)]) for number in range(30)]
    svg = line_chart(series, categories("x", ["a", "b"]), linear("y", [0, 30]), title="t")
    looks = set()
    for group in ElementTree.fromstring(svg).iter("g"):
        marker, line = (group.find(f"path[@class='{kind}']") for kind in ("marker", "path"))
        if marker is not None and line is not None:
            looks.add((group.get("class"), marker.get("d"), line.get("stroke-dasharray")))
    assert len(looks) == 30


def test_nothing_to_draw_is_an_empty_frame() -> None:
    svg = line_chart([], categories("x", []), linear("y", []), title="t")
    assert shapes(svg, "path") == []
    assert words(svg)[0] == "y"
    (alone,) = (line_chart([Series("a", [Point(0, None)])], LENGTHS, Axis("y", 0, 1, ()), title="t"),)
    assert shapes(alone, "path") == []


def test_bars_are_as_long_as_their_values_and_end_in_them() -> None:
    bars = [Bar("a", 20.0, 18.0, 22.0), Bar("b", 10.0), Bar("c", 0.0)]
    svg = bar_chart(bars, linear("BLEU", [20, 22], zero=True), title="t")
    long, short, none = (float(bar["width"]) for bar in shapes(svg, "bar"))
    assert long == pytest.approx(2 * short, abs=0.05)
    assert none == pytest.approx(0.5)
    assert len(shapes(svg, "whisker")) == 1
    assert words(svg) == ["a", "20.0", "b", "10.0", "c", "0.0"]
    assert "class" in ElementTree.fromstring(bar_chart([], linear("x", []), title="t")).attrib
