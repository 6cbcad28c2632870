"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

import corpora_for_tests as small
from regard import __version__
from regard.cli.display import Events, PlainLines, ProgressBar, display, when
from regard.cli.main import run
from regard.cli.streams import stdin
from regard.cli.train import preset_of
from regard.errors import DataError, ResourceError
from regard.runs.folder import Run, occupied
from regard.runs.listing import trashed
from regard.runs.log import Moment, Validation
from regard.settings.demo import demo_settings
from regard.trainer.loop import Trainer
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
MOMENT = Moment(1200, 3, 2.5, 0.7, 1e-3, 9000, 5000.0, 60.0, 0.25, 300 << 20, limit=240.0, left=180.0)
VALIDATION = Validation(1200, 3, 60.0, 1.25, 33.3, "BLEU", best=True)


def test_without_a_verb_it_says_what_to_try(capsys: Capture) -> None:
    assert run([]) == 0
    welcome = capsys.readouterr().out
    assert len(welcome.splitlines()) <= 12
    assert 'regard translate demo "' in welcome
    assert "regard demo" in welcome
    assert "transformer-big" in welcome


def test_it_knows_its_version(capsys: Capture) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


def test_help_is_quick_because_it_does_without_torch_and_settings() -> None:
    heavy = "{'torch', 'numpy', 'pydantic', 'rich.progress'} & sys.modules.keys()"
    script = f"import sys; from regard.cli.main import run; run(['--help']); sys.exit(bool({heavy}))"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=300, capture_output=True).returncode == 0


MISTAKES = {
    "a mistyped verb": (["trian"], 2, "trian: no such verb; did you mean 'train'?\n  regard --help\n"),
    "a mistyped verb inside": (
        ["data", "chek"],
        2,
        "chek: no such verb; did you mean 'check'?\n  regard data --help\n",
    ),
    "a mistyped flag": (
        ["train", "lstm", "--sorce", "x"],
        2,
        "--sorce: no such option; did you mean '--source'?\n  regard train --help\n",
    ),
    "a text that begins with a dash": (
        ["translate", "x", "- hello"],
        2,
        "text: begins with a dash, and is taken for an option; put -- before it\n  regard translate --help\n",
    ),
    "a flag without its value": (
        ["train", "lstm", "--out"],
        2,
        "--out: needs a value; write it after the option\n  regard --help\n",
    ),
    "an argument as a flag": (
        ["data", "make", "fable:fr", "--out", "{tmp}/x"],
        2,
        "--out: no such option; give the value without --out\n  regard data make --help\n",
    ),
    "texts in the place of a preset": (
        ["train", __file__, "{tmp}/x"],
        2,
        "test_cli.py: is a file, no preset; settings end in .toml, texts go with --source and --target, "
        "tables with --corpus\n",
    ),
    "a flag that is like none": (
        ["score", "x", "--limit", "3"],
        2,
        "--limit: no such option; known: --device, --help, --json, --on, --out, --quiet, --shard, --source, --target\n",
    ),
    "a text behind a preset": (["train", "lstm", __file__], 2, "is a file, no preset"),
    "a word too many": (
        ["runs", "import", "my", "run.tar"],
        2,
        "run.tar: too many words; give only FILE, in quotes where there are spaces\n  regard runs import --help\n",
    ),
    "words for a verb that takes none": (["doctor", "x", "y"], 2, "x y: too many words; give only options\n"),
    "texts without their option": (["doubt", "demo", "x", "--source", "y"], 2, "x: too many words; give only RUN, in"),
    "a group without a verb": (["runs"], 2, "export"),
    "a number that is none": (
        ["translate", "x", "y", "--beam", "many"],
        2,
        "--beam: not valid; should be a valid integer\n  regard translate --help\n",
    ),
    "a verb of other programs": (["completion"], 2, "completion: no such verb; write regard --install-completion\n"),
    "a run that is not named": (["translate"], 2, "run: is missing; a run folder\n  regard translate --help\n"),
    "a sentence that is not given": (
        ["walk", "demo"],
        2,
        "TEXT: is missing; the sentence, or the beginning of a text for a language model\n  regard walk --help\n",
    ),
    "an option that is not given": (["evaluate", "x"], 2, "--source: is missing; texts, one a line"),
    "a mistyped preset": (["train", "lstn"], 2, "did you mean 'lstm'?"),
    "a mistyped setting": (["train", "lstm", "model.hiden=3"], 2, "did you mean 'hidden'?"),
    "no preset": (["train"], 2, "the training corpus is missing; give data.source and data.target"),
    "no such run": (["translate", "nowhere", "x"], 4, "nowhere: no such folder"),
    "an empty beam": (["translate", "nowhere", "x", "--beam", "0"], 2, "beam = 0"),
    "resuming nothing": (["train", "--resume", "nowhere"], 4, "nowhere: no such folder"),
    "resuming with a preset": (["train", "lstm", "--resume", "nowhere"], 2, "uses the run's own settings"),
    "no corpus": (["train", "lstm", "--out", "{tmp}/run"], 2, "the training corpus is missing"),
    "a missing file": (
        ["train", "lstm", "--source", "{tmp}/no", "--target", "{tmp}/no", "data.valid_source=a", "data.valid_target=b"],
        3,
        "cannot be read",
    ),
    "another corpus": (["data", "make", "novel", "{tmp}/x"], 2, "did you mean 'fable:fr'?"),
    "another language": (["data", "make", "fable:de", "{tmp}/x"], 2, "fable has no such target"),
    "one file for a shift": (["data", "check", "{tmp}/x", "--find-shift"], 2, "compares two parallel files"),
    "an unknown setting": (["settings", "explain", "model.head"], 2, "did you mean 'model.heads'?"),
}


