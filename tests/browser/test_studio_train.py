"""Train in a real browser: start, watch, stop, come back; the demo's button; a corpus that is dropped."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import corpora_for_tests as small
from regard.runs.folder import Run
from regard.serve.jobs import Jobs
from regard.serve.library import Library
from regard.trainer.start import start

TINY = "\n".join([*small.SIZES["transformer"], *small.SMALL[1:3], "train.batch=128", "train.warmup=4"])
OURS = {"X-Regard": "studio"}
PATIENCE = 90_000  # milliseconds: children import torch, and others may want the machine as well
SOURCE, TARGET = "the cat sleeps\nthe dog eats\na bird sings\n", "le chat dort\nle chien mange\nun oiseau chante\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs of these tests alone. No training outlives them."""
    found = tmp_path_factory.mktemp("studio") / "runs"
    yield found
    for job in Jobs(Library(found)).trainings().values():
        job.send(signal.SIGKILL)


@pytest.fixture
def page(page_of: Callable[[Path], Any], folder: Path) -> Any:
    found = page_of(folder)
    found.set_default_timeout(PATIENCE)
    return found


def until(page: Any, script: str, seconds: float = 240) -> None:
    """Wait for something that a training does. The page's policy lets no function wait there by itself."""
    end = time.monotonic() + seconds
    while not page.evaluate(script):
        assert time.monotonic() < end, script
        page.wait_for_timeout(100)


