"""The errors that a user can solve: one line that says where, what is wrong, and what would be right.

The grammar is always ``where = value: what is wrong; what would be right``. The class decides the exit code of the
command line and the HTTP status of the service.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar

LISTED = 40  # names that a complaint lists at the most


class RegardError(Exception):
    """A problem the user can solve. Its text is a single line. `hint` is a command that helps, if there is one; the
    command line prints it below, a service leaves it out."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(" ".join(message.split()))
        self.hint = hint


class SettingsError(RegardError):
    """A setting, flag or argument that makes no sense."""

    exit_code = 2


class DataError(RegardError):
    """A corpus, file or sequence that cannot be used as it is."""

    exit_code = 3


class ModelError(RegardError):
    """A model, run folder or checkpoint that is damaged or cannot be used for this."""

    exit_code = 4


class ResourceError(RegardError):
    """Memory, disk, a port or an optional package that is missing."""

    exit_code = 5


# Errors of the system, and what to do about them.
_REFUSED = {
    errno.ENOSPC: "the disk is full; free some space, or choose another place",
    errno.EDQUOT: "your share of the disk is full; free some space, or choose another place",
    errno.EFBIG: "larger than a file may be here; choose another place",
    errno.EROFS: "can only be read from here; choose another place",
    errno.EACCES: "permission denied; choose another place, or change who may read and write it",
    errno.EPERM: "permission denied; choose another place, or change who may read and write it",
    errno.EISDIR: "is a folder where a file should be; move it away, or choose another name",
    errno.ENOTDIR: "is a file where a folder should be, or below one; move it away, or choose another name",
    errno.EEXIST: "is there already; move it away, or choose another name",
    errno.ENOTEMPTY: "is there already; move it away, or choose another name",
    errno.ENAMETOOLONG: "a name too long for this disk; choose a shorter one",
    errno.ELOOP: "links that lead back to themselves; mend or remove them",
    errno.EIO: "the disk cannot be read or written; it may be damaged",
    errno.EMFILE: "too many files are open; raise the limit with ulimit -n",
    errno.ENFILE: "too many files are open on this machine; close some programs",
    errno.EAGAIN: "the system has no more processes, threads or memory for us; close some programs",
}
_NO_MEMORY = "memory: not enough of it; take a smaller batch, beam or model, or shorter text"
_ALLOCATION = re.compile(r"can't allocate memory|not enough memory|out of memory|bad_alloc")
_SYSTEM = re.compile(r"os error (\d+)")  # how the library of safetensors, written in Rust, gives the number


def failure(error: BaseException) -> RegardError | None:
    """Any error as a `RegardError`: one of ours unchanged, errors of the disk and the memory in our words. None for all
    others, which are bugs."""
    known: RegardError | None = None
    match error:
        case RegardError():
            known = error
        case io.UnsupportedOperation() | TimeoutError() | ConnectionError() if not error.filename:
            pass  # not an error of the disk
        case BlockingIOError() if hasattr(error, "characters_written"):  # a buffered writer to a pipe or terminal
            known = ResourceError("output: takes no more now, and does not block; write to a file, or through cat")
        case OSError():
            known = _of_system(error.errno, error.filename or error.filename2, str(error))
        case MemoryError():
            known = ResourceError(_NO_MEMORY)
        case RuntimeError() if "can't start new thread" in str(error):
            known = ResourceError(f"threads: {_REFUSED[errno.EAGAIN]}")
        case RuntimeError() if _ALLOCATION.search(str(error)):  # torch's, on the CPU and on a GPU
            known = ResourceError(_NO_MEMORY)
        case Exception() if type(error).__name__ == "SafetensorError":
            known = _of_safetensors(str(error))
    return known


def _of_safetensors(text: str) -> RegardError:
    number = _SYSTEM.search(text)
    if number is not None:
        return _of_system(int(number[1]), None, text)
    return ModelError(f"weights: not a safetensors file, or a damaged one; {text}")


def _of_system(number: int | None, path: object, text: str) -> RegardError:
    where = os.fsdecode(path) if isinstance(path, str | bytes) else "disk"
    if number == errno.ENOENT:
        return DataError(f"{where}: is not there; check the name")
    if number == errno.ENOMEM:
        return ResourceError(_NO_MEMORY)
    if number is None:  # not an error of the system: a library cannot read the file
        return DataError(f"{where}: cannot be read; {text}")
    return ResourceError(f"{where}: {_REFUSED.get(number) or os.strerror(number)}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The closest known name, in whatever capitals, as a hint; if none is close, what is known."""
    names = sorted(known)
    spelled = {name.casefold(): name for name in reversed(names)}
    close = [spelled[name] for name in get_close_matches(word.casefold(), spelled, n=1, cutoff=0.6)]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names[:LISTED])}{more}"


def quoted(path: object) -> str:
    """A path as it is written in a command: in quotes if a space or the like is in it."""
    return shlex.quote(str(path))


def optional(package: str, where: str) -> Any:
    """Import a package, or say how to install it."""
    try:
        return import_module(package)
    except ImportError as problem:
        name = package.partition(".")[0]
        raise ResourceError(f"{where}: needs the package {name}; pip install {name}") from problem
