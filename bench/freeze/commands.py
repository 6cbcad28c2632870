"""``python -m regard …`` without waiting for imports: each command runs in a fork of a process that has made them."""

from __future__ import annotations

import io
import itertools
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import regard


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


class Clock:
    """The system's, and in a command one that goes on by a second when it is read: no two trials take another time,
    and a training logs every step."""

    def __init__(self) -> None:
        self.ticks: Iterator[float] | None = None
        self._real = time.monotonic

    def now(self) -> float:
        return self._real() if self.ticks is None else next(self.ticks)


CLOCK = Clock()


def warm_up() -> None:
    """Import once what every command would import by itself. Nothing is computed, so that no thread is started."""
    time.monotonic = time.perf_counter = CLOCK.now  # before anybody keeps one of them
    for name in ("rich.live", "rich.progress", "sacrebleu", "torch._dynamo"):  # slow, and needed by many verbs
        import_module(name)
    for name in dir(regard):
        getattr(regard, name)
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        sys.argv = ["regard", "--help"]
        runpy.run_module("regard", run_name="__main__", alter_sys=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(words: list[str], folder: Path) -> Said:
    """Run ``python -m regard`` with these words in a folder, as a process of its own."""
    with TemporaryDirectory() as corner:
        out, err = Path(corner, "out"), Path(corner, "err")
        child = os.fork()
        if child == 0:
            _be(words, folder, out, err)
        _, status = os.waitpid(child, 0)
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in (out, err)]
        return Said(os.waitstatus_to_exitcode(status), *texts)


def _be(words: list[str], folder: Path, out: Path, err: Path) -> None:
    """In the child: become the command, and end."""
    code = 1
    CLOCK.ticks = itertools.count(1.0)
    try:
        for number, (file, flags) in enumerate(((Path(os.devnull), os.O_RDONLY), (out, _NEW), (err, _NEW))):
            os.dup2(os.open(file, flags, 0o600), number)
        os.chdir(folder)
        sys.argv = ["regard", *words]
        runpy.run_module("regard", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # what a command lets through is what its user would see
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
