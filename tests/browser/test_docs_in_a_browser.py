"""The service's page about itself: complete, readable for everyone, and its commands work."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

OURS = (
    "get /api/v1/runs",
    "post /api/v1/translate",
    "post /translate",
    "get /languages",
    "post /detect",
    "get /health",
)


@pytest.mark.parametrize("width", [1440, 380])
def test_every_operation_is_on_the_page(
    page: Any, accessible: Callable[[Any], None], fits: Callable[[Any], None], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/docs")
    page.wait_for_selector("article")
    shown = page.eval_on_selector_all("article", "all => all.map(each => each.dataset.operation)")
    paths = page.request.get("/openapi.json").json()["paths"]
    assert sorted(shown) == sorted(f"{method} {path}" for path, methods in paths.items() for method in methods)
    accessible(page)
    fits(page)


def test_an_example_can_be_tried_on_the_page(page: Any) -> None:
    page.goto("/docs")
    article = page.locator("article[data-operation='post /detect']")
    article.get_by_role("button").click()
    answer = article.get_by_label("Answer")
    answer.get_by_text("confidence").wait_for()
    assert answer.text_content().startswith("200\n")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_page_work(page: Any) -> None:
    page.goto("/docs")
    for name in OURS:
        command = page.locator(f"article[data-operation='{name}'] .command").text_content().replace('"demo"', '"lstm"')
        line = command.replace("curl ", "curl --silent --show-error --fail --max-time 30 ", 1)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout.startswith(("{", "[")), command
