"""Ctrl-C and SIGTERM: the first asks for a checkpoint and an orderly end, the second leaves at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # the exit code


class Interruption:
    """Whether the training was asked to stop."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.asked = False
        self._tell = tell

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.asked:
            os._exit(INTERRUPTED)  # checkpoints are renamed into place whole: the last good one is intact
        self.asked = True
        self._tell("stopping: a checkpoint is written, then the score is found; once more to leave at once")


@contextmanager
def interruptible(tell: Callable[[str], None]) -> Iterator[Interruption]:
    """Catch the two signals for the time of a training."""
    interruption = Interruption(tell)
    before = {number: signal.signal(number, interruption) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
