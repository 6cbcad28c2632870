"""Look inside, in a real browser: what is drawn are the numbers of the trace, and every edit can be made and undone."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import pytest

import corpora_for_tests as small
from regard.explain.alignment import Aligner
from regard.explain.edits import Difference, from_data, what_if
from regard.explain.importance import attribute
from regard.explain.look import Looked
from regard.explain.recurrent import saliency
from regard.explain.views import View, attention_map, gate_maps, saliency_map, shares, state_maps
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.trainer.start import start
from serving import on_a_port

BRIEF = ("data.pairs=97", "train.steps=4", "train.validate_every=2")
RUN = "transformer-tiny"
TEXT = "the cat , a bird."  # two words are pieces more
PATIENCE = 60  # seconds
Page = Any


@pytest.fixture(scope="session", autouse=True)
def aligners(runs: Path) -> None:
    """How links are read: to choose that takes seconds."""
    for run in (RUN, "bahdanau"):
        if Aligner.load(runs / run) is None:
            Aligner(((0, 0),), late=run == RUN, error_rate=0.25, chosen_on="valid").save(runs / run)


@pytest.fixture(scope="session")
def translator(runs: Path, aligners: None) -> Translator:
    """The run as the service has it; it reads links alike, for the choice is remembered in the run."""
    del aligners
    return load(runs / RUN)


@pytest.fixture(scope="session")
def explanation(translator: Translator) -> Looked:
    return translator.translate(TEXT).explanation()


def open_look(page: Page, run: str = RUN, text: str = TEXT, **values: str) -> None:
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"/#look?{urlencode({'run': run, 'text': text, **values})}")
    page.wait_for_selector(".sentence .tokens")
    settled(page)


def settled(page: Page) -> None:
    """Nothing is on its way any more."""
    until(page, "!document.querySelector('.results[aria-busy], .results .skeleton')")


def until(page: Page, condition: str) -> None:
    """Wait for it. Playwright's own way is to let the page evaluate a string, which the page's policy forbids."""
    last = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < last, condition
        page.wait_for_timeout(20)


def shown(page: Page, where: str = ".picture") -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(f"document.querySelector('{where} .heatmap').shown")
    return found


def legible(piece: str) -> str:
    """A piece as the pages write it."""
    return piece.replace("￭", "‿")


def values_of(page: Page) -> dict[str, str]:
    _, _, query = page.evaluate("location.hash").partition("?")
    return {name: found[0] for name, found in parse_qs(query).items()}


def is_picture(page: Page, picture: Any, where: str = ".picture") -> None:
    """The heat map comes to be this one: back and forward are told to the page a moment after they have happened."""
    values = pytest.approx([value for row in picture.values for value in row], abs=1e-6)
    wanted = {"rows": list(picture.rows), "columns": list(picture.columns), "values": values}
    last = time.monotonic() + PATIENCE
    while (found := {name: shown(page, where)[name] for name in wanted}) != wanted and time.monotonic() < last:
        page.wait_for_timeout(20)
    assert found == wanted


def choose(page: Page, legend: str, text: str) -> None:
    """One of a few, by what stands on it."""
    group = page.locator("fieldset", has=page.locator("legend", has_text=legend)).first
    group.get_by_text(text, exact=True).click()


# Selectors


def test_the_picture_is_first_that_of_the_best_aligner(page: Page, explanation: Looked) -> None:
    open_look(page)
    picture = attention_map(explanation.trace, View(), explanation.reader)
    is_picture(page, picture)
    assert explanation.reader is not None
    assert explanation.reader.describe() in page.locator(".picture figcaption").inner_text()


def test_where_no_heads_were_chosen_the_mean_of_all_is_shown_and_called_so(page: Page, explanation: Looked) -> None:
    """As of an imported run: nothing was aligned, and links are read from all heads."""

    def unchosen(route: Any) -> None:
        answer = route.fetch()
        aligner = {"heads": [], "late": False, "description": "cross-attention, mean of all heads"}
        route.fulfill(response=answer, json={**answer.json(), "aligner": aligner})

    page.route("**/api/v1/trace", unchosen)
    open_look(page)
    is_picture(page, attention_map(explanation.trace, View(head="mean"), None))
    head = page.locator(".of-picture fieldset", has=page.locator("legend", has_text="Head"))
    assert head.locator("label").all_inner_texts() == ["Mean", "1", "2"]
    assert head.locator("input:checked").input_value() == "mean"
    assert "mean of all 2 heads" in page.locator(".picture figcaption").inner_text()


CHOICES: list[tuple[list[tuple[str, str]], View, dict[str, str]]] = [
    ([("Head", "Mean")], View(head="mean"), {"head": "mean"}),
    ([("Head", "2")], View(layer=1, head="2"), {"layer": "1", "head": "2"}),
    ([("Layer", "1")], View(layer=1, head="mean"), {"layer": "1", "head": "mean"}),
    ([("Attention", "Encoder self")], View("encoder", head="mean"), {"side": "encoder"}),
    ([("Attention", "Encoder self"), ("Head", "1")], View("encoder", 1, "1"), {"side": "encoder", "head": "1"}),
    ([("Attention", "Decoder self"), ("Head", "2")], View("decoder", 1, "2"), {"side": "decoder", "head": "2"}),
    ([("Rows and columns", "Pieces")], View(words=False), {"words": "0"}),
    ([("Rows and columns", "Pieces"), ("Rows and columns", "Words")], View(), {}),
]


def test_every_selector_changes_the_picture_to_the_numbers_of_the_trace(page: Page, explanation: Looked) -> None:
    """One page for all choices: each begins at the address without any."""
    for steps, view, address in CHOICES:
        open_look(page)
        is_picture(page, attention_map(explanation.trace, View(), explanation.reader))
        for legend, text in steps:
            choose(page, legend, text)
        is_picture(page, attention_map(explanation.trace, view, explanation.reader))
        for special in (True, False):
            page.locator(".of-picture").get_by_label("Special tokens", exact=True).set_checked(special)
            chosen = View(view.side, view.layer, view.head, view.words, special)
            is_picture(page, attention_map(explanation.trace, chosen, explanation.reader))
        assert address.items() <= values_of(page).items()


def test_back_shows_the_view_before(page: Page) -> None:
    open_look(page)
    first = shown(page)
    choose(page, "Attention", "Encoder self")
    second = shown(page)
    assert second != first
    for turn, expected in ((page.go_back, first), (page.go_forward, second)):
        turn()
        first_row = json.dumps(expected["rows"][0])
        until(page, f"document.querySelector('.picture .heatmap').shown.rows[0] === {first_row}")
        assert shown(page) == expected


def test_every_head_is_a_stamp_that_shows_it_large(page: Page, explanation: Looked) -> None:
    open_look(page)
    stamps = page.locator(".strip-stamp")
    assert stamps.count() == 2
    stamps.nth(1).click()
    is_picture(page, attention_map(explanation.trace, View(layer=1, head="2")))
    assert stamps.nth(1).get_attribute("aria-pressed") == "true"
    assert values_of(page)["head"] == "2"


def test_rows_sum_to_one_and_what_is_shown_was_used(page: Page) -> None:
    open_look(page)
    assert page.locator(".checks .chip").all_inner_texts() == ["✓ Σ row = 1", "✓ shown = used"]
    assert page.locator(".checks .bad").count() == 0


def test_a_row_that_is_pointed_at_tells_what_else_was_probable(page: Page, explanation: Looked) -> None:
    open_look(page, words="0", special="1")
    page.locator(".picture .stage").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    trace = explanation.trace
    until(page, f"document.querySelector('.step strong').textContent === {json.dumps(legible(trace.target.pieces[2]))}")
    assert page.locator(".candidates bdi").all_inner_texts() == [legible(piece) for piece in trace.top_pieces[2]]
    row = attention_map(trace, View(words=False, special=True), explanation.reader).values[2]
    assert f"{row[0]:.2f}" in page.locator("#announced").inner_text()


# Beside attention


@pytest.mark.parametrize(
    "method", ["masking", "alti", "zeroing", "norm", "attention", "rollout", "gradient", "saliency"]
)
def test_beside_attention_stands_what_each_word_did(page: Page, translator: Translator, method: str) -> None:
    open_look(page)
    expected = attribute(translator, TEXT, method)
    page.get_by_label("Measure", exact=True).select_option(method)
    page.locator(".beside figcaption", has_text=expected.origin).wait_for()
    found = shown(page, ".beside")
    assert (found["rows"], found["columns"]) == (list(expected.rows), list(expected.columns))
    assert found["values"] == pytest.approx(expected.source.flatten().tolist(), abs=1e-5)
    choose(page, "Words read", "Written before")
    found = shown(page, ".beside")
    assert found["columns"] == list(expected.read)
    assert found["values"] == pytest.approx(expected.prefix.flatten().tolist(), abs=1e-5)


def test_looking_less_mattering(page: Page, translator: Translator) -> None:
    open_look(page)
    looked, masked = (attribute(translator, TEXT, method).source for method in ("attention", "masking"))
    page.get_by_label("Measure", exact=True).select_option("difference")
    page.locator(".beside figcaption", has_text="less share of its masking effects").wait_for()
    values = shares(looked) - shares(masked.clamp(min=0))
    assert shown(page, ".beside")["values"] == pytest.approx(values.flatten().tolist(), abs=1e-5)


def test_a_candidate_can_be_asked_why_it_was_not_taken(page: Page, translator: Translator) -> None:
    open_look(page)
    candidate = page.locator(".candidates li:not(.taken)").first
    candidate.get_by_role("button", name="Why not?", exact=True).click()
    page.locator(".beside .why", has_text="and not").wait_for()
    page.locator(".beside figcaption", has_text="log p of the word less log p of").wait_for()
    trace = translator.translate(TEXT).trace()
    other = next(piece for piece in trace.top_pieces[0] if piece != trace.target.pieces[0])
    expected = attribute(translator, TEXT, against=other, step=0)
    found = shown(page, ".beside")
    assert (found["rows"], found["columns"]) == (list(expected.rows), list(expected.columns))
    assert found["values"] == pytest.approx(expected.source.flatten().tolist(), abs=1e-5)
    page.get_by_role("button", name="All words", exact=True).click()
    page.locator(".beside .why").wait_for(state="hidden")


# What if


def replace_word(page: Page) -> None:
    page.locator(".sentence .pickable .word").nth(1).click()
    page.get_by_label("Instead of cat", exact=True).fill("dog")
    page.get_by_role("button", name="Replace", exact=True).click()


def mask_word(page: Page) -> None:
    page.locator(".sentence .pickable .word").nth(1).click()
    page.get_by_role("button", name="Mask", exact=True).click()


def force_prefix(page: Page) -> None:
    page.get_by_label("It begins with", exact=True).fill("un chien")
    page.get_by_role("button", name="Force", exact=True).click()


def set_row(page: Page) -> None:
    choose(page, "Head", "2")
    page.locator(".picture .stage").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".slider").nth(1).get_by_role("button").click()  # all the weight there
    page.locator(".slider input[type=number]").nth(0).fill("1")  # and as much on the first: half and half
    page.get_by_role("button", name="Set the row", exact=True).click()


def mute_head(page: Page) -> None:
    page.locator(".edit-forms").get_by_label("Head", exact=True).select_option("1")
    page.get_by_role("button", name="Mute it", exact=True).click()


def force_head(page: Page) -> None:
    page.locator(".edit-forms").get_by_label("Looks at", exact=True).select_option("1")
    page.get_by_role("button", name="Force it there", exact=True).click()


def no_positions(page: Page) -> None:
    page.get_by_role("button", name="Not in the encoder", exact=True).click()


def no_scale(page: Page) -> None:
    page.get_by_role("button", name="Drop ÷ √d", exact=True).click()


EDITS: list[tuple[Callable[[Page], None], dict[str, Any], str]] = [
    (replace_word, {"kind": "replace-word", "word": 1, "by": "dog"}, "“cat” → “dog”"),
    (mask_word, {"kind": "mask-word", "word": 1}, "“cat” masked"),
    (force_prefix, {"kind": "force-prefix", "prefix": "un chien"}, "begins with “un chien”"),
    (
        set_row,
        {"kind": "set-row", "attention": "decoder.0.cross", "head": 1, "row": 0, "weights": [0.5, 0.5, 0, 0, 0, 0, 0]},
        "set by hand: decoder layer 1, cross-attention, head 2",
    ),
    (mute_head, {"kind": "mute-head", "attention": "decoder.0.cross", "head": 1}, "head 2 muted"),
    (force_head, {"kind": "force-head", "attention": "decoder.0.cross", "head": 0, "word": 1}, "head 1 at “cat”"),
    (no_positions, {"kind": "no-positions", "side": "encoder"}, "no positions in the encoder"),
    (no_scale, {"kind": "no-scale", "attention": "encoder.0.self"}, "encoder layer 1, self-attention: not ÷ √d"),
]


def is_outcome(page: Page, outcome: Difference) -> None:
    """Before, after and the change come to be those of the Python call."""
    for part, text in (("before", outcome.before.text), ("after", outcome.after.text)):
        words = re.compile(r"\s*".join(map(re.escape, ["", *text.split(), ""])))
        page.locator(f".difference .{part} .tokens", has_text=words).wait_for()
    change = page.locator(".difference .change strong").text_content().replace("−", "-")
    assert float(change) == pytest.approx(outcome.change_in_log_probability, abs=6e-4)


@pytest.mark.parametrize(
    ("make", "edit", "chip"), EDITS, ids=lambda part: part["kind"] if isinstance(part, dict) else ""
)
def test_an_edit_is_made_shown_and_undone(
    page: Page, translator: Translator, make: Callable[[Page], None], edit: dict[str, Any], chip: str
) -> None:
    open_look(page)
    view = View(layer=1, head="2") if make is set_row else View()
    make(page)
    page.wait_for_selector(".chips .chip")
    settled(page)
    assert json.loads(values_of(page)["edits"]) == [edit]
    assert chip in page.locator(".chips .chip").inner_text()
    outcome = what_if(translator, TEXT, from_data([edit]))
    is_outcome(page, outcome)
    is_picture(page, attention_map(outcome.traces[2], view, translator.aligner))
    page.go_back()
    page.wait_for_selector(".chips", state="detached")
    settled(page)
    assert "edits" not in values_of(page)
    is_picture(page, attention_map(translator.translate(TEXT).trace(), view, translator.aligner))
    page.go_forward()
    page.wait_for_selector(".chips .chip")
    is_outcome(page, outcome)


def test_a_link_shares_edits_and_each_is_taken_back_by_its_chip(page: Page, translator: Translator) -> None:
    edits = [EDITS[0][1], EDITS[1][1] | {"word": 0}, EDITS[4][1], EDITS[4][1] | {"head": 0}]
    open_look(page, edits=json.dumps(edits))
    chips = page.locator(".chips .chip")
    chips.nth(2).wait_for()
    assert chips.count() == 3  # heads that are muted alike are one
    assert "2 heads muted" in chips.nth(2).inner_text()
    is_outcome(page, what_if(translator, TEXT, from_data(edits)))
    chips.nth(0).get_by_role("button").click()
    until(page, "document.querySelectorAll('.chips .chip').length === 2")
    assert json.loads(values_of(page)["edits"]) == edits[1:]
    page.get_by_role("button", name="Undo all", exact=True).click()
    page.wait_for_selector(".chips", state="detached")
    assert "edits" not in values_of(page)


def test_words_that_are_edited_move_with_their_sentence(page: Page) -> None:
    """A word before the masked one becomes two; taken back, it is one again."""
    open_look(page, edits=json.dumps([{"kind": "mask-word", "word": 1}]))
    page.locator(".sentence .pickable .word").nth(0).click()
    page.get_by_label("Instead of the", exact=True).fill("the big")
    page.get_by_role("button", name="Replace", exact=True).click()
    until(page, "document.querySelectorAll('.chips .chip').length === 2")
    assert json.loads(values_of(page)["edits"])[0] == {"kind": "mask-word", "word": 2}
    assert "“cat” masked" in page.locator(".chips .chip").nth(0).inner_text()
    page.get_by_role("button", name="Undo: “the” → “the big”", exact=True).click()
    until(page, "document.querySelectorAll('.chips .chip').length === 1")
    assert json.loads(values_of(page)["edits"]) == [{"kind": "mask-word", "word": 1}]


def test_another_sentence_keeps_only_the_edits_of_the_model(page: Page) -> None:
    open_look(page, edits=json.dumps([EDITS[1][1], EDITS[4][1]]))
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("textbox", name="Sentence", exact=True).fill("a bird sees the cat")
    page.get_by_role("button", name="Look", exact=True).click()
    until(page, "document.querySelectorAll('.chips .chip').length === 1")
    assert json.loads(values_of(page)["edits"]) == [EDITS[4][1]]


def test_an_edit_that_does_not_fit_is_told_in_place_and_can_be_taken_back(page: Page, heard: list[str]) -> None:
    page.goto(f"/#look?run={RUN}&text={quote(TEXT)}&edits={quote(json.dumps([{'kind': 'mask-word', 'word': 99}]))}")
    assert "word = 99: the sentence has no such word" in page.locator(".trouble").inner_text()
    page.get_by_role("button", name="Undo: “word 100” masked", exact=True).click()
    page.wait_for_selector(".picture .heatmap canvas")
    assert page.locator(".trouble").count() == 0
    assert all("400" in line for line in heard)
    heard.clear()


# Other outputs, other models


def test_another_output_and_another_moment_can_be_looked_into(page: Page, translator: Translator, runs: Path) -> None:
    open_look(page, target="le chat")
    is_picture(page, attention_map(translator.explain(TEXT, "le chat").trace, View(), translator.aligner))
    first = min(path.name for path in (runs / RUN / "checkpoints").iterdir())
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Which checkpoint", exact=True).select_option(first)
    until(page, f"location.hash.includes('checkpoint={first}')")
    settled(page)
    assert page.locator(".beside").is_hidden()  # that is of the best


def test_a_model_without_attention_shows_what_its_choices_hang_on(page: Page, runs: Path) -> None:
    open_look(page, "lstm")
    model = load(runs / "lstm")
    trace = model.translate(TEXT).trace()
    norms = saliency(model.model, trace.source.ids, trace.target.ids)
    is_picture(page, saliency_map(trace, norms, trace.source, View()), ".saliency")
    choose(page, "Rows and columns", "Pieces")
    is_picture(page, saliency_map(trace, norms, trace.source, View(words=False)), ".saliency")
    assert page.locator(".pictures > .picture").is_hidden()
    page.locator(".sentence .pickable .word").nth(1).click()
    page.get_by_role("button", name="Mask", exact=True).click()
    page.wait_for_selector(".chips .chip")
    settled(page)
    is_outcome(page, what_if(model, TEXT, from_data([EDITS[1][1]])))


@pytest.mark.parametrize("run", ["lstm", "bahdanau"])
def test_gates_and_states_are_those_of_the_trace(page: Page, runs: Path, run: str) -> None:
    open_look(page, run)
    trace = load(runs / run).translate(TEXT).trace()
    gates, states = gate_maps(trace), state_maps(trace)
    for legend, number in (("encoder", 0), ("decoder", 1)):
        choose(page, "Side", legend)
        is_picture(page, gates[number], ".cells .gates")
    choose(page, "Side", "encoder")
    for name, picture in zip(("likeness", "change"), states, strict=True):
        is_picture(page, picture, f".cells .{name}")
    page.get_by_label("Unit by unit", exact=True).select_option(
        "encoder.0.cell.forward.hidden" if run == "bahdanau" else "encoder.0.cell.hidden"
    )
    hidden = trace.tensors["encoder.0.cell.forward.hidden" if run == "bahdanau" else "encoder.0.cell.hidden"]
    units = shown(page, ".cells .units")
    for place, name in enumerate(units["rows"]):
        unit = int(name.split()[1]) - 1
        row = units["values"][place * len(hidden) : (place + 1) * len(hidden)]
        assert row == pytest.approx(hidden[:, unit].tolist(), abs=1e-6)


# The opening picture


def test_lines_end_beside_the_words_where_these_stand_below_one_another(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/#look?run=bahdanau&text=the+old+cat+that+slept+ate+the+mouse&target=le+chat+a+mangé+la+souris")
    page.locator(".lines.down .between path").first.wait_for(state="attached")
    between = page.locator(".lines .between").bounding_box()
    ends = [word.bounding_box() for word in page.locator(".lines .columns .word").all()]
    starts = [word.bounding_box() for word in page.locator(".lines .rows .word").all()]
    assert between["x"] - max(end["x"] + end["width"] for end in ends) >= 5
    assert min(start["x"] for start in starts) - between["x"] - between["width"] >= 5


WIDTHS = [(1440, 900), (390, 844)]


def lines_of(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("document.querySelector('.sentence .lines').shown")
    return found


@pytest.mark.parametrize("side", ["cross", "encoder", "decoder"])
def test_the_lines_between_the_words_have_the_weights_of_the_heat_map(page: Page, side: str) -> None:
    open_look(page, side=side, layer="1", head="2", special="1")
    found, picture = lines_of(page), shown(page)
    assert (found["rows"], found["columns"]) == (picture["rows"], picture["columns"])
    wide = len(found["columns"])
    assert found["links"]
    for link in found["links"]:
        assert link["weight"] == pytest.approx(picture["values"][link["row"] * wide + link["column"]])
    until(page, "document.querySelector('.lines path')")  # lines are drawn when the words have their places
    widths = page.evaluate(
        "[...document.querySelectorAll('.lines path')].map(line => parseFloat(line.style.strokeWidth))"
    )
    heaviest = max(range(len(widths)), key=lambda place: found["links"][place]["weight"])
    assert widths[heaviest] == max(widths)


def test_a_model_without_attention_has_lines_that_follow_the_gradient(page: Page) -> None:
    open_look(page, "lstm")
    until(page, "document.querySelector('.sentence .lines')?.shown")
    assert lines_of(page)["columns"] == shown(page, ".saliency")["columns"]


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("run", [RUN, "lstm"])
def test_the_picture_begins_above_the_fold(page: Page, run: str, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    open_look(page, run, "the old banker counted the coins in the bank", target="le vieux banquier a compté les pièces")
    until(page, "document.querySelector('.lines path')")
    assert page.locator(".lines").bounding_box()["y"] < 600
    if size[0] > 1000:
        assert page.locator(".pictures .heatmap:visible").first.bounding_box()["y"] < 900


def test_a_form_that_was_answered_folds_to_a_line_and_unfolds_again(page: Page) -> None:
    open_look(page)
    line = page.locator(".question-line")
    assert TEXT in line.inner_text()
    assert line.bounding_box()["height"] < 60
    assert page.get_by_role("textbox", name="Sentence", exact=True).is_hidden()
    page.get_by_role("button", name="Edit", exact=True).press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("a bird")
    assert page.get_by_role("textbox", name="Sentence", exact=True).input_value() == "a bird"
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.lines')?.shown.columns.join(' ') === 'a bird'")
    assert page.evaluate("document.activeElement.textContent") == "Edit"


@pytest.mark.parametrize("make", [mask_word, replace_word, no_positions], ids=["mask", "replace", "positions"])
def test_what_an_edit_did_is_in_sight_wherever_one_is(page: Page, make: Callable[[Page], None]) -> None:
    open_look(page)
    make(page)
    page.wait_for_selector(".what-if .after")
    settled(page)
    for where in ("0", "document.body.scrollHeight"):
        page.evaluate(f"scrollTo(0, {where})")
        for part in ("before", "after"):
            box = page.locator(f".what-if .{part}").bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 900
    marked = page.evaluate(
        "[...document.querySelectorAll('.columns .masked, .columns .replaced')].map(word => word.textContent)"
    )
    assert marked == {mask_word: ["cat"], replace_word: ["dog"], no_positions: []}[make]
    assert shown(page)["noted"] == ([] if make is no_positions else [1])


def test_words_that_can_be_edited_are_buttons(page: Page) -> None:
    open_look(page)
    page.get_by_role("button", name="cat", exact=True).press("Space")
    page.get_by_role("button", name="Mask", exact=True).wait_for()


PARTS: dict[str, Any] = {
    "sentences": [{"start": 0, "end": 10, "text": "a bird sees"}, {"start": 12, "end": 29, "text": TEXT}],
    "unknown": [{"start": 14, "end": 17, "word": "cat"}],
    "warning": "1 word that this run has never seen: cat.",
}


def of_a_paragraph(asked: list[dict[str, Any]]) -> Callable[[Any], None]:
    """What the service says of a text of two sentences: here, of whichever was asked for."""

    def answer(route: Any) -> None:
        body = route.request.post_data_json
        asked.append(dict(body))
        body["text"] = PARTS["sentences"][body.pop("sentence", 0)]["text"]
        given = route.fetch(post_data=body)
        route.fulfill(response=given, json={**given.json(), **PARTS} if "trace" in route.request.url else given.json())

    return answer


def test_of_a_paragraph_the_person_chooses_the_sentence(page: Page) -> None:
    asked: list[dict[str, Any]] = []
    for kind in ("trace", "importance"):
        page.route(f"**/api/v1/{kind}", of_a_paragraph(asked))
    open_look(page, text=f"a bird sees. {TEXT}", edits=json.dumps([{"kind": "mask-word", "word": 1}]))
    choice = page.get_by_role("group", name="Which sentence", exact=True).get_by_role("button")
    assert choice.count() == 2
    assert choice.nth(0).get_attribute("aria-pressed") == "true"
    assert lines_of(page)["columns"] == ["a", "bird", "sees"]
    choice.nth(1).press("Enter")
    until(page, "document.querySelector('.lines').shown.columns[1] === 'cat'")
    assert values_of(page)["sentence"] == "1"
    assert "edits" not in values_of(page)  # they counted the words of the other
    assert asked[-1]["sentence"] == 1
    page.go_back()
    until(page, "document.querySelector('.lines').shown.columns[1] === 'bird'")
    settled(page)


def test_words_never_seen_have_a_wavy_line_and_the_warning_is_read(page: Page) -> None:
    for kind in ("trace", "importance"):
        page.route(f"**/api/v1/{kind}", of_a_paragraph([]))
    open_look(page, text=f"a bird sees. {TEXT}", sentence="1")
    assert page.locator(".word.unknown").all_inner_texts() == ["cat"]
    assert page.locator(".warning").inner_text() == PARTS["warning"]


# What a row means


@pytest.fixture(scope="session")
def labellers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a studio with runs of the other tasks that have learned for a moment."""
    folder = tmp_path_factory.mktemp("labellers")
    for name, preset, task in (
        ("tagger", "lstm", "tag"),
        ("attentive", "transformer-tiny", "tag"),
        ("writer", "transformer-tiny", "language"),
    ):
        start(folder / name, small.settings(preset, f"task={task}", *BRIEF), small.Notes(), device="cpu")
    with on_a_port(folder, kept=True) as address:
        yield address