def test_a_second_demo_puts_the_first_into_the_trash_unless_it_is_being_trained(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Run.create(tmp_path / "runs" / "demo", demo_settings()).folder
    monkeypatch.setattr("regard.trainer.start.start", Mock(side_effect=ResourceError("disk: is full")))
    with occupied(folder):
        assert run(["demo"]) == 4
    assert "runs/demo: is being trained by another process; stop it first" in capsys.readouterr().err
    assert run(["demo"]) == 5
    (earlier,) = trashed(folder.parent)["demo"]
    assert (earlier / "settings.toml").is_file()
    assert f"the earlier demo is now runs/.trash/{earlier.name}\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_line_and_its_exit_code(
    name: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, code, expected = MISTAKES[name]
    assert run([word.replace("{tmp}", str(tmp_path)) for word in arguments]) == code
    captured = capsys.readouterr()
    assert expected in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_a_table_in_the_place_of_a_preset_is_answered_with_how_to_train_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("a;b\n", encoding="utf-8")
    assert run(["train", str(table)]) == 2
    assert capsys.readouterr().err.endswith(f"regard train --corpus {table}\n")


def test_a_bug_of_ours_is_called_so(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("regard.settings.preset_names", broken)
    assert run([]) == 1
    assert "this is a bug of Regard's" in capsys.readouterr().err


def test_ctrl_c_between_steps_is_130(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.settings.preset_names", interrupted)
    assert run([]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_ctrl_c_within_a_verb_is_said_and_130(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.settings.load_settings", interrupted)
    assert run(["settings", "show", "lstm"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


# Settings


def test_settings_are_shown_whole(capsys: Capture, tmp_path: Path) -> None:
    assert run(["settings", "show", "lstm", "model.depth=3"]) == 0
    shown = capsys.readouterr().out
    assert "depth = 3" in shown
    assert "smoothing = 0.1" in shown
    (tmp_path / "settings.toml").write_text(shown)
    assert run(["settings", "show", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["depth"] == 3


def test_a_setting_is_explained_with_what_it_takes_and_its_default(capsys: Capture) -> None:
    assert run(["settings", "explain", "train.schedule"]) == 0
    shown = capsys.readouterr().out
    assert "constant, noam, inverse_square_root, cosine, linear; default 'inverse_square_root'" in shown
    assert run(["settings", "explain", "model.kind"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2  # one for each kind of model
    assert run(["settings", "explain", "model.decoder"]) == 0
    assert "a table" in capsys.readouterr().out


def test_schema_and_presets_are_data(capsys: Capture) -> None:
    assert run(["settings", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Settings"
    assert run(["settings", "presets", "--json"]) == 0
    assert next(iter(json.loads(capsys.readouterr().out))) == "rnn"
    assert run(["settings", "presets"]) == 0
    assert capsys.readouterr().out.startswith("rnn ")


def test_the_doctor_says_what_is_there(capsys: Capture) -> None:
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["regard"] == __version__
    assert "GFLOP/s" in found["matrix rate"]
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    for name in ("fastapi", "uvicorn", "ctranslate2", "matplotlib", "tensorboard", "scikit-learn", "datasets"):
        assert re.search(rf"^{name} +(\d|not installed; .*pip install {name}$)", shown, flags=re.MULTILINE), name


# Data


@pytest.fixture
def fable(tmp_path: Path, capsys: Capture) -> Path:
    assert run(["data", "make", "fable", str(tmp_path / "fable"), "--pairs", "60", "--held-out", "20", "--json"]) == 0
    assert "train.align" in json.loads(capsys.readouterr().out)["files"]
    return tmp_path / "fable"


def test_a_folder_may_have_braces_in_its_name(tmp_path: Path, capsys: Capture) -> None:
    assert run(["data", "make", "fable", str(tmp_path / "a{b}"), "--pairs", "9", "--held-out", "5"]) == 0
    assert "a{b}: 9 training pairs" in capsys.readouterr().err


def pair(folder: Path, split: str = "train") -> list[str]:
    return [str(folder / f"{split}.en"), str(folder / f"{split}.fr")]


def test_a_sound_corpus_is_called_sound(fable: Path, capsys: Capture) -> None:
    assert (
        run(["data", "check", *pair(fable), "--held-out", pair(fable, "test")[0], "--held-out", pair(fable, "test")[1]])
        == 0
    )
    assert "60 pairs" in (shown := capsys.readouterr().out)
    assert "nothing wrong" in shown


def test_what_is_wrong_is_shown_and_the_exit_code_says_so(fable: Path, capsys: Capture) -> None:
    with (fable / "train.en").open("a") as file:
        file.write("the same\n\n")
    with (fable / "train.fr").open("a") as file:
        file.write("the same\nrien\n")
    assert run(["data", "check", *pair(fable)]) == 3
    shown = capsys.readouterr().out
    assert "identical: 1" in shown
    assert "empty: 1" in shown
    assert run(["data", "check", *pair(fable), "--json"]) == 3
    assert {finding["kind"] for finding in json.loads(capsys.readouterr().out)["findings"]} >= {"identical", "empty"}
    assert run(["data", "clean", *pair(fable), "--out", str(fable / "clean")]) == 0
    assert "60 of 62 pairs kept" in capsys.readouterr().out
    assert len((fable / "clean" / "dropped.tsv").read_text().splitlines()) >= 2


def test_a_missing_line_is_found(fable: Path, capsys: Capture) -> None:
    lines = (fable / "train.fr").read_text().splitlines(keepends=True)
    (fable / "train.fr").write_text("".join(lines[:30] + lines[31:]))
    assert run(["data", "check", *pair(fable), "--find-shift"]) == 3
    assert "has 60 lines" in capsys.readouterr().out
    arguments = [
        f"data.valid_source={pair(fable)[0]}",
        f"data.valid_target={pair(fable)[0]}",
        "--out",
        str(fable / "run"),
    ]
    assert run(["train", "lstm", "--source", pair(fable)[0], "--target", pair(fable)[1], *arguments]) == 3
    *_, line, hint = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{pair(fable)[1]}: 59 lines but {pair(fable)[0]} has 60; the sides must pair line by line.")
    assert hint == f"  regard data check {' '.join(pair(fable))} --find-shift"
    assert run(hint.split()[1:]) == 3  # the hint is a command that works
    assert not (fable / "run").exists()


def test_corpora_are_counted_and_divided(fable: Path, capsys: Capture) -> None:
    assert run(["data", "stats", *pair(fable)]) == 0
    assert "source words" in capsys.readouterr().out
    assert run(["data", "stats", *pair(fable), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 60
    arguments = ["--out", str(fable / "split"), "--valid", "10", "--test", "10", "--json"]
    assert run(["data", "split", *pair(fable), *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["train"] == 40


# Training and translating


def test_a_dry_run_estimates_and_does_not_train(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "small.toml").write_text(small.settings("lstm").to_toml())
    assert run(["train", str(tmp_path / "small.toml"), "--out", str(tmp_path / "run"), "--dry-run", "--json"]) == 0
    captured = capsys.readouterr()
    estimate = json.loads(captured.out)
    assert estimate["examples"] == 300
    assert estimate["batches_per_epoch"] > 10
    assert estimate["memory"] > 0
    assert "parameters" in captured.err
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert run(["train", "--resume", str(tmp_path / "run"), "--device", "cpu"]) == 0


def _interrupted_after_one_step(trainer: Trainer, *, asked: bool) -> str:  # noqa: ARG001
    return "interrupted" if trainer.progress.step else ""


def test_a_stopped_training_says_how_to_resume_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.trainer.loop.Trainer._reason", _interrupted_after_one_step)
    (tmp_path / "small.toml").write_text(small.settings("lstm").to_toml())
    folder = tmp_path / "my run"
    assert run(["train", str(tmp_path / "small.toml"), "--out", str(folder), "--tensorboard"]) == 130
    assert f"checkpoint written; resume with: regard train --resume '{folder}'" in capsys.readouterr().err
    assert any((folder / "tensorboard").iterdir())
    assert run(["train", str(tmp_path / "small.toml"), "--out", str(folder)]) == 4
    assert f"continue it with regard train --resume '{folder}', or" in capsys.readouterr().err


def test_lines_of_stdin_are_translated_one_by_one(tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("gru"), small.Notes(), device="cpu")
    command = [sys.executable, "-m", "regard", "translate", str(tmp_path / "run"), "--device", "cpu", "--beam", "2"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    text = b"the cat sleeps\n\nthe dog eats\r\n"
    done = subprocess.run(
        [*command, "--json"], input=text, capture_output=True, check=False, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(row) for row in done.stdout.decode().split("\n")[:-1]]
    assert [row["source"] for row in rows] == ["the cat sleeps", "", "the dog eats"]
    assert rows[1]["target"] == ""


def test_bytes_that_are_no_text_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"fine\n\xff\xfe\n")))
    lines = stdin()
    assert next(lines) == ["fine"]
    with pytest.raises(DataError, match="stdin line 2: byte 1 is not UTF-8; convert the text first"):
        next(lines)


def test_stdin_that_cannot_be_read_is_told_after_the_lines_that_could(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torn(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            if line := super().readline(size):
                return line
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Torn(b"fine\n")))
    lines = stdin()
    assert next(lines) == ["fine"]
    with pytest.raises(DataError, match=r"stdin: cannot be read \(Input/output error\); give a text"):
        next(lines)


# What a person sees of a training


def test_a_log_gets_a_plain_line_now_and_then(capsys: Capture) -> None:
    lines = PlainLines()
    lines.moment(MOMENT)
    lines.moment(MOMENT)  # too soon for another line
    PlainLines().moment(replace(MOMENT, limit=None, left=3725.0))
    lines.validation(VALIDATION)
    assert when(replace(MOMENT, limit=None, left=3725.0)) == "1:02:05 left"
    assert capsys.readouterr().err.splitlines() == [
        "step 1,200  loss 2.500  5,000 tokens/s  300 MiB  1:00 of 4:00",
        "step 1,200  loss 2.500  5,000 tokens/s  300 MiB  25 %  1:02:05 left",
        "step 1,200  validation loss 1.250  BLEU 33.3  best so far",
    ]


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with display() as shown:
        assert isinstance(shown, ProgressBar)
        shown.moment(MOMENT)
        shown.validation(VALIDATION)
        shown.tell("a [word]")
    written = capsys.readouterr().err
    assert "5,000 tokens/s" in written
    assert "a [word]" in written


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_bar_fits_the_terminal_and_commands_stay_whole(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    command = "go on with: regard train --resume runs/a-rather-long-name-for-a-run/inside-a-folder"
    with display() as shown:
        shown.moment(MOMENT)
        shown.tell(command)
    written = capsys.readouterr().err
    assert command in written
    assert "…" not in written
    assert ("300 MiB" in written) == (columns >= 92)


def test_a_pipe_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with display() as shown:
        assert isinstance(shown, PlainLines)


def test_tensorboard_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ResourceError, match="--tensorboard: needs the package tensorboard; pip install tensorboard"):
        Events(tmp_path)


def test_tensorboard_gets_the_curves(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415

    events = Events(tmp_path)
    events.moment(MOMENT)
    events.validation(VALIDATION)
    read = EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    found = {name: [(point.step, point.value) for point in read.Scalars(name)] for name in read.Tags()["scalars"]}
    assert found == {
        "train/loss": [(1200, 2.5)],
        "train/norm": [(1200, pytest.approx(0.7))],
        "train/rate": [(1200, pytest.approx(1e-3))],
        "train/tokens_per_second": [(1200, 5000.0)],
        "valid/loss": [(1200, 1.25)],
        "valid/BLEU": [(1200, pytest.approx(33.3))],
    }


def test_a_preset_is_meant_also_beside_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lstm").touch()
    assert preset_of(["lstm", "model.depth=4"]) == ("lstm", ["model.depth=4"])
