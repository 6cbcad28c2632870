"""The first training of a stranger: a corpus and nothing else; then more of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import corpora_for_tests as small
from regard.cli.main import run as cli
from regard.data.encoding import PairEncoder
from regard.data.readers import Corpus
from regard.data.shards import open_shards
from regard.errors import DataError, ModelError, SettingsError
from regard.fable.corpus import generate
from regard.runs import checkpoint
from regard.runs.folder import Run, load_progress, steps
from regard.runs.listing import summarise
from regard.runs.log import Moment, read_log
from regard.settings import load_settings
from regard.tasks.corpus import Files, materials
from regard.tasks.load import task_of
from regard.trainer.start import fitted, free_place, preflight, resume, start, train

TINY = ("model.width=16", "model.hidden=16", "train.batch=256")
NAMES = PairEncoder.names


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def corpus_of(rows: int, folder: Path = Path()) -> list[str]:
    """Two files with so many pairs."""
    pairs = [(each.source, each.target) for each in generate("fr", count=rows, split="train", maximum_words=7)]
    for place, name in enumerate(("text.en", "text.fr")):
        (folder / name).write_text("".join(f"{pair[place]}\n" for pair in pairs))
    return ["--source", str(folder / "text.en"), "--target", str(folder / "text.fr")]


def errors_of(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


# A corpus is enough


def test_two_files_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["train", *TINY, *corpus_of(120), "--steps", "3", "model.heads=2", "--device", "cpu"]) == 0
    said = errors_of(capsys)
    assert "training runs/en-fr; Ctrl-C" in said
    assert "fitted to " in said
    assert "held out for validation: 6 of 120 pairs, which training does not see" in said
    assert "all steps are done after 3 steps; the best model is in runs/en-fr; try: regard translate runs/en-fr" in said
    settings = Run.open(Path("runs/en-fr")).settings
    assert settings.data.source == str(Path("text.en").absolute())
    assert (settings.model.kind, settings.train.schedule) == ("transformer", "cosine")
    assert cli(["train", *TINY, *corpus_of(120), "--steps", "1", "model.heads=2", "--device", "cpu"]) == 0
    assert "training runs/en-fr-2, because a run of its name exists;" in errors_of(capsys)


@pytest.mark.parametrize(
    ("header", "option", "languages"),
    [("German;English", "--corpus", "de-en"), ("German;English", "--source", "de-en"), ("fein;fine", "--corpus", "")],
)
def test_a_run_of_a_table_has_the_languages_of_its_header(header: str, option: str, languages: str) -> None:
    rows = "".join(f"ein Hund {number};a dog {number}\n" for number in range(30))
    Path("pairs.csv").write_text(f"{header}\n{rows}")
    words = ["train", *TINY, option, "pairs.csv", "--steps", "1", "model.heads=2", "--device", "cpu"]
    assert cli([*words, "--out", "run"]) == 0
    assert Run.open(Path("run")).settings.data.languages == languages
    Path("again.toml").write_text(re.sub("languages = .*", 'languages = ""', Path("run/settings.toml").read_text()))
    for _ in range(2):
        assert cli(["train", "again.toml", "--continue", "--out", "again", "--device", "cpu"]) == 0


def test_what_is_not_learned_and_what_should_not_be_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", *TINY, *corpus_of(60), "--steps", "2", "model.heads=2", "model.dropout=0.2", "--device", "cpu"]
    for name, place, line in (("text.en", 4, ""), ("text.fr", 7, " "), ("text.en", 9, "the cat " * 300)):
        lines = Path(name).read_text().split("\n")
        lines[place] = line
        Path(name).write_text("\n".join(lines))
    assert cli([*words, "--out", "run"]) == 0
    said = errors_of(capsys)
    assert "left out of training: 1 of 57 pairs, which have more than 200 pieces" in said
    assert "left out of training: 2 of 57 pairs, which have an empty side" in said
    assert "dropout 0.2" not in said  # it was given
    assert cli(["train", "--resume", "run", "--steps", "+1", "--device", "cpu"]) == 0
    assert "empty side" not in errors_of(capsys)


def test_a_run_that_goes_on_says_from_where(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "transformer-tiny", *TINY, *corpus_of(60), "--out", "run", "model.heads=2", "--device", "cpu"]
    assert cli([*words, "--steps", "3", "--continue"]) == 0
    assert "going on" not in errors_of(capsys)
    assert cli([*words, "--steps", "3", "--continue"]) == 0
    assert "going on" not in errors_of(capsys)  # it is finished
    settings = Path("run/settings.toml")
    settings.write_text(settings.read_text().replace("steps = 3", "steps = 5"))
    assert cli([*words, "--steps", "5", "--continue"]) == 0
    assert "going on from step 3, after 0:0" in errors_of(capsys)


def test_a_corpus_without_a_line_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("none.en", "none.fr"):
        Path(name).touch()
    assert cli(["train", "--source", "none.en", "--target", "none.fr", "--steps", "2", "--device", "cpu"]) == 3
    assert "none.en, none.fr: no row to train on; a corpus has at least one line" in errors_of(capsys)
    assert not Path("runs/en-fr").exists()


@pytest.mark.parametrize("changed", [["text.tokenizer=word"], ["text.tokenizer=sentencepiece"], ["task=language"]])
def test_subword_sampling_without_subwords_is_refused(changed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "transformer-tiny", "--corpus", "fable:fr", "data.pairs=50", "text.sampling=true", *changed]
    assert cli([*words, "--device", "cpu"]) == 2
    assert "text.sampling = true: is for translation with bpe or unigram" in errors_of(capsys)


@pytest.mark.parametrize("rows", [1, 3, 30])
def test_few_lines_are_enough_too(rows: int, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "gru", *TINY, *corpus_of(rows), "--steps", "2", "text.tokenizer=word"]
    assert cli([*command, "--device", "cpu"]) == 0
    said = errors_of(capsys)
    assert ("validation uses training" in said) is (rows < 20)
    assert "validation loss" in said


@pytest.mark.parametrize("task", ["language", "tag", "classify"])
def test_every_task_needs_one_file_alone(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [("the cat sleeps", "D N V"), ("a dog ran off", "D N V P")] * 30
    if task == "classify":
        lines = [(f"text {number} here", "good" if number % 2 else "bad") for number in range(60)]
    text = "".join("\t".join(line[: len(task_of(task).columns)]) + "\n" for line in lines)
    name = "book.txt" if task == "language" else "table.tsv"
    Path(name).write_text(text)
    sizes = [
        "model.width=16",
        "model.hidden=16",
        "text.tokenizer=word",
        *(["model.heads=2"] if task == "language" else []),
    ]
    assert cli(["train", *sizes, f"task={task}", "--corpus", name, "--steps", "2", "--device", "cpu"]) == 0
    folder = Path("runs") / f"{Path(name).stem}-{task}"
    assert f"the best model is in {folder}; try: regard predict {folder}" in errors_of(capsys)


def test_training_never_sees_what_is_held_out(tmp_path: Path) -> None:
    corpus_of(300)
    with Path("text.en").open("a") as source, Path("text.fr").open("a") as target:  # each of them once more
        source.write(Path("text.en").read_text())
        target.writelines(f"{line} encore\n" for line in Path("text.fr").read_text().splitlines())
    settings = load_settings("gru", "data.source=text.en", "data.target=text.fr")
    training, validation = ([row for _, row in part.rows(NAMES)] for part in materials(settings))
    assert len(training) + len(validation) == 600
    assert 2 <= len(validation) <= 30
    assert not {row[0] for row in training} & {row[0] for row in validation}
    assert [row for _, row in materials(settings)[1].rows(NAMES)] == validation
    start(tmp_path / "run", settings.model_copy(update=small_parts()), small.Notes())
    assert len(open_shards(tmp_path / "run" / "data" / "train")) == len(training)


def small_parts() -> dict[str, object]:
    made = small.settings("gru", "train.steps=1")
    return {"model": made.model, "text": made.text, "train": made.train}


def test_a_text_that_fills_the_corpus_is_not_held_out() -> None:
    Path("same.tsv").write_text("the cat\tle chat\n" * 50)
    assert Files(Corpus(("same.tsv",)), "train").held_out(NAMES) == (-1, 0, 50)


def test_at_most_a_thousand_rows_are_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.tasks.corpus.VALID", 1000)
    Path("many.tsv").write_text("".join(f"row {number}\tligne {number}\n" for number in range(25_000)))
    files = Files(Corpus(("many.tsv",)), "valid")
    assert files.held_out(NAMES)[1] == 1000
    assert sum(1 for _ in files.rows(NAMES)) == 1000


def test_a_run_has_the_name_of_its_preset_or_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(preset: str, *overrides: str) -> str:
        return str(free_place(preset, load_settings("lstm", *overrides)))

    assert name("lstm") == "runs/lstm"
    assert name("", "data.source=a/train.de.gz", "data.target=a/train.en.gz") == "runs/de-en"
    assert name("", "data.source=a/german.txt", "data.target=a/english.txt") == "runs/german"
    assert name("", "data.corpus='fable:hi'") == "runs/fable-hi"
    assert name("", "data.corpus=a/reviews.tsv.gz", "task=classify") == "runs/reviews-classify"
    Path("runs/lstm").mkdir(parents=True)
    Path("runs/lstm-2").mkdir()
    assert name("lstm") == "runs/lstm-3"
    monkeypatch.setenv("RANK", "1")
    assert name("lstm") == "runs/lstm"


def test_python_needs_no_preset_either() -> None:
    sizes = ("model.width=16", "model.heads=2", "model.hidden=16", "data.pairs=100", "text.tokenizer=word")
    run = train("", *sizes, "model.tie=target", "text.joint=false", "train.steps=2", corpus="fable:fr")
    assert str(run.folder) == "runs/fable-fr"
    assert read_log(run.log)[0]["text"].startswith("fitted to ")


def test_a_settings_file_is_taken_as_it_is() -> None:
    Path("own.toml").write_text(load_settings("gru", "data.corpus='fable:fr'").to_toml())
    assert fitted("own.toml") == (load_settings("gru", "data.corpus='fable:fr'"), "")


# What cannot work is said before anything is made


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["gru", "--source", "none.en", "--target", "none.fr"], "none.en: cannot be read (No such file or directory)"),
        (["gru", "--corpus", "fable:fr", "data.pairs=97", "train.step=graph"], "train.step = graph: needs a GPU"),
        (
            ["gru", "--corpus", "fable:fr", "data.pairs=97", "--steps", "+5"],
            "--steps = +5: not a number of steps; give",
        ),
        (["--resume", "runs/x", "train.rate=1"], "uses the run's own settings; add only --time or --steps"),
    ],
)
def test_errors_come_early(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["train", *arguments, "--device", "cpu"]) in (2, 3)
    said = errors_of(capsys)
    assert problem in said
    assert "learning a" not in said
    assert not Path("runs").exists()


def test_quiet_is_quiet_and_a_dry_run_tells_its_settings_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    command = ["train", "gru", *TINY, *corpus_of(60), "text.tokenizer=word", "--device", "cpu", "--quiet", "--json"]
    assert cli([*command, "--dry-run", "--time", "3s"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"] == "runs/gru"
    assert found["settings"]["train"]["time"] == "3s"
    assert found["seconds"] <= 3
    assert not Path("runs").exists()
    assert not list((tmp_path / "temporary").iterdir())
    assert cli([*command, "--steps", "1"]) == 0
    out, said = capsys.readouterr()
    assert json.loads(out)["run"] == "runs/gru"
    assert said == ""


def test_all_settings_are_shown_without_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["settings", "show"]) == 0
    assert "validate_every = 0" in capsys.readouterr().out


# By the clock


class Clock:
    """Time that passes when a step is taken, and not otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
        self.now = 0.0
        from regard.trainer.loop import Trainer  # noqa: PLC0415

        real = Trainer._take

        def take(*given: object) -> None:
            self.now += step
            real(*given)  # type: ignore[arg-type]

        clock = SimpleNamespace(monotonic=lambda: self.now)  # of this module: a service of other tests needs its own
        monkeypatch.setattr("regard.trainer.pace.time", clock)
        monkeypatch.setattr(Trainer, "_take", take)


