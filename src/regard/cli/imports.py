"""Importing much at once, in less time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unswept() -> Iterator[None]:
    """Look for no garbage while modules are imported, and never again among what they made.

    Modules live as long as the process. Python would look through all their functions and classes a few dozen times
    while they come in, and again when it ends: with torch, that is a fifth of the time of the import.
    """
    swept = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if swept:
            gc.enable()
