"""Remembering what has been seen in a corpus of any size, at eight bytes for each different thing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray


class Seen:
    """A set of 64-bit hashes, asked in blocks.

    A Python set would need ten times the memory. Sorted runs are kept instead, and two runs of about the
    same length are merged into one, so there are few to search and each hash is moved a few times only.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def has(self, things: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Which of these have been added before."""
        return self._known(_hashes(things))

    def add(self, things: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Add these, and say which of them are new."""
        hashes = _hashes(things)
        values, places = np.unique(hashes, return_index=True)
        unknown = ~self._known(values)
        new = np.zeros(len(hashes), bool)
        new[places[unknown]] = True
        self._runs.append(values[unknown])
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._runs[-2:] = [np.sort(np.concatenate(self._runs[-2:]))]
        return new

    def _known(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        known = np.zeros(len(hashes), bool)
        for run in self._runs:
            if len(run):
                places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
                known |= run[places] == hashes
        return known


def _hashes(things: Iterable[Hashable]) -> NDArray[np.int64]:
    """Python's own hashes: another seed in every process, but only ever compared within one."""
    return np.fromiter(map(hash, things), np.int64)
