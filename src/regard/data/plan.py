"""Which rows are in which batch: a pure function of the lengths, the seed and the epoch.

To resume, a run needs nothing but its position (epoch, batch), for any number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import SettingsError

# A fixed menu of batch shapes, so that a training step can be captured once for each shape and replayed.
#
# Few shapes mean much padding, many shapes a long warm-up. The shapes that pad least are found by dynamic programming
# over the lengths of the corpus.

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

    Source lengths are multiples of `multiple`, as kernels that read a mask need: others are compiled for each length.

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
    """Lengths to cut at: about as many rows between each two, with more cuts in the long tail."""
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
    """The lengths that lead to the last column of the programme."""
    lengths, end = [], used
    for step in reversed(steps):
        if end > 0:
            lengths.append(int(targets[end - 1]))
            end = int(step[end - 1])
    return lengths


Lengths = NDArray[np.int32]

_BANDS = (1, 2, 3, 4, 6, 8)  # how many source lengths are sorted as one
_LARGE = 1_000_000  # rows


@dataclass(frozen=True)
class Plan:
    """One epoch: batch i holds the rows `order[begins[i]:ends[i]]`, padded to `shapes[i]`."""

    order: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    shapes: NDArray[np.int64]  # (batches, 3): rows, source length, target length
    tokens: tuple[int, int]  # real ones, on the source and on the target side
    too_long: int  # rows left out because they exceed the limit
    empty: int  # rows left out because their source is empty

    def __len__(self) -> int:
        return len(self.begins)

    def rows(self, batch: int) -> NDArray[np.int64]:
        """The rows of one batch."""
        return self.order[self.begins[batch] : self.ends[batch]]

    def shape(self, batch: int) -> BatchShape:
        """What one batch is padded to."""
        return BatchShape(*self.shapes[batch].tolist())

    @property
    def padding(self) -> tuple[float, float]:
        """The share of padded positions that hold no token, on the source and on the target side."""
        positions = (self.shapes[:, :1] * self.shapes[:, 1:]).sum(0).tolist()
        source, target = (
            1 - real / every if every else 0.0 for real, every in zip(self.tokens, positions, strict=True)
        )
        return source, target


def plan(
    source: Lengths | None,
    target: Lengths | None,
    *,
    budget: int,
    seed: int = 0,
    epoch: int = 0,
    longest: int | None = None,
    truncate: bool = False,
    menu: tuple[BatchShape, ...] = (),
) -> Plan:
    """Batches of at most `budget` padded tokens a side, of rows of about the same lengths, in random order.

    Lengths include `<end>`; None means that the task has no such side. A row longer than `longest` (or than the
    budget) is left out, or with `truncate` cut off; a row with an empty source is left out. Every other row is in
    exactly one batch. With a menu, all batches have its shapes.
    """
    limit = min(longest or budget, budget)
    sources, targets = both_sides(source, target)
    if truncate:
        sources, targets = np.minimum(sources, limit), np.minimum(targets, limit)
    long = np.maximum(sources, targets) > limit
    if menu:
        long |= _smallest_shape(sources, targets, menu) == len(menu)
    empty = (sources == 0) & ~long if source is not None else np.zeros_like(long)
    kept = np.flatnonzero(~(long | empty))
    random = np.random.default_rng((seed, epoch))
    random.shuffle(kept)
    if menu:
        cut = _cut_by_menu(kept, sources, targets, menu)
    else:
        cut = _cut_by_length(kept, sources, targets, budget, random.uniform(0.2, 1.0))
    order, begins, ends, shapes = cut
    turns = random.permutation(len(begins))
    tokens = (int(sources[kept].sum()), int(targets[kept].sum()))
    return Plan(order, begins[turns], ends[turns], shapes[turns], tokens, int(long.sum()), int(empty.sum()))


def both_sides(source: Lengths | None, target: Lengths | None) -> tuple[Lengths, Lengths]:
    """The lengths of both sides; a side that the task does not have has length 0."""
    if source is not None:
        return source, target if target is not None else np.zeros_like(source)
    if target is not None:
        return np.zeros_like(target), target
    raise SettingsError("lengths = none: a batch needs a source or a target")


Cut = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _cut_by_length(rows: NDArray[np.int64], source: Lengths, target: Lengths, budget: int, first: float) -> Cut:
    """Sort by length and cut, in the way that pads least.

    A large corpus has many rows of each source length, so that sorting these by target length leaves little padding on
    both sides. In a small one several source lengths are sorted as one band; all widths of bands are tried.
    """
    bands = _BANDS if len(rows) < _LARGE else _BANDS[:1]
    cuts = (_cut_in_bands(rows, source, target, budget, first=first, band=band) for band in bands)
    return min(cuts, key=lambda cut: int((cut[3][:, 0] * (cut[3][:, 1] + cut[3][:, 2])).sum()))


def _cut_in_bands(
    rows: NDArray[np.int64], source: Lengths, target: Lengths, budget: int, *, first: float, band: int
) -> Cut:
    """Sort by source length in bands, then by target length, and cut greedily.

    Rows of equal lengths stay shuffled, and the first batch is filled only in part, which moves all cuts: so
    batches differ from epoch to epoch. Target lengths go up in one band and down in the next, so that neighbours are
    alike on both sides even where one band ends and the next begins.
    """
    bands = source[rows] // band
    key = (bands.astype(np.int64) << 32) + np.where(bands % 2, target[rows], -target[rows])
    order = rows[np.argsort(key, kind="stable")]
    del bands, key
    source, target = source[order], target[order]
    edges, share = [0], first
    while (begin := edges[-1]) < len(order):
        window = slice(begin, begin + budget // max(1, int(source[begin]) - band))
        widest = np.maximum.accumulate(np.maximum(source[window], target[window]))
        fitting = np.count_nonzero(widest * np.arange(1, len(widest) + 1, dtype=np.int64) <= budget)
        edges.append(begin + max(1, int(fitting * share)))
        share = 1.0
    bounds = np.array(edges, np.int64)
    if len(order) == 0:
        return order, bounds[:0], bounds[:0], np.zeros((0, 3), np.int64)
    sources, targets = np.maximum.reduceat(source, bounds[:-1]), np.maximum.reduceat(target, bounds[:-1])
    return order, bounds[:-1], bounds[1:], np.stack([np.diff(bounds), sources, targets], axis=1)


def _cut_by_menu(rows: NDArray[np.int64], source: Lengths, target: Lengths, menu: tuple[BatchShape, ...]) -> Cut:
    """Each row goes to the smallest shape that holds it; rows that do not fill a batch move to a larger shape."""
    shapes = sorted(menu, key=lambda shape: (shape.source + shape.target, shape))
    choice = _smallest_shape(source[rows], target[rows], shapes)
    sorted_rows = rows[np.argsort(choice, kind="stable")]
    waiting = np.split(sorted_rows, np.cumsum(np.bincount(choice, minlength=len(shapes)))[:-1])
    counts, which = list[int](), list[int]()
    for number, shape in enumerate(shapes):
        held = waiting[number]
        later = range(number + 1, len(shapes))
        larger = (k for k in later if shapes[k].source >= shape.source and shapes[k].target >= shape.target)
        if (parent := next(larger, None)) is not None:
            full = len(held) // shape.rows * shape.rows
            waiting[parent] = np.concatenate([held[full:], waiting[parent]])
            waiting[number] = held = held[:full]
        parts = [min(shape.rows, len(held) - begin) for begin in range(0, len(held), shape.rows)]
        counts += parts
        which += [number] * len(parts)
    edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    table = np.array(shapes, np.int64)
    return np.concatenate(waiting), edges[:-1], edges[1:], table[np.array(which, np.int64)]


def _smallest_shape(source: Lengths, target: Lengths, shapes: Sequence[BatchShape]) -> NDArray[np.uint16]:
    """The number of the first shape that holds each row, or how many shapes there are if none does."""
    choice = np.full(len(source), len(shapes), np.uint16)
    for number, shape in reversed(list(enumerate(shapes))):
        choice[(source <= shape.source) & (target <= shape.target)] = number
    return choice
