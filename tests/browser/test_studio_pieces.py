"""The studio's shared pieces in a real browser, each by itself on an empty page."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regard.fable.sets import png
from regard.show import colours

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
Check = Callable[[Any], None]
MAP = """async ({rows, columns, values, options}) => {
  const {heatmap} = await import("/studio/pieces/heatmap.js");
  const root = document.getElementById("page");
  window.told = [];
  window.map = heatmap({label: "Attention", onpick: (place) => told.push(place), ...options});
  root.replaceChildren(root.querySelector("h1"), map.node);
  map.show({rows, columns, values: Float32Array.from(values)});
}"""
ROWS, COLUMNS = ["le", "chat", "noir"], ["the", "black", "cat", "القط", "काली"]
VALUES = [0.9, 0.02, 0.05, 0.02, 0.01, 0.1, 0.2, 0.6, 0.05, 0.05, 0.0, 0.95, 0.05, 0.0, 0.0]
TREE = """async ({nodes, outputs}) => {
  const {tree} = await import("/studio/pieces/tree.js");
  window.told = [];
  window.picture = tree({label: "Search", onpick: (node) => told.push(node.number)});
  const root = document.getElementById("page");
  root.replaceChildren(root.querySelector("h1"), picture.node);
  picture.show({nodes, outputs});
}"""


@pytest.fixture
def bare(page: Any) -> Any:
    """The frame around a heading."""
    page.goto("/#translate")
    page.locator("h1").wait_for()
    return page


def draw(page: Any, **options: Any) -> None:
    about = {"rows": ROWS, "columns": COLUMNS, "values": VALUES, "options": options}
    page.evaluate(MAP, about)


def colour_at(page: Any, row: int, column: int) -> str:
    """Of a cell's corner, where no number stands."""
    script = """([row, column]) => {
      const {cell, high, head} = map.plan;
      const ratio = devicePixelRatio;
      const place = [column * cell + 3, head + row * high + 3].map((each) => Math.round(each * ratio));
      const copy = document.createElement("canvas"); // reading back from the canvas itself would slow it down
      const pen = copy.getContext("2d", {willReadFrequently: true});
      pen.drawImage(map.cells, -place[0], -place[1]);
      return Array.from(pen.getImageData(0, 0, 1, 1).data);
    }"""
    found = page.evaluate(script, [row, column])
    return colours.code((found[0], found[1], found[2]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_heat_map_has_the_reports_colours(bare: Any, theme: str) -> None:
    bare.emulate_media(color_scheme=theme)
    draw(bare)
    scale = colours.table("sequential", theme)
    for row, column, value in ((0, 0, 0.9), (1, 2, 0.6), (2, 3, 0.0)):
        assert colour_at(bare, row, column) == colours.code(scale[colours.level(value, 0.0, 1.0)])


def test_a_heat_map_changes_its_colours_with_the_theme(bare: Any) -> None:
    draw(bare)
    bare.get_by_role("button", name="Light or dark", exact=True).click()
    assert colour_at(bare, 2, 3) == colours.code(colours.table("sequential", "dark")[0])


def test_a_diverging_map_has_its_middle_at_zero(bare: Any) -> None:
    draw(bare, scale="diverging")
    assert colour_at(bare, 2, 3) == colours.code(colours.table("diverging", "light")[colours.LEVELS // 2])


def test_pointing_at_a_cell_tells_its_row_its_column_and_its_value(bare: Any) -> None:
    draw(bare)
    plan = bare.evaluate("map.plan")
    place = {"x": 2.5 * plan["cell"], "y": plan["head"] + 1.5 * plan["high"]}
    bare.locator(".heatmap .over").hover(position=place)
    bare.locator(".heatmap .tip").wait_for()
    assert bare.locator(".heatmap .tip").inner_text() == "chat ← cat  0.60"
    bare.locator(".heatmap .over").click(position=place)
    assert bare.evaluate("told") == [{"row": 1, "column": 2}]


def test_arrow_keys_walk_through_a_heat_map_and_are_heard(bare: Any) -> None:
    draw(bare)
    bare.locator(".heatmap .stage").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowDown", "End", "Enter"):
        bare.keyboard.press(key)
    assert bare.locator("#announced").inner_text() == "noir ← काली 0.00"
    assert bare.evaluate("told") == [{"row": 2, "column": 4}]


def test_a_heat_map_is_also_a_table(bare: Any, accessible: Check) -> None:
    draw(bare)
    assert bare.locator(".heatmap table").count() == 0
    bare.get_by_text("As a table").click()
    bare.locator(".heatmap tbody td").first.wait_for()
    cells = bare.locator(".heatmap tbody td").all_inner_texts()
    assert [float(cell) for cell in cells] == VALUES
    accessible(bare)


@pytest.mark.parametrize("width", [1440, 380])
def test_labels_of_sixty_tokens_do_not_touch(bare: Any, width: int, fits: Check) -> None:
    """A column is never narrower than a line of its letters, and what does not fit scrolls in its own box."""
    bare.set_viewport_size({"width": width, "height": 800})
    words = [f"token{number}" for number in range(61)]
    values = [1 / 61] * 61 * 61
    bare.evaluate(MAP, {"rows": words, "columns": words, "values": values, "options": {}})
    plan = bare.evaluate("map.plan")
    line = 12 / (0.7071 if 0 < plan["angle"] < 1 else 1.0)  # slanted letters take more room along the axis
    assert plan["cell"] >= line
    assert plan["high"] >= 12
    fits(bare)
    box = "[map.box.scrollWidth, map.box.clientWidth]"
    wide, room = bare.evaluate(box)
    assert (wide > room) == (width == 380)


def test_no_canvas_is_painted_anew_when_the_pointer_moves(bare: Any) -> None:
    draw(bare)
    script = """() => {
      let count = 0;
      for (const canvas of [map.cells, map.names]) {
        const pen = canvas.getContext("2d");
        for (const verb of ["fillRect", "fillText", "clearRect"]) pen[verb] = () => { count += 1; };
      }
      const places = [];
      for (let column = 0; column < 5; column++) {
        map.point({row: 1, column});
        map.moveFrames();
        places.push(map.frames.cell.style.transform);
      }
      return [count, new Set(places).size];
    }"""
    assert bare.evaluate(script) == [0, 5]


def test_packed_numbers_are_those_that_were_packed(bare: Any) -> None:
    values = [0.5, -1.25, 3.0, 1e-7, 42.0, -0.0]
    packed = {"shape": [3, 2], "data": base64.b64encode(struct.pack("<6f", *values)).decode()}
    script = """async (packed) => {
      const {unpack} = await import("/studio/pieces/packed.js");
      const found = unpack(packed);
      return [Array.from(found.data), found.at(2, 0), Array.from(found.part(1))];
    }"""
    data, one, part = bare.evaluate(script, packed)
    assert data == pytest.approx(values)
    assert one == 42.0
    assert part == pytest.approx([3.0, 1e-7])


def test_a_replacement_counts_once_where_a_sentence_begins_with_a_bracket(bare: Any) -> None:
    found = bare.evaluate(
        """async () => {
      const {wordsAfter} = await import("/studio/panels/look/edits.js");
      const edits = [{kind: "replace-word", word: 0, by: "loud music"}];
      return wordsAfter("[Music] plays", edits, {source: {words: ["loud", "music", "plays"]}});
    }"""
    )
    assert found == ["loud", "music", "plays"]


def test_words_light_up_what_they_are_linked_with_both_ways(bare: Any) -> None:
    bare.evaluate("""async () => {
      const {linked} = await import("/studio/pieces/tokens.js");
      const links = [{target: 1, source: 2, weight: 0.9}, {target: 2, source: 1, weight: 0.4}];
      const pair = linked(["the", "black", "cat"], ["le", "chat", "noir"], links);
      document.getElementById("page").replaceChildren(pair.source, pair.target);
    }""")
    source, target = (
        bare.get_by_role("group", name="Source", exact=True),
        bare.get_by_role("group", name="Translation", exact=True),
    )
    target.locator(".word").nth(1).hover()
    assert source.locator(".lit").all_inner_texts() == ["cat"]
    source.locator(".word").nth(1).hover()
    assert target.locator(".lit").all_inner_texts() == ["noir"]
    target.locator(".word").first.focus()
    bare.keyboard.press("ArrowRight")
    assert source.locator(".lit").all_inner_texts() == ["cat"]
    assert bare.locator("#announced").inner_text() == "chat ← cat 0.90"


def test_a_chart_tells_the_values_under_the_pointer_and_to_the_arrow_keys(bare: Any, accessible: Check) -> None:
    bare.evaluate("""async () => {
      const {lineChart} = await import("/studio/pieces/chart.js");
      const chart = lineChart({title: "Loss", x: {label: "step"}, y: {label: "loss", log: true}});
      const root = document.getElementById("page");
      root.replaceChildren(root.querySelector("h1"), chart.node);
      chart.show([
        {name: "train", points: [{x: 0, y: 7}, {x: 100, y: 3}, {x: 200, y: 1.1}]},
        {name: "valid", points: [{x: 100, y: 3.5, low: 3.2, high: 3.9}, {x: 200, y: null}]},
      ]);
    }""")
    stage = bare.locator(".chart .stage")
    box = stage.bounding_box()
    stage.hover(position={"x": box["width"] / 2, "y": 90})
    assert bare.locator(".chart .tip").inner_text().split("\n") == [
        "step 100",
        "train 3.00",
        "valid 3.50 (3.20 to 3.90)",
    ]
    stage.focus()
    bare.keyboard.press("End")
    assert bare.locator("#announced").inner_text() == "step 200; train 1.10"
    assert bare.locator(".chart .interval").count() == 1
    accessible(bare)


def node(
    number: int, parent: int | None, piece: str, score: float, fate: str = "kept", reason: str = ""
) -> dict[str, Any]:
    step = {0: 0, 1: 1, 2: 1, 3: 1, 4: 2, 5: 2}[number]
    about = {"number": number, "parent": parent, "step": step, "piece": piece, "text": piece, "log_probability": score}
    return {**about, "score": score, "fate": fate, "reason": reason}


NODES = [
    node(0, None, "<start>", 0.0),
    node(1, 0, "le", -0.1),
    node(2, 0, "القط", -2.0, reason="beaten"),
    node(3, 0, "<b>x</b>", -9.0, "pruned", "beam"),
    node(4, 1, "<end>", -0.2, "finished", "output"),
    node(5, 1, "<end>", -3.0, "pruned", "beam"),
]


def test_fates_have_shapes_of_their_own(bare: Any) -> None:
    bare.evaluate(TREE, {"nodes": NODES, "outputs": [4]})
    shapes = {
        fate: bare.locator(f".tree g.{fate} .shape").first.get_attribute("d") for fate in ("kept", "finished", "pruned")
    }
    corners = {fate: {letter for letter in path if letter.isalpha()} for fate, path in shapes.items()}
    assert "a" in corners["kept"]
    assert "a" not in corners["pruned"]
    assert "a20 20" in shapes["finished"]
    assert bare.locator(".tree .edge.way").count() == 2
    assert bare.locator(".tree g.pruned").first.locator(".piece").text_content() == "<b>x</b>"


def test_a_tree_is_walked_with_the_arrow_keys(bare: Any, accessible: Check) -> None:
    bare.evaluate(TREE, {"nodes": NODES, "outputs": [4]})
    bare.locator(".tree [tabindex='0']").focus()
    here = "Number(document.activeElement.dataset.number)"
    seen = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"):
        bare.keyboard.press(key)
        seen.append(bare.evaluate(here))
    assert seen == [1, 2, 3, 2, 1, 4, 5, 1]
    bare.keyboard.press("Enter")
    assert bare.evaluate("told") == [1]
    accessible(bare)


SOURCE = """async ({text, words, vectors, rows, values}) => {
  const {sourceCard} = await import("/studio/panels/look/source.js");
  const card = sourceCard();
  document.getElementById("page").replaceChildren(card.node);
  const picture = {rows: rows.map((label) => ({label})), columns: words.map((label) => ({label})), values};
  card.show({text, vectors, source: {words}}, picture);
}"""


NUMBERS = {
    "text": "[0.1, 0.4, 0.2, 0.9]",
    "words": ["1", "2", "3", "4"],
    "rows": ["zero", "<end>"],
    "vectors": [[0.1], [0.4], [0.2], [0.9]],
}


def test_weights_are_drawn_on_a_picture_or_on_curves(bare: Any) -> None:
    image = png(np.arange(16, dtype=np.uint8).reshape(4, 4))
    about = {"words": ["1,1", "1,2", "2,1", "2,2"], "vectors": [], "rows": ["zero", "<end>"]}
    weights = {"values": [0.1, 0.7, 0.2, 0.0, 0.25, 0.25, 0.25, 0.25]}
    bare.evaluate(SOURCE, {"text": image, **about, **weights})
    panels = bare.locator(".of-source svg")
    assert panels.count() == 2
    assert panels.first.get_attribute("aria-label") == "zero: most at 1,2"
    assert panels.first.locator("image").count() == 1
    strengths = [float(each.get_attribute("fill-opacity")) for each in panels.first.locator("rect.weight").all()]
    assert strengths == [0.107, 0.75, 0.214, 0.0]
    bare.evaluate(SOURCE, NUMBERS | weights)
    assert bare.locator(".of-source polyline").count() == 2
    assert bare.locator(".of-source image").count() == 0
    bare.evaluate(SOURCE, {"text": "the black cat", **about, **weights})
    assert bare.locator(".of-source").is_hidden()
