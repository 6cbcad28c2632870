"""Runs that read numbers and pictures, in a real browser: forecasts drawn and looked into, files opened."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import numpy as np
import pytest

from regard.fable.sets import png
from serving import on_a_port, train, vector_runs

Check = Callable[[Any], None]
SERIES = "[[5, 4], [6, null], [7, 3], [5, 4], [6, 5], [7, 3], [5, 4], [6, 5], [7, 3]]"
TABLE = "date,a,b\n2001,5,4\n2002,6,5\n2003,7,3\n2004,5,4\n"


@pytest.fixture(scope="session")
def numbers_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a studio with forecasters, a classifier of pictures and a translator."""
    folder = vector_runs(tmp_path_factory.mktemp("vectors") / "runs")
    train(folder / "text", "luong-dot", "model.depth=1")
    brief = ("task=forecast", "forecast.context=14", "forecast.horizon=5", "train.steps=7", "train.validate_every=7")
    plain = (*brief, "model.tie=none", "data.pairs=20000", f"data.corpus={folder.parent / 'runs-data' / 'series.csv'}")
    train(folder / "without-attention", "gru", *plain)
    with on_a_port(folder, kept=True) as address:
        yield address


@pytest.fixture
def own(page_at: Callable[[str], Any], numbers_studio: str) -> Any:
    return page_at(numbers_studio)


def forecast(address: str, text: str, **more: Any) -> dict[str, Any]:
    body = {"run": "series", "text": text, **more}
    answer = httpx.post(f"{address}/api/v1/forecast", json=body, headers={"X-Regard": "studio"}, timeout=60)
    return dict(answer.json())


def open_look(page: Any, text: str = SERIES, **values: str) -> None:
    page.goto(f"/#look?{urlencode({'run': 'series', 'text': text, **values})}")
    page.locator(".chart .stage svg").wait_for()


def drawn(page: Any) -> dict[str, list[dict[str, Any]]]:
    """What the chart shows, by the names of its lines."""
    shown = page.evaluate("document.querySelector('.chart').shown")
    return {each["name"]: each["points"] for each in shown}


def test_a_forecast_is_drawn_with_its_intervals_beside_the_naive_one(own: Any, numbers_studio: str) -> None:
    open_look(own)
    found, lines = forecast(numbers_studio, SERIES), drawn(own)
    assert [point["y"] for point in lines["read"]] == [row[0] for row in found["context"]]
    assert [point["y"] for point in lines["naive"]] == [row[0] for row in found["naive"]]
    median = lines["median, 80 and 90 %"]
    assert [point["x"] for point in median] == [10, 11, 12, 13, 14]
    for point, (quantiles, _) in zip(median, found["quantiles"], strict=True):
        assert (point["low"], point["high"]) == (quantiles[0], quantiles[-1])
        assert (point["near"], point["y"]) == ([quantiles[1], quantiles[-2]], quantiles[9])
    assert own.locator(".chart .band").count() == 2
    assert own.locator(".chart .shade").count() == 9
    own.get_by_label("Channel").select_option("2")
    assert [point["y"] for point in drawn(own)["read"]] == [row[1] for row in found["context"]]


def test_the_keyboard_moves_from_moment_to_moment(own: Any, numbers_studio: str) -> None:
    open_look(own)
    weights = forecast(numbers_studio, SERIES)["weights"]
    slider = own.get_by_label("Moment ahead")
    slider.focus()
    own.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "+2"
    strongest = 1 + int(np.argmax(weights[1]))
    assert f"+2 looked most at moment {strongest}" in own.locator(".told-moment").inner_text()
    strengths = own.locator(".chart .shade").evaluate_all("all => all.map(one => +one.getAttribute('fill-opacity'))")
    np.testing.assert_allclose(strengths, 0.5 * np.array(weights[1]) / max(weights[1]), atol=1e-3)
    assert "moment=2" in own.evaluate("location.hash")
    own.locator(".chart .stage").focus()
    own.keyboard.press("End")
    assert "moment 14" in own.locator(".chart .tip").inner_text()


def test_weights_come_from_attention_or_from_gradients(own: Any) -> None:
    open_look(own)
    own.get_by_text("Gradient", exact=True).click()
    own.get_by_text("would change most with").wait_for()
    own.go_back()
    own.get_by_text("looked most at").wait_for()


def test_numbers_are_pasted_and_files_opened_or_dropped(own: Any, tmp_path: Path) -> None:
    open_look(own)
    own.get_by_role("button", name="Edit").click()
    own.get_by_label("Series", exact=True).fill(TABLE)
    own.get_by_role("button", name="Forecast").click()
    own.locator(".results:not([aria-busy])").wait_for()
    assert own.locator(".said").inner_text() == "a CSV file"
    assert own.locator(".chart .shade").count() == 4
    assert [point["y"] for point in drawn(own)["read"]] == [5, 6, 7, 5]
    np.save(tmp_path / "numbers.npy", np.arange(20.0).reshape(10, 2))
    own.get_by_role("button", name="Edit").click()
    own.locator("input[type=file]").set_input_files(tmp_path / "numbers.npy")
    own.locator(".chart .shade").nth(9).wait_for()
    assert [point["y"] for point in drawn(own)["read"]] == list(range(0, 20, 2))


