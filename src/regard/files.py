"""Writing that either happens or does not: a file or folder is made beside its place and renamed into it.

A reader therefore never sees half a file, and a crash leaves the previous version as it was.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and vanishes when not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
        _sync_names(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder that takes the place of `path` when the block ends well, and vanishes when not.

    A folder cannot be renamed onto one that holds files: the old one steps aside first and is removed last.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    old = beside.with_name(f"{beside.name}.old")
    try:
        beside.chmod(0o777 & ~_umask())
        yield beside
        _sync(beside)
        if path.exists():
            path.rename(old)
        beside.rename(path)
        _sync_names(path.parent)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it. It is gone at once, even if removing its files is cut short.

    Links inside are removed themselves; where they point stays as it is.
    """
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.removed."))
    folder.rename(aside)  # onto the empty one
    shutil.rmtree(aside)


def _umask() -> int:
    """The process's file mode mask; the system tells it only to those who set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
