"""Input and output of the verbs: texts from arguments, files and stdin; lines, remarks and progress."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from regard.errors import DataError, SettingsError, quoted
from regard.runs.log import NAMED_LOG, append

if TYPE_CHECKING:
    from rich.text import Text


# How this program was called: hints name a command that works in this folder.

VERBS = (
    *("demo", "train", "translate", "predict", "score", "evaluate", "compare", "report", "explain", "walk", "serve"),
    *("studio", "beam", "meaning", "data", "runs", "import", "card", "doubt", "faithful", "settings", "doctor", "help"),
    *("docs", "cite", "backtranslate", "distil"),
)
_COMMAND = re.compile(rf"(?<![\w./-])regard(?= (?:{'|'.join(VERBS)}|--\w+)\b)")


def command() -> str:
    """How to call ``regard`` here: by its name if it is on the PATH, else by its path, or with python -m."""
    return _command(sys.argv[0], str(Path.cwd()))


# Escape sequences and control characters, with which a text could control the terminal.
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # all but tab and newline
_COMMANDS = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[0-~])|{CONTROLS}")


def printable(text: str) -> str:
    """Text without escape sequences and control characters."""
    return _COMMANDS.sub("", text)


def as_called(text: str) -> str:
    """A text for people, in which our commands are written as they must be typed here."""
    text = printable(text)
    return text if (here := command()) == "regard" else _COMMAND.sub(here, text)


@cache
def _command(program: str, folder: str) -> str:
    path = Path(program)
    if path.name == "__main__.py" and path.parent.name == "regard":
        return f"{_near(Path(sys.executable), folder)} -m regard"
    if path.name != "regard" or not path.is_file():
        return "regard"  # called by another program, such as a notebook or a test
    return _near(path, folder)


def _near(program: Path, folder: str) -> str:
    """The program's name if it is on the PATH, else its path from this folder."""
    found = shutil.which(program.name)
    if found and Path(found).absolute() == program.absolute():
        return program.name
    inside = program.absolute().is_relative_to(folder)
    return quoted(program.absolute().relative_to(folder) if inside else program)


# Faster imports.


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Import modules without garbage collection, and exclude their objects from it for ever.

    Modules live as long as the process, but Python would traverse all their functions and classes a few dozen times
    during the import and again at exit: with torch that is a fifth of the import time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


STREAM: Final = "-"  # stdin where something is read, stdout where it is written
REMARKS: Final = 10  # texts with remarks of their own; of others only the number is given
TOGETHER: Final = 8192  # lines in a chunk at the most
ROOM: Final = 1 << 24  # bytes of lines in memory, about


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def set_quiet(*, quiet: bool) -> None:
    """Turn remarks of this call off or on."""
    _quiet.set(quiet)


def is_quiet() -> bool:
    """Whether remarks are off."""
    return _quiet.get()


def say(line: str) -> None:
    """Print a remark on stderr, unless the call is quiet."""
    if not is_quiet():
        tell(line)


def tell(line: str) -> None:
    """Print a result for people on stderr, also in a quiet call."""
    print(between_words(as_called(line), sys.stderr), file=sys.stderr, flush=True)
    record("note", {"text": line})


def record(event: str, values: Mapping[str, object]) -> None:
    """Write an event into the log that the parent process has named, if any."""
    if path := os.environ.get(NAMED_LOG):
        append(Path(path), event, values)


