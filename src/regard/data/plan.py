"""Which rows go together into which batch: a pure function of the lengths, the seed and the epoch.

Nothing has to be saved to resume: the position (epoch, batch) says it all, for any number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.menu import BatchShape
from regard.errors import SettingsError

Lengths = NDArray[np.int32]

_BANDS = (1, 2, 3, 4, 6, 8)  # source lengths that may be sorted as one
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
        return _padding(self.shapes, 1, self.tokens[0]), _padding(self.shapes, 2, self.tokens[1])


def _padding(shapes: NDArray[np.int64], side: int, tokens: int) -> float:
    positions = int((shapes[:, 0] * shapes[:, side]).sum())
    return 1 - tokens / positions if positions else 0.0


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

    Lengths are those in the batch, `<end>` included; None says that the task has no such side. A row longer
    than `longest` (or than the budget) is left out, or cut off if `truncate` says so; a row with an empty
    source is left out. Every other row is in exactly one batch. With a menu, all batches have its shapes.
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
    """The lengths of both sides, where a side that the task does not have is 0 long."""
    if source is not None:
        return source, target if target is not None else np.zeros_like(source)
    if target is not None:
        return np.zeros_like(target), target
    raise SettingsError("lengths = none: a batch needs a source or a target")


Cut = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _cut_by_length(rows: NDArray[np.int64], source: Lengths, target: Lengths, budget: int, first: float) -> Cut:
    """Sort by length and cut, in the way that pads least.

    A large corpus has many rows of each source length, and sorting them by target length makes both sides
    tight. A small one needs bands of several source lengths to leave a choice; trying tells how many.
    """
    bands = _BANDS if len(rows) < _LARGE else _BANDS[:1]
    cuts = (_cut_in_bands(rows, source, target, budget, first=first, band=band) for band in bands)
    return min(cuts, key=lambda cut: int((cut[3][:, 0] * (cut[3][:, 1] + cut[3][:, 2])).sum()))


def _cut_in_bands(
    rows: NDArray[np.int64], source: Lengths, target: Lengths, budget: int, *, first: float, band: int
) -> Cut:
    """Sort by source length in bands, then by target length, and cut greedily.

    Rows of equal lengths stay shuffled, and the first batch is filled only in part, which moves all cuts: so
    batches vary by epoch. Target lengths run up and down in turn (a snake): neighbours are alike on both
    sides, even where the source length steps up.
    """
    place = source[rows] // band
    key = (place.astype(np.int64) << 32) + np.where(place % 2, target[rows], -target[rows])
    order = rows[np.argsort(key, kind="stable")]
    del place, key
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
    """Each row goes to the smallest shape that holds it; what does not fill a batch moves to a larger one."""
    shapes = sorted(menu, key=lambda shape: (shape.source + shape.target, shape))
    choice = _smallest_shape(source[rows], target[rows], shapes)
    sorted_rows = rows[np.argsort(choice, kind="stable")]
    waiting = np.split(sorted_rows, np.cumsum(np.bincount(choice, minlength=len(shapes)))[:-1])
    counts, which = list[int](), list[int]()
    for number, shape in enumerate(shapes):
        held = waiting[number]
        larger = (k for k in range(number + 1, len(shapes)) if _holds(shapes[k], shape))
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


def _holds(larger: BatchShape, smaller: BatchShape) -> bool:
    return larger.source >= smaller.source and larger.target >= smaller.target
