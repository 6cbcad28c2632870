"""Training as a user does it: interrupted, resumed, in several processes, on every task."""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import corpora_for_tests as small
import tiny
from processes import begun, together
from regard.cli.main import run as cli
from regard.errors import ModelError, RegardError
from regard.runs import checkpoint
from regard.runs.folder import Run, best_checkpoint
from regard.runs.log import Moment, Validation, read_log
from regard.settings import Settings
from regard.tasks.load import load
from regard.trainer.start import fitted, resume, start


class Interrupts(small.Notes):
    """Sends a signal to its own process after some steps."""

    def __init__(self, step: int, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.step, self.number = step, number

    def moment(self, moment: Moment) -> None:
        super().moment(moment)
        if moment.step == self.step:
            os.kill(os.getpid(), self.number)


@pytest.fixture(autouse=True)
def every_step_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)


GUIDED = "train.alignment={kind='guided', links='gold', weight=0.5}"
EXACT = {
    "transformer-tiny": ("train.average={kind='moving'}", "train.accumulate=2", "train.alignment={kind='guided'}"),
    "luong-hard": ("train.optimizer=adamw", "train.word_dropout=0.1"),
    "bahdanau": ("train.scheduled_sampling=0.3", "train.optimizer=sgd", "model.variational=true"),
    "lstm": ("text.tokenizer=bpe", "text.size=320", "text.sampling=true", "train.average={kind='last', count=2}"),
    "conditional": ("text.tokenizer=bpe", "text.size=320", "text.sampling=true", GUIDED),
}


@pytest.mark.parametrize("preset", EXACT)
def test_resuming_is_never_having_stopped(preset: str, tmp_path: Path) -> None:
    """Bit for bit, with dropout, averaging and sampling: interrupted twice, in the middle and at a validation."""
    settings = small.settings(preset, *EXACT[preset])
    start(tmp_path / "whole", settings, small.Notes())
    outcome = start(tmp_path / "parts", settings, Interrupts(3))
    assert (outcome.reason, outcome.progress.step) == ("interrupted", 4)
    outcome = resume(tmp_path / "parts", Interrupts(9, signal.SIGTERM))
    assert (outcome.reason, outcome.progress.step) == ("interrupted", 10)
    assert resume(tmp_path / "parts", small.Notes()).reason == "steps"
    assert small.weights(tmp_path / "whole") == small.weights(tmp_path / "parts")
    best = [best_checkpoint(Run.open(tmp_path / name)) for name in ("whole", "parts")]
    assert checkpoint.load_progress(best[0]).best == checkpoint.load_progress(best[1]).best
    assert best[0].name == best[1].name


class Killed(Interrupts):
    """Interrupts a second time, while the step that was saved is judged."""

    def validation(self, validation: Validation) -> None:
        super().validation(validation)
        if validation.step > self.step:
            raise KeyboardInterrupt


def test_a_validation_that_was_cut_off_is_done_when_the_training_goes_on(tmp_path: Path) -> None:
    """In the middle, and at the end."""
    settings = small.settings("gru", "train.average={kind='last', count=2}")
    start(tmp_path / "whole", settings, small.Notes())
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path / "parts", settings, Killed(9))
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path / "parts", Killed(11))
    notes = small.Notes()
    assert resume(tmp_path / "parts", notes).reason == "steps"
    assert [validation.step for validation in notes.validations] == [12]
    assert small.weights(tmp_path / "whole") == small.weights(tmp_path / "parts")
    whole, parts = (
        checkpoint.load_progress(tmp_path / name / "checkpoints" / "step-12") for name in ("whole", "parts")
    )
    assert replace(whole, seconds=0.0) == replace(parts, seconds=0.0)


def test_a_finished_run_may_be_resumed_and_stays_as_it_is(tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("lstm"), small.Notes())
    before = small.weights(tmp_path / "run")
    assert resume(tmp_path / "run", small.Notes()).reason == "steps"
    assert small.weights(tmp_path / "run") == before


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(tmp_path: Path) -> None:
    settings = small.settings("lstm", "train.keep=1")
    start(tmp_path / "whole", settings, small.Notes())
    start(tmp_path / "run", settings, Interrupts(7))
    broken = checkpoint.steps(tmp_path / "run" / "checkpoints")[-1] / "weights.safetensors"
    data = bytearray(broken.read_bytes())
    data[-1] ^= 1
    broken.write_bytes(data)
    notes = small.Notes()
    resume(tmp_path / "run", notes, Interrupts(6))
    found = [path.name for path in checkpoint.steps(tmp_path / "run" / "checkpoints")]
    assert found == ["step-5", "step-7"], "the damaged one, which is later, goes; what was trained since stays"
    resume(tmp_path / "run", small.Notes())
    assert f"{broken}: is not what was written; the checkpoint is damaged; the one before is used" in notes.lines
    assert small.weights(tmp_path / "whole") == small.weights(tmp_path / "run")