def between_words(text: str, stream: TextIO) -> str:
    """A text with long lines broken between words, for a terminal. Lines with a command are not broken."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (line if _is_table(line) or command() in line else _broken(line, width) for line in text.split("\n"))
    return "\n".join(lines)


def _is_table(line: str) -> bool:
    """Whether a line has columns, whose spaces must be kept."""
    return "  " in line.strip()


def _broken(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


class Remarks:
    """Remarks on single texts: the first in full, of the others the number."""

    def __init__(self, name: str) -> None:
        self._name, self._count = name, 0

    def note(self, number: int, line: str) -> None:
        if not line:
            return
        self._count += 1
        if self._count <= REMARKS:
            say(printable(f"{self._name} {number}: {line}" if self._name else line))

    def more(self, count: int) -> None:
        """So many more, after the first `REMARKS`."""
        self._count += count

    def end(self) -> None:
        if self._count > REMARKS:
            say(f"… and remarks on {self._count - REMARKS:,} more {self._name}s; --json has them all")


def texts_of(texts: list[str], file: Path | None) -> Iterator[list[str]]:
    """The texts of the command line, or the lines of a file or of stdin (``-``, or nothing), in chunks."""
    if texts and file is not None:
        raise SettingsError(f"--file = {file}: given together with texts; give one of the two")
    if texts and texts != [STREAM]:
        return iter([texts])
    if file is None or str(file) == STREAM:
        return stdin()
    from regard.data.lines import read_lines

    return _chunks(read_lines(file))


def series_of(run: Path, texts: list[str], file: Path | None) -> Iterator[list[str]] | None:
    """The series of a file, where a run forecasts and no text is given; none elsewhere."""
    from regard.runs.folder import Run

    if texts or file is None or str(file) == STREAM or (settings := Run.open(run).settings).task != "forecast":
        return None
    from regard.data.series import read_series
    from regard.tasks.corpus import columns_of

    return _chunks(row[0] for _, row in read_series(str(file), columns_of(settings.data)))


def opened(run: Path, texts: Sequence[str]) -> list[str]:
    """The texts; for a run that reads vectors, the content of the files that they name."""
    from regard.runs.folder import Run

    if (settings := Run.open(run).settings).text.source.kind == "text":
        return list(texts)
    from regard.text.vectors import inlined

    if settings.task != "forecast" or not settings.data.columns:
        return [inlined(text) for text in texts]
    from regard.data.series import read_series
    from regard.tasks.corpus import columns_of

    chosen = columns_of(settings.data)  # of a table, as in training
    tables = [Path(text).suffix.lower() == ".csv" and "\n" not in text for text in texts]
    return [
        next(read_series(text, chosen))[1][0] if named else inlined(text)
        for text, named in zip(texts, tables, strict=True)
    ]


def kind_of(texts: list[str]) -> str:
    """What a remark names: a line of a file or stdin, one of several texts, or nothing for the only one."""
    return "line" if not texts or texts == [STREAM] else "text" if texts[1:] else ""


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    chunk, size = list[str](), 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if len(chunk) == TOGETHER or size > ROOM:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def stdin() -> Iterator[list[str]]:
    """The lines of stdin, as many as have arrived: a typed line is answered at once, a file in batches."""
    if sys.stdin.isatty():
        say("reading lines from the keyboard; Ctrl-D ends")
    from regard.data.lines import LONGEST_LINE

    arrived = _Lines(ROOM)
    Thread(target=_listen, args=(arrived, LONGEST_LINE), name="stdin", daemon=True).start()
    number = 0
    while lines := _waiting(arrived):
        decoded: list[str] = []
        for line in lines:
            if line == b"":
                break
            if isinstance(line, OSError):
                if decoded:
                    yield decoded
                raise DataError(f"stdin: cannot be read ({line.strerror}); give a text, or a file that can be read")
            number += 1
            try:
                decoded.append(_decoded(line, number, LONGEST_LINE))
            except DataError:
                if decoded:
                    yield decoded
                raise
        if decoded:
            yield decoded
        if not lines[-1]:
            return


def _decoded(line: bytes, number: int, longest: int) -> str:
    if len(line) > longest:
        raise DataError(f"stdin line {number}: longer than {longest:,} bytes, the most of a line; cut or drop it")
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"stdin line {number}: byte {error.start + 1} is not UTF-8; convert the text first") from None


class _Lines(Queue[bytes | OSError]):
    """A queue of lines whose size is counted in bytes."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._bytes = 0

    def _qsize(self) -> int:
        return self._bytes

    def _put(self, item: bytes | OSError) -> None:
        self._bytes += _size(item)
        super()._put(item)

    def _get(self) -> bytes | OSError:
        item: bytes | OSError = super()._get()
        self._bytes -= _size(item)
        return item


def _size(line: bytes | OSError) -> int:
    return 64 + (len(line) if isinstance(line, bytes) else 0)