def test_what_cannot_be_read_is_said_and_the_form_stays(own: Any, tmp_path: Path, heard: list[str]) -> None:
    open_look(own)
    own.get_by_role("button", name="Edit").click()
    (tmp_path / "notes.txt").write_text("words")
    own.locator("input[type=file]").set_input_files(tmp_path / "notes.txt")
    own.locator(".trouble", has_text="notes.txt: cannot be read").wait_for()
    own.get_by_label("Series", exact=True).fill("1, 2, 3")
    with own.expect_response("**/api/v1/forecast"):
        own.get_by_role("button", name="Forecast").click()
    own.locator(".trouble", has_text="channels = 1: 2 would be right").wait_for()
    assert own.get_by_label("Series", exact=True).is_visible()
    assert "400" in heard.pop()


def test_another_run_has_its_own_page_and_text(own: Any, heard: list[str]) -> None:
    open_look(own)
    own.get_by_role("button", name="Edit").click()
    own.get_by_label("Run", exact=True).select_option("text")
    own.locator(".sentence .tokens").first.wait_for()
    own.get_by_role("button", name="Edit").click()
    own.get_by_label("Run", exact=True).select_option("series")
    own.locator(".chart .stage svg").wait_for()
    assert "14 moments" in own.locator(".said").inner_text()
    heard.clear()


def test_what_was_chosen_for_one_forecaster_is_not_asked_of_another(own: Any) -> None:
    open_look(own, by="attention", checkpoint="step-7", channel="2")
    own.get_by_role("button", name="Edit").click()
    own.get_by_label("Run", exact=True).select_option("without-attention")
    own.get_by_text("would change most with").wait_for()
    assert "by=" not in own.url
    assert "checkpoint=" not in own.url


def test_a_forecaster_is_tried_among_the_runs(own: Any) -> None:
    own.goto("/#runs?run=series")
    row = own.locator("tr[data-run=series]").inner_text()
    assert "forecasts series" in row
    assert "relative error" in row
    example = own.locator(".try-card .examples button").first
    assert example.inner_text().startswith("14 moments: ")
    example.click()
    own.locator(".tried .chart .band").first.wait_for()
    assert len(drawn(own)["naive"]) == 5
    own.get_by_role("link", name="Look inside", exact=True).last.click()
    own.locator(".chart .shade").first.wait_for()


def test_a_picture_is_opened_and_looked_into(own: Any, tmp_path: Path) -> None:
    picture = png(np.full((6, 6), 200, np.uint8))
    (tmp_path / "light.png").write_bytes(base64.b64decode(picture.partition(",")[2]))
    own.goto("/#look?run=pictures&text=")
    own.locator(".examples img").first.wait_for()
    own.locator("input[type=file]").set_input_files(tmp_path / "light.png")
    own.locator(".question-line img").wait_for()
    own.locator(".of-source .pixels").first.wait_for()


def test_pages_of_sentences_do_not_offer_a_run_of_pictures(own: Any) -> None:
    for page in ("translate", "meaning"):
        own.goto(f"/#{page}?run=captions")
        own.get_by_role("heading", name="“captions” reads numbers, pictures or sounds").wait_for()
        own.get_by_role("link", name="Use text").click()
        own.locator("select option[value=text]").first.wait_for(state="attached")
        offered = own.locator("select option").all_inner_texts()
        assert "text" in offered
        assert "captions" not in offered
    own.goto("/#train?teach=text")
    own.get_by_role("button", name="Teach").first.wait_for()
    assert "captions" not in own.locator("select option").all_inner_texts()


def test_a_picture_stands_in_the_question_of_every_page_that_takes_it(own: Any) -> None:
    for page in ("look", "map", "beam", "learn"):
        own.goto("/#runs")
        own.goto(f"/#{page}?run=captions")
        own.locator(".question-line img").wait_for()


def test_a_run_of_pictures_is_tried_where_it_is_listed(own: Any) -> None:
    own.goto("/#runs")
    assert own.locator("tr[data-run=captions] .act").inner_text() == "Try"
    assert own.locator("tr[data-run=text] .act").inner_text() == "Translate"


def test_runs_of_words_and_of_pictures_are_not_compared(own: Any) -> None:
    own.goto("/#compare?runs=captions,text")
    own.get_by_text("Some of these runs read words, others numbers").wait_for()
    assert own.get_by_role("button", name="Compare").is_disabled()


def test_the_train_page_says_where_vectors_are_learned(own: Any, tmp_path: Path) -> None:
    own.goto("/#train")
    own.get_by_text("regard train gru task=forecast").wait_for()
    (tmp_path / "word.wav").write_bytes(b"RIFF")
    own.locator("#corpus-files").set_input_files(tmp_path / "word.wav")
    own.locator(".trouble", has_text="word.wav: is no text").wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_every_page_of_vectors_can_be_read_by_all(
    own: Any, accessible: Check, fits: Check, scheme: str, width: int
) -> None:
    own.emulate_media(color_scheme=scheme)
    own.set_viewport_size({"width": width, "height": 900})
    open_look(own)
    accessible(own)
    fits(own)
    own.get_by_role("button", name="Edit").click()
    accessible(own)
    fits(own)
    own.goto("/#runs?run=series")
    own.locator(".try-card .examples button").first.click()
    own.locator(".tried .chart .band").first.wait_for()
    accessible(own)
    fits(own)
