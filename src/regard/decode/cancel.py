"""Cancelling: between two steps of a search, or two passes, work checks whether its caller still wants the result.

    with cancellable(check):
        translator.translate(text)

``check`` is called on the same thread, many times, and ends the work by raising `Cancelled`. Work outside such a block
is never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(BaseException):
    """The result is no longer wanted. As with `asyncio.CancelledError`, no ``except Exception`` may swallow it."""


_check: ContextVar[Callable[[], object]] = ContextVar("check", default=lambda: None)


@contextmanager
def cancellable(check: Callable[[], object]) -> Iterator[None]:
    """Let ``check`` decide whether the work in this block goes on."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def check_cancelled() -> None:
    """Called where work can stop; raises if the caller's check does."""
    _check.get()()
