"""A disk that fails at the n-th thing that is done to it: full, read-only from then on, broken or forbidden at this one
place, or the process is killed.

Everything that changes files goes through a few functions of Python's. Here each of these calls is counted, and the
n-th fails: a write after half of its bytes, so that what is torn is torn. With n from 1 to the number of calls every
moment is tried in which something can go wrong.

    with failing(at=7, kind="full") as disk:
        …
    disk.failed, disk.calls
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from safetensors import SafetensorError
from safetensors.torch import save

Kind = Literal["full", "read-only", "broken", "forbidden", "killed"]
KINDS: tuple[Kind, ...] = ("full", "read-only", "killed")
WHOLE: tuple[Kind, ...] = ("full", "broken", "forbidden")  # what a whole verb has to take
ERRORS = {"full": errno.ENOSPC, "read-only": errno.EROFS, "broken": errno.EIO, "forbidden": errno.EACCES}
# What changes a disk. The first need room, the others do not: a full disk still lets go of files and renames them.
NEED_ROOM = ("mkdir", "link", "symlink", "write")
OTHERS = ("rename", "replace", "unlink", "remove", "rmdir", "chmod", "fsync", "truncate", "utime")


class Killed(BaseException):
    """The process ends here. Whatever would run after it changes nothing any more."""


class Disk:
    """Counts calls, and fails."""

    def __init__(self, at: int, kind: Kind) -> None:
        self.at, self.kind = at, kind
        self.calls = 0
        self.failed = False
        self.named = ""  # the call that failed first

    def touch(self, name: str, *, room: bool, torn: Callable[[], object] = lambda: None) -> None:
        """One call. `torn` is what is done of it before it fails."""
        self.calls += 1
        if not self.failed and self.calls == self.at:
            self.failed, self.named = True, name
            torn()
            self._fail()
        elif self.failed and (room if self.kind == "full" else self.kind in ("read-only", "killed")):
            self._fail()

    def _fail(self) -> None:
        if self.kind == "killed":
            raise Killed
        number = ERRORS[self.kind]
        raise OSError(number, os.strerror(number))


@contextmanager
def failing(at: int, kind: Kind) -> Iterator[Disk]:
    """Inside this, the call number `at` to the disk fails, and whatever needs what has failed after it."""
    disk = Disk(at, kind)
    with ExitStack() as stack:
        for name in (*NEED_ROOM, *OTHERS):
            stack.enter_context(mock.patch.object(os, name, _counted(disk, name, getattr(os, name))))
        stack.enter_context(mock.patch.object(os, "open", _opened(disk, os.open)))
        opener = _opener(disk, io.open)
        stack.enter_context(mock.patch.object(io, "open", opener))
        stack.enter_context(mock.patch.object(builtins, "open", opener))
        from regard import files  # noqa: PLC0415

        stack.enter_context(mock.patch.object(files, "_exchange", _counted(disk, "exchange", files._exchange)))
        stack.enter_context(mock.patch("regard.runs.checkpoint.save_file", _save_file))
        yield disk


def _counted(disk: Disk, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:  # as many as there are
        disk.touch(name, room=name in NEED_ROOM)
        return None if name == "fsync" else real(*arguments, **named)  # nobody pulls the plug

    return call


def _opened(disk: Disk, real: Callable[..., int]) -> Callable[..., int]:
    def call(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            disk.touch("open", room=True)
        return real(path, flags, *arguments, **named)

    return call


class _Raw(io.FileIO):
    """A file whose writes count."""

    disk: Disk

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.disk.touch("write", room=True, torn=lambda: io.FileIO.write(self, view[: len(view) // 2]))
        return super().write(view)


def _opener(disk: Disk, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(  # noqa: PLR0917  as Python has it
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if not set(mode) & set("wax+"):
            return real(file, mode, buffering, encoding, errors, newline, closefd, opener)
        disk.touch("open", room=True)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.disk = disk
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    return call


def _save_file(tensors: Any, path: Path, metadata: dict[str, str] | None = None) -> None:
    """As safetensors does it, through the same disk."""
    data = save(tensors, metadata)
    try:
        with open(path, "wb") as file:  # noqa: PTH123  the one that is counted
            file.write(data)
    except OSError as error:
        raise SafetensorError(
            f"Error while serializing: I/O error: {error.strerror} (os error {error.errno})"
        ) from None