def test_there_are_about_ten_validations_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, 2.0)
    notes = small.Notes()
    settings = small.settings("gru", "train.time=100s", "train.steps=1000", "train.validate_every=0")
    outcome = start(tmp_path / "run", settings, notes)
    assert outcome.reason == "time"
    assert [each.step for each in notes.validations][:3] == [5, 10, 15]
    assert notes.validations[-1].step == outcome.progress.step
    assert any("steps in 1:" in line and "times through the corpus" in line for line in notes.lines)
    assert {moment.limit for moment in notes.moments} == {100.0}


def test_there_is_a_checkpoint_every_few_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, 50.0)
    settings = small.settings("gru", "train.steps=7", "train.validate_every=100", "train.keep=9")
    start(tmp_path / "run", settings, small.Notes())
    assert [path.name for path in steps(tmp_path / "run" / "checkpoints")] == ["step-3", "step-6", "step-7"]


def test_without_a_limit_validations_come_ever_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, 10.0)
    notes = small.Notes()
    start(tmp_path / "run", small.settings("gru", "train.steps=40", "train.validate_every=0"), notes)
    found = [each.step for each in notes.validations]
    assert 4 <= len(found) <= 7
    assert found[1] - found[0] < found[-2] - found[-3]


def test_when_one_validates_changes_nothing(tmp_path: Path) -> None:
    for name, every in (("often", 1), ("seldom", 100)):
        overrides = ("train.steps=6", f"train.validate_every={every}", "train.average={kind='moving'}")
        start(tmp_path / name, small.settings("transformer-tiny", *overrides), small.Notes())
    assert small.weights(tmp_path / "often") == small.weights(tmp_path / "seldom")


