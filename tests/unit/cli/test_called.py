"""How the program is called, how it is stopped, and what a terminal sees of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli import main, streams
from regard.cli.main import app, run
from regard.cli.streams import between_words, say

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in a virtual environment below the working folder, which is not on the PATH."""
    place = tmp_path / ".venv" / "bin" / "regard"
    place.parent.mkdir(parents=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(place)])
    return place


def test_a_program_off_the_path_is_named_by_its_place(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert streams.command() == ".venv/bin/regard"
    monkeypatch.setattr(sys, "argv", [".venv/bin/regard"])
    assert streams.command() == ".venv/bin/regard"
    monkeypatch.chdir("/")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert streams.command() == str(program)[1:]  # below the folder "/"


def test_a_program_on_the_path_is_named_by_its_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert streams.command() == "regard"


def test_a_module_is_named_with_its_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "regard" / "__main__.py")])
    assert streams.command() == f"{Path(sys.executable).name} -m regard"


def test_commands_in_a_text_are_those_that_work_here_and_the_rest_stays(program: Path) -> None:
    assert program.exists()
    told = "Regard: try regard translate runs/demo, not my-regard train; regard is a word; regard --help"
    expected = told.replace("try regard", "try .venv/bin/regard").replace("; regard --", "; .venv/bin/regard --")
    assert streams.as_called(told) == expected


def test_complaints_hints_and_lines_name_it_so(program: Path, capsys: Capture) -> None:
    assert program.exists()
    assert run(["trian"]) == 2
    assert "  .venv/bin/regard --help" in capsys.readouterr().err
    say("go on with: regard train --resume x")
    assert capsys.readouterr().err == "go on with: .venv/bin/regard train --resume x\n"
    assert run([]) == 0
    assert '.venv/bin/regard translate demo "' in capsys.readouterr().out


def test_all_verbs_are_known_to_hints() -> None:
    verbs = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    assert set(streams.VERBS) == verbs


def test_a_terminal_breaks_lines_between_words_and_commands_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((20, 24)))
    terminal, pipe = SimpleNamespace(isatty=lambda: True), SimpleNamespace(isatty=lambda: False)
    long = "weights: best aligner on valid, AER 0.03"
    assert between_words(long, terminal) == "weights: best\naligner on valid,\nAER 0.03"  # type: ignore[arg-type]
    assert between_words(long, pipe) == long  # type: ignore[arg-type]
    for kept in ("a table  has columns that are wide", "try: regard translate runs/demo now"):
        assert between_words(kept, terminal) == kept  # type: ignore[arg-type]


def test_help_of_a_verb_is_its_help(capsys: Capture) -> None:
    for asked, same in ((["help", "data", "check"], ["data", "check", "--help"]), (["help"], ["--help"])):
        assert run(asked) == 0
        shown = capsys.readouterr().out
        assert run(same) == 0
        assert capsys.readouterr().out == shown
    assert run(["help", "trian"]) == 2
    assert "did you mean 'train'?" in capsys.readouterr().err


def test_shells_can_complete_verbs() -> None:
    environment = os.environ | {"_REGARD_COMPLETE": "complete_bash", "COMP_WORDS": "regard tra", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "regard"], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert {"train", "translate"} <= set(done.stdout.split()), done.stderr


def test_a_reader_who_has_had_enough_is_no_fault() -> None:
    for verb in ("settings schema", "--help", "settings show transformer-big"):
        command = f"{sys.executable} -m regard {verb} | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=300)
        assert (done.stdout.strip(), done.stderr) == ("0", "")


def test_a_pipe_that_breaks_inside_a_verb_is_no_fault_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(main, "command", broken)
    monkeypatch.setattr(main, "_unread", lambda: 77)
    assert run([]) == 77


STOPPED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["regard", "doctor"]
from regard.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "told"), [("typer", ""), ("regard.cli.doctor", ""), ("torch.version", "interrupted\n")]
)
def test_ctrl_c_while_modules_come_in_leaves_no_traceback(module: str, told: str) -> None:
    command = [sys.executable, "-c", STOPPED.replace("{module}", module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (130, told)


# Corpora


def test_an_empty_corpus_is_not_called_sound(tmp_path: Path, capsys: Capture) -> None:
    for name in ("a.de", "a.en"):
        (tmp_path / name).touch()
    assert run(["data", "check", str(tmp_path / "a.de"), str(tmp_path / "a.en")]) == 3
    assert "is empty; a corpus has at least one line" in capsys.readouterr().err


def test_sides_that_do_not_pair_get_the_command_that_finds_out_where(tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("eins\nzwei\n")
    target.write_text("one\n")
    assert run(["data", "check", str(source), str(target)]) == 3
    told = capsys.readouterr().err
    assert f"regard data check {source} {target} --find-shift" in told
    assert "data clean" not in told


def test_utf_16_is_called_by_its_name(tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("größer\n", encoding="utf-16")
    target.write_text("greater\n")
    assert run(["data", "stats", str(source), str(target)]) == 3
    told = capsys.readouterr().err
    assert "is UTF-16" in told
    assert f"iconv -f UTF-16 -t UTF-8 {source}" in told