def test_a_training_is_started_watched_stopped_found_again_and_goes_on(
    page: Any, tmp_path: Path, accessible: Callable[[Any], None], fits: Callable[[Any], None]
) -> None:
    small.animals(tmp_path)  # the built-in corpus would be validated on a thousand sentences
    for name, side in (("en", "source"), ("fr", "target")):
        for part in ("train", "valid"):
            text = (tmp_path / f"{part}.{name}").read_text(encoding="utf-8")
            assert page.request.put(f"/api/v1/corpora/animals/{part}.{side}", data=text, headers=OURS).ok
    page.goto("/#train")
    page.get_by_text("Or choose for yourself").click()  # there is no run yet
    page.locator(".choice input[value=animals]").check()
    page.get_by_text("Any other setting").click()
    page.get_by_label("Settings, one per line", exact=True).fill(f"{TINY}\ntrain.steps=100000\ntrain.validate_every=40")
    page.get_by_label("Name of the run", exact=True).fill("small")
    page.get_by_label("Watch one sentence learn", exact=True).fill("the cat sees the bird")
    accessible(page)
    page.get_by_role("button", name="Start training", exact=True).click()
    page.get_by_role("heading", level=1, name="small", exact=True).wait_for()
    page.wait_for_url(lambda url: url.endswith("#train?run=small"))
    until(page, "document.querySelectorAll('.samples li').length === 5")
    until(page, "document.querySelector('.watched .heatmap')?.shown?.columns.length === 6")
    values = page.evaluate("document.querySelector('.watched .heatmap').shown")
    rows = [sum(values["values"][6 * row : 6 * row + 6]) for row in range(len(values["rows"]))]
    assert all(total == pytest.approx(1, abs=1e-3) for total in rows)
    assert page.evaluate("document.querySelector('.curves .chart').shown.length") == 2
    accessible(page)
    page.set_viewport_size({"width": 380, "height": 800})
    fits(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.reload()  # the page is another, the training the same
    until(page, "document.querySelectorAll('.samples li').length === 5")
    page.get_by_role("button", name="Stop and keep", exact=True).click()
    page.get_by_role("button", name="Continue training", exact=True).wait_for()
    assert page.locator(".head .chip").inner_text() == "stopped"
    facts = page.locator(".facts").inner_text()  # whichever limit comes first
    assert re.match(r"\d+ s of at most 5 min · step |step [\d,]+ of 100,000 · ", facts), facts
    reached = steps(page)
    page.get_by_role("button", name="Continue training", exact=True).click()
    step = "document.querySelector('.facts')?.textContent.match(/step ([\\d,]+)/)?.[1].replaceAll(',', '')"
    until(page, f"Number({step}) > {reached}")
    page.get_by_role("link", name="A new training", exact=True).click()
    row = page.locator("tr[data-run=small]")
    assert row.locator(".chip").inner_text() in {"preparing", "training", "validating"}
    row.get_by_role("link", name="small", exact=True).click()
    page.get_by_role("button", name="Stop and keep", exact=True).click()
    page.get_by_role("link", name="Translate with it", exact=True).wait_for()
    page.get_by_role("button", name="Continue training", exact=True).wait_for()
    check_slider(page)


def steps(page: Any) -> int:
    found = re.search(r"step ([\d,]+)", page.locator(".facts").inner_text())
    assert found is not None
    return int(found[1].replace(",", ""))


def check_slider(page: Any) -> None:
    """It goes through the moments of the watched sentence, and the address remembers one."""
    until(page, "document.querySelector('.watched input')?.max > 3")
    page.locator(".watched input[type=range]").focus()
    page.keyboard.press("Home")
    assert page.locator(".watched .when, .watched .note.number").inner_text().startswith("step 1 ·")
    page.wait_for_url(lambda url: url.endswith("at=1"))
    page.reload()
    until(page, "document.querySelector('.watched .note.number')?.textContent.startsWith('step 1 ·')")


def test_a_training_that_cannot_be_says_why_in_place(page: Any, heard: list[str]) -> None:
    page.goto("/#train?corpus=fable:fr")
    page.get_by_text("Any other setting").click()
    page.get_by_label("Settings, one per line", exact=True).fill("model.head=8")
    page.get_by_role("button", name="Start training", exact=True).click()
    page.get_by_text("model.head = 8: no such setting; did you mean").wait_for()
    assert any("400" in line for line in heard)  # the browser's own word on the answer
    heard.clear()


def test_a_failed_training_is_changed_or_removed(page: Any, accessible: Callable[[Any], None]) -> None:
    parts = {"train.source": SOURCE, "train.target": TARGET[:25], "valid.source": SOURCE, "valid.target": TARGET}
    for part, text in parts.items():  # of the training part one side is shorter
        sent = page.request.put(f"/api/v1/corpora/broken/{part}", data=text, headers=OURS)
        assert sent.ok, sent.text()
    page.goto("/#train?corpus=broken")
    page.get_by_text("Any other setting").click()
    page.get_by_label("Settings, one per line", exact=True).fill(f"{TINY}\ntrain.steps=2")
    page.get_by_label("Name of the run", exact=True).fill("wrong")
    page.get_by_label("Watch one sentence learn", exact=True).fill("the cat")
    page.get_by_role("button", name="Start training", exact=True).click()
    page.get_by_role("button", name="Change and start again", exact=True).wait_for()
    assert page.locator(".head .chip").inner_text() == "failed"
    assert page.locator(".chart:visible").count() == 0
    accessible(page)
    page.get_by_role("button", name="Change and start again", exact=True).click()
    page.get_by_role("heading", name="Change and start again", exact=True).wait_for()
    until(page, "document.querySelector('.new-training .primary').disabled === false")
    assert page.locator(".choice input:checked").input_value() == "broken"
    assert "train.steps=2" in page.get_by_label("Settings, one per line", exact=True).input_value()
    assert page.get_by_label("Watch one sentence learn", exact=True).input_value() == "the cat"
    page.go_back()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.locator(".undo p", has_text="Removed wrong.").wait_for()
    page.get_by_role("heading", level=1, name="Train", exact=True).wait_for()
    assert page.locator("tr[data-run=wrong]").count() == 0


def test_a_corpus_is_dropped_checked_and_mended(page: Any, tmp_path: Path, accessible: Callable[[Any], None]) -> None:
    (tmp_path / "train.en").write_text(SOURCE)
    (tmp_path / "train.fr").write_text(TARGET[:25])
    (tmp_path / "mended").mkdir()
    (tmp_path / "mended" / "train.fr").write_text(TARGET)
    page.goto("/#train?corpus=fable:fr")
    page.get_by_text("English to French", exact=True).wait_for()
    before = page.locator(".choice").count()
    page.locator("#corpus-files").set_input_files([tmp_path / "train.en", tmp_path / "train.fr"])
    assert page.get_by_label(re.compile(r"^train\.fr \(")).input_value() == "train.target"
    page.get_by_label("Name of the corpus", exact=True).fill("mine")
    page.get_by_role("button", name="Take and check", exact=True).click()
    page.get_by_text("train.target: 2 lines but train.source has 3").wait_for()
    page.get_by_text("There is no validation part").wait_for()
    accessible(page)
    page.locator("#corpus-files").set_input_files([tmp_path / "mended" / "train.fr"])
    page.get_by_label(re.compile(r"^train\.fr \(")).select_option("train.target")
    page.get_by_label("Name of the corpus", exact=True).fill("mine")
    page.get_by_role("button", name="Take and check", exact=True).click()
    page.get_by_text("train: 3 rows. Nothing is wrong.").wait_for()
    page.locator(".choice", has_text="English → French").wait_for()  # by the names of the files
    assert page.get_by_label("Languages", exact=True).input_value() == "en-fr"
    page.get_by_role("button", name="Remove it", exact=True).click()
    page.locator(".choice", has_text="mine").wait_for(state="detached")
    assert page.locator(".choice").count() == before
    page.get_by_role("button", name="Undo", exact=True).click()
    page.locator(".choice", has_text="mine").wait_for()


def test_a_small_corpus_holds_out_a_tenth(page: Any, tmp_path: Path) -> None:
    (tmp_path / "small.tsv").write_text("".join(f"dog {number}\tchien {number}\n" for number in range(43)))
    page.goto("/#train?corpus=fable:fr")
    page.get_by_text("English to French", exact=True).wait_for()
    page.locator("#corpus-files").set_input_files([tmp_path / "small.tsv"])
    page.get_by_label("Name of the corpus", exact=True).fill("small")
    page.get_by_role("button", name="Take and check", exact=True).click()
    page.get_by_role("button", name="Hold out 5 pairs", exact=True).click()
    page.get_by_text("valid: 5 rows").wait_for()


def test_files_that_were_dropped_are_what_is_meant(page: Any, tmp_path: Path) -> None:
    (tmp_path / "dropped.en").write_text(SOURCE)
    (tmp_path / "dropped.fr").write_text(TARGET)
    asked: list[str] = []

    def estimate(route: Any) -> None:
        asked.append(route.request.post_data_json["corpus"])
        figures = dict.fromkeys(("parameters", "examples", "too_long", "memory", "seconds", "steps", "unknown"), 0)
        route.fulfill(json={"words": "No time at all.", **figures})

    page.route("**/api/v1/estimate", estimate)
    page.goto("/#train?corpus=fable:fr")
    page.get_by_text("English to French", exact=True).wait_for()
    page.locator("#corpus-files").set_input_files([tmp_path / "dropped.en", tmp_path / "dropped.fr"])
    page.get_by_label("Name of the corpus", exact=True).fill("")
    page.get_by_role("button", name="What will it take?", exact=True).click()
    assert page.get_by_label("Name of the corpus", exact=True).evaluate("(name) => name.matches(':invalid')")
    page.get_by_label("Name of the corpus", exact=True).fill("dropped")
    page.get_by_role("button", name="What will it take?", exact=True).click()
    page.get_by_text("No time at all.").wait_for()
    assert asked == ["dropped"]


def test_markup_in_names_and_texts_is_text(page: Any, tmp_path: Path) -> None:
    (tmp_path / "<img src=x onerror=alert(1)>.tsv").write_text("<script>document.title='caught'</script>\tle\n" * 2)
    page.goto("/#train?corpus=fable:fr")
    page.get_by_text("English to French", exact=True).wait_for()
    page.locator("#corpus-files").set_input_files([next(tmp_path.iterdir())])
    page.get_by_label("Name of the corpus", exact=True).fill("nasty")
    page.get_by_role("button", name="Take and check", exact=True).click()
    page.get_by_text("train: repeated, 1").click()
    page.get_by_text("<script>document.title='caught'</script> | le").wait_for()
    assert page.title() == "Train · Regard"


def test_at_the_first_start_one_button_trains_the_demo(
    page_of: Callable[[Path], Any],
    tmp_path: Path,
    accessible: Callable[[Any], None],
    fits: Callable[[Any], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With fewer and smaller steps than a user gets."""
    quick = (*small.SMALL, *small.SIZES["transformer"], "train.validate_every=12", "about='regard demo'")
    monkeypatch.setattr("regard.settings.demo.OVERRIDES", quick)
    page = page_of(tmp_path / "runs")
    page.set_default_timeout(PATIENCE)
    page.goto("/#train")
    page.get_by_role("button", name="Train the demo", exact=True).wait_for()
    accessible(page)
    fits(page)
    page.get_by_role("button", name="Train the demo", exact=True).click()
    until(page, "document.querySelector('.head .chip')?.textContent === 'finished'")
    page.wait_for_url(lambda url: url.endswith("#train?run=demo"))
    assert re.search(r"step 12\b", page.locator(".facts").inner_text())
    page.get_by_role("link", name="Translate with it", exact=True).wait_for()
    accessible(page)


def test_a_model_is_taught_on_pasted_pairs_and_watched_against_forgetting(
    page_of: Callable[[Path], Any], tmp_path: Path, accessible: Callable[[Any], None], fits: Callable[[Any], None]
) -> None:
    """From the run's row: full or adapters, pairs from the clipboard, another corpus beside; then the run is there."""
    runs = tmp_path / "runs"
    quick = ("train.steps=4", "train.validate_every=2", "text.tokenizer=bpe", "text.size=320")
    start(runs / "first", small.settings("transformer-tiny", *quick), small.Notes(), device="cpu")
    page = page_of(runs)
    page.set_default_timeout(PATIENCE)
    page.goto("/#runs?run=first")
    page.get_by_role("link", name="Teach this model", exact=True).click()
    page.get_by_role("heading", name="Teach this model", exact=True).wait_for()
    assert page.get_by_label("Run", exact=True).input_value() == "first"
    assert page.get_by_label("Name of the new run", exact=True).input_value() == "first-taught"
    page.get_by_text("adapters (LoRA)").click()
    page.get_by_text("small additions to the attention").wait_for()
    pairs = "".join(
        f"{one}\t{other}\n" for one, other in zip(SOURCE.split("\n"), TARGET.split("\n"), strict=True) if one
    )
    page.get_by_label("Or paste it here, a line each: source, tab, translation", exact=True).fill(pairs * 8)
    page.get_by_label("Keep watching", exact=True).select_option("fable:fr")
    page.get_by_text("1 min", exact=True).click()
    accessible(page)
    fits(page)
    page.get_by_role("button", name="Teach it", exact=True).click()
    page.get_by_role("heading", name="first-taught", exact=True).wait_for()
    until(page, "document.querySelector('.facts').textContent.includes('loss on the general test')")
    for job in Jobs(Library(runs)).trainings().values():
        job.send(signal.SIGINT)
    until(
        page, "[...document.querySelectorAll('.chip')].some((chip) => /stopped|finished|time/.test(chip.textContent))"
    )
    settings = Run.open(runs / "first-taught").settings
    assert settings.train.adapt.kind == "lora"
    assert settings.train.base == str(runs / "first")
    assert settings.data.general == ("fable:fr",)
    assert (runs / "first-taught" / "checkpoints" / "step-0").is_dir()


def test_the_page_leads_to_teaching_a_run_that_is_here(page: Any) -> None:
    page.goto("/#train")
    page.get_by_role("link", name="Teach a model that is here, on your own text", exact=True).click()
    page.get_by_role("heading", name="Teach this model", exact=True).wait_for()
    assert page.get_by_label("Run", exact=True).input_value()


def test_a_failed_teaching_can_be_changed_and_started_again(page_of: Callable[[Path], Any], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    start(runs / "first", small.settings("gru", "train.steps=2"), small.Notes(), device="cpu")
    page = page_of(runs)
    page.set_default_timeout(PATIENCE)
    page.goto("/#train?teach=first")
    page.get_by_text("adapters (LoRA)").click()
    page.get_by_label("Or paste it here, a line each: source, tab, translation", exact=True).fill(
        "a cat\tun chat\na dog\tun chien"
    )
    page.get_by_role("button", name="Teach it", exact=True).click()
    page.get_by_text("adapts the layers of a Transformer").wait_for()
    page.get_by_role("button", name="Change and start again", exact=True).click()
    page.get_by_role("heading", name="Teach this model", exact=True).wait_for()
    assert page.get_by_label("Run", exact=True).input_value() == "first"