def _listen(arrived: _Lines, longest: int) -> None:
    """Put every line into the queue, then b"" at the end, or the error that ended reading.

    It reads from a descriptor of its own, because it may never end, and stops after a line that is too long.
    """
    try:
        source: BinaryIO = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
    except (OSError, ValueError):  # not a real file, as in tests
        source = sys.stdin.buffer
    try:
        while line := source.readline(longest + 1):
            arrived.put(line)
            if len(line) > longest:
                return
        arrived.put(b"")
    except OSError as error:
        arrived.put(error)


def _waiting(arrived: _Lines) -> list[bytes | OSError]:
    """Wait for a line, and take all that have arrived."""
    lines, size = [arrived.get()], 0
    while lines[-1] and len(lines) < TOGETHER and size < ROOM:
        try:
            lines.append(arrived.get_nowait())
        except Empty:
            break
        size += _size(lines[-1])
    return lines


def one_line(text: str) -> str:
    """A text in one line."""
    return " ".join(text.splitlines())


def put(text: str) -> None:
    """Print text on stdout; in a terminal without control characters."""
    print(printable(text) if sys.stdout.isatty() else text, flush=True)


def named(path: Path | None) -> Path | None:
    """The file that an output goes to; None for stdout, which is no name or ``-``."""
    return None if str(path) == STREAM else path


def keep_inputs(out: Path | None, *read: Path | None) -> None:
    """Refuse an output that would replace a file that is read."""
    if (out := named(out)) is None or not out.is_file():
        return
    for path in read:
        if path is not None and path.is_file() and path.samefile(out):
            raise SettingsError(f"--out = {out}: is a file that is read here, and would be lost; choose another name")


@contextmanager
def destination(path: Path | None) -> Iterator[Callable[[str], object]]:
    """A function that writes lines: to stdout at once, or to a file that exists only when it is complete, and is packed
    if its name ends in .gz or .zst."""
    if (path := named(path)) is None:
        yield put
        return
    from regard.data.lines import packing
    from regard.files import new_file

    with new_file(path) as whole, packing(whole, path) as file:
        yield lambda line: file.write(f"{line}\n".encode("utf-8", "surrogatepass"))


def suffix_of(path: Path, known: Sequence[str]) -> str:
    """The format of a file by its name."""
    if (suffix := path.suffix.lower()) not in known:
        raise SettingsError(f"--out = {path}: not a format that is written; end its name in {' or '.join(known)}")
    return suffix


def write_whole(path: Path, words: str) -> None:
    """Write a file that exists only when it is complete, and say so on stderr."""
    from regard.files import new_file

    with new_file(path) as file:
        file.write(words.encode("utf-8", "replace"))
    say(f"wrote {path}")


def show(lines: Iterable[Text | str]) -> None:
    """Print lines on stdout: styled in a terminal, plain in a file or a pipe."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(printable(line) if isinstance(line, str) else _safe(line), soft_wrap=True)


def _safe(line: Text) -> Text:
    """The line with control characters replaced."""
    safe = line.copy()
    safe.plain = re.sub(CONTROLS, "␣", line.plain)  # of the same length: styles have positions
    return safe


def terminal_width() -> int:
    """The width of the terminal; for a pipe, COLUMNS of the environment, else 80."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else 80


# Progress on stderr: a counter in a terminal, a line now and then in a log.

EVERY = 10.0  # seconds between two lines of a log


class LineCounter:
    """Shows how many lines are done, unless the call is quiet."""

    def __init__(self, done: str, every: float = EVERY, what: str = "lines") -> None:
        self._every = every
        self._what = what
        self._quiet = is_quiet()  # read here: counting may happen in another thread
        self._done = done  # such as: translated, scored
        self._last = time.monotonic()

    def __call__(self, count: int, total: int | None = None) -> None:
        if self._quiet:
            return
        text = f"{count:,}{f' of {total:,}' if total else ''} {self._what} {self._done}"
        due = time.monotonic() - self._last >= self._every
        if due or count == total:
            record("progress", {"text": text, "done": count, "of": total})
        if sys.stderr.isatty():
            print(f"\r{text}", end="\n" if count == total else "", file=sys.stderr, flush=True)
        elif due:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)
