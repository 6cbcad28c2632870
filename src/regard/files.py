"""Writing that either happens or does not: a file or folder is made beside its place and renamed into it.

A reader therefore never sees half a file, and a crash leaves the previous version as it was.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

if sys.platform != "win32":
    import fcntl


_OPENED = ("/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr")


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and vanishes when not.

    A link is followed: what it points to is replaced, and the link stays. What is replaced keeps its permissions. A
    pipe or a device cannot be replaced, and is written to as it is.
    """
    if _is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    _make_parent(path)
    beside = _beside(path)
    try:
        with beside.open("xb") as file:
            lock(file.fileno())
            if path.is_file():
                beside.chmod(path.stat().st_mode & 0o7777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync_names(path.parent)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        _name(error, path, beside)
        raise


def write_object(path: Path, values: Mapping[str, Any]) -> None:
    """Keep values as JSON."""
    with new_file(path) as file:
        file.write(json.dumps(values).encode())


def read_object(path: Path) -> dict[str, Any] | None:
    """What was kept; None where there is nothing, or nothing that can be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder that takes the place of `path` when the block ends well, and vanishes when not.

    An old one changes places with it in one step, where the system can do that, and is removed last. Elsewhere it
    steps aside first: after a kill in that moment it is found as `.NAME.….old`.
    """
    _make_parent(path)
    beside = _beside(path)
    old = beside
    try:
        beside.mkdir()
        with locked(beside):
            yield beside
            _sync(beside)
            if not path.exists():
                beside.rename(path)
            elif not _exchange(beside, path):
                old = beside.with_name(f"{beside.name}.old")
                path.rename(old)
                beside.rename(path)
        _sync_names(path.parent)
    except BaseException as error:
        if old != beside and not path.exists():  # it has stepped aside for nothing
            with suppress(OSError):
                old.rename(path)
        shutil.rmtree(beside, ignore_errors=True)
        _name(error, path, beside)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _name(error: BaseException, path: Path, beside: Path) -> None:
    """Errors of the disk name the file that was asked for, not the temporary one."""
    if (
        isinstance(error, OSError)
        and error.errno
        and (error.filename is None or str(error.filename).startswith(str(beside)))
    ):
        error.filename, error.filename2 = str(path), None


def _make_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # as a file
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from None


def _is_stream(path: Path) -> bool:
    """Whether this is a pipe, a device or a name of an open file, such as /dev/stdout: nothing to put another into."""
    named = any(path.is_relative_to(each) for each in _OPENED)
    return named or (path.exists() and not path.is_file() and not path.is_dir())


def _beside(path: Path) -> Path:
    """A free name in the same folder, hidden; to be made when it is opened, with the usual permissions."""
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}")


_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of <fcntl.h> and <linux/fs.h>


def _exchange(first: Path, second: Path) -> bool:
    """Let two folders change names in one step; False where the system or its disk cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2  # Linux
    except (AttributeError, OSError, TypeError):
        return False
    return rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0


# Locks: they are the system's, and end with the process that has them, however it ends


def lock(handle: int, *, shared: bool = False) -> bool | None:
    """Take the lock of an open file or folder. False where another process has it; None where there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that has none
        return None
    return True


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[bool | None]:
    """Hold the lock of a folder for a while, if no other process does; gives what `lock` says."""
    if sys.platform == "win32":  # no way to open a folder
        yield None
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield lock(handle, shared=shared)
    finally:
        os.close(handle)


# What killed processes leave behind

_LEFT = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}(?P<old>\.old)?|\.(.+\.removed|work)\.\w{8}")
_YOUNG, _VERY_YOUNG = 24 * 3600.0, 60.0  # seconds: may be in use, where there are no locks and where there are


def is_leftover(name: str) -> bool:
    """Whether this is how something is called that is not whole yet, or never became so."""
    return _LEFT.fullmatch(name) is not None


def leftovers(folder: Path) -> Iterator[Path]:
    """What writes that were cut off left in a folder, not in those inside. What is being written now is none of it."""
    try:
        named = [path for path in folder.iterdir() if is_leftover(path.name)] if folder.is_dir() else []
    except PermissionError:  # of another user
        return
    for path in sorted(named):
        if not _in_use(path):
            yield path


def sweep(path: Path) -> bool:
    """Remove a leftover, if it is still there; an old folder that stepped aside for a new one which never came is put
    back: then False."""
    found = _LEFT.fullmatch(path.name)
    place = path.with_name(found["name"]) if found and found["old"] else path
    if place != path and path.exists() and not place.exists():
        path.rename(place)
        return False
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return True


def _in_use(path: Path) -> bool:
    """Whether it may be; a link is nothing of ours."""
    try:
        if path.is_symlink():
            return True
        age = time.time() - path.stat().st_mtime
        if path.is_dir():
            with locked(path) as free:
                pass
        else:
            with path.open("rb") as file:
                free = lock(file.fileno())
    except OSError:  # gone in this moment, or not ours
        return True
    unlocked = free is None or path.name.startswith(".work.")
    return free is False or age < (_YOUNG if unlocked else _VERY_YOUNG)


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it. It is gone at once, even if removing its files is cut short.

    Links inside are removed themselves; where they point stays as it is.
    """
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.removed."))
    folder.rename(aside)  # onto the empty one
    shutil.rmtree(aside)


def _sync(folder: Path) -> None:
    """Push every file of a folder to the disk, so that the rename cannot overtake the contents."""
    for path in folder.rglob("*"):
        if path.is_dir():
            _sync_names(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_names(folder)


def _sync_names(folder: Path) -> None:
    """Push the names in a folder to the disk, where the system knows how to open a folder."""
    if os.name == "posix" and folder.exists():
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