class Stops(small.Notes):
    """Interrupts after some steps; asked to, a second time when the validation has begun."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def moment(self, moment: Moment) -> None:
        super().moment(moment)
        if moment.step == self.step:
            os.kill(os.getpid(), signal.SIGINT)


def test_a_stopped_training_has_a_score_and_loses_no_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    notes = Stops(2)
    outcome = start(tmp_path / "run", small.settings("gru", "train.validate_every=100"), notes)
    assert outcome.reason == "interrupted"
    assert [each.step for each in notes.validations] == [outcome.progress.step]
    assert summarise(tmp_path / "run").score is not None
    again = Stops(6)
    monkeypatch.setattr("regard.trainer.loop._metric", lambda *_: -1e9)
    assert resume(tmp_path / "run", again).progress.stale == 0


def test_a_second_signal_leaves_a_checkpoint() -> None:
    """It comes while the score is being found."""
    script = (
        "import os, signal, pathlib, corpora_for_tests as small\n"
        "from regard.trainer import loop, pace\n"
        "from regard.trainer.start import start\n"
        "class Twice(small.Notes):\n"
        "    def moment(self, moment):\n"
        "        if moment.step == 1:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "pace.LOG_EVERY = 0.0\n"
        "loop.Trainer._validate = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)\n"
        "start(pathlib.Path('run'), small.settings('gru', 'train.validate_every=100'), Twice(), device='cpu')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(small.__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=False, timeout=300, capture_output=True
    )
    assert done.returncode == 130, done.stderr.decode()
    assert [path.name for path in steps(Path("run/checkpoints"))] == ["step-2"]
    checkpoint.load(Path("run/checkpoints/step-2"))


# Going on


def test_a_finished_run_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(tmp_path / "run", small.settings("gru", "train.steps=3"), small.Notes())
    assert cli(["train", "--resume", "run", "--device", "cpu"]) == 0
    said = errors_of(capsys)
    assert (
        "run: is finished, all steps are done after 3 steps; resume with: regard train --resume run --time 10m" in said
    )


def test_more_steps_go_on_from_where_a_run_ended(tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("gru", "train.steps=6", "train.schedule=linear"), small.Notes())
    notes = small.Notes()
    outcome = resume(tmp_path / "run", notes, more="+8")
    assert (outcome.reason, outcome.progress.step, outcome.taken) == ("steps", 14, 8)
    assert Run.open(tmp_path / "run").settings.train.steps == 14
    assert notes.lines[0].startswith("going on from step 6, 0:0")
    assert "until step 14; the learning rate rises again and falls to zero by then" in notes.lines[0]
    assert load_progress(steps(tmp_path / "run" / "checkpoints")[-1]).since_step == 6
    rates = [event["rate"] for event in read_log(tmp_path / "run" / "log.jsonl") if event["event"] == "step"]
    assert max(rates[-3:]) > 0
    assert resume(tmp_path / "run", small.Notes(), more="20").progress.step == 20


def test_the_decay_begins_again_and_goes_on_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as long in two parts is the same whether the second part is interrupted or not."""
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    settings = small.settings("transformer-tiny", "train.steps=6", "train.schedule=cosine", "train.warmup=2")
    start(tmp_path / "whole", settings, small.Notes())
    shutil.copytree(tmp_path / "whole", tmp_path / "parts")
    resume(tmp_path / "whole", small.Notes(), more="12")
    assert resume(tmp_path / "parts", Stops(8), more="+6").reason == "interrupted"
    resume(tmp_path / "parts", small.Notes())
    assert small.weights(tmp_path / "whole") == small.weights(tmp_path / "parts")
    events = read_log(tmp_path / "parts" / "log.jsonl")
    rates = {event["step"]: event["rate"] for event in events if event["event"] == "step"}
    assert rates[6] == pytest.approx(0, abs=1e-9)
    assert rates[8] > rates[11] > rates[12]


