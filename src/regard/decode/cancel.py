"""Cancelling: work asks between two steps of a search, or two passes, whether its caller still wants it.

    with cancellable(check):
        translator.translate(text)

``check`` is called on the same thread, again and again, and ends the work by raising `Cancelled`. Work outside such
a block is never stopped, and asking costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(BaseException):
    """The result is no longer wanted. As with `asyncio.CancelledError`, no ``except Exception`` may swallow it."""


def _always() -> None:
    """Work that is never cancelled."""


_check: ContextVar[Callable[[], object]] = ContextVar("check", default=_always)


@contextmanager
def cancellable(check: Callable[[], object]) -> Iterator[None]:
    """Let ``check`` decide what becomes of the work in this block."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def check_cancelled() -> None:
    """To be called where work can be left off; raises if it shall be."""
    _check.get()()