MEANINGS = [
    ("attentive", "encoder", "which words this word’s new representation is made of"),
    ("tagger", "", "It has a state for every word, and reads the word’s tag from it"),
    ("writer", "decoder", "which of the words before it the model looked at when it predicted that word"),
]


@pytest.mark.parametrize(("run", "side", "words"), MEANINGS)
def test_what_a_row_means_is_said_for_the_model_at_hand(
    page_at: Callable[[str], Page], labellers: str, run: str, side: str, words: str
) -> None:
    page = page_at(labellers)
    open_look(page, run, "the cat", **({"side": side} if side else {}))
    until(page, "document.querySelector('.pictures .card:not([hidden]) .idea')?.textContent")
    said = page.locator(".pictures .card:visible .idea").first.inner_text()
    assert words in said
    text = page.locator("main").inner_text()
    assert "Cross-attention" not in text
    assert "all that a decoder" not in text
    assert ("predicted" in said) == (run == "writer")


def test_a_classifiers_pooling_is_not_called_cross_attention(page: Page) -> None:
    """No preset pools by attention; the page is told so by the name of the attention."""

    def pooled(route: Any) -> None:
        answer = route.fetch()
        found = answer.json()
        cross = [one | {"name": "pool", "layer": 0} for one in found["attentions"] if one["side"] == "cross"][:1]
        own = [one for one in found["attentions"] if one["side"] == "encoder"]
        route.fulfill(response=answer, json={**found, "task": "classify", "aligner": None, "attentions": cross + own})

    page.route("**/api/v1/trace", pooled)
    open_look(page)
    assert page.locator("#picture-title").inner_text() == "Attention that pools the text"
    assert "which words the class was read from" in page.locator(".picture .idea").inner_text()
    assert "Cross" not in page.locator(".results").inner_text()


