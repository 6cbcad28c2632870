"""The map in a browser: the model that is loaded, with the run's own numbers from the whole down to one product."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Any

import pytest

TEXT = "the black cat ate the mouse"
RUNS = ["transformer-tiny", "bahdanau", "luong-general", "lstm"]
Ask = Callable[[str, dict[str, Any]], Any]


def opened(page: Any, run: str, at: str = "") -> None:
    page.goto(f"/#map?run={run}&text={TEXT}&at={at}")
    page.wait_for_selector(f'.scene[data-at="{at}"]:not(.leaving)')


def unpacked(tensor: dict[str, Any]) -> tuple[list[int], list[float]]:
    data = base64.b64decode(tensor["data"])
    return tensor["shape"], list(struct.unpack(f"<{len(data) // 4}f", data))


def entry(tensor: dict[str, Any], *places: int) -> list[float]:
    """The last axis at these places of the others."""
    shape, values = unpacked(tensor)
    offset = 0
    for place, size in zip(places, shape[:-1], strict=True):
        offset = offset * size + place
    return values[offset * shape[-1] : (offset + 1) * shape[-1]]


def leaves(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for part in parts for each in ([part] if part["kind"] != "stack" else part["parts"])]


@pytest.mark.parametrize("run", RUNS)
def test_the_whole_has_every_part_of_the_model_with_its_size(page: Any, ask: Ask, run: str) -> None:
    answer = ask("/api/v1/map", {"run": run, "text": TEXT})
    opened(page, run)
    shown = page.evaluate(
        """[...document.querySelectorAll('.scene .part')].map(part => ({
          name: part.dataset.part, title: part.querySelector('.title').textContent,
          size: part.querySelector('.size').textContent, cells: part.querySelectorAll('.cell').length}))"""
    )
    wanted = {part["name"]: part for part in leaves(answer["parts"])}
    assert {each["name"] for each in shown} == wanted.keys()
    for each in shown:
        part = wanted[each["name"]]
        assert (each["title"], each["size"]) == (part["title"], part["size"])
        count = len(answer["probabilities"]) if part["kind"] == "output" else len(part["lengths"])
        assert each["cells"] == count
    assert f"{answer['parameters']:,} parameters" in page.locator(".about-part").inner_text()


def test_one_goes_from_the_whole_into_a_layer_a_head_and_one_product_and_back(page: Any) -> None:
    opened(page, "transformer-tiny")
    page.click('.part[data-part="encoder.0"]')
    page.wait_for_selector('.scene[data-at="encoder.0"]')
    page.click('.part[data-part="encoder.0.self"]')
    page.wait_for_selector('.scene[data-at="encoder.0.self"]')
    page.click('[data-door="encoder.0.self/1"]')
    page.wait_for_selector('.scene[data-at="encoder.0.self/1"] .heatmap')
    page.click(".head-scene button")
    page.wait_for_selector(".product-scene")
    names = page.locator(".way li").all_inner_texts()
    assert [name.lstrip("› ") for name in names[1:]] == ["Encoder: Layer 1", "Self-attention", "Head 2", "One product"]
    page.go_back()
    page.wait_for_selector(".head-scene")
    page.click(".way a >> nth=0")
    page.wait_for_selector('.scene[data-at=""]')


def test_by_keyboard_alone(page: Any) -> None:
    opened(page, "transformer-tiny")
    page.focus('.part[data-part="encoder.embedded"]')
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.part") == "encoder.0"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.part").startswith("decoder.")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector('.scene[data-at^="encoder."]')
    assert page.evaluate("document.activeElement.hasAttribute('data-door')")
    page.keyboard.press("Escape")
    page.wait_for_selector('.scene[data-at=""]')


@pytest.mark.parametrize(
    ("run", "part"),
    [
        ("transformer-tiny", "decoder.0.cross"),
        ("transformer-tiny", "decoder.0.self"),
        ("luong-general", "decoder.cross"),
    ],
)
def test_a_product_is_the_sum_that_the_run_computed(page: Any, ask: Ask, run: str, part: str) -> None:
    head, row, column = 0, 2, 1
    inside = ask("/api/v1/map", {"run": run, "text": TEXT, "part": part})["inside"]
    q, k = entry(inside["asked"], head, row), entry(inside["answered"], head, column)
    product = entry(inside["products"], head, row)[column]
    weight = entry(inside["weights"], head, row)[column]
    assert sum(a * b for a, b in zip(q, k, strict=True)) == pytest.approx(product, abs=1e-4)
    opened(page, run, f"{part}/{head}/{row}/{column}")
    sums = page.evaluate(
        """Object.fromEntries([...document.querySelectorAll('.product-scene .sum')].map(
          sum => [sum.querySelector('.name').textContent, sum.querySelector('strong').textContent]))"""
    )
    assert float(sums["q · k"].replace("−", "-")) == pytest.approx(product, abs=6e-4)
    assert float(sums["softmax"].removesuffix(" %")) == pytest.approx(100 * weight, abs=0.6)
    titles = page.eval_on_selector_all(".vector-line:first-of-type .vector i", "cells => cells.map(cell => cell.title)")
    shown = [float(title.rpartition(": ")[2].replace("−", "-")) for title in titles]
    assert shown == pytest.approx(q[:64], abs=1e-4)


def test_only_weights_that_are_the_softmax_of_their_scores_are_called_so(page: Any) -> None:
    opened(page, "transformer-tiny")
    found = page.evaluate(
        """async () => {
          const {isSoftmax} = await import("/studio/panels/map/scenes.js");
          const softmax = [[0, Math.log(3)], [0.25, 0.75]];
          const relu = [[1, 3, -2], [0.25, 0.75, 0]];
          const choice = [[0, Math.log(3), 0], [0, 1, 0]];
          return [softmax, relu, choice].map(([scores, weights]) => isSoftmax(scores, weights));
        }"""
    )
    assert found == [True, False, False]


def test_an_additive_score_is_the_sum_of_its_tanh(page: Any, ask: Ask) -> None:
    inside = ask("/api/v1/map", {"run": "bahdanau", "text": TEXT, "part": "decoder.cross"})["inside"]
    opened(page, "bahdanau", "decoder.cross/0/0/1")
    score = entry(inside["scores"], 0, 0)[1]
    said = page.locator(".product-scene .sum strong").first.inner_text()
    assert float(said.replace("−", "-")) == pytest.approx(score, abs=6e-4)


def test_a_number_of_a_recurrent_state_is_the_arithmetic_that_stands_beside_it(page: Any, ask: Ask) -> None:
    inside = ask("/api/v1/map", {"run": "lstm", "text": TEXT, "part": "encoder.0"})["inside"]
    gates = {name: entry(inside[f"cell.{name}"], 2)[4] for name in ("input", "forget", "candidate", "cell")}
    before = entry(inside["cell.cell"], 1)[4]
    again = gates["forget"] * before + gates["input"] * gates["candidate"]
    assert again == pytest.approx(gates["cell"], abs=1e-5)
    opened(page, "lstm", "encoder.0/2/4")
    said = page.locator(".unit-scene .sum strong").first.inner_text()
    assert float(said.replace("−", "-")) == pytest.approx(gates["cell"], abs=6e-5)


def test_a_ladder_has_a_rung_for_every_piece_and_leads_to_its_cell(page: Any, ask: Ask) -> None:
    pieces = ask("/api/v1/map", {"run": "bahdanau", "text": TEXT})["source"]["pieces"]
    opened(page, "bahdanau", "encoder.0")
    assert page.locator(".ladder").count() == 2  # both ways
    assert page.locator(".ladder.forward a.rung").count() == len(pieces)
    page.click(".ladder.forward a.rung >> nth=1")
    page.wait_for_selector(".cell-scene")
    assert page.locator(".cell-scene").count() == 2


@pytest.mark.parametrize("run", RUNS)
def test_every_part_of_every_model_has_a_scene(page: Any, ask: Ask, run: str) -> None:
    answer = ask("/api/v1/map", {"run": run, "text": TEXT})
    places = [part["name"] for part in leaves(answer["parts"])]
    places += [inner["name"] for part in leaves(answer["parts"]) for inner in part["parts"]]
    for at in places:
        opened(page, run, at)
        assert page.locator(".scene").inner_text() != "" or page.locator(".scene canvas").count()


def test_the_sentence_flows_and_ends_as_it_was(page: Any) -> None:
    opened(page, "transformer-tiny")
    page.click(".map-head button")
    page.wait_for_selector(".flowing .cell.on")
    page.evaluate("() => { const wait = setTimeout; window.setTimeout = (work) => wait(work, 0); }")  # the rest at once
    page.wait_for_selector(".map-head button:not([disabled])")
    assert page.locator(".flowing").count() == 0


def test_a_zoom_moves_by_transform_and_opacity_alone(page: Any) -> None:
    page.emulate_media(reduced_motion="no-preference")
    opened(page, "transformer-tiny")
    page.evaluate(
        """() => {
          window.moved = new Set();
          const animate = Element.prototype.animate;
          Element.prototype.animate = function (frames, options) {
            frames.forEach(frame => Object.keys(frame).forEach(name => window.moved.add(name)));
            return animate.call(this, frames, options);
          };
        }"""
    )
    page.click('.part[data-part="encoder.0"]')
    page.wait_for_selector('.scene[data-at="encoder.0"]')
    page.wait_for_selector(".scene.leaving", state="detached")
    assert set(page.evaluate("[...window.moved]")) == {"transform", "opacity", "offset"}


def test_a_part_that_the_run_does_not_have_shows_the_whole(page: Any, heard: list[str]) -> None:
    page.goto(f"/#map?run=lstm&text={TEXT}&at=encoder.9.self")
    page.wait_for_selector(".trouble, .scene")
    assert "no such part" in page.locator("main").inner_text() or page.locator('.scene[data-at=""]').count()
    heard.clear()  # the service's 400 stands in the console


@pytest.mark.parametrize("at", ["", "encoder.0", "encoder.0.self", "encoder.0.self/0", "encoder.0.self/0/1/1"])
def test_the_map_is_accessible_and_fits_a_telephone(
    page: Any, accessible: Callable[[Any], None], fits: Callable[[Any], None], at: str
) -> None:
    opened(page, "transformer-tiny", at)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        accessible(page)
    page.set_viewport_size({"width": 390, "height": 844})
    fits(page)


@pytest.mark.parametrize("run", RUNS)
def test_learn_lights_up_where_one_is_and_the_map_leads_to_its_steps(page: Any, run: str) -> None:
    page.goto(f"/#learn?run={run}&text={TEXT}&word=0")
    page.wait_for_selector('.where-we-are .lit[data-part="encoder.embedded"]')
    page.click('.where-we-are [data-part="output"]')
    page.wait_for_selector('article.step[data-step="logits"]')
    page.wait_for_selector('.where-we-are .lit[data-part="output"]')
    page.click('.where-we-are [data-part="decoder.0"]')
    page.wait_for_selector('article.step[data-step^="decoder."]')
    page.wait_for_selector('.where-we-are .lit[data-part="decoder.0"]')


def test_a_part_leads_from_the_map_to_its_mathematics(page: Any) -> None:
    opened(page, "transformer-tiny", "encoder.0.self")
    page.click(".about-part a")
    page.wait_for_selector('article.step[data-step^="encoder.0.self."]')


def test_every_task_has_a_map(eight_page: Any) -> None:
    runs = [run for run in eight_page.request.get("/api/v1/runs").json()["runs"] if run["parameters"] is not None]
    assert {run["task"] for run in runs} == {"translate", "tag", "classify", "language"}
    for run in runs:
        eight_page.goto(f"/#map?run={run['name']}&text={TEXT}")
        eight_page.locator(".way", has_text=run["name"]).wait_for()
        eight_page.wait_for_selector(".scene .part")


def test_a_model_of_one_column_has_no_line_around_it(eight_page: Any) -> None:
    """What stands below is joined by the short line between the two; one around them would join them twice."""
    eight_page.goto("/#map?run=tagger&text=the+cat+sleeps")
    eight_page.locator(".column .part").first.wait_for()
    eight_page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert eight_page.locator("svg.wires path").count() == 0
