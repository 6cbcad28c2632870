"""Atomic writing: a file or folder is made under a temporary name in the same folder, and then renamed.

A reader never sees half a file, and a crash leaves the previous version unchanged.
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
    """A binary file that replaces `path` when the block ends without an error, and is removed if not.

    A link stays, and the file that it points to is replaced. The new file has the permissions of the old one. A pipe or
    a device cannot be replaced, and is written to directly.
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
    """Write values as JSON."""
    with new_file(path) as file:
        file.write(json.dumps(values).encode())


def write_first(path: Path, values: Mapping[str, Any]) -> None:
    """`write_object`, unless there is such a file by now: of processes that begin at once, one writes."""
    _make_parent(path)
    beside = _beside(path)
    try:
        beside.write_text(json.dumps(values))
        os.link(beside, path)
    except FileExistsError:
        pass
    except OSError as error:  # of a file system without hard links
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        write_object(path, values)
    finally:
        beside.unlink(missing_ok=True)


def read_object(path: Path) -> dict[str, Any] | None:
    """What `write_object` wrote; None if there is no such file, or it cannot be read."""
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder that replaces `path` when the block ends without an error, and is removed if not.

    If the system can do so, old and new folder exchange their names in one step. If not, the old one is renamed first;
    if the process is killed just then, it is left as `.NAME.….old`.
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
        if old != beside and not path.exists():  # the old folder was renamed, the new one was not
            with suppress(OSError):
                old.rename(path)
        shutil.rmtree(beside, ignore_errors=True)
        _name(error, path, beside)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _name(error: BaseException, path: Path, beside: Path) -> None:
    """Let an error of the disk name the file that was asked for, not the temporary one."""
    if (
        isinstance(error, OSError)
        and error.errno
        and (error.filename is None or str(error.filename).startswith(str(beside)))
    ):
        error.filename, error.filename2 = str(path), None


def _make_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # it is a file
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from None


def _is_stream(path: Path) -> bool:
    """Whether this is a pipe, a device or a name of an open file, such as /dev/stdout, which cannot be replaced."""
    named = any(path.is_relative_to(each) for each in _OPENED)
    return named or (path.exists() and not path.is_file() and not path.is_dir())


def _beside(path: Path) -> Path:
    """A free hidden name in the same folder."""
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}")


_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of <fcntl.h> and <linux/fs.h>


def _exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders in one step; False if the system or the disk cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2  # Linux
    except (AttributeError, OSError, TypeError):
        return False
    return rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0


# Locks of the system, which end with the process that has them, however it ends


def lock(handle: int, *, shared: bool = False) -> bool | None:
    """Take the lock of an open file or folder. False if another process has it; None if there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[bool | None]:
    """Hold the lock of a folder, if no other process does; yields what `lock` returns."""
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
_YOUNG, _VERY_YOUNG = 24 * 3600.0, 60.0  # seconds: a younger file may be in use, without locks and with them


def is_leftover(name: str) -> bool:
    """Whether this is the name of something unfinished."""
    return _LEFT.fullmatch(name) is not None


def leftovers(folder: Path) -> Iterator[Path]:
    """What interrupted writes left in a folder (not in its subfolders), without what is being written now."""
    try:
        named = [path for path in folder.iterdir() if is_leftover(path.name)] if folder.is_dir() else []
    except PermissionError:  # it belongs to another user
        return
    for path in sorted(named):
        if not _in_use(path):
            yield path


def sweep(path: Path) -> bool:
    """Remove a leftover, if it is still there. False if it was an old folder without a new one, which gets its name
    back."""
    parts = _LEFT.fullmatch(path.name)
    original = path.with_name(parts["name"]) if parts and parts["old"] else path
    if original != path and path.exists() and not original.exists():
        path.rename(original)
        return False
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return True


def _in_use(path: Path) -> bool:
    """Whether a process may be writing it; links are left alone, because Regard makes none."""
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
    except OSError:  # removed just now, or of another user
        return True
    unlocked = free is None or path.name.startswith(".work.")
    return free is False or age < (_YOUNG if unlocked else _VERY_YOUNG)


def remove(folder: Path) -> None:
    """Remove a folder and its contents. It is renamed first, so that it is gone even if removing its files is
    interrupted. Links inside are removed, not what they point to."""
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.removed."))
    folder.rename(aside)  # replaces the empty folder
    shutil.rmtree(aside)


def _sync(folder: Path) -> None:
    """Write every file of a folder to the disk, so that the contents are there before the rename."""
    for path in folder.rglob("*"):
        if path.is_dir():
            _sync_names(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_names(folder)


def _sync_names(folder: Path) -> None:
    """Write the names in a folder to the disk, if the system can open folders."""
    if os.name == "posix" and folder.exists():
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
