"""The page Translate in a real browser: it follows the typing, and words light up both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
Check = Callable[[Any], None]
Ask = Callable[[str, dict[str, Any]], Any]
RUN, TEXT = "bahdanau", "the black cat ate"


def translated(ask: Ask, text: str = TEXT, run: str = RUN) -> dict[str, Any]:
    """What the service says of the same text."""
    found = ask("/api/v1/translate", {"run": run, "texts": [text], "beam": 2, "best": 2})
    return found["translations"][0]


def address(text: str = TEXT, run: str = RUN, **more: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in more.items())
    return f"/#translate?run={run}&beam=2&text={text.replace(' ', '+')}&{query}"


def words(page: Any, pane: int = 0) -> Any:
    """The words of an output, once they are there."""
    found = page.locator(".pane.output").nth(pane).locator(".word")
    found.first.wait_for()
    return found


def test_a_text_is_translated_while_it_is_written(page: Any, ask: Ask) -> None:
    page.goto(f"/#translate?run={RUN}&beam=2")
    page.locator("textarea").press_sequentially(TEXT)
    expected = translated(ask)["outputs"][0]["text"]
    page.wait_for_function("(text) => document.querySelector('.written').innerText.trim() === text", arg=expected)
    assert page.url.endswith("text=the+black+cat+ate")
    page.reload()
    assert words(page).all_inner_texts() == expected.split()


def test_an_earlier_question_is_stopped_by_a_later_one(page: Any, ask: Ask) -> None:
    page.goto(f"/#translate?run={RUN}&beam=2")
    page.locator("textarea").fill("the cat")
    page.locator("textarea").fill(TEXT)
    expected = translated(ask)["outputs"][0]["text"]
    page.wait_for_function("(text) => document.querySelector('.written').innerText.trim() === text", arg=expected)
    page.wait_for_timeout(300)  # whatever might still come
    assert words(page).all_inner_texts() == expected.split()


def test_pointing_at_a_word_lights_its_source_with_its_weight(page: Any, ask: Ask) -> None:
    found = translated(ask)
    link = found["outputs"][0]["links"][0]
    page.goto(address())
    words(page).nth(link["target"]).hover()
    assert page.locator(".mirror .lit").all_inner_texts() == [found["source_words"][link["source"]]]
    reading = page.locator(".reading").inner_text()
    target, source = found["outputs"][0]["words"][link["target"]], found["source_words"][link["source"]]
    assert reading.startswith(f"{target} ← {source} {link['weight']:.2f}")
    assert found["aligner"] in reading


def test_pointing_at_a_source_word_or_writing_there_lights_what_it_became(page: Any, ask: Ask) -> None:
    found = translated(ask)
    links = found["outputs"][0]["links"]
    looked = links[0]["source"]
    became = [found["outputs"][0]["words"][link["target"]] for link in links if link["source"] == looked]
    page.goto(address())
    words(page)
    box = page.locator(".mirror .word").nth(looked).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator(".output .lit").all_inner_texts() == became
    page.mouse.move(5, 5)
    page.locator("textarea").blur()
    assert page.locator(".output .lit").count() == 0
    page.locator("textarea").focus()
    page.evaluate("(place) => document.querySelector('textarea').setSelectionRange(place, place)", _start(TEXT, looked))
    page.wait_for_function("(count) => document.querySelectorAll('.output .lit').length === count", arg=len(became))


def _start(text: str, word: int) -> int:
    return len(" ".join([*text.split()[:word], ""]))


def test_the_keyboard_reaches_every_word(page: Any, ask: Ask) -> None:
    found = translated(ask)["outputs"][0]
    page.goto(address())
    words(page).first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.innerText") == found["words"][1]
    assert page.locator("#announced").inner_text().startswith(f"{found['words'][1]} ←")


def test_the_text_behind_the_field_lies_letter_upon_letter(page: Any) -> None:
    """Else the wrong word would light up: same width, same height, same breaks, whatever the text."""
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill(f"{TEXT}\n\n{'a-very-long-word' * 9} القط " + "word " * 61)
    sizes = "node => [node.clientWidth, node.clientHeight, getComputedStyle(node).font, getComputedStyle(node).padding]"
    assert page.locator(".mirror").evaluate(sizes) == page.locator("textarea").evaluate(sizes)
    assert page.locator("textarea").evaluate("node => node.scrollHeight <= node.clientHeight")


def test_another_of_the_best_can_be_chosen_and_back_undoes_it(page: Any, ask: Ask) -> None:
    found = translated(ask)["outputs"]
    page.goto(address())
    words(page)
    options = page.locator(".alternative .words")
    assert options.all_inner_texts() == [output["text"] or "(nothing)" for output in found]
    page.locator(".alternative").nth(1).click()
    assert "picks=0%3A1" in page.url
    assert page.locator(".alternative").nth(1).get_attribute("aria-pressed") == "true"
    assert words(page).all_inner_texts() == found[1]["words"]
    page.go_back()
    assert words(page).all_inner_texts() == found[0]["words"]


def test_two_models_stand_side_by_side(page: Any, ask: Ask) -> None:
    page.goto(address())
    words(page)
    page.get_by_label("Compare with").select_option("transformer-tiny")
    expected = translated(ask, run="transformer-tiny")["outputs"][0]["words"]
    assert words(page, 1).all_inner_texts() == expected
    first, second = (page.locator(".pane.output").nth(number).bounding_box() for number in (0, 1))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]
    page.go_back()
    page.wait_for_function("() => document.querySelectorAll('.pane.output')[1].hidden")


def test_a_model_without_attention_translates_and_has_no_links(page: Any) -> None:
    page.goto(address(run="lstm"))
    words(page).first.hover()
    assert page.locator(".mirror .lit").count() == 0
    assert "weights" not in page.locator(".reading").inner_text()


def test_sentences_and_lines_keep_their_places_and_only_what_is_new_is_asked(page: Any) -> None:
    asked: list[list[str]] = []
    page.on("request", lambda one: one.url.endswith("/translate") and asked.append(one.post_data_json["texts"]))
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill("the cat slept. the dog ate.\n\na bird sang.")
    page.wait_for_function("() => document.querySelectorAll('.written .tokens').length === 3")
    assert page.locator(".written p").count() == 3
    page.locator("textarea").fill("the cat slept. the dog ate.\n\na bird sang. the cat came.")
    page.wait_for_function("() => document.querySelectorAll('.written .tokens').length === 4")
    assert asked == [["the cat slept.", "the dog ate.", "a bird sang."], ["the cat came."]]


def test_a_script_in_the_text_is_text(page: Any) -> None:
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill("<img src=x onerror=document.title='caught'> cat")
    words(page)
    assert page.title() == "Translate · Regard"
    assert page.locator(".mirror img").count() == 0


def test_a_problem_stands_where_it_happened_and_goes_when_it_is_mended(page: Any, heard: list[str]) -> None:
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill("cat " * 1300)
    page.locator(".output").get_by_role("alert").wait_for()
    assert "too long" in page.get_by_role("alert").inner_text()
    heard.clear()  # the browser tells of the status
    page.locator("textarea").fill("the cat")
    words(page)
    assert page.get_by_role("alert").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 380])
def test_the_page_fits_and_is_accessible(page: Any, accessible: Check, fits: Check, scheme: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(address(other="transformer-tiny"))
    words(page, 1)
    words(page).first.hover()
    fits(page)
    accessible(page)
