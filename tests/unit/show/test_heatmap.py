"""Heat maps: every number that is drawn can be read back, labels keep apart, every script keeps its letters."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.explain.heatmap import HeatMap, brief, reaching
from regard.show import colours
from regard.show.markup import clusters, extent, right_to_left, shortened, wrapped
from regard.show.pictures import Grid
from regard.show.svg import document, style, svg
from regard.show.svg_heatmap import LONGEST, SIZE, layout
from regard.show.terminal import LEFT_TO_RIGHT, cut, lines, padded, paper

HINDI = ("काली", "बिल्ली", "ने", "चूहे", "को", "खाया", "क्योंकि", "वह", "भूखी", "थी")
ARABIC = ("أكلت", "القطة", "السوداء", "الفأر،", "لأنها", "كانت", "جائعة")
OTHERS = ("internationalisation", "WWWWWW", "漢字", "👩‍👩‍👧", "<script>alert(1)</script>", "a&b", "x")
EVERY = HINDI + ARABIC + OTHERS
SVG = "{http://www.w3.org/2000/svg}"


def made(rows: int, columns: int, labels: tuple[str, ...] = EVERY, *, diverging: bool = False) -> HeatMap:
    """A picture of made-up numbers; rows are distributions, or go both ways."""
    numbers = torch.randn(rows, columns, dtype=torch.double)
    values = numbers if diverging else (3 * numbers).softmax(-1)
    names = [labels[place % len(labels)] for place in range(max(rows, columns))]
    picture = HeatMap(
        title="made up",
        rows=tuple(names[:rows]),
        columns=tuple(names[:columns]),
        values=tuple(map(tuple, values.tolist())),
        origin="made up, layer 2, head 1 (for <tests> & co)",
        column_name="source",
        scale="diverging" if diverging else "sequential",
        sums=not diverging,
    )
    return reaching(picture) if diverging else picture


def rows_of(drawn: str) -> list[list[float]]:
    found = ElementTree.fromstring(drawn).iter()
    return [list(map(float, each.attrib["data-values"].split())) for each in found if "data-values" in each.attrib]


def labels_of(drawn: str, kind: str) -> list[str]:
    """What labels say; the whole of it, where what is seen was cut."""
    found = [each for each in ElementTree.fromstring(drawn).iter() if f"data-{kind}" in each.attrib]
    return [(each[0].text if len(each) else each.text) or "" for each in found]


# Numbers


@pytest.mark.parametrize("diverging", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (61, 59)])
def test_every_number_that_is_drawn_can_be_read_back(size: tuple[int, int], diverging: bool) -> None:
    picture = made(*size, diverging=diverging)
    for drawn in (document(picture), svg(picture)):
        found = rows_of(drawn)
        assert torch.tensor(found).shape == size
        torch.testing.assert_close(torch.tensor(found), torch.tensor(picture.values), rtol=1e-5, atol=1e-6)


def test_a_cell_has_the_colour_of_its_number_and_stands_at_its_place() -> None:
    picture = made(7, 11, OTHERS)
    place = layout(picture)
    groups = [each for each in ElementTree.fromstring(svg(picture)).iter("g") if "data-values" in each.attrib]
    for group, levels in zip(groups, colours.levels(picture), strict=True):
        painted = [0] * 11
        for path in group.iter("path"):
            for start, width in re.findall(r"M([\d.]+) 0h([\d.]+)", path.attrib["d"]):
                first = round((float(start) - place.left) / place.cell)
                for column in range(first, first + round(float(width) / place.cell)):
                    painted[column] = int(path.attrib["class"].removeprefix("h"))
        assert painted == list(levels)


def test_the_number_in_a_cell_and_the_sum_beside_a_row_are_those_of_the_picture() -> None:
    picture = made(3, 5, OTHERS)
    shown = [each.text for each in ElementTree.fromstring(svg(picture)).iter("text")]
    for value in (value for row in picture.values for value in row):
        assert not brief(value) or brief(value) in shown
    assert shown.count("1.00") == 3
    assert [sum(row) for row in picture.values] == pytest.approx([1.0] * 3)
    assert picture.totals == pytest.approx([1.0] * 3)


def test_small_ones_hold_their_numbers_to_three_decimals_and_do_without_where_asked() -> None:
    grid = [[made(7, 5) for _ in range(3)] for _ in range(2)]
    root = ElementTree.fromstring(document(Grid("heads", grid)))
    found = [each.attrib["data-values"] for each in root.iter() if "data-values" in each.attrib]
    assert len(found) == 6
    for words, picture in zip(found, (picture for line in grid for picture in line), strict=True):
        numbers = [[float(one) for one in row.split()] for row in words.split(";")]
        torch.testing.assert_close(torch.tensor(numbers), torch.tensor(picture.values), rtol=0, atol=5.01e-4)
    assert "data-values" not in svg(Grid("heads", grid, values=False))


def test_a_small_one_paints_every_cell_with_its_colour() -> None:
    picture = made(7, 5)
    painted = [[0] * 5 for _ in range(7)]
    for path in ElementTree.fromstring(svg(Grid("one", [[picture]]))).iter("path"):
        for column, row, count in re.findall(r"M(\d+) (\d+)h(\d+)", path.attrib["d"]):
            for place in range(int(column), int(column) + int(count)):
                painted[int(row)][place] = int(path.attrib["class"].removeprefix("h"))
    assert tuple(map(tuple, painted)) == colours.levels(picture)


@pytest.mark.parametrize(
    ("value", "most", "words"),
    [
        (0.974, 1.0, ".97"),
        (0.999, 1.0, "1"),
        (0.004, 1.0, ""),
        (-0.3, 1.0, "−.30"),
        (2.44, 9.0, "2.4"),
        (-12.04, 13.0, "−12"),
        (512.3, 600.0, "512"),
        (0.2, 600.0, ""),
    ],
)
def test_a_number_is_written_in_as_few_letters_as_tell_it(value: float, most: float, words: str) -> None:
    assert brief(value, most) == words


# Colours


@pytest.mark.parametrize(("theme", "sign"), [("light", -1), ("dark", 1)])
def test_the_scale_goes_one_way_in_lightness_so_that_it_reads_in_grey(theme: colours.Theme, sign: int) -> None:
    table = colours.table("sequential", theme)
    light = [colours.contrast(colour, (0, 0, 0)) for colour in table]
    assert all(sign * (after - before) > 0 for before, after in pairwise(light))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("scale", ["sequential", "diverging"])
def test_ink_reads_on_every_colour_by_four_and_a_half_to_one(scale: colours.Scale, theme: colours.Theme) -> None:
    for colour in colours.table(scale, theme):
        assert colours.contrast(colour, colours.ink(colour)) >= 4.5


def test_minus_and_plus_end_at_the_two_ends_and_zero_is_in_the_middle() -> None:
    assert [colours.level(value, -2.0, 2.0) for value in (-9.0, -2.0, 0.0, 1.0, 2.0)] == [0, 0, 20, 30, 40]
    assert colours.level(3.0, 1.0, 1.0) == 0
    assert colours.nothing(made(3, 2, diverging=True)) == 20
    assert reaching(HeatMap("", ("a",), ("b",), ((0.0,),), "")).most == 1.0


# Labels


def boxes(drawn: str, kind: str) -> list[tuple[float, float, int]]:
    """Where each label of a column begins, and how it is turned."""
    found = []
    for each in ElementTree.fromstring(drawn).iter("text"):
        if f"data-{kind}" in each.attrib:
            turn = re.search(r"translate\(([\d.]+) ([\d.]+)\) rotate\(-(\d+)\)", each.get("transform", ""))
            found.append(
                (float(turn[1]), float(turn[2]), int(turn[3]))
                if turn
                else (float(each.attrib["x"]), float(each.attrib["y"]), 0)
            )
    return found


@pytest.mark.parametrize("columns", [3, 11, 23, 60])
def test_labels_of_columns_do_not_collide(columns: int) -> None:
    picture = made(5, columns)
    places = boxes(svg(picture), "column")
    assert len(places) == columns
    for (left, _, angle), (right, _, _) in pairwise(places):
        apart = (right - left) * {0: 1.0, 45: 0.7072, 90: 1.0}[angle]
        needed = SIZE * 1.2 if angle else max(extent(label, SIZE) for label in picture.columns)
        assert apart >= min(needed, LONGEST)


def test_labels_of_rows_do_not_collide_and_stay_in_the_drawing() -> None:
    picture = made(60, 60)
    place = layout(picture)
    assert place.cell >= SIZE * 1.2
    assert place.angle == 90
    assert max(extent(shortened(row, LONGEST, SIZE), SIZE) for row in picture.rows) <= place.left


def test_labels_lie_lean_or_stand_by_the_room_there_is() -> None:
    assert layout(made(3, 3, ("a", "b", "c"))).angle == 0
    assert layout(made(3, 9, OTHERS)).angle == 45
    assert layout(made(3, 60)).angle == 90


@pytest.mark.parametrize("labels", [HINDI, ARABIC, OTHERS])
def test_text_of_every_script_comes_back_as_it_went_in(labels: tuple[str, ...]) -> None:
    svg = document(made(len(labels), len(labels), labels))
    assert labels_of(svg, "row") == list(labels)
    assert labels_of(svg, "column") == list(labels)


def test_text_from_right_to_left_says_so_and_keeps_its_edge() -> None:
    root = ElementTree.fromstring(svg(made(2, 2, (ARABIC[0], "cat"))))
    first, second = (each.attrib for each in root.iter("text") if "data-row" in each.attrib)
    assert (first["direction"], first["unicode-bidi"], first.get("text-anchor")) == ("rtl", "plaintext", None)
    assert second["text-anchor"] == "end"
    assert "direction" not in second


def test_a_file_of_its_own_is_whole_asks_for_nothing_and_obeys_nothing() -> None:
    for drawn in (document(made(7, 7)), document(Grid("<b>", [[made(7, 7)]]))):
        root = ElementTree.fromstring(drawn)
        assert root.tag == f"{SVG}svg"
        assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
            "svg",
            "g",
            "path",
            "rect",
            "style",
            "text",
            "title",
        }
        assert not re.search(r"url\(|@import|href|https?://(?!www\.w3\.org/2000/svg\")", drawn)
        assert "<script" not in drawn
    assert "prefers-color-scheme:dark" in style("heat")


def test_sixty_by_sixty_numbers_stay_small() -> None:
    assert len(svg(made(60, 60)).encode()) < 150_000


# Letters


def test_a_letter_keeps_its_marks_and_what_it_is_joined_with() -> None:
    assert clusters("क्योंकि") == ["क्यों", "कि"]
    assert clusters("e\u0301a👩‍👩‍👧👍🏽🇫🇷🇩🇪") == ["e\u0301", "a", "👩‍👩‍👧", "👍🏽", "🇫🇷", "🇩🇪"]
    assert clusters("") == []


@settings(max_examples=23)
@given(st.text(max_size=40), st.floats(1, 200))
def test_a_shortened_text_fits_and_is_the_beginning_of_the_whole(words: str, width: float) -> None:
    kept = shortened(words, width, SIZE)
    assert kept == words or (kept.endswith("…") and words.startswith(kept[:-1]))
    assert extent(kept, SIZE) <= width or len(clusters(kept)) <= 2
    assert "".join(clusters(words)) == words


def test_a_direction_is_that_of_the_first_letter_that_has_one() -> None:
    assert right_to_left("«القطة")
    assert right_to_left("שלום")
    assert not right_to_left("1. cat القطة")
    assert not right_to_left("…")


def test_lines_break_at_spaces() -> None:
    lines_of = wrapped("one two three " * 5, 100, SIZE)
    assert " ".join(lines_of) == " ".join(("one two three " * 5).split())
    assert max(extent(line, SIZE) for line in lines_of) <= 100


# Terminal


@pytest.mark.parametrize("diverging", [False, True])
@pytest.mark.parametrize("columns", [1, 7, 23, 120])
@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_columns_are_straight(width: int, columns: int, diverging: bool) -> None:
    picture = made(5, columns, diverging=diverging)
    drawn = lines(picture, width=width)
    assert max(line.cell_len for line in drawn) <= width
    shaded = [line.cell_len for line in drawn if set(line.plain) & set("░▒▓█")]
    assert len(set(shaded)) <= 1 + len(drawn) // 6  # one length for each block
    assert [line.plain for line in lines(picture, width=width, colour=False)] == [line.plain for line in drawn]


def test_a_wide_terminal_has_labels_numbers_and_sums() -> None:
    picture = HeatMap("x", ("le", "chat"), ("the", "cat"), ((0.75, 0.25), (0.0, 1.0)), "", sums=True)
    assert [line.plain.rstrip() for line in lines(picture, width=80)] == [
        "     the  cat    Σ",
        "  le ▓.75 ░.25  1.00",
        "chat ·    █1    1.00",
    ]


def test_a_narrow_terminal_numbers_its_columns_and_names_them_below() -> None:
    names = tuple(f"word{place}" for place in range(1, 13))
    picture = HeatMap("x", ("a",), names, ((1.0,) + (0.0,) * 11,), "")
    drawn = [line.plain for line in lines(picture, width=20)]
    assert drawn[0] == "           111"
    assert drawn[1] == "  123456789012"
    assert drawn[2] == "a █···········"
    assert drawn[3] == ""
    assert " ".join(drawn[4:]).split() == [part for place in range(1, 13) for part in (str(place), f"word{place}")]


def test_what_fits_nowhere_is_cut_into_blocks_that_hold_every_column() -> None:
    picture = made(2, 60, ("x",))
    drawn = [line.plain for line in lines(picture, width=30)]
    assert sum(len(re.findall("[·░▒▓█]", line)) for line in drawn) == 120


def test_colours_take_the_place_of_shades() -> None:
    picture = made(3, 3, ("x", "y", "z"))
    styled = lines(picture, width=80, colour=True)
    assert not any(set(line.plain) & set("░▒▓█") for line in styled)
    assert any(line.spans for line in styled)
    assert not any(line.spans for line in lines(picture, width=80))


@pytest.mark.parametrize("told", ["", "15;0", "0;15"])
def test_colours_read_on_the_paper_of_the_terminal(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large value stands out more than a small one, also where nobody knows whether the terminal is light or dark."""
    monkeypatch.setenv("COLORFGBG", told)
    papers = {"15;0": [(0, 0, 0)], "0;15": [(255, 255, 255)]}.get(told, [(0, 0, 0), (255, 255, 255)])
    table = colours.table("sequential", paper())
    for ground in papers:
        assert colours.contrast(table[-1], ground) > 3
    if len(papers) == 1:
        assert colours.contrast(table[1], papers[0]) < 1.5  # nearly nothing is nearly the paper
    else:
        assert all(colours.contrast(colour, ground) > 1.7 for colour in table for ground in papers)
    assert all(colours.contrast(colours.ink(colour), colour) > 4.5 for colour in table)


def test_arabic_is_fenced_off_and_takes_its_own_width_only() -> None:
    drawn = [line.plain for line in lines(made(7, 7, ARABIC), width=120)]
    assert all(line.startswith(LEFT_TO_RIGHT) for line in drawn)
    assert drawn[0].count(LEFT_TO_RIGHT) == 8
    assert all(label in "\n".join(drawn) for label in ARABIC)
    assert all(label in "\n".join(line.plain for line in lines(made(10, 10, HINDI), width=120)) for label in HINDI)


@settings(max_examples=23)
@given(st.text(max_size=20), st.integers(2, 30))
def test_a_padded_label_takes_exactly_its_cells(label: str, width: int) -> None:
    assert cell_len(cut(label, width)) <= width
    assert cell_len(padded(label, width, "start")) == width


def test_marks_that_could_disturb_a_terminal_do_not_reach_it() -> None:
    assert cut("a\x1b[31mb\u202e", 20) == "a␣[31mb␣"
