"""How far long work has come: a counter in a terminal, a plain line now and then in a log. All on stderr."""

from __future__ import annotations

import sys
import time

from regard.cli.streams import hushed, record

EVERY = 10.0  # seconds between two lines of a log


class LineCounter:
    """Counts lines; says nothing in a call that is quiet."""

    def __init__(self, done: str, every: float = EVERY, what: str = "lines") -> None:
        self._every = every
        self._what = what
        self._hushed = hushed()  # here: who counts may do so in another thread
        self._done = done  # what is done to them: translated, scored
        self._last = time.monotonic()

    def __call__(self, count: int, total: int | None = None) -> None:
        if self._hushed:
            return
        text = f"{count:,}{f' of {total:,}' if total else ''} {self._what} {self._done}"
        due = time.monotonic() - self._last >= self._every
        if due or count == total:
            record("progress", {"text": text, "done": count, "of": total})
        if sys.stderr.isatty():
            print(f"\r{text}", end="\n" if count == total else "", file=sys.stderr, flush=True)
        elif due:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)
