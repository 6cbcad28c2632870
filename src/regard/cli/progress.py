"""How far long work has come: a counter in a terminal, a plain line now and then in a log. All on stderr."""

from __future__ import annotations

import sys
import time

EVERY = 10.0  # seconds between two lines of a log


class LineCounter:
    """Counts lines."""

    def __init__(self, done: str, every: float = EVERY) -> None:
        self._every = every
        self._done = done  # what is done to them: translated, scored
        self._last = time.monotonic()

    def __call__(self, count: int, total: int | None = None) -> None:
        text = f"{count:,}{f' of {total:,}' if total else ''} lines {self._done}"
        if sys.stderr.isatty():
            print(f"\r{text}", end="\n" if count == total else "", file=sys.stderr, flush=True)
        elif time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)
