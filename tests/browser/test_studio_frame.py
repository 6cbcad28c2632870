"""The studio's frame in a real browser: navigation, keys, themes, a telephone, and what stands there without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
Check = Callable[[Any], None]
DARK = "rgb(22, 24, 29)"
PAGES = {
    "runs": "Runs",
    "translate": "Translate",
    "look": "Look inside",
    "map": "Map",
    "beam": "Beam",
    "meaning": "Meaning",
    "train": "Train",
    "compare": "Compare",
    "learn": "Learn",
}
SLOW = """
const asked = window.fetch;
window.fetch = async (path, options) => {
  const answer = await asked(path, options);
  if (String(path).includes("/api/")) await new Promise((done) => setTimeout(done, 400));
  return answer;
};
"""
PAPER = "getComputedStyle(document.body).backgroundColor"


def test_the_links_of_the_navigation_take_the_run_and_the_text_along(page: Any) -> None:
    page.goto("/#beam?run=lstm&text=the+cat&beam=2")
    page.locator("#pages a", has_text="Translate").click()
    page.locator("textarea").wait_for()
    page.wait_for_url(lambda url: url.endswith("#translate?run=lstm&text=the+cat"))
    assert page.locator("textarea").input_value() == "the cat"
    assert page.title() == "Translate · Regard"
    page.go_back()
    page.locator(".tree svg").wait_for()
    assert page.locator("#pages a[aria-current]").inner_text() == "Beam"


def test_an_address_that_no_page_has_is_the_first_page(page: Any) -> None:
    page.goto("/#nowhere")
    assert page.locator("h1").inner_text() == "Translate"


def test_keys_go_to_pages_and_are_letters_while_one_writes(page: Any) -> None:
    page.goto("/#translate")
    page.locator("textarea").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("3?")
    assert page.locator("textarea").input_value() == "3?"
    page.keyboard.press("Escape")
    page.keyboard.press("5")
    page.locator("h1", has_text="Beam").wait_for()


def test_the_list_of_keys_opens_closes_and_can_turn_them_off(page: Any, accessible: Check) -> None:
    page.goto("/#translate")
    page.locator("textarea").wait_for()
    page.keyboard.press("?")
    assert "light or dark" in page.locator("dialog").inner_text()
    accessible(page)
    page.locator("dialog input").uncheck()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    page.keyboard.press("3")
    page.keyboard.press("?")
    page.locator("dialog").wait_for()
    assert page.locator("h1").inner_text() == "Translate"


def test_the_theme_is_the_systems_until_it_is_switched_and_is_then_remembered(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/#translate")
    assert page.evaluate(PAPER) == DARK
    page.get_by_role("button", name="Light or dark", exact=True).click()
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Light or dark", exact=True).click()  # what the system has: follow it again
    page.emulate_media(color_scheme="light")
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"


def test_on_a_telephone_the_pages_are_in_a_menu(page: Any, fits: Check) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto("/#translate")
    page.locator("textarea").wait_for()
    assert not page.locator("#pages a").first.is_visible()
    page.get_by_role("button", name="Translate", exact=True).click()
    fits(page)
    page.locator("#pages a", has_text="Beam").click()
    page.locator("h1", has_text="Beam").wait_for()
    assert not page.locator("#pages a").first.is_visible()


def test_what_stands_for_an_answer_on_its_way_fits_on_a_telephone(page: Any, fits: Check) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.route("**/api/v1/meaning", lambda _: None)  # no answer comes
    page.goto("/#meaning?run=transformer-tiny&word=bank&text=the+bank&text=a+bank")
    page.locator(".skeleton").wait_for()
    fits(page)


def test_the_skip_link_leads_past_the_navigation_and_leaves_the_address(page: Any) -> None:
    page.goto("/#beam?run=lstm")
    page.locator("h1").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page"
    page.wait_for_url(lambda url: url.endswith("#beam?run=lstm"))


@pytest.mark.parametrize("name", ["translate", "beam"])
def test_without_a_run_a_page_offers_to_train_one(empty_page: Any, name: str, accessible: Check) -> None:
    empty_page.goto(f"/#{name}")
    link = empty_page.get_by_role("link", name="Train the demo", exact=True)
    link.wait_for()
    assert link.get_attribute("href").startswith("#train?")
    accessible(empty_page)


def test_a_service_that_went_away_is_a_line_and_a_second_try(page: Any, heard: list[str]) -> None:
    page.route("**/api/v1/runs", lambda route: route.abort())
    page.goto("/#translate")
    page.get_by_role("alert").wait_for()
    assert "does not answer" in page.get_by_role("alert").inner_text()
    page.unroute("**/api/v1/runs")
    page.get_by_role("button", name="Try again", exact=True).click()
    page.locator("textarea").wait_for()
    heard.clear()  # the browser tells of the request that failed


def standing(page: Any) -> tuple[str, list[str]]:
    """The title and all first headings of the page that is shown."""
    return page.title(), page.locator("main h1").all_inner_texts()


def shown(page: Any, title: str) -> None:
    """Wait for a page, however slow the machine is."""
    page.wait_for_function(
        "(title) => document.title.startsWith(title) && document.querySelector('main h1')?.innerText === title",
        arg=title,
    )


def moved(tabs: list[Any], to: Sequence[str], wait: int) -> None:
    """Every tab goes to a page, and then some time passes for all."""
    for tab, name in zip(tabs, to, strict=True):
        tab.evaluate("(hash) => { location.hash = hash; }", name)
    tabs[0].wait_for_timeout(wait)


@pytest.fixture
def slow_tabs(page: Any) -> list[Any]:
    """As many tabs as pages; every answer takes 0.4 s longer, also that with the list of runs, which each awaits."""
    tabs = [page.context.new_page() for _ in PAGES]
    for tab in tabs:
        tab.add_init_script(SLOW)
        tab.goto("/#help")
    return tabs


def test_a_page_that_was_left_never_takes_the_place_of_the_present_one(slow_tabs: list[Any]) -> None:
    """From every page to three others, at once in as many tabs; each is left while what it asked for is on its way."""
    names = list(PAGES)
    left = [""] * len(names)
    for first in (0, 1, 3, 6):
        present = names[first:] + names[:first]
        moved(slow_tabs, present, 550)  # what the one before asked for has come, and its own is on its way
        for tab, before, name in zip(slow_tabs, left, present, strict=True):
            shown(tab, PAGES[name])
            assert standing(tab) == (f"{PAGES[name]} · Regard", [PAGES[name]]), f"{before}, {name}"
        left = present
    moved(slow_tabs, present, 500)
    assert [tab.title() for tab in slow_tabs] == [f"{PAGES[name]} · Regard" for name in present]


def test_a_page_that_is_left_at_once_is_not_shown_and_its_questions_are_stopped(slow_tabs: list[Any]) -> None:
    stopped: list[str] = []
    for tab in slow_tabs:
        tab.on("requestfailed", lambda request: stopped.append(request.failure))
    left, after = list(PAGES), [*list(PAGES)[1:], next(iter(PAGES))]
    for wait in (120, 420):  # the list of runs is on its way; it has just come, and pages begin to ask
        moved(slow_tabs, left, wait)
        moved(slow_tabs, after, 550)
        for tab, name in zip(slow_tabs, after, strict=True):
            shown(tab, PAGES[name])
            assert standing(tab) == (f"{PAGES[name]} · Regard", [PAGES[name]])
    assert all("ABORTED" in failure for failure in stopped)


@pytest.mark.parametrize("name", ["translate", "look", "beam", "meaning", "learn"])
def test_of_eight_runs_a_page_shows_the_best_and_the_address_says_so(eight_page: Any, name: str) -> None:
    eight_page.goto(f"/#{name}")
    eight_page.wait_for_function("() => location.hash.includes('run=')")
    eight_page.wait_for_url(lambda url: "run=zebra" in url)
    eight_page.locator("main h1").wait_for()
    for link in eight_page.locator("#pages a:not([href='#train'])").all():
        assert "run=zebra" in link.get_attribute("href")


def test_of_eight_runs_the_persons_choice_comes_before_the_best(eight_page: Any) -> None:
    eight_page.goto("/#translate")
    chooser = eight_page.get_by_label("Run", exact=True)
    chooser.select_option("middling")
    eight_page.locator(".output", has_text="your last choice").first.wait_for()
    for name in ("look", "beam", "translate"):
        eight_page.goto("about:blank")
        eight_page.goto(f"/#{name}")
        eight_page.wait_for_function("() => location.hash.includes('run=')")
        eight_page.wait_for_url(lambda url: "run=middling" in url)


def test_a_link_shows_its_run_and_does_not_count_as_a_choice(eight_page: Any) -> None:
    eight_page.goto("/#translate?run=bahdanau")
    eight_page.get_by_label("Run", exact=True).wait_for()
    assert eight_page.get_by_label("Run", exact=True).input_value() == "bahdanau"
    eight_page.goto("about:blank")
    eight_page.goto("/#translate")
    eight_page.wait_for_function("() => location.hash.includes('run=')")
    eight_page.wait_for_url(lambda url: "run=zebra" in url)


@pytest.mark.parametrize("name", ["translate", "look", "beam", "meaning", "learn"])
def test_a_run_that_is_missing_gets_a_sentence_and_never_another_in_its_place(
    eight_page: Any, name: str, accessible: Check
) -> None:
    eight_page.goto(f"/#{name}?run=nobody&text=the+cat")
    eight_page.get_by_role("heading", name="There is no run named “nobody” here.", exact=True).wait_for()
    eight_page.wait_for_url(lambda url: "run=nobody" in url)
    assert standing(eight_page) == (f"{PAGES[name]} · Regard", [PAGES[name]])
    accessible(eight_page)
    eight_page.get_by_role("link", name="Use zebra", exact=True).click()
    eight_page.wait_for_function("() => location.hash.includes('run=zebra')")
    eight_page.wait_for_url(lambda url: "text=the+cat" in url)


def test_a_run_for_another_task_is_sent_where_it_can_be_used(eight_page: Any) -> None:
    eight_page.goto("/#translate?run=tagger&text=the+cat+sleeps")
    eight_page.get_by_role(
        "heading", name="“tagger” tags words; this page is for a run that translates.", exact=True
    ).wait_for()
    eight_page.get_by_role("link", name="Try tagger", exact=True).click()
    eight_page.locator(".tagged-word").nth(2).wait_for()
    assert eight_page.locator(".tagged-word b").all_inner_texts() == ["the", "cat", "sleeps"]


@pytest.mark.parametrize("name", ["look", "map", "beam", "learn"])
def test_a_text_without_a_known_word_gets_sentences_that_the_run_knows(page: Any, name: str, heard: list[str]) -> None:
    page.goto(f"/#{name}?run=bahdanau&text=एक+आदमी")
    page.get_by_role("alert").get_by_text("no word of it was seen in training").wait_for()
    heard.clear()  # the browser tells of the status
    assert page.get_by_role("button", name="Try again", exact=True).count() == 0  # it would be refused again
    page.get_by_role("alert").get_by_role("button", name="The black cat ate the mouse.", exact=True).click()
    page.get_by_role("alert").wait_for(state="detached")
    page.wait_for_url(lambda url: "text=The+black+cat" in url)


@pytest.mark.parametrize("name", ["look", "map", "beam", "learn"])
def test_a_refused_text_leaves_nothing_of_the_one_before(page: Any, name: str, heard: list[str]) -> None:
    page.goto(f"/#{name}?run=bahdanau&text=The+cat+slept.+The+dog+xqzw+ate.")
    page.locator(".sentence-choice").wait_for()
    page.evaluate(f"location.hash = '#{name}?run=bahdanau&text=एक+आदमी'")
    page.get_by_role("alert").wait_for()
    heard.clear()  # the browser tells of the status
    assert page.locator(".sentence-choice").is_hidden()
    assert page.locator("#page").get_by_text("never seen").count() == 0


@pytest.mark.parametrize("name", ["look", "map", "beam"])
def test_back_to_an_address_without_a_text_is_back_to_the_runs_own_sentence(eight_page: Any, name: str) -> None:
    eight_page.goto(f"/#{name}?run=german")
    said = eight_page.locator(".told .said")
    said.wait_for()
    own = said.inner_text()
    eight_page.evaluate(f"location.hash = '#{name}?run=german&text=a+man+eats'")
    eight_page.locator(".told .said", has_text="a man eats").wait_for()
    eight_page.go_back()
    eight_page.locator(".told .said", has_text=own).wait_for()
    assert own != "The black cat ate the mouse."  # the run never saw such words


@pytest.mark.parametrize("name", ["map", "learn"])
def test_a_blank_text_is_as_none(page: Any, name: str) -> None:
    page.goto(f"/#{name}?run=bahdanau&text=%20")
    page.locator(".told .said, form input[type=text]").first.wait_for()
    page.locator(".map-frame, .walkthrough h2").first.wait_for()
    assert page.get_by_role("alert").count() == 0


def test_a_run_that_goes_while_one_looks_at_it_leads_to_the_others(page: Any, heard: list[str]) -> None:
    line = {"error": "run = bahdanau: no such run here; known: lstm"}
    page.route("**/api/v1/trace", lambda route: route.fulfill(status=404, json=line))
    page.goto("/#look?run=bahdanau&text=the+cat")
    page.get_by_role("link", name="Choose another run", exact=True).click()
    heard.clear()
    page.locator(".all-runs").wait_for()


def test_a_tour_that_does_not_exist_is_no_empty_page(page: Any) -> None:
    page.goto("/#tour?name=nowhere")
    page.get_by_text("There is no tour named nowhere; the help lists all").first.wait_for(state="attached")
    page.get_by_role("heading", name="Translate", exact=True).wait_for()


def test_the_line_of_a_question_keeps_words_apart_where_a_line_ended(page: Any) -> None:
    page.goto("/#look?run=bahdanau&text=The+cat+slept.%0A%0AThe+dog+ate.")
    page.locator(".told .said").wait_for()
    assert page.locator(".told .said").inner_text() == "The cat slept. The dog ate."


def test_a_page_looks_the_same_whatever_page_was_seen_before(page: Any) -> None:
    """The style sheets of pages that were left stay."""
    look = """() => ['.status .facts', 'ul.notes'].map((each) => {
      const {display, fontSize, marginBottom} = getComputedStyle(document.querySelector(each));
      return [display, fontSize, marginBottom];
    })"""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/#train?run=bahdanau")
    page.locator(".status .facts", has_text="step").wait_for()
    before = page.evaluate(look)
    for name in ("beam", "translate"):
        page.goto(f"/#{name}?run=bahdanau&text=the+cat")
        page.locator(".search .best, .written .word").first.wait_for()
    page.goto("/#train?run=bahdanau")
    page.locator(".status .facts", has_text="step").wait_for()
    assert page.evaluate(look) == before


def test_no_tab_moves_when_another_is_chosen(page: Any) -> None:
    places = "[...document.querySelectorAll('#pages a')].map((tab) => tab.getBoundingClientRect().left)"
    page.goto("/#runs")
    page.locator("h1", has_text="Runs").wait_for()
    before = page.evaluate(places)
    page.locator("#pages a", has_text="Compare").click()
    page.locator("h1", has_text="Compare").wait_for()
    assert page.evaluate(places) == before


def test_train_opens_the_form_whatever_run_was_looked_at(page: Any) -> None:
    page.goto("/#translate?run=lstm")
    page.get_by_label("Run", exact=True).wait_for()
    page.locator("#pages a", has_text="Train").click()
    page.get_by_role("button", name="Start training", exact=True).wait_for()
    page.wait_for_url(lambda url: url.endswith("#train"))
    assert "run=lstm" in page.locator("#pages a", has_text="Translate").get_attribute("href")  # which is not forgotten


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
@pytest.mark.parametrize(
    ("address", "main"),
    [
        ("translate?text=the+cat", ".pane.output .word"),
        ("train", ".new-training .card"),
        ("compare", ".compare-form"),
        ("runs", ".all-runs tbody tr"),
    ],
)
def test_what_a_page_is_about_is_seen_without_scrolling(
    eight_page: Any, fits: Check, address: str, main: str, size: tuple[int, int]
) -> None:
    eight_page.set_viewport_size({"width": size[0], "height": size[1]})
    eight_page.goto(f"/#{address}")
    eight_page.locator(main).first.wait_for()
    assert eight_page.locator(main).first.bounding_box()["y"] < 600
    fits(eight_page)


def test_help_explains_the_words_and_leads_to_the_api(page: Any) -> None:
    page.goto("/#runs")
    page.get_by_role("button", name="Help", exact=True).click()
    assert "How many short word sequences" in page.locator("dialog").inner_text()
    assert page.locator("dialog").get_by_role("link", name="The API", exact=True).get_attribute("href") == "/docs"
    assert page.locator("header").get_by_role("link", name="API", exact=True).get_attribute("href") == "/docs"
