"""Texts into a verb and lines out of it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from regard.cli.called import as_called, command
from regard.errors import DataError, SettingsError

if TYPE_CHECKING:
    from rich.text import Text


def say(line: str) -> None:
    """A line for people: commands in it work as they stand, and a terminal breaks it between words."""
    print(between_words(as_called(line), sys.stderr), file=sys.stderr, flush=True)


def between_words(text: str, stream: TextIO) -> str:
    """A text whose long lines are broken where words end, for a terminal. A command stays in one piece."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (line if _is_table(line) or command() in line else _broken(line, width) for line in text.split("\n"))
    return "\n".join(lines)


def _is_table(line: str) -> bool:
    """Columns are told by their spaces, which must stay."""
    return "  " in line.strip()


def _broken(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def texts_of(texts: list[str] | None, file: Path | None) -> Iterator[str]:
    """Those of the command line, the lines of a file, or the lines of stdin."""
    if texts and file is not None:
        raise SettingsError(f"--file = {file}: there are texts on the command line too; give one or the other")
    if texts:
        return iter(texts)
    if file is None:
        return stdin()
    from regard.data.lines import read_lines

    return read_lines(file)


def stdin() -> Iterator[str]:
    if sys.stdin.isatty():
        print("reading lines from the keyboard; Ctrl-D ends", file=sys.stderr)
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"stdin line {number}: byte {error.start + 1} is not UTF-8; convert the text first"
            ) from None


@contextmanager
def destination(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Something to write lines to: stdout at once, or a file that is there only when it is whole."""
    if path is None:
        yield lambda line: print(line, flush=True)
        return
    from regard.files import new_file

    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path) as file:
        yield lambda line: file.write(f"{line}\n".encode("utf-8", "surrogatepass"))


def write_whole(path: Path, words: str) -> None:
    """A file that is there only when it is whole; says so on stderr."""
    from regard.files import new_file

    with writing(path), new_file(path) as file:
        file.write(words.encode("utf-8", "replace"))
    say(f"wrote {path}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What cannot be written is said in one line."""
    try:
        yield
    except OSError as problem:
        raise DataError(f"{path}: cannot be written ({problem.strerror}); another place would be right") from None


def show(lines: Iterable[Text | str]) -> None:
    """Lines on stdout: with weight and colour in a terminal, plain in a file or a pipe."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def terminal_width() -> int:
    """Of the terminal; of a pipe, what the environment says, else 80."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else 80