# For everybody


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (380, "dark")])
@pytest.mark.parametrize("run", [RUN, "lstm"])
def test_everybody_can_use_it(
    page: Page, accessible: Callable[[Page], None], fits: Callable[[Page], None], width: int, scheme: str, run: str
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    open_look(page, run, edits=json.dumps([EDITS[1][1]]))
    if run == RUN:
        page.locator(".step").get_by_role("button", name="Set this row…", exact=True).click()  # the editor of a row
    fits(page)
    accessible(page)


def test_markup_in_a_sentence_is_text(page: Page) -> None:
    open_look(
        page, text="<img src=x onerror=document.title='caught'> cat", edits=json.dumps([EDITS[1][1] | {"word": 0}])
    )
    assert "caught" not in page.title()
    assert page.locator(".results img[src=x]").count() == 0


def test_without_a_run_it_says_what_to_do(empty_page: Page) -> None:
    empty_page.goto("/#look")
    empty_page.get_by_role("link", name="Train the demo", exact=True).wait_for()


@pytest.mark.parametrize(("where", "ready"), [("look", ".lines"), ("beam", ".tree svg"), ("learn", "article.step")])
def test_every_page_takes_one_sentence_of_a_paragraph(page: Page, where: str, ready: str) -> None:
    """The service cuts; the page lets one choose, and says nothing of the other sentence."""
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"/#{where}?run={RUN}&text=The+cat+sees+a+bird.+A+dog+hears+it.&sentence=1")
    page.wait_for_selector(ready)
    choice = page.get_by_role("group", name="Which sentence", exact=True).get_by_role("button")
    assert [button.get_attribute("title") for button in choice.all()] == ["The cat sees a bird.", "A dog hears it."]
    assert choice.nth(1).get_attribute("aria-pressed") == "true"
    choice.nth(0).press("Enter")
    until(page, "!location.hash.includes('sentence=1')")
    until(page, "document.querySelector('.sentence-choice button').getAttribute('aria-pressed') === 'true'")
    if where == "look":
        settled(page)
