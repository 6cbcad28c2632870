"""Where two files that should pair line by line stop doing so, guessed from the lengths of their lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_OFFSETS = 32
_SLIP = 1.5  # what leaving an offset costs, in logarithms: a few lines' worth of evidence
_SOFTENING = 5  # characters: short lines vary much in ratio and say little


def find_shift(source: NDArray[np.integer], target: NDArray[np.integer]) -> int | None:
    """The line (from 1) at which the pairing slips, given the lengths of both sides' lines.

    Translations are about as long as their sources, so pairing line i with line i + o costs
    `|log source_i - log target_{i+o} - median|`. A file that lacks d lines starts at offset o = 0 and ends at
    o = d, and every slip costs a little too; the cheapest path of growing offsets says where it left 0. For
    each offset one running sum and one running minimum find it (None where the files are equally long):

        best_o[i] = sum_o[i] + min_{k <= i, p < o} (best_p[k] - sum_o[k] + slip)
    """
    if len(source) > len(target):
        return find_shift(target, source)
    missing, places = len(target) - len(source), np.arange(len(source) + 1)
    if missing == 0:
        return None
    short, long = (np.log(lengths + _SOFTENING).astype(np.float32) for lengths in (source, target))
    centre = np.median(short) - np.median(long) if len(short) else 0
    best = _sums(short, long, 0, centre)  # over the offsets so far
    left = places  # where that path left offset 0
    for offset in np.unique(np.linspace(1, missing, min(missing, _MOST_OFFSETS)).astype(int)):
        total = _sums(short, long, offset, centre)
        gain = best - total
        lowest = np.minimum.accumulate(gain)
        origin = np.maximum.accumulate(np.where(gain == lowest, places, 0))
        path = total + lowest + _SLIP
        left = np.where(path < best, left[origin], left) if offset < missing else left[origin]
        best = np.minimum(path, best)
    return int(left[-1]) + 1


def _sums(short: NDArray[np.float32], long: NDArray[np.float32], offset: int, centre: float) -> NDArray[np.float64]:
    """Running sums of the cost of pairing line i with line i + offset, from 0 lines on."""
    cost = np.minimum(np.abs(short - long[offset : offset + len(short)] - centre), 1.5)
    return np.concatenate(([0.0], np.cumsum(cost, dtype=np.float64)))