def test_an_average_of_the_last_does_without_a_damaged_checkpoint(tmp_path: Path) -> None:
    """The one that resuming passed over was newer than what is trained now, and goes."""
    overrides = ("train.average={kind='last', count=3}", "train.validate_every=3", "train.keep=9")
    start(tmp_path / "run", small.settings("lstm", *overrides), Interrupts(7))
    found = checkpoint.steps(tmp_path / "run" / "checkpoints")
    assert [path.name for path in found] == ["step-3", "step-6", "step-8"]
    for path in found[1:]:
        file = path / "weights.safetensors"
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    notes = small.Notes()
    assert resume(tmp_path / "run", notes).reason == "steps"
    assert [path.name for path in checkpoint.steps(found[0].parent)] == ["step-3", "step-6", "step-9", "step-12"]
    left = [checkpoint.load(tmp_path / "run" / "checkpoints" / f"step-{step}") for step in (3, 6, 9, 12)]
    for name, tensor in left[-1].average.items():
        torch.testing.assert_close(tensor, sum(each.weights[name] for each in left[1:]) / 3)
    assert (tmp_path / "run" / "best").read_text().strip() in {"step-6", "step-9", "step-12"}


def test_a_damaged_checkpoint_among_the_last_is_named_and_left_out_of_their_average(tmp_path: Path) -> None:
    overrides = ("train.average={kind='last', count=3}", "train.validate_every=3", "train.keep=9")
    start(tmp_path / "run", small.settings("lstm", *overrides), Interrupts(7))
    file = tmp_path / "run" / "checkpoints" / "step-3" / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    notes = small.Notes()
    assert resume(tmp_path / "run", notes).reason == "steps"
    line = f"{file}: is not what was written; the checkpoint is damaged; the average does without it"
    assert notes.lines.count(line) == 1


def test_what_an_interruption_finds_best_is_used_until_the_training_goes_on(tmp_path: Path) -> None:
    overrides = ("train.rate=0.05", "train.validate_every=5")
    start(tmp_path / "run", small.settings("gru", *overrides), Interrupts(6))
    assert best_checkpoint(Run.open(tmp_path / "run")).name == "step-7"
    assert checkpoint.load_progress(tmp_path / "run" / "checkpoints" / "step-7").best_step == 5


def test_a_run_killed_while_it_trains_loses_nothing(tmp_path: Path) -> None:
    """Once, here; `make kill` does it twenty times, at moments that chance chooses."""
    corpus = small.animals(tmp_path)
    settings = small.settings("transformer-tiny", "train.validate_every=2", "train.average={kind='moving'}", *corpus)
    (tmp_path / "small.toml").write_text(settings.to_toml())
    log = tmp_path / "killed" / "log.jsonl"
    child = begun("train", str(tmp_path / "small.toml"), "--out", str(tmp_path / "killed"), "--device", "cpu")
    while child.exitcode is None and not (log.exists() and '"validation"' in log.read_text()):
        time.sleep(0.01)
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert resume(tmp_path / "killed", small.Notes(), device="cpu").progress.step == settings.train.steps
    start(tmp_path / "whole", settings, small.Notes(), device="cpu")
    assert small.weights(tmp_path / "killed") == small.weights(tmp_path / "whole")


def losses(folder: Path) -> torch.Tensor:
    return torch.tensor([event["loss"] for event in read_log(folder / "log.jsonl") if event["event"] == "validation"])


def test_two_processes_train_as_one_does_and_may_become_one(tmp_path: Path) -> None:
    corpus = small.animals(tmp_path)

    def settings(steps: int) -> Settings:
        overrides = ("model.dropout=0.0", "train.validate_every=2", f"train.steps={steps}")
        return small.settings("transformer-tiny", *overrides, *corpus)

    (tmp_path / "half.toml").write_text(settings(4).to_toml())
    start(tmp_path / "one", settings(8), small.Notes(), device="cpu")
    said = together("train", str(tmp_path / "half.toml"), "--out", str(tmp_path / "both"), "--device", "cpu")
    assert (said.count("all steps are done after 4 steps"), said.count("Ctrl-C saves and stops it")) == (1, 1)
    torch.testing.assert_close(losses(tmp_path / "both"), losses(tmp_path / "one")[:2], atol=1e-5, rtol=0)
    (tmp_path / "both" / "settings.toml").write_text(settings(8).to_toml())
    resume(tmp_path / "both", small.Notes(), device="cpu")
    torch.testing.assert_close(losses(tmp_path / "both"), losses(tmp_path / "one"), atol=1e-5, rtol=0)


