"""Every complaint Regard makes: one line that says where, what is wrong, and what would be right.

The grammar is fixed, ``where = value: what is wrong; what would be right``, so that people learn to
read it once. The class decides the exit code of the command line (and the HTTP status of the service).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class RegardError(Exception):
    """A problem the user can solve. Its text is a single line; `hint` is a command that helps, where there is one.

    The command line prints the hint below, indented. It is no part of the text, so that a service can leave it out.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(" ".join(message.split()))
        self.hint = hint


class SettingsError(RegardError):
    """A setting, flag or argument that cannot be meant as it stands."""

    exit_code = 2


class DataError(RegardError):
    """A corpus, file or sequence that cannot be used as it stands."""

    exit_code = 3


class ModelError(RegardError):
    """A model, run folder or checkpoint that does not fit what is asked of it."""

    exit_code = 4


class ResourceError(RegardError):
    """Memory, disk, a port or an optional package that is not there."""

    exit_code = 5


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The closest known name as a hint, or the whole list when nothing is close."""
    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names)}"
