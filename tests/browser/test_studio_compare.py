"""Compare in a real browser: two runs on one test, its progress, its numbers, and the sentences inside both."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_two_runs_are_compared_and_opened_side_by_side(
    page: Any, accessible: Callable[[Any], None], fits: Callable[[Any], None]
) -> None:
    page.goto("/#compare?runs=transformer-tiny,bahdanau")
    assert page.get_by_role("button", name="Compare", exact=True).is_enabled()
    page.get_by_label("Sentences at most", exact=True).fill("40")
    page.get_by_label("Beam", exact=True).fill("1")
    accessible(page)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator(".compare-progress progress").wait_for()
    page.get_by_role("heading", name="Is it luck?", exact=True).wait_for(timeout=180_000)
    job = page.url.split("job=")[1]
    found = page.request.get(f"/api/v1/jobs/{job}").json()["result"]
    cells = page.locator("table.scores tbody tr").first.locator("td").first.inner_text()
    assert cells.startswith(f"{found['rows'][0]['scores'][0]['score']:.1f}")
    shown = page.evaluate("document.querySelector('.chart').shown")
    assert [series["name"] for series in shown] == ["bahdanau", "transformer-tiny"]  # in the order of the list
    assert [point["note"] for point in shown[0]["points"]] == [
        f"{bucket['count']} sentences" for bucket in found["rows"][0]["lengths"]
    ]
    first = found["differing"][0]
    page.get_by_text(first["source"], exact=True).wait_for()
    page.get_by_text("Look inside, side by side").first.click()
    for figure in (1, 2):
        page.locator(f".inside figure:nth-child({figure}) .heatmap").wait_for(timeout=60_000)
    maps = page.evaluate("[...document.querySelectorAll('.inside .heatmap')].map(map => map.shown.columns.join(' '))")
    assert maps == [first["source"]] * 2
    ticks = page.locator(".chart svg text").all_text_contents()
    assert not any(tick.replace(",", "").isdigit() and int(tick.replace(",", "")) > 100 for tick in ticks)
    assert page.locator("table.scores").bounding_box()["y"] < 600  # the form has folded
    accessible(page)
    narrowed = page.evaluate("s = document.querySelector('.chart .stage'), s.style.width = '200px', s.scrollWidth")
    assert narrowed == 200  # at once, before anything is drawn anew
    page.set_viewport_size({"width": 380, "height": 800})
    fits(page)
    page.reload()  # the address knows the job
    page.get_by_role("heading", name="Is it luck?", exact=True).wait_for(timeout=60_000)
    page.get_by_role("link", name="Look inside bahdanau at this sentence", exact=True).first.click()
    page.wait_for_url(lambda url: "#look?run=bahdanau&text=" in url)


def test_a_double_click_compares_once(page: Any, heard: list[str]) -> None:
    asked: list[Any] = []
    page.route("**/api/v1/compare", lambda route: asked.append(route))  # noqa: PLW0108
    page.goto("/#compare?runs=transformer-tiny,bahdanau")
    page.get_by_role("button", name="Compare", exact=True).dblclick()
    page.wait_for_timeout(300)
    assert len(asked) == 1
    asked[0].abort()
    page.locator(".compare-result .trouble").wait_for()
    heard.clear()


def test_runs_with_the_same_score_are_not_told_apart(page: Any) -> None:
    page.goto("/#compare")
    found = page.evaluate(
        """async (scores) => {
          const {headline} = await import('/studio/panels/compare/result.js');
          const row = (score, place) => ({name: 'ab'[place], scores: [{name: 'BLEU', score}]});
          return scores.map(each => headline({rows: each.map(row), metrics: ['BLEU'], verdicts: []}));
        }""",
        [[29.5, 29.5], [29.4, 29.5]],
    )
    assert found == ["a and b score the same", "b scores highest"]


def test_what_cannot_be_compared_is_said_before_it_is_tried(page: Any) -> None:
    page.goto("/#compare?runs=lstm")
    page.get_by_text("Choose at least two.").wait_for()
    assert page.get_by_role("button", name="Compare", exact=True).is_disabled()


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ("zebra,tagger", "These runs are for different tasks."),
        ("zebra,hindi", "These runs translate different languages: English → Hindi, English → French."),
    ],
)
def test_runs_that_do_not_go_together_are_told_apart_in_words(eight_page: Any, runs: str, why: str) -> None:
    eight_page.goto(f"/#compare?runs={runs}")
    eight_page.get_by_text(why).wait_for()
    assert eight_page.get_by_role("button", name="Compare", exact=True).is_disabled()


def test_runs_without_a_common_test_are_told_where_one_comes_from(page: Any) -> None:
    answer = page.request.get("/api/v1/runs").json()
    for place, run in enumerate(answer["runs"]):
        run["test"] = str(place)
    page.route("**/api/v1/runs", lambda route: route.fulfill(json=answer))
    page.goto("/#compare?runs=lstm,bahdanau")
    page.get_by_text("A corpus that you give to the page Train is among the tests").wait_for()
    assert page.locator(".compare-fold summary").inner_text().startswith("Runs and test: bahdanau, lstm")


def test_runs_that_share_a_test_are_chosen_beforehand_and_else_none(eight_page: Any) -> None:
    chosen = "all => all.map((box) => box.value)"
    eight_page.goto("/#compare")
    eight_page.locator(".pick").first.wait_for()
    assert eight_page.locator(".pick input:checked").evaluate_all(chosen) == ["middling", "zebra"]
    eight_page.goto("about:blank")
    eight_page.goto("/#compare?run=german")
    eight_page.get_by_text("Choose at least two.").wait_for()
    assert eight_page.locator(".pick input:checked").evaluate_all(chosen) == ["german"]
    rows = eight_page.locator(".pick").evaluate_all(
        "all => all.map((pick) => [pick.querySelector('input'), pick].map((node) => node.getBoundingClientRect().top))"
    )
    assert len({round(box - pick) for box, pick in rows}) == 1  # boxes stand at one height


def test_with_one_run_a_second_is_offered(page_of: Callable[[Path], Any], runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "lstm", tmp_path / "runs" / "lstm")
    page = page_of(tmp_path / "runs")
    page.route("**/api/v1/runs", lambda route: alone(route, "lstm"))
    page.goto("/#compare")
    page.get_by_role("heading", name="A second run is needed", exact=True).wait_for()
    page.get_by_role("link", name="Train another", exact=True).click()
    page.get_by_role("heading", level=1, name="Train", exact=True).wait_for()


def alone(route: Any, name: str) -> None:
    """As if there were no run but this: one comes with the package."""
    answer = route.fetch()
    route.fulfill(response=answer, json={"runs": [run for run in answer.json()["runs"] if run["name"] == name]})


def test_a_job_that_is_not_there_is_complained_of_in_place(page: Any, heard: list[str]) -> None:
    page.goto("/#compare?job=compare-0011223344556677")
    page.get_by_text("no such job").wait_for()
    assert any("404" in line for line in heard)
    heard.clear()


@pytest.mark.parametrize("width", [1440, 380])
def test_without_runs_the_page_says_what_to_do(empty_page: Any, fits: Callable[[Any], None], width: int) -> None:
    empty_page.set_viewport_size({"width": width, "height": 800})
    empty_page.goto("/#compare")
    empty_page.get_by_role("link", name="Train the demo", exact=True).wait_for()
    fits(empty_page)