def test_two_processes_teach_adapters_as_one_does(tmp_path: Path) -> None:
    corpus = small.animals(tmp_path)
    start(tmp_path / "base", small.settings("transformer-tiny", "train.steps=2", *corpus), small.Notes(), device="cpu")
    limits = ("train.steps=4", "train.validate_every=2", "train.batch=128", "train.rate=0.01", "train.warmup=1")
    given = (f"train.base={tmp_path / 'base'}", *corpus, *limits, "train.adapt.kind=lora", "model.dropout=0.0")
    together("train", *given, "--out", str(tmp_path / "both"), "--device", "cpu")
    start(tmp_path / "one", fitted("", *given, device="cpu")[0], small.Notes(), device="cpu")
    assert len(set(losses(tmp_path / "one").tolist())) == 3
    torch.testing.assert_close(losses(tmp_path / "both"), losses(tmp_path / "one"), atol=1e-5, rtol=0)


def test_two_processes_with_dropout_go_on_as_if_never_stopped(tmp_path: Path) -> None:
    """Bit for bit, with sampling and an average of the last; in batches of so few tokens one of them has no row."""
    overrides = ("text.tokenizer=bpe", "text.size=120", "text.sampling=true", "train.average={kind='last', count=2}")
    limits = ("train.batch=24", "train.validate_every=2", "train.steps=6", *small.animals(tmp_path))
    (tmp_path / "small.toml").write_text(small.settings("transformer-tiny", *overrides, *limits).to_toml())
    together("train", str(tmp_path / "small.toml"), "--out", str(tmp_path / "whole"), "--device", "cpu")
    shutil.copytree(tmp_path / "whole", tmp_path / "parts")
    for step in (4, 6):  # as if killed after step 2
        shutil.rmtree(tmp_path / "parts" / "checkpoints" / f"step-{step}")
    together("train", "--resume", str(tmp_path / "parts"), "--device", "cpu")
    assert small.weights(tmp_path / "whole") == small.weights(tmp_path / "parts")


@pytest.mark.parametrize("preset", tiny.PRESETS)
def test_every_preset_learns(preset: str, tmp_path: Path) -> None:
    notes = small.Notes()
    overrides = ("train.steps=20", "train.validate_every=10", "train.rate=0.01", "train.smoothing=0.0")
    joint = ["model.tie=target"] if preset in ("transformer-base", "transformer-big") else []
    start(tmp_path / "run", small.settings(preset, *overrides, *joint), notes)
    assert notes.validations[-1].loss < notes.validations[0].loss - 0.1


@pytest.mark.parametrize(("task", "preset"), [("language", "gru"), ("tag", "lstm"), ("classify", "transformer-tiny")])
def test_every_task_learns(task: str, preset: str, tmp_path: Path) -> None:
    notes = small.Notes()
    overrides = ("train.steps=90", "train.validate_every=10", "train.rate=0.01", "train.smoothing=0.0")
    start(tmp_path / "run", small.settings(preset, f"task={task}", "data.pairs=3000", *overrides), notes)
    assert notes.validations[-1].loss < notes.validations[0].loss - 0.02
    assert notes.validations[-1].name == {"language": "perplexity"}.get(task, "accuracy")
    with pytest.raises(ModelError, match=f"is a run for task '{task}', which does not translate"):
        load(tmp_path / "run")


def test_training_stops_when_patience_is_lost(tmp_path: Path) -> None:
    overrides = ("train.rate=1e-9", "train.patience=2", "train.validate_every=1", "train.metric=score")
    outcome = start(tmp_path / "run", small.settings("gru", *overrides), small.Notes())
    assert (outcome.reason, outcome.progress.step) == ("patience", 3)


def test_training_stops_when_time_is_up(tmp_path: Path) -> None:
    settings = small.settings("gru", "train.time=0.5s", "train.steps=100000", "train.validate_every=100000")
    outcome = start(tmp_path / "run", settings, small.Notes())
    assert outcome.reason == "time"
    assert outcome.progress.seconds >= 0.5


