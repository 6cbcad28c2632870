"""What shells offer: by asking as they ask, and in the shells that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.completion import answer, offers

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs, one that is none, and a program called regard."""
    for name in ("runs/de-en", "runs/hindi", "mine"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "settings.toml").touch()
    (tmp_path / "runs" / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "regard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m regard "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


def values(line: str) -> list[str]:
    *before, begun = line.split(" ")
    return [value for value, _ in offers(before, begun)]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tra", ["train", "translate"]),
        ("runs re", ["rename", "restore"]),
        ("translate ", ["demo", "mine", "runs/de-en", "runs/hindi"]),
        ("translate runs/d", ["runs/de-en"]),
        ("translate nowhere/", []),
        ("train --resume ru", ["runs/de-en", "runs/hindi"]),
        ("compare mine ru", ["runs/de-en", "runs/hindi"]),
        ("train luong-l", ["luong-local"]),
        ("train bahdanau train.clip", ["train.clip=", "train.clip=1.0"]),
        ("train model.kind=", ["model.kind=recurrent", "model.kind=transformer"]),
        ("translate demo Hello decode.no", ["decode.no_repeat=", "decode.no_repeat=0"]),
        ("translate demo --device c", ["cpu", "cuda"]),
        ("translate demo --beam 3 decode.sample=t", ["decode.sample=true"]),
        ("translate demo --be", ["--beam"]),
        ("evaluate demo measure.rarity=r", ["measure.rarity=rarest"]),
        ("settings explain train.schedule", ["train.schedule", "train.scheduled_sampling"]),
        ("help bea", ["beam"]),
        ("runs show demo ", []),
        ("translate --file ", []),
        ("doctor ", []),
        ("nonsense ", []),
    ],
)
def test_what_may_come_next_is_offered(here: Path, line: str, offered: list[str]) -> None:
    assert here.exists()
    assert values(line) == offered


def test_each_offer_says_what_it_is() -> None:
    assert dict(offers([], "trans"))["translate"].startswith("Translate texts")
    assert dict(offers([], "dat"))["data"].startswith("Make, check, clean")
    assert dict(offers(["translate", "demo"], "decode.beam"))["decode.beam="].startswith("Hypotheses kept")


def asked(shell: str, line: str, capsys: Capture, **more: str) -> str:
    assert answer({"_REGARD_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line, **more}) == 0
    return capsys.readouterr().out.rstrip("\n")


def test_each_shell_is_answered_as_it_reads(capsys: Capture) -> None:
    assert asked("zsh", "regard runs ver", capsys) == (
        '_arguments \'*: :(("verify":'
        '"Check every hash of a run\\\\: checkpoints, tokenizers, labels, settings, encoded …"))\''
    )
    assert asked("zsh", "regard translate --file ", capsys) == "_files"
    assert asked("fish", "regard train luong-l", capsys).startswith("luong-local\t")
    assert asked("powershell", "regard train luong-l", capsys).startswith("luong-local:::")
    assert asked("fish", "regard", capsys).startswith("demo\t")
    assert asked("fish", 'regard translate demo "an open quo', capsys) == ""
    asking = {"_REGARD_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert answer(asking | {"_TYPER_COMPLETE_ARGS": "regard tra"}) == 0
    assert answer(asking | {"_TYPER_COMPLETE_ARGS": "regard translate --file "}) == 1


def test_bash_that_takes_a_setting_for_three_words_gets_the_last(capsys: Capture) -> None:
    line = "regard\ntrain\nmodel.kind\n=\n{}"
    assert asked("bash", "", capsys, COMP_WORDS=line.format("t"), COMP_CWORD="4") == "transformer"
    assert asked("bash", "", capsys, COMP_WORDS="regard\ntrain\nmodel.kind\n=", COMP_CWORD="3").split() == [
        "recurrent",
        "transformer",
    ]
    behind = "regard\ntrain\nmodel.kind\n=\nrecurrent\nlstm-d"
    assert asked("bash", "", capsys, COMP_WORDS=behind, COMP_CWORD="5") == "lstm-deep"


SHELLS = {
    "bash": 'eval "$(_REGARD_COMPLETE=source_bash regard)"; COMP_WORDS=(regard translate runs/h); COMP_CWORD=2; '
    "_regard_completion regard; echo ${COMPREPLY[@]}",
    "zsh": 'compdef() {}; _arguments() { echo $2 }; eval "$(_REGARD_COMPLETE=source_zsh regard)"; '
    "words=(regard translate runs/h); CURRENT=3; _arguments() { print -r -- $1 }; _regard_completion",
    "fish": "_REGARD_COMPLETE=source_fish regard | source; complete -C 'regard translate runs/h'",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_the_name_of_a_run(shell: str, here: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [program, "-c", SHELLS[shell]], cwd=here, capture_output=True, text=True, check=False, timeout=300
    )
    assert "runs/hindi" in done.stdout, done.stderr
    assert "de-en" not in done.stdout


def test_an_answer_imports_only_the_standard_library() -> None:
    script = (
        "import os, sys; from regard.cli.completion import answer; answer(os.environ);"
        "sys.exit(bool({'torch', 'pydantic', 'typer', 'rich', 'numpy'} & set(sys.modules)))"
    )
    environment = os.environ | {"_REGARD_COMPLETE": "complete_bash", "COMP_WORDS": "regard\ntr", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, b"train\ntranslate\n")
