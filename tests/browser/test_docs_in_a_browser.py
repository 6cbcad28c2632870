"""The service's page about itself: complete, readable for everyone, and its commands work."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import serving

OURS = (
    "get /api/v1/runs",
    "post /api/v1/translate",
    "post /translate",
    "get /languages",
    "post /detect",
    "get /health",
)


def test_every_operation_is_on_the_page(
    page: Any, accessible: Callable[..., None], fits: Callable[[Any], None]
) -> None:
    page.goto("/docs")
    page.wait_for_selector("[data-operation]")
    shown = page.eval_on_selector_all("[data-operation]", "all => all.map(each => each.dataset.operation)")
    paths = page.request.get("/openapi.json").json()["paths"]
    assert sorted(shown) == sorted(f"{method} {path}" for path, methods in paths.items() for method in methods)
    accessible(page)
    fits(page)
    page.set_viewport_size({"width": 380, "height": 900})
    accessible(page, colours=False)  # they are the same
    fits(page)


def test_an_example_can_be_tried_on_the_page(page: Any) -> None:
    page.goto("/docs")
    operation = page.locator("[data-operation='post /detect']")
    operation.locator("summary").first.click()
    operation.get_by_role("button").click()
    answer = operation.get_by_label("Answer", exact=True)
    answer.get_by_text("confidence").wait_for()
    assert answer.text_content().startswith("200\n")


def test_the_page_is_short_and_what_has_fields_unfolds(page: Any) -> None:
    page.goto("/docs")
    operation = page.locator("[data-operation='get /api/v1/runs/{run}']")
    operation.locator("summary").first.click()
    assert page.get_by_role("link", name="openapi.json", exact=True).get_attribute("href") == "/openapi.json"
    assert operation.locator("caption").all_text_contents() == ["Answer"]  # and not "Get" under "GET"
    for name, field in (("Settings", "train"), ("Progress", "epoch")):
        operation.get_by_text(f"fields of {name}", exact=True).click()
        operation.get_by_role("rowheader", name=field, exact=True).first.wait_for()
    assert page.locator("[data-operation][open]").count() == 1


@pytest.mark.parametrize("width", [1440, 390])
def test_a_service_without_a_studio_says_what_is_here(
    browser: Any, accessible: Callable[[Any], None], fits: Callable[[Any], None], runs: Path, width: int
) -> None:
    with serving.on_a_port(runs, studio=False) as address:
        page = browser.new_page(viewport={"width": width, "height": 900}, base_url=address)
        page.goto("/")
        page.get_by_role("rowheader", name=re.compile("^bahdanau( used)?$")).wait_for()  # used: it is the best here
        assert f"curl {address}/translate" in page.locator("#command").text_content()
        page.get_by_role("button", name="Translate", exact=True).click()
        page.get_by_text("(run ").wait_for()
        page.get_by_role("textbox", name="Text", exact=True).fill("it's late")
        assert page.locator("#command").text_content().endswith("'q=it'\\''s late' -d source=en -d target=fr")
        accessible(page)
        fits(page)
        page.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_page_work(page: Any) -> None:
    page.goto("/docs")
    for name in OURS:
        command = page.locator(f"[data-operation='{name}'] .command").text_content().replace('"demo"', '"lstm"')
        line = command.replace("curl ", "curl --silent --show-error --fail --max-time 30 ", 1)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout.startswith(("{", "[")), command
