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


def test_text_is_translated_back_and_tagged(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs"
    words = ["backtranslate", "demo", "--file", str(text), "--out", str(out), "--device", "cpu", "decode.beam=1"]
    assert run([*words, "--shard", "2/2", "bulk.lines=9"]) == 0
    assert not (out / "target.txt").exists()
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
    assert run(["distil", "demo", "--source", "-", "--out", str(tmp_path / "x")]) == 2


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
