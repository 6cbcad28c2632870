"""The studio's frame in a real browser: navigation, keys, themes, a telephone, and what stands there without a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
Check = Callable[[Any], None]
DARK = "rgb(22, 24, 29)"
PAPER = "getComputedStyle(document.body).backgroundColor"


def test_the_links_of_the_navigation_take_the_run_and_the_text_along(page: Any) -> None:
    page.goto("/#beam?run=lstm&text=the+cat&beam=2")
    page.locator("#pages a", has_text="Translate").click()
    page.locator("textarea").wait_for()
    assert page.url.endswith("#translate?run=lstm&text=the+cat")
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
    page.keyboard.press("4")
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
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Light or dark").click()  # what the system has: follow it again
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


def test_the_skip_link_leads_past_the_navigation_and_leaves_the_address(page: Any) -> None:
    page.goto("/#beam?run=lstm")
    page.locator("h1").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page"
    assert page.url.endswith("#beam?run=lstm")


@pytest.mark.parametrize("name", ["translate", "beam"])
def test_without_a_run_a_page_offers_to_train_one(empty_page: Any, name: str, accessible: Check) -> None:
    empty_page.goto(f"/#{name}")
    link = empty_page.get_by_role("link", name="Train the demo")
    link.wait_for()
    assert link.get_attribute("href").startswith("#train?")
    accessible(empty_page)


def test_a_service_that_went_away_is_a_line_and_a_second_try(page: Any, heard: list[str]) -> None:
    page.route("**/api/v1/runs", lambda route: route.abort())
    page.goto("/#translate")
    page.get_by_role("alert").wait_for()
    assert "does not answer" in page.get_by_role("alert").inner_text()
    page.unroute("**/api/v1/runs")
    page.get_by_role("button", name="Try again").click()
    page.locator("textarea").wait_for()
    heard.clear()  # the browser tells of the request that failed
