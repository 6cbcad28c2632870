"""What people see of a model while it trains: samples, and one sentence that is watched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

import corpora_for_tests as small
from regard.cli.display import watch_line
from regard.cli.main import run as cli
from regard.errors import DataError
from regard.runs import log
from regard.runs.log import Watched, read_log
from regard.tasks.load import load
from regard.tasks.translate import TranslateTask
from regard.trainer.start import start

SENTENCE = "the cat sees the old bird ."
TASKS = {
    "translate": ("transformer-tiny", ()),
    "language": ("lstm", ("task=language",)),
    "tag": ("bahdanau", ("task=tag",)),
    "classify": ("gru", ("task=classify",)),
}


def trained(folder: Path, preset: str, *overrides: str) -> small.Notes:
    notes = small.Notes()
    start(folder, small.settings(preset, f"train.watch='{SENTENCE}'", *overrides), notes, device="cpu")
    return notes


@pytest.mark.parametrize("task", TASKS)
def test_a_sentence_is_watched_at_landmarks_and_validations_and_samples_come_with_these(
    task: str, tmp_path: Path
) -> None:
    preset, overrides = TASKS[task]
    notes = trained(tmp_path / "run", preset, *overrides)
    assert [step for step, _ in notes.watched] == [1, 2, 4, 5, 8, 10, 12]
    assert {watched.text for _, watched in notes.watched} == {SENTENCE}
    assert all(len(validation.samples) == 5 for validation in notes.validations)
    first = notes.validations[0].samples[0]
    assert first.source
    assert first.reference
    logged = read_log(tmp_path / "run" / "log.jsonl")
    assert [event["step"] for event in logged if event["event"] == "watch"] == [1, 2, 4, 5, 8, 10, 12]
    assert len([event for event in logged if event["event"] == "validation"][-1]["samples"]) == 5
    if task != "translate":
        assert notes.watched[-1][1].output
        assert not notes.watched[-1][1].layers


def test_a_validation_translates_each_of_its_sentences_once_and_shows_some_of_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write = TranslateTask.write

    def noted(task: TranslateTask, texts: Sequence[str], device: torch.device) -> list[str]:
        written.extend(texts)
        return write(task, texts, device)

    monkeypatch.setattr(TranslateTask, "write", noted)
    notes, last = small.Notes(), ("train.steps=2", "train.validate_every=2")
    start(tmp_path / "run", small.settings("bahdanau", *last), notes, device="cpu")
    assert len(written) == len(set(written)) > 5
    shown = notes.validations[0].samples
    assert [sample.source for sample in shown] == written[:5]
    translator = load(tmp_path / "run")
    assert [sample.output for sample in shown] == [translator.translate(text, beam=1).text for text in written[:5]]


@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau"])
def test_what_is_watched_is_the_translation_and_the_attention_of_the_model_of_that_moment(
    preset: str, tmp_path: Path
) -> None:
    _, last = trained(tmp_path / "run", preset).watched[-1]
    found = load(tmp_path / "run").translate(SENTENCE, beam=1)
    assert found.text == last.output
    assert last.source == found.attention.source.pieces
    assert last.target == found.attention.target.pieces
    torch.testing.assert_close(torch.tensor(last.layers), found.attention.cross.mean(1), atol=1e-4, rtol=0)


def test_a_model_without_attention_shows_its_translation_alone(tmp_path: Path) -> None:
    _, last = trained(tmp_path / "run", "lstm").watched[-1]
    assert last.output == load(tmp_path / "run").translate(SENTENCE, beam=1).text
    assert last.layers == ()


def test_watching_changes_nothing_of_what_is_learned(tmp_path: Path) -> None:
    trained(tmp_path / "watched", "transformer-tiny", "train.average={kind='moving'}")
    settings = small.settings("transformer-tiny", "train.average={kind='moving'}")
    start(tmp_path / "alone", settings, small.Notes(), device="cpu")
    assert small.weights(tmp_path / "watched") == small.weights(tmp_path / "alone")


def test_a_sentence_longer_than_those_of_the_training_is_refused(tmp_path: Path) -> None:
    settings = small.settings("lstm", f"train.watch='{'cat ' * 60}'", "data.longest=50")
    with pytest.raises(DataError, match=r"train\.watch = cat cat.*has 60 pieces.*fewer than 50 \(data\.longest"):
        start(tmp_path / "run", settings, small.Notes(), device="cpu")
    assert not (tmp_path / "run").exists()


def test_the_command_takes_a_sentence_and_tells_how_it_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = [*small.SIZES["recurrent"], *small.SMALL, "train.steps=2"]
    assert (
        cli(["train", "gru", "--out", str(tmp_path / "run"), f"train.watch={SENTENCE}", "--device", "cpu", *sizes]) == 0
    )
    assert f"step 2  {SENTENCE} →" in capsys.readouterr().err
    assert watch_line(1200, Watched("a", "")) == "step 1,200  a → (nothing)"


def test_a_log_is_read_whatever_is_in_it(tmp_path, monkeypatch) -> None:
    """What JSON may hold within a line does not divide it, and what is no event harms no other."""
    line = '{"event": "note", "text": "a\u2028b"}'
    strange = [b"\xff\xfe", b"[1]", b"[" * 100_000, b'{"step": 1}', b'{"event": "step", "step": "x"}', b'{"event": 3}']
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join([*strange, line.encode(), b'{"event": "watch", "step": 1}', b'{"event": "st']))
    assert read_log(path) == [{"event": "note", "text": "a\u2028b"}, {"event": "watch", "step": 1}]
    monkeypatch.setattr(log, "MOST", 1)
    assert read_log(path) == [{"event": "watch", "step": 1}]
    monkeypatch.setattr(log, "LONGEST", 46)
    assert read_log(path) == [{"event": "watch", "step": 1}]
    monkeypatch.setattr(log, "LONGEST_LINE", 5)
    assert read_log(path) == []
