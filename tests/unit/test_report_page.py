"""Pages: nothing from outside gets in, nothing is asked for from outside, and every number is there."""

from __future__ import annotations

import json

import pytest

from pages import asks_for_nothing, read
from regard.metrics import numbers
from regard.show import charts
from regard.show.markup import Html, data, element, join, text
from regard.show.page import figure, page, paragraph, section, sentence, table

NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script>", "<!--", "]]>", "a & b", "'\"`")


@pytest.mark.parametrize("nasty", NASTY)
def test_text_is_shown_and_never_obeyed(nasty: str) -> None:
    html = page(nasty, [section(nasty, paragraph("note", nasty), table(["", nasty], [[nasty, nasty]]))], {nasty: nasty})
    reader = read(html)
    asks_for_nothing(html)
    assert reader.shown.count(nasty) == 6  # title, h2, p, th, th, td
    assert json.loads(reader.scripts[0]) == {nasty: nasty}
    assert len(reader.scripts) == 1


def test_markup_joined_to_text_is_text_again() -> None:
    bold = element("b", {}, "x")
    assert isinstance(bold, Html)
    assert element("p", {}, bold) == "<p><b>x</b></p>"
    assert element("p", {}, bold + "y") == "<p>&lt;b&gt;x&lt;/b&gt;y</p>"
    assert join([bold, "<"], " & ") == "<b>x</b> &amp; &lt;"


def test_attributes_are_escaped_and_numbers_are_short() -> None:
    assert element("rect", {"x": 1.5, "y": 2.0, "width": 3, "class": '"<'}) == (
        '<rect x="1.5" y="2" width="3" class="&quot;&lt;"/>'
    )


def test_control_characters_get_their_pictures() -> None:
    assert text("a\x00b\x1b\x7f\tc\n") == "a␀b␛␡\tc\n"


def test_numbers_cannot_leave_their_script() -> None:
    value = {"a": ["</script><script>alert(1)</script>", "\u2028", "\ud800", "é"], "b": [1.5, None, True]}
    html = data(value, "data")
    assert html.count("<") == 2
    assert html.isascii()
    assert json.loads(read(html).scripts[0]) == value


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        data(float("nan"), "data")


def test_a_page_refuses_requests_and_is_dark_and_light_and_printable() -> None:
    html = page("a", [paragraph("", "b")], {})
    assert "default-src &#x27;none&#x27;" in html
    assert "prefers-color-scheme:dark" in html
    assert "@media print" in html
    assert '<meta charset="utf-8"/>' in html
    assert html.startswith("<!doctype html>\n<html lang=")


def test_marked_words_are_marked_together_and_directions_are_found_out() -> None:
    assert sentence("a b <c> d", [False, True, True, False]) == ('<span dir="auto">a <mark>b &lt;c&gt;</mark> d</span>')
    assert sentence("a  b", [False, False]) == '<span dir="auto">a  b</span>'


def test_a_figure_is_drawn_for_a_wide_and_for_a_narrow_window() -> None:
    html = figure(lambda width: element("i", {}, str(width)), "what")
    assert f'<div class="wide"><i>{charts.WIDE}</i></div><div class="narrow"><i>{charts.NARROW}</i></div>' in html
    assert html.endswith('<figcaption class="note">what</figcaption></figure>')


def test_a_table_of_many_columns_is_stacked_on_a_telephone() -> None:
    few, many = (table([str(place) for place in range(count)], [["x"] * count], "named") for count in (3, 7))
    assert 'class="stack"' not in few
    assert 'class="stack"' in many
    assert '<td data-head="6">x</td>' in many
    assert "<caption>named</caption>" in few
    assert '<td data-head="a" class="left">' in table(["", "a"], [["b", "c"]], left=(1,))


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
