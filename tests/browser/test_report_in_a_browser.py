"""The page of a run in a real browser: no request, no complaint, light and dark, with and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from reports import ARABIC, HINDI, NASTY, by_hand, labelled


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    for name, report in (("translate", by_hand()), ("tag", labelled())):
        report.save(folder / f"{name}.html")
    return {path.stem: path.as_uri() for path in Path(folder).iterdir()}


@pytest.fixture(autouse=True)
def closed(browser: Any) -> Iterator[None]:
    """Contexts of a test end with it."""
    before = set(browser.contexts)
    yield
    for context in set(browser.contexts) - before:
        context.close()


def opened(browser: Any, address: str, heard: list[str], **about: object) -> Any:
    """A page whose requests, complaints and errors are heard."""
    page = browser.new_context(**about).new_page()
    page.on("request", lambda request: heard.append(request.url))
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto(address)
    return page


@pytest.mark.parametrize("name", ["translate", "tag"])
def test_a_page_asks_for_nothing_complains_of_nothing_and_fits(browser: Any, pages: dict[str, str], name: str) -> None:
    heard: list[str] = []
    page = opened(browser, pages[name], heard)
    for width, scheme in product((1440, 380), ("light", "dark")):
        heard.clear()
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.reload()
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert heard == [pages[name]]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        assert page.title() == "Regard: small"  # what the script in the corpus would have changed


def test_a_page_is_readable_without_scripts(browser: Any, pages: dict[str, str]) -> None:
    page = opened(browser, pages["translate"], [], java_script_enabled=False)
    shown = page.locator("main").inner_text()
    for words in ("still improving when it stopped", "le chat noir", ARABIC, HINDI, NASTY, "By length", "Limits"):
        assert words in shown


def test_pointing_at_a_word_lights_its_sources_even_without_scripts(browser: Any, pages: dict[str, str]) -> None:
    page = opened(browser, pages["translate"], [], java_script_enabled=False)
    card = page.locator(".pair").first
    source, other = card.locator("dd").first.locator(".word").nth(1), card.locator("dd").first.locator(".word").nth(0)
    lit = "element => getComputedStyle(element).boxShadow"
    assert source.evaluate(lit) == "none"
    card.locator("dd").last.locator(".word").nth(1).hover()
    assert source.evaluate(lit) != "none"
    assert other.evaluate(lit) == "none"


def test_right_to_left_text_begins_at_the_right(browser: Any, pages: dict[str, str]) -> None:
    page = opened(browser, pages["translate"], [])
    words = page.locator(".pair").nth(1).locator("dd").last.locator(".word")
    first, last = words.first.bounding_box(), words.last.bounding_box()
    assert first is not None
    assert last is not None
    assert first["x"] > last["x"]


def test_the_keyboard_reaches_the_contents_what_scrolls_and_what_opens(browser: Any, pages: dict[str, str]) -> None:
    page = opened(browser, pages["translate"], [])
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className"))
    assert {"A.", "SUMMARY.", "DIV.scroll", "PRE."} <= reached
    assert not any("word" in name for name in reached)


def test_what_is_folded_away_is_on_paper(browser: Any, pages: dict[str, str]) -> None:
    page = opened(browser, pages["translate"], [])
    settings = page.locator("pre").last
    assert not settings.is_visible()
    page.emulate_media(media="print")
    assert settings.is_visible()
