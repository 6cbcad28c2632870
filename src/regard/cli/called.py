"""How this program was called: a hint must name a command that works where the person is."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

VERBS = (
    *("demo", "train", "translate", "predict", "score", "evaluate", "compare", "report", "explain", "walk", "serve"),
    *("studio", "beam", "meaning", "data", "runs", "import", "card", "settings", "doctor", "help"),
)
_COMMAND = re.compile(rf"(?<![\w./-])regard(?= (?:{'|'.join(VERBS)}|--\w+)\b)")


def command() -> str:
    """What to type for ``regard`` here: that, where it is on the PATH, else the program's place, or python -m."""
    return _command(sys.argv[0], str(Path.cwd()))


# Escape sequences and control characters, by which a text would command the terminal that shows it.
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # all but tab and newline
_COMMANDS = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[0-~])|{CONTROLS}")


def printable(text: str) -> str:
    """Text that cannot command a terminal: without escape sequences and control characters."""
    return _COMMANDS.sub("", text)


def as_called(text: str) -> str:
    """A text for people, in which every command of ours is one that works here, and none is the terminal's."""
    text = printable(text)
    return text if (here := command()) == "regard" else _COMMAND.sub(here, text)


@cache
def _command(program: str, folder: str) -> str:
    path = Path(program)
    if path.name == "__main__.py" and path.parent.name == "regard":
        return f"{_near(Path(sys.executable), folder)} -m regard"
    if path.name != "regard" or not path.is_file():
        return "regard"  # another program: a notebook, a test
    return _near(path, folder)


def _near(program: Path, folder: str) -> str:
    """Its name, where that finds it, else how to reach it from this folder."""
    found = shutil.which(program.name)
    if found and Path(found).absolute() == program.absolute():
        return program.name
    inside = program.absolute().is_relative_to(folder)
    return shlex.quote(str(program.absolute().relative_to(folder) if inside else program))
