"""A fixed menu of batch shapes, so that a training step can be captured once for each shape and replayed.

Few shapes mean much padding and many a long warm-up, so the shapes that pad least are found by dynamic
programming from the lengths of the corpus.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import SettingsError

_CANDIDATES = 40  # lengths considered on each side
_MOST_TARGETS = 6  # target lengths for one source length


class BatchShape(NamedTuple):
    """Rows, source length and target length of a batch."""

    rows: int
    source: int
    target: int


def choose_menu(
    source: NDArray[np.integer], target: NDArray[np.integer], *, budget: int, size: int = 24, multiple: int = 1
) -> tuple[BatchShape, ...]:
    """At most `size` shapes that hold every row, with the fewest padded positions on both sides together.

    Source lengths are multiples of `multiple`: kernels that read a mask want that, and are compiled anew without it.

    Source lengths are cut into intervals, and the rows of each interval by target length. A row with lengths
    (s, t) costs S + T, the lengths of its shape. The best cut of a prefix of source lengths into m shapes is

        F[m, j] = min_{i < j, k <= m} F[m - k, i] + cost(i, j, k)

    where cost(i, j, k) is that of the rows between lengths i and j with the best k target lengths.
    """
    if size < 1 or len(source) == 0:
        raise SettingsError(f"menu = {size} shapes for {len(source)} rows: nothing to choose; both must be above 0")
    longest = int(max(source.max(), target.max()))
    if longest > budget:
        raise SettingsError(f"budget = {budget}: a row has {longest} tokens; raise the budget or limit the length")
    sources, targets = np.unique(-(-_candidates(source) // multiple) * multiple), _candidates(target)
    places = np.searchsorted(sources, source) * len(targets) + np.searchsorted(targets, target)
    table = np.bincount(places, minlength=len(sources) * len(targets)).reshape(len(sources), len(targets))
    cuts = _best_cuts(table, sources, targets, size)
    return tuple(
        BatchShape(max(1, budget // max(s, t, 1)), s, t) for s, t in sorted(cuts, key=lambda cut: (sum(cut), cut))
    )


def _candidates(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Lengths worth cutting at: evenly many rows between them, with more of them in the long tail."""
    shares = np.concatenate([np.linspace(0, 0.95, _CANDIDATES - 9)[1:], 1 - 0.05 * 0.5 ** np.arange(1, 9), [1.0]])
    return np.unique(np.quantile(lengths, shares, method="higher")).astype(np.int64)


def _best_cuts(
    table: NDArray[np.int64], sources: NDArray[np.int64], targets: NDArray[np.int64], size: int
) -> list[tuple[int, int]]:
    """The dynamic programme over source lengths; `table` counts rows by source and target candidate."""
    above = np.concatenate([np.zeros((1, len(targets)), np.int64), np.cumsum(table, axis=0)])
    ends = len(sources)
    most = min(_MOST_TARGETS, size)
    cost = np.full((ends + 1, ends + 1, most + 1), np.inf)
    for i in range(ends):
        for j in range(i + 1, ends + 1):
            counts = above[j] - above[i]
            cost[i, j, 1:] = counts.sum() * sources[j - 1] + _cut_targets(counts, targets, most)[0]
    best = np.full((size + 1, ends + 1), np.inf)
    best[:, 0] = 0
    steps: dict[tuple[int, int], tuple[int, int]] = {}
    for m in range(1, size + 1):
        for j in range(1, ends + 1):
            taken = np.arange(1, min(most, m) + 1)
            totals = best[m - taken][:, :j] + cost[:j, j, taken].T  # (shapes taken, where the interval begins)
            place = int(totals.argmin())
            best[m, j] = totals.flat[place]
            steps[m, j] = place // j + 1, place % j
    cuts, m, j = list[tuple[int, int]](), size, ends
    while j > 0:
        k, i = steps[m, j]
        lengths = _cut_targets(above[j] - above[i], targets, most)[1][k - 1]
        cuts += [(int(sources[j - 1]), length) for length in lengths]
        m, j = m - k, i
    return cuts


def _cut_targets(
    counts: NDArray[np.int64], targets: NDArray[np.int64], most: int
) -> tuple[NDArray[np.float64], list[list[int]]]:
    """For k = 1..most target lengths: the cost of padding these rows to them, and the lengths."""
    used = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 1
    below = np.concatenate([[0], np.cumsum(counts[:used])])
    pad = (below[None, 1:] - below[:-1, None]) * targets[None, :used].astype(float)  # rows from i to j, at length j
    pad[np.tril_indices(used, -1)] = np.inf
    best, steps = pad[0], [np.zeros(used, np.int64)]
    costs, lengths = [best[-1]], [[int(targets[used - 1])]]
    for _ in range(1, most):
        totals = np.concatenate([[0.0], best[:-1]])[:, None] + pad
        steps.append(totals.argmin(axis=0))
        best = totals.min(axis=0)
        costs.append(best[-1])
        lengths.append(_walk_back(steps, targets, used))
    return np.array(costs), lengths


def _walk_back(steps: list[NDArray[np.int64]], targets: NDArray[np.int64], used: int) -> list[int]:
    """The lengths that the last column of the programme came from."""
    found, end = [], used
    for step in reversed(steps):
        if end > 0:
            found.append(int(targets[end - 1]))
            end = int(step[end - 1])
    return found
