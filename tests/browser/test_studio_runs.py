"""Runs in a real browser: what is here, tried right there, renamed, removed and brought back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Check = Callable[[Any], None]


@pytest.fixture
def own(page_of: Callable[[Path], Any], runs: Path, tmp_path: Path) -> Any:
    """A page of a folder that may be changed: two of the runs."""
    for name in ("bahdanau", "lstm"):
        shutil.copytree(runs / name, tmp_path / "runs" / name)
    return page_of(tmp_path / "runs")


def names(page: Any) -> list[str]:
    page.locator(".all-runs tbody tr").first.wait_for()
    return page.locator(".all-runs .toggle").all_inner_texts()


def test_runs_are_listed_by_task_and_pair_with_the_best_first(eight_page: Any) -> None:
    eight_page.goto("/#runs")
    order = ["zebra", "middling", "bahdanau", "german", "hindi", "tagger", "classifier", "writer"]
    assert names(eight_page) == order
    first = eight_page.locator("tr[data-run=zebra]").inner_text()
    assert all(words in first for words in ("English → French", "BLEU 99.1", "the best here", "fable:fr"))
    alone = eight_page.locator("tr[data-run=hindi]").inner_text()
    assert "not measured" in alone
    assert "the best" not in alone  # there is nothing to be better than
    table, note = eight_page.locator(".all-runs").bounding_box(), eight_page.locator(".all-runs + .note").bounding_box()
    assert note["y"] - table["y"] - table["height"] >= 8


@pytest.mark.parametrize(
    ("run", "answer", "verb"),
    [
        ("tagger", ".tagged-word small", "Tag words"),
        ("classifier", ".classes dd", "Classify"),
        ("writer", ".tried .big", "Continue a text"),
        ("zebra", ".tried .big", "Translate"),
    ],
)
def test_every_task_is_tried_right_there_with_its_own_sentences(
    eight_page: Any, accessible: Check, run: str, answer: str, verb: str
) -> None:
    eight_page.goto(f"/#runs?run={run}")
    expected = eight_page.request.get(f"/api/v1/runs/{run}/examples").json()["examples"][0]["text"]
    eight_page.locator(".try-card .examples button").first.click()
    eight_page.locator(answer).first.wait_for()
    assert eight_page.get_by_label(f"Text for {run}", exact=True).input_value() == expected
    assert eight_page.locator(".try button").inner_text() == verb
    assert eight_page.locator(".try-card .trouble").count() == 0
    accessible(eight_page)


def test_a_run_is_renamed_and_links_follow(own: Any) -> None:
    own.goto("/#runs?run=lstm")
    own.get_by_role("button", name="Rename", exact=True).click()
    own.get_by_label("New name", exact=True).fill("simple")
    own.get_by_role("button", name="Rename", exact=True).last.click()
    own.locator("tr[data-run=simple].open").wait_for()
    assert sorted(names(own)) == ["bahdanau", "simple"]
    own.wait_for_url(lambda url: url.endswith("#runs?run=simple"))
    assert "run=simple" in own.locator("#pages a", has_text="Translate").get_attribute("href")


def test_a_name_that_is_taken_is_said_in_place(own: Any, heard: list[str]) -> None:
    own.goto("/#runs?run=lstm")
    own.get_by_role("button", name="Rename", exact=True).click()
    own.get_by_label("New name", exact=True).fill("bahdanau")
    own.get_by_role("button", name="Rename", exact=True).last.click()
    own.get_by_text("is taken").wait_for()
    heard.clear()  # the browser tells of the status


def test_a_run_is_removed_and_undo_brings_it_back(own: Any, accessible: Check) -> None:
    own.goto("/#runs?run=lstm")
    own.get_by_role("button", name="Remove", exact=True).click()
    own.locator(".undo p", has_text="Removed lstm.").wait_for()
    own.locator("tr[data-run=lstm]").first.wait_for(state="detached")
    assert names(own) == ["bahdanau"]
    accessible(own)
    own.get_by_role("button", name="Undo", exact=True).click()
    own.locator("tr[data-run=lstm].open").wait_for()
    assert sorted(names(own)) == ["bahdanau", "lstm"]


def test_settings_are_shown_and_the_archive_comes_down(own: Any) -> None:
    own.goto("/#runs?run=lstm")
    own.get_by_role("button", name="Settings", exact=True).click()
    own.locator(".below pre").wait_for()
    assert "cell" in own.locator(".below pre").inner_text()
    with own.expect_download() as found:
        own.get_by_role("link", name="Export", exact=True).click()
    assert found.value.suggested_filename == "lstm.tar.gz"
    assert own.get_by_role("link", name="Report", exact=True).get_attribute("href") == "/api/v1/runs/lstm/report"


def test_compare_with_is_offered_where_a_test_is_shared(eight_page: Any) -> None:
    eight_page.goto("/#runs?run=middling")
    eight_page.get_by_role("link", name="Compare with…", exact=True).click()
    eight_page.locator(".compare-form").wait_for()
    assert eight_page.locator(".pick input:checked").evaluate_all("all => all.map((box) => box.value)") == [
        "middling",
        "zebra",
    ]
    eight_page.goto("/#runs?run=german")
    eight_page.get_by_role("button", name="Settings", exact=True).wait_for()
    assert eight_page.get_by_role("link", name="Compare with…", exact=True).count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_the_page_fits_and_is_accessible(
    eight_page: Any, accessible: Check, fits: Check, scheme: str, width: int
) -> None:
    eight_page.set_viewport_size({"width": width, "height": 844})
    eight_page.emulate_media(color_scheme=scheme)
    eight_page.goto("/#runs?run=tagger&text=the+cat")
    eight_page.locator(".tagged-word").first.wait_for()
    fits(eight_page)
    accessible(eight_page)


def test_a_run_that_is_not_here_is_said_above_those_that_are(eight_page: Any) -> None:
    eight_page.goto("/#runs?run=nobody")
    eight_page.get_by_text("There is no run named “nobody” here.").wait_for()
    assert len(names(eight_page)) == 8


def test_the_curves_of_several_runs_stand_in_one_picture(page: Any) -> None:
    page.goto("/#runs")
    page.locator(".curves summary").first.click()
    page.wait_for_selector(".curves .chart svg path, .curves svg path")
    wanted = page.request.get("/api/v1/runs/lstm").json()["validations"]
    page.get_by_role("group", name="Runs in the picture", exact=True).get_by_label("lstm", exact=True).check()
    tables = page.locator(".curves details summary")
    tables.first.click()
    shown = page.locator(".curves table", has_text="lstm").first
    shown.wait_for()
    assert f"{wanted[-1][1]:.2f}" in shown.inner_text()
    assert {"lstm", "bahdanau"} <= set(re.findall(r"[a-z-]+", shown.inner_text()))
