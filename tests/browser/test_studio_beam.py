"""The page Beam in a real browser: the tree is the service's, a click forces a prefix, and back undoes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from regard.text.words import JOINER, TIE

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
Check = Callable[[Any], None]
Ask = Callable[[str, dict[str, Any]], Any]
TEXT = "the black cat ate the mouse"
ADDRESS = "/#beam?run=transformer-tiny&text=the+black+cat+ate+the+mouse&beam=3"


def searched(ask: Ask, prefix: str = "") -> Any:
    """What the service says of the same search."""
    return ask("/api/v1/beam", {"run": "transformer-tiny", "text": TEXT, "beam": 3, "prefix": prefix})


def wait_for_output(page: Any, text: str) -> None:
    page.wait_for_function("(text) => document.querySelector('.best')?.textContent === text", arg=text or "(nothing)")


def test_the_tree_shows_what_the_service_found(page: Any, ask: Ask) -> None:
    found = searched(ask)
    page.goto(ADDRESS)
    wait_for_output(page, found["text"])
    shown = page.evaluate("document.querySelector('.tree').shown")
    assert set(shown) >= {node["number"] for node in found["nodes"] if node["fate"] != "pruned"}
    first = found["nodes"][1]
    group = page.locator(".tree g[data-number='1']")
    assert group.locator(".piece").text_content() == first["piece"].replace(JOINER, TIE)
    share = math.exp(first["log_probability"])
    shown = page.evaluate("async (share) => (await import('/studio/pieces/scales.js')).percent(share)", share)
    assert group.locator(".soft").first.text_content() == f"{shown} · {shown}"  # the first piece is all there is


def test_every_candidate_is_in_the_table_with_why_it_left(page: Any, ask: Ask) -> None:
    found = searched(ask)
    page.goto(ADDRESS)
    page.get_by_text("candidates as a table").click()
    rows = page.locator("details[open] tbody tr")
    rows.first.wait_for()  # the table is made when it is opened
    assert rows.count() == len(found["nodes"]) - 1
    reasons = page.locator("details[open] tbody td:last-child").all_inner_texts()
    assert reasons.count("pruned: others were better") == sum(node["reason"] == "beam" for node in found["nodes"])


def test_more_or_less_of_what_was_pruned_is_drawn(page: Any) -> None:
    page.goto(ADDRESS)
    page.locator(".tree g.pruned").first.wait_for()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Pruned", exact=True).select_option("0")
    assert page.locator(".tree g.pruned").count() == 0
    page.wait_for_url(lambda url: "pruned=0" in url)


def test_a_click_on_a_node_forces_its_prefix_and_back_takes_it_away(page: Any, ask: Ask) -> None:
    found = searched(ask)
    page.goto(ADDRESS)
    wait_for_output(page, found["text"])
    way = {0, *found["outputs"][:1]}
    node = found["nodes"][found["outputs"][0]]
    while node["parent"] is not None:
        way.add(node["number"])
        node = found["nodes"][node["parent"]]
    first = [node for node in found["nodes"] if node["step"] == 1 and node["text"] not in ("", "<unk>")]
    other = next(node for node in first if node["number"] not in way)
    page.locator(f".tree g[data-number='{other['number']}']").click()
    page.locator(".forced-row").wait_for()
    forced = searched(ask, prefix=other["text"])
    wait_for_output(page, forced["text"])
    page.wait_for_url(lambda url: "prefix=" in url)
    assert page.locator(".best").inner_text().startswith(other["text"])
    assert page.locator(".tree g.forced").count() >= 1
    page.go_back()
    wait_for_output(page, found["text"])
    assert not page.locator(".forced-row").is_visible()


def test_the_keyboard_forces_a_prefix_too_and_goes_on_from_there(page: Any) -> None:
    page.goto(ADDRESS)
    page.locator(".tree [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    label = "document.activeElement.getAttribute('aria-label')"
    for _ in range(20):  # hypotheses at the most
        if not page.evaluate(label).startswith(("<unk>", "<end>")):
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".forced-row").wait_for()
    page.wait_for_function("() => document.activeElement.classList.contains('forced')")


def test_another_beam_is_one_click_away(page: Any) -> None:
    page.goto(ADDRESS)
    page.get_by_role("button", name="Search with a beam of 1", exact=True).click()
    page.wait_for_function("() => location.hash.includes('beam=1')")
    assert "beam 1" in page.locator(".question-line").inner_text()
    page.get_by_role("button", name="Edit", exact=True).click()
    assert page.get_by_label("Beam", exact=True).input_value() == "1"


def test_a_problem_stands_where_it_happened(page: Any, heard: list[str]) -> None:
    page.goto(ADDRESS.replace("the+black", "%09"))
    page.locator(".tree svg").wait_for()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Sentence", exact=True).fill("cat " * 2000)
    page.get_by_role("alert").wait_for()
    assert "text" in page.get_by_role("alert").inner_text()
    heard.clear()


def test_only_one_is_the_output_and_the_others_have_finished(page: Any, ask: Ask) -> None:
    found = searched(ask)
    assert sum(node["reason"] == "output" for node in found["nodes"]) > 1
    page.goto(ADDRESS)
    wait_for_output(page, found["text"])
    marked = page.locator(".tree g", has_text="✓ output")
    assert marked.count() == 1
    assert marked.get_attribute("data-number") == str(found["outputs"][0])
    page.get_by_text("candidates as a table").click()
    page.locator("details[open] tbody td:last-child").first.wait_for()
    reasons = page.locator("details[open] tbody td:last-child").all_inner_texts()
    assert reasons.count("finished: this is the output") == 1


def test_why_a_candidate_left_is_in_sight_wherever_it_stands(page: Any) -> None:
    page.goto(ADDRESS)
    last = page.locator(".tree g.pruned").last
    last.wait_for()
    last.scroll_into_view_if_needed()
    last.focus()
    box = page.locator(".portrait").bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 900
    told = page.locator(".portrait").inner_text()
    assert "pruned" in told
    assert "%" in told.split("log-probability")[0]  # percent first


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_the_tree_begins_above_the_fold(page: Any, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.route("**/api/v1/beam", short_outputs)
    page.goto(ADDRESS)
    page.locator(".tree svg").wait_for()
    assert page.locator(".tree").bounding_box()["y"] < 600


def short_outputs(route: Any) -> None:
    """A model that has learned for a moment writes for ever; one that translates does not."""
    answer = route.fetch()
    found = answer.json()
    found["text"] = "Le chat noir a mangé la souris."
    for each in (*found["nodes"], *found["others"]):
        each["text"] = found["text"]
    route.fulfill(response=answer, json=found)


def test_an_example_where_a_wider_beam_differs_is_offered_only_if_it_does(page: Any) -> None:
    """The page asks for beams of 1 and 5 and believes what it is told."""
    texts = ["one thing", "the cat slept", "a bird"]
    page.route("**/examples", lambda route: route.fulfill(json={"examples": [{"text": text} for text in texts]}))

    def translated(route: Any) -> None:
        body = route.request.post_data_json
        other = body["beam"] == 5 and body["texts"] == ["the cat slept"]
        route.fulfill(json={"translations": [{"outputs": [{"text": "another" if other else "the same"}]}]})

    page.route("**/api/v1/translate", translated)
    page.goto(ADDRESS)
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("button", name="one thing", exact=True).wait_for()
    page.get_by_role("button", name="Find one where a wider beam finds another output", exact=True).click()
    page.get_by_role("button", name="the cat slept beams of 1 and 5 differ", exact=True).click()
    page.wait_for_function("() => location.hash.includes('the+cat+slept') && location.hash.includes('beam=5')")


def test_of_a_paragraph_the_person_chooses_the_sentence(page: Any) -> None:
    sentences = [{"start": 0, "end": 8, "text": "the cat."}, {"start": 9, "end": 22, "text": "the dog slept"}]

    def answer(route: Any) -> None:
        body = route.request.post_data_json
        place = body.pop("sentence", 0)
        given = route.fetch(post_data={**body, "text": sentences[place]["text"]})
        more = {"sentences": sentences, "unknown": [{"start": 13, "end": 16, "word": "dog"}], "warning": "Beware."}
        route.fulfill(response=given, json={**given.json(), **more})

    page.route("**/api/v1/beam", answer)
    page.goto("/#beam?run=transformer-tiny&text=the+cat.+the+dog+slept&beam=2")
    page.locator(".tree svg").wait_for()
    page.get_by_role("group", name="Which sentence", exact=True).get_by_role("button").nth(1).press("Enter")
    page.wait_for_function("() => document.querySelector('.unknown')?.textContent === 'dog'")
    page.wait_for_url(lambda url: "sentence=1" in url)
    assert page.locator(".warning").inner_text() == "Beware."


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (380, "dark")])
def test_the_page_fits_and_is_accessible(page: Any, accessible: Check, fits: Check, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto("/#beam?run=transformer-tiny&text=cat&beam=2&pruned=1&prefix=le")
    page.locator(".tree svg").wait_for()
    fits(page)
    accessible(page)


def test_what_stands_in_a_box_stays_inside_it_however_sure_the_model_is(page: Any) -> None:
    def sure(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        for node in body["nodes"]:
            node["log_probability"] = -0.0001 * (node["step"] + 1)
        route.fulfill(response=answer, json=body)

    page.route("**/api/v1/beam", sure)
    page.goto(ADDRESS)
    page.locator(".tree g.kept").first.wait_for()
    assert page.locator(".tree .soft", has_text="> 99.9").count() > 3
    rooms = page.evaluate("""() => [...document.querySelectorAll('.tree g.node')].flatMap(node => {
      const box = node.querySelector('.shape').getBBox();
      return [...node.querySelectorAll('text')].map(text => {
        const letters = text.getBBox();
        return box.x + box.width - letters.x - letters.width;
      });
    })""")
    assert min(rooms) > 4


def test_the_caption_explains_what_a_piece_is_and_its_marks(page: Any) -> None:
    page.goto("/#beam?run=transformer-tiny&text=the+cat&beam=2")
    page.locator("figcaption abbr", has_text="piece").wait_for()
    assert "▁ is the space before it" in page.locator("figcaption abbr").get_attribute("title")
