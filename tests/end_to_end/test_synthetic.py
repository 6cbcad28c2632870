"""Pairs that a model has written: translated back for others to learn from, and a teacher's for its student."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpora_for_tests as small
import regard
from regard.cli.main import run
from regard.fable.corpus import generate
from regard.runs.folder import Run

Capture = pytest.CaptureFixture[str]
LINES = [pair.source for pair in generate("fr", count=31, split="test", maximum_words=7)]
pytestmark = pytest.mark.usefixtures("with_demo")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "mono.en"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_text_is_translated_back_and_tagged(text: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "pairs"
    words = ["backtranslate", "demo", "--file", str(text), "--out", str(out), "--device", "cpu", "decode.beam=1"]
    assert run([*words, "--shard", "2/2", "bulk.lines=9"]) == 0
    assert not (out / "target.txt").exists()
    assert "never seen" not in capsys.readouterr().err
    assert run([*words, "--shard", "1/2", "bulk.lines=9"]) == 0
    assert lines(out / "target.txt") == LINES
    expected = [f"<BT> {found.text}" for found in regard.load("demo").translate(LINES, beam=1)]
    assert lines(out / "source.txt") == expected
    assert run([*words, "--tag", ""]) == 2  # another output than that whose blocks are there


def test_a_student_learns_from_a_teachers_translations(text: Path, tmp_path: Path, capsys: Capture) -> None:
    student = [*small.SIZES["transformer"], "text.tokenizer=word", "model.encoder_depth=2", "train.batch=64"]
    words = ["distil", "demo", "--source", str(text), "--out", str(tmp_path / "student"), "--device", "cpu"]
    words += [*student, "decode.beam=1", "--steps", "3"]
    assert run(words) == 0
    made = Run.open(tmp_path / "student").settings
    assert made.data.languages == "en-fr"  # the teacher's: target.txt does not say it
    assert (made.model.kind, made.model.autoregression) == ("transformer", "ssru")  # type: ignore[union-attr]
    assert lines(Path(made.data.target)) == [found.text for found in regard.load("demo").translate(LINES, beam=1)]
    assert regard.load(tmp_path / "student").translate(LINES[0]).text is not None
    capsys.readouterr()
    assert run(words) == 0
    assert "is finished" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--source", "-"], 2, "--source = -: is read more than once"),
        (["--preset", "transfomer-student"], 2, "did you mean 'transformer-student'?"),
        (["--preset", "aut"], 2, "did you mean 'auto'?"),
        (["model.widht=32"], 2, "did you mean 'width'?"),
        (["--time", "5x"], 2, "train.time = 5x: not a time"),
        (["--steps", "5k"], 2, "--steps = 5k: not a number of steps"),
        (["--out", "taken"], 4, "taken: is there already and is not a run"),
        (["--out", "other"], 2, "but other has none; repeat the command that began it"),
    ],
)
def test_a_student_that_cannot_be_trained_is_refused_before_the_teacher_translates(
    words: list[str], code: int, said: str, text: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "a").touch()
    Run.create(tmp_path / "other", regard.load_settings("transformer-student", "train.steps=2000"))
    given = ["--source", str(text), "--out", "student", "--steps", "7", "--device", "cpu"]
    assert run(["distil", "demo", *given, *words]) == code
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("*.texts"))


def test_the_wrong_direction_is_asked_about(text: Path, tmp_path: Path, capsys: Capture) -> None:
    text.write_text("".join(f"{pair.target}\n" for pair in generate("fr", count=31, split="test")), encoding="utf-8")
    words = ["backtranslate", "demo", "--file", str(text), "--out", str(tmp_path / "pairs"), "--device", "cpu"]
    assert run([*words, "decode.beam=1"]) == 0
    assert "words were never seen in training: is this English?" in capsys.readouterr().err
    assert run(["backtranslate", "demo", "--file", "-", "--out", str(tmp_path / "pairs")]) == 2
    assert "--file = -: is read more than once" in capsys.readouterr().err


def test_auto_is_a_preset_that_fits_and_a_dry_run_prints_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--corpus", "fable:fr", "data.pairs=300", "data.words=6", "--time", "20s", "--dry-run", "--device", "cpu"]
    assert run(["train", "auto", *words]) == 0
    printed = capsys.readouterr().out
    (tmp_path / "printed.toml").write_text(printed, encoding="utf-8")
    assert run(["train", *words, "--out", "kept"]) == 0
    assert capsys.readouterr().out == printed
    assert regard.load_settings(tmp_path / "printed.toml") == Run.open(Path("kept")).settings
