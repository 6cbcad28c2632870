"""Pages: nothing from outside gets in, nothing is asked for from outside, and every number is there."""

from __future__ import annotations

import json

import pytest
from jinja2 import UndefinedError

from pages import asks_for_nothing, read
from regard.metrics import numbers
from regard.show.markup import element
from regard.show.page import environment, sentence, several
from regard.show.pictures import Chart, Point, Series, categories, linear
from regard.show.svg import NARROW, WIDE, svg

TABLE = "{{% call(row) table({}, [1], 'named') %}}{{{{ row({}) }}}}{{% endcall %}}"
NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script>", "<!--", "]]>", "a & b", "'\"`")


def page(body: str, x: str = "a", data: object = None) -> str:
    """A page with a body of our own."""
    frame = "{% extends 'base.html' %}{% from 'parts.html' import figure, section, table %}{% block main %}"
    chart = Chart("t", [Series("one", [Point(0, 1.0)])], categories("x", ["a"]), linear("y", [0, 1]))
    made = environment().from_string(f"{frame}{body}{{% endblock %}}")
    return made.render({"title": x, "data": data, "x": x, "chart": chart})


@pytest.mark.parametrize("nasty", NASTY)
def test_text_is_shown_and_never_obeyed(nasty: str) -> None:
    body = "{% call section(x) %}<p>{{ x }}</p>{% call(row) table(['', x]) %}{{ row(x, x) }}{% endcall %}{% endcall %}"
    html = page(body, nasty, {nasty: nasty})
    reader = read(html)
    asks_for_nothing(html)
    assert reader.shown.count(nasty) == 6  # title, h2, p, th, th, td
    assert json.loads(reader.scripts[0]) == {nasty: nasty}
    assert len(reader.scripts) == 1


def test_markup_stays_and_text_is_escaped() -> None:
    bold = element("b", {}, "x")
    assert element("p", {}, bold) == "<p><b>x</b></p>"
    assert element("p", {}, bold + "<", "&") == "<p><b>x</b>&lt;&amp;</p>"
    assert element("p", {}, f"{bold}y") == "<p>&lt;b&gt;x&lt;/b&gt;y</p>"  # formatted, it is text again


def test_attributes_are_escaped_and_numbers_are_short() -> None:
    assert element("rect", {"x": 1.5, "y": 2.0, "width": 3, "class": '"<'}) == (
        '<rect x="1.5" y="2" width="3" class="&#34;&lt;"/>'
    )


def test_control_characters_get_their_pictures() -> None:
    assert element("p", {"title": "\x00"}, "a\x00b\x1b\x7f\tc\n") == '<p title="␀">a␀b␛␡\tc\n</p>'
    assert "<p>a␀b␛␡\tc\n</p>" in page("<p>{{ x }}</p>", "a\x00b\x1b\x7f\tc\n")


def test_numbers_cannot_leave_their_script() -> None:
    value = {"a": ["</script><script>alert(1)</script>", "\u2028", "\ud800", "é"], "b": [1.5, None, True]}
    html = page("", data=value).partition("<script")[2].partition("</script>")[0]
    assert "<" not in html
    assert html.isascii()
    assert json.loads(html.partition(">")[2]) == value


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page("", data=float("nan"))


def test_what_a_template_names_must_be_there() -> None:
    with pytest.raises(UndefinedError, match="nobody"):
        page("{{ nobody }}")


def test_a_page_refuses_requests_and_is_dark_and_light_and_printable() -> None:
    html = page("<p>b</p>")
    assert "default-src 'none'" in html
    assert "prefers-color-scheme:dark" in html
    assert "@media print" in html
    assert '<meta charset="utf-8"/>' in html
    assert html.startswith("<!doctype html>\n<html lang=")


def test_marked_words_are_marked_together_and_directions_are_found_out() -> None:
    assert sentence("a b <c> d", [False, True, True, False]) == ('<span dir="auto">a <mark>b &lt;c&gt;</mark> d</span>')
    assert sentence("a  b", [False, False]) == '<span dir="auto">a  b</span>'


def test_a_figure_is_drawn_for_a_wide_and_for_a_narrow_window() -> None:
    html = page("{{ figure(chart, 'what') }}")
    chart = Chart("t", [Series("one", [Point(0, 1.0)])], categories("x", ["a"]), linear("y", [0, 1]))
    assert f'<div class="wide">{svg(chart, WIDE)}</div><div class="narrow">{svg(chart, NARROW)}</div>' in html
    assert '<figcaption class="note">what</figcaption></figure>' in html


def test_a_table_of_many_columns_is_stacked_on_a_telephone() -> None:
    few, many = (page(TABLE.format(list("0123456")[:count], ", ".join(["'x'"] * count))) for count in (3, 7))
    assert 'class="stack"' not in few
    assert 'class="stack"' in many
    assert '<td data-head="6">x</td>' in many
    assert "<caption>named</caption>" in few
    assert '<td data-head="1" class="left">x</td><td data-head="2">x</td>' in few


def test_names_are_said_one_after_another() -> None:
    assert [several(list("abc")[:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


def test_numbers_are_written_as_people_read_them() -> None:
    assert [numbers.count(value) for value in (None, 7, 43_211, 430_000, 7_123_456, 123_456_789, 2.5e9)] == [
        *("–", "7", "43.2 k", "430 k", "7.1 M", "123 M", "2.5 G"),
    ]
    assert [numbers.duration(value) for value in (None, 8.24, 75, 2400, 12_000)] == [
        *("–", "8.2 s", "75 s", "40 min", "3 h 20 min"),
    ]
    assert [numbers.milliseconds(value) for value in (None, 3.14, 21.7, 1234)] == ["–", "3.1", "22", "1,234"]
    assert (numbers.score(19.84), numbers.score(19.84, 0.91)) == ("19.8", "19.8 ±0.9")


def test_a_p_value_is_not_rounded_over_a_bound() -> None:
    shown = [numbers.chance(p) for p in (0.0005, 0.001, 0.0099, 0.01, 0.0234, 0.0499, 0.0501, 0.31)]
    assert shown == ["p<0.001", "p<0.01", "p<0.01", "p=0.01", "p=0.02", "p=0.050", "p=0.050", "p=0.31"]