def test_the_run_folder_holds_what_it_says(tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("lstm"), small.Notes())
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"settings.toml", "tokenizer", "checkpoints", "best", "log.jsonl", "data"}
    run = Run.open(tmp_path / "run")
    assert run.settings == small.settings("lstm")
    assert best_checkpoint(run).name == (tmp_path / "run" / "best").read_text().strip()
    assert len(checkpoint.steps(run.checkpoints)) <= 4


def test_a_run_is_not_written_over(tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("lstm", "train.steps=1"), small.Notes())
    with pytest.raises(ModelError, match="holds a run already; continue it with regard train --resume"):
        start(tmp_path / "run", small.settings("lstm"), small.Notes())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(ModelError, match="is there already and is not a run"):
        start(tmp_path / "other", small.settings("lstm"), small.Notes())


@pytest.mark.parametrize("more", [(), ("--continue",)])
def test_a_run_that_is_refused_is_not_announced(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, run = tmp_path / "small.toml", tmp_path / "run"
    settings.write_text(small.settings("lstm", "train.steps=1").to_toml())
    command = ["train", str(settings), "--out", str(run), *more]
    assert cli(command) == 0
    assert capsys.readouterr().err.startswith(f"training {run}; Ctrl-C ")
    assert cli([*command, "train.seed=5"]) in (2, 4)
    said = capsys.readouterr().err
    assert ("holds a run already" in said or "repeat the command that began it" in said, "Ctrl-C" in said) == (
        True,
        False,
    )


def test_a_folder_that_is_no_run_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such folder; regard train makes one"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"is not a run: it has no settings\.toml"):
        load(tmp_path)
    Run.create(tmp_path / "new", small.settings("lstm"))
    with pytest.raises(ModelError, match="cannot be read"):
        load(tmp_path / "new")


def test_a_run_without_a_checkpoint_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has no checkpoint yet; train it first"):
        best_checkpoint(Run.create(tmp_path / "new", small.settings("lstm")))


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["data.corpus=''"], "the training corpus is missing; give data.source and data.target"),
        (["data.corpus=some.tsv"], "some.tsv: cannot be read"),
        (
            ["data.corpus=''", "data.source=x", "data.target=y", "data.valid_corpus=y", "data.valid_source=z"],
            "the validation corpus is given in two",
        ),
        (["data.corpus=''", "data.source=x"], "data.source = x: is one side of a corpus; give data.target, or task="),
        (["data.corpus=some.tsv", "data.source=x"], "the training corpus is given in two ways"),
        (["data.corpus='fable:de'"], "fable has no such target language"),
    ],
)
def test_a_corpus_must_be_named_once(overrides: list[str], problem: str, tmp_path: Path) -> None:
    notes = small.Notes()
    with pytest.raises(RegardError, match=problem):
        start(tmp_path / "run", small.settings("lstm", *overrides), notes)
    assert not (tmp_path / "run").exists()
    assert not notes.lines


def test_the_users_own_files_are_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fable = tmp_path / "fable"
    assert cli(["data", "make", "fable", str(fable), "--pairs", "200", "--held-out", "50", "--words", "1-8"]) == 0
    files = [
        *("--source", str(fable / "train.en"), "--target", str(fable / "train.fr")),
        *(f"data.valid_source={fable}/valid.en", f"data.valid_target={fable}/valid.fr"),
    ]
    sizes = ["model.width=16", "model.hidden=16", "train.steps=4", "train.validate_every=2", "text.size=400"]
    out = ["--out", str(tmp_path / "run"), "--device", "cpu"]
    assert cli(["train", "gru", *files, *out, "--json", *sizes]) == 0
    assert '"reason": "steps"' in capsys.readouterr().out
    assert cli(["translate", str(tmp_path / "run"), "the cat sleeps", "", "--device", "cpu"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("lines", [1, 3, 30])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_corpus_of_a_few_lines_trains_with_the_usual_vocabulary(lines: int, kind: str, tmp_path: Path) -> None:
    for side in ("en", "fr"):
        text = "".join(f"the cat {number} in {side}\n" for number in range(lines))
        (tmp_path / f"train.{side}").write_text(text, encoding="utf-8")
    names = ("source", "target")
    files = [
        f"data.{valid}{name}='{tmp_path}/train.{side}'"
        for valid in ("", "valid_")
        for name, side in zip(names, ("en", "fr"), strict=True)
    ]
    chosen = (*files, "data.corpus=''", f"text.tokenizer={kind}", "text.joint=true", "train.steps=2")
    notes = small.Notes()
    start(tmp_path / "run", small.settings("lstm", *chosen), notes)
    told = [line for line in notes.lines if "instead of 8,000" in line]
    assert len(told) == 1
    assert load(tmp_path / "run").translate("the cat 0 in en").warning == ""
