"""One command begins a training and goes on with it, whatever ended it before."""

from __future__ import annotations

import shutil
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import corpora_for_tests as small
from processes import begun, killed_twice, together
from regard.cli.main import run
from regard.runs.folder import steps

Capture = pytest.CaptureFixture[str]
FILES = ("weights", "average", "optimizer")
MORE = ("train.steps=40", "train.average={kind='moving'}", "model.dropout=0.2")
LAST = "step-40"


def command(folder: Path, *more: str) -> list[str]:
    """For a new folder: all in one place learn from one corpus."""
    folder.mkdir()
    file = folder / "settings.toml"
    file.write_text(
        small.settings("transformer-tiny", *MORE, *small.animals(folder.parent)).to_toml(), encoding="utf-8"
    )
    return ["train", str(file), "--out", str(folder / "run"), "--continue", "--device", "cpu", *more]


def ended(folder: Path) -> list[bytes]:
    return [(folder / "run" / "checkpoints" / LAST / f"{name}.safetensors").read_bytes() for name in FILES]


def wait_for_checkpoint(process: BaseProcess, folder: Path) -> None:
    until = time.monotonic() + 120
    while len(steps(folder / "run" / "checkpoints")) < 2:
        assert process.exitcode is None
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_killed_training_is_repeated_and_ends_as_if_nothing_had_happened(tmp_path: Path, capsys: Capture) -> None:
    words = command(tmp_path / "killed")
    process = begun(*words)
    wait_for_checkpoint(process, tmp_path / "killed")
    process.kill()
    process.join()
    assert run(words) == 0
    assert run(command(tmp_path / "whole")) == 0
    assert ended(tmp_path / "killed") == ended(tmp_path / "whole")
    assert run(words) == 0
    assert "is finished" in capsys.readouterr().err


def test_processes_that_torchrun_starts_again_end_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Bit for bit, each with dropout of its own, though two were killed."""
    more = ("train.word_dropout=0.1", "train.steps=16")
    said = killed_twice(tmp_path / "killed" / "run", *command(tmp_path / "killed", *more))
    assert (said.count("killed\n"), said.count("going on from step")) == (2, 2), said
    together(*command(tmp_path / "whole", *more))
    killed, whole = (small.weights(tmp_path / name / "run") for name in ("killed", "whole"))
    assert killed == whole
    assert "Traceback" not in said


def test_another_number_of_processes_goes_on_to_the_same_end(tmp_path: Path) -> None:
    """Without dropout, which each process has of its own. Weights are equal but for rounding, apart from the biases of
    keys: softmax takes no notice of them, and Adam makes whole steps of the rounding of their gradients."""
    ends = []
    for name, counts in {"one": (1,), "others": (3, 2)}.items():
        words = command(tmp_path / name, "model.dropout=0.0", "train.steps=15")
        for place, count in enumerate(counts):
            together(*words, count=count) if count > 1 else run(words)
            if place + 1 < len(counts):  # as if killed
                for checkpoint in steps(tmp_path / name / "run" / "checkpoints")[place + 1 :]:
                    shutil.rmtree(checkpoint)
        ends.append(load_file(tmp_path / name / "run" / "checkpoints" / "step-15" / "weights.safetensors"))
    one, others = ends
    assert one.keys() == others.keys()
    for name in (name for name in one if not name.endswith("key.bias")):
        torch.testing.assert_close(one[name], others[name], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (["model.width=32"], "--continue: model.width = 32, but {run} has 16; repeat the command"),
        (["train.time=3s"], "--continue: train.time = 3s, but {run} has none; repeat the command"),
        (["train.steps=50"], "--continue: train.steps = 50, but {run} has 3"),
    ],
)
def test_another_setting_is_refused_in_one_line(changed: list[str], line: str, capsys: Capture, trained: Path) -> None:
    words = ["train", "transformer-tiny", *TINY, "--out", str(trained), "--continue", "--device", "cpu"]
    assert run([*words, *changed]) == 2
    said = capsys.readouterr().err
    assert line.format(run=trained) in said
    assert (f"regard train --resume {trained} --steps 50" in said) is ("train.steps" in line)
    assert run(["train", "lstm", *words[2:]]) == 2
    capsys.readouterr()
    assert run(["train", "lstm", "--out", str(trained), "--continue", "--device", "cpu"]) == 2
    assert f"--continue: model.kind = recurrent, but {trained} has transformer" in capsys.readouterr().err


def test_a_settings_file_with_another_corpus_is_refused(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    same, other = tmp_path / "same.toml", tmp_path / "other.toml"
    text = (trained / "settings.toml").read_text(encoding="utf-8")
    same.write_text(text, encoding="utf-8")
    other.write_text(text.replace("pairs = 300", "pairs = 299"), encoding="utf-8")
    words = ["--out", str(trained), "--continue", "--device", "cpu"]
    assert run(["train", str(same), *words]) == 0
    assert run(["train", str(other), *words]) == 2
    assert "data.pairs = 299" in capsys.readouterr().err


TINY = (*small.SIZES["transformer"], *small.SMALL, "train.steps=3")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a preset: what is not given was fitted to machine and corpus."""
    folder = tmp_path_factory.mktemp("continue") / "run"
    words = ["train", "transformer-tiny", *TINY, "--out", str(folder), "--continue", "--device", "cpu"]
    assert run(words) == 0
    assert run(words) == 0
    return folder


@pytest.mark.parametrize(
    "words", [["--continue"], ["--continue", "--out", "a", "--dry-run"], ["--continue", "--out", "a", "--resume", "b"]]
)
def test_continuing_needs_a_folder_and_trains(words: list[str], capsys: Capture) -> None:
    assert run(["train", *words]) == 2
    assert "--continue: begins or goes on with the run in --out" in capsys.readouterr().err