def test_more_time_counts_from_now_and_lifts_the_limit_of_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path / "run", small.settings("gru", "train.steps=3"), small.Notes())
    before = load_progress(steps(tmp_path / "run" / "checkpoints")[-1])
    outcome = resume(tmp_path / "run", small.Notes(), time="0.3s")
    assert outcome.reason == "time"
    assert outcome.progress.step > 3
    train = Run.open(tmp_path / "run").settings.train
    assert train.seconds == pytest.approx(before.seconds + 0.3, rel=1e-3)
    assert train.steps > 10**5
    assert cli(["runs", "ls", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert f"{outcome.progress.step:,}" in listed
    assert " of 1,000,000" not in listed


@pytest.mark.parametrize("more", ["3", "many", "+0"])
def test_less_is_not_more(more: str, tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("gru", "train.steps=3"), small.Notes())
    with pytest.raises(SettingsError, match="--steps = "):
        resume(tmp_path / "run", small.Notes(), more=more)
    assert Run.open(tmp_path / "run").settings.train.steps == 3


def test_a_run_goes_on_from_another_folder_and_tells_of_a_changed_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus_of(60)
    assert cli(["train", "gru", *TINY, "--source", "text.en", "--target", "text.fr", "--steps", "2", "--quiet"]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    notes = small.Notes()
    resume(tmp_path / "runs" / "gru", notes, more="+1", device="cpu")
    assert not any("has changed" in line for line in notes.lines)
    corpus_of(70, tmp_path)
    resume(tmp_path / "runs" / "gru", notes, more="+1", device="cpu")
    assert "the train corpus has changed since this run was prepared, and was encoded again" in notes.lines


def test_a_run_without_a_whole_checkpoint_is_not_begun_anew(tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("gru", "train.steps=3"), small.Notes())
    for path in steps(tmp_path / "run" / "checkpoints"):
        (path / "weights.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="and no other is whole; train again with another --out"):
        resume(tmp_path / "run", small.Notes())


def test_an_estimate_comes_from_real_steps(tmp_path: Path) -> None:
    found = preflight(tmp_path / "run", small.settings("gru"), small.Notes(), device="cpu")
    assert found.seconds > 0
    assert found.memory > 100 * 2**20  # that of the program is most of it
    assert not steps(tmp_path / "run" / "checkpoints")
    with pytest.raises(DataError, match="cannot be read"):
        preflight(tmp_path / "other", small.settings("gru", "data.corpus=none.tsv"), small.Notes(), device="cpu")
