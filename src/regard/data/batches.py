"""Batches of padded numbers, the same for every task, resumable at any position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from regard.data.encoding import Examples, Ragged
from regard.data.plan import BatchShape, Lengths, Plan, both_sides, choose_menu, plan
from regard.errors import DataError, SettingsError
from regard.text.vocabulary import END, PAD, START

NO_LABEL: Final = -1
FILLER: Final = -1  # the row number of a row that only fills up a shape

_RELEASE = 256  # batches between two releases of the memory that reading fills

Numbers = NDArray[np.int64]
Stretch = tuple[float, float]  # how many times longer than encoded a source and a target may become


@dataclass(frozen=True)
class Batch:
    """Some examples, padded on the right. A column that the task does not have is (B, 0).

    A filler row reads `<end>` and `<start>` alone, because no model can read an empty row, and predicts nothing: its
    `target_out` is all padding and its labels are all NO_LABEL.
    """

    rows: Numbers  # (B,) which example each row is
    source: Numbers  # (B, S), or (B, S, 1 + L): each id with its L letters, or with the numbers of its vector
    target_in: Numbers  # (B, T) begins with <start>; (B, T, 1 + F) where it is of vectors
    target_out: Numbers  # (B, T) ends with <end>; vectors have no end
    labels: Numbers  # (B, S) one for each piece, or (B, 1) one for the row
    links: NDArray[np.bool_]  # (B, T, S) whether piece T of the output goes with piece S of the source, where known

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tokens(self) -> int:
        """How many predictions this batch has: what the loss is divided by."""
        return int(np.count_nonzero(_ids(self.target_out)) + np.count_nonzero(self.labels != NO_LABEL))


@dataclass(frozen=True)
class Position:
    """Where a run is in its data: the next batch to read."""

    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Batches:
    """All batches of all epochs. Each of `world` processes gets its own share of the rows of every batch.

    So all processes together have the same batch whatever their number, which may change when a run is resumed.
    """

    examples: Examples
    budget: int
    seed: int = 0
    longest: int | None = None
    truncate: bool = False
    menu: tuple[BatchShape, ...] = ()
    stretch: Stretch = (1.0, 1.0)
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world:
            raise SettingsError(f"rank = {self.rank}: must be from 0 to {self.world - 1} of {self.world} processes")
        if self.budget < 1:
            raise SettingsError(f"budget = {self.budget}: a batch needs tokens; a few thousand is usual")

    def plan(self, epoch: int) -> Plan:
        """Which rows are in which batch of an epoch."""
        limit = min(self.longest or self.budget, self.budget)
        source, target = _stretched(self.examples, self.stretch, limit)
        made = plan(
            source,
            target,
            budget=self.budget,
            seed=self.seed,
            epoch=epoch,
            longest=self.longest,
            truncate=self.truncate,
            menu=self.menu,
        )
        if len(made) == 0:
            left_out = f"{made.too_long:,} too long, {made.empty:,} with an empty side"
            raise DataError(f"corpus = {len(self.examples):,} rows: none can be used; {left_out}")
        if self.stretch == (1.0, 1.0):
            return made
        lengths = both_sides(*lengths_of(self.examples))  # real ones, not those that were planned
        source_tokens, target_tokens = (int(np.minimum(side[made.order], limit).sum()) for side in lengths)
        return replace(made, tokens=(source_tokens, target_tokens))

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, from number `start` on."""
        made = self.plan(number)
        for index in range(start, len(made)):
            shape = made.shape(index)
            share = shape._replace(rows=-(-shape.rows // self.world))
            yield collate(self.examples, made.rows(index)[self.rank :: self.world], share)
            if index % _RELEASE == 0:
                self.examples.release()

    def read(self, position: Position = Position()) -> Iterator[tuple[Batch, Position]]:  # noqa: B008
        """Batches without end, each with the position to resume from after it."""
        epoch, start = position.epoch, position.batch
        while True:
            for index, batch in enumerate(self.epoch(epoch, start), start=start):
                yield batch, Position(epoch, index + 1)
            epoch, start = epoch + 1, 0


def lengths_of(examples: Examples) -> tuple[Lengths | None, Lengths | None]:
    """How long each row is in a batch, on both sides; None for a side that the task does not have."""
    source, target = (examples.columns.get(name) for name in ("source", "target"))
    return (None if source is None else source.lengths()), (None if target is None else target.lengths() + 1)


def _stretched(examples: Examples, stretch: Stretch, limit: int) -> tuple[Lengths | None, Lengths | None]:
    """The lengths to plan with: room for rows that become longer, up to the limit."""
    return tuple(  # type: ignore[return-value]
        side if side is None or by == 1 else np.maximum(side, np.minimum(np.ceil(side * by), limit)).astype(np.int32)
        for side, by in zip(lengths_of(examples), stretch, strict=True)
    )


def menu_for(
    examples: Examples,
    *,
    budget: int,
    size: int = 24,
    longest: int | None = None,
    multiple: int = 1,
    stretch: Stretch = (1.0, 1.0),
) -> tuple[BatchShape, ...]:
    """The shapes that pad these examples least; long rows and those with an empty source are left out, as in `plan`."""
    limit = min(longest or budget, budget)
    source, target = both_sides(*_stretched(examples, stretch, limit))
    kept = np.maximum(source, target) <= limit
    if "source" in examples.columns:
        kept &= source > 0
    return choose_menu(source[kept], target[kept], budget=budget, size=size, multiple=multiple)


def collate(examples: Examples, rows: NDArray[np.integer], shape: BatchShape) -> Batch:
    """The given rows as one padded batch. A row longer than the shape is cut off; its `<end>` stays."""
    columns = examples.columns
    absent = np.zeros((shape.rows, 0), np.int64)
    source, target_in, target_out, labels = absent, absent, absent, absent
    if "source" in columns:
        source = _fill_up(_cut_off(columns["source"], rows, max(1, shape.source)), shape.rows, END)
    if beside := columns.get("letters") or columns.get("vectors"):
        source = np.concatenate((source[:, :, None], _beside(columns["source"], beside, rows, source.shape)), 2)
        source = source.astype(np.float32) if "vectors" in columns else source
    if "futures" in columns:
        target_in, target_out = _futures(columns["target"], columns["futures"], rows, shape)
    elif "target" in columns:
        bare = columns["target"].padded(rows, shape.target - 1, PAD)
        target_in = np.pad(bare, ((0, 0), (1, 0)), constant_values=START)
        target_out = np.pad(bare, ((0, 0), (0, 1)), constant_values=PAD)
        target_out[np.arange(len(rows)), np.count_nonzero(bare, axis=1)] = END
        target_in, target_out = _fill_up(target_in, shape.rows, START), _fill_up(target_out, shape.rows, PAD)
    if "labels" in columns:
        labels = columns["labels"].padded(rows, max(1, shape.source), 0) - 1
    if "label" in columns:
        labels = columns["label"].padded(rows, 1, 0) - 1
    labels = np.pad(labels, ((0, shape.rows - len(labels)), (0, 0)), constant_values=NO_LABEL)
    numbers = np.full(shape.rows, FILLER, np.int64)
    numbers[: len(rows)] = rows
    links = np.zeros((shape.rows, 0, 0), np.bool_)
    if "links" in columns:
        links = _links(columns["links"], rows, (shape.rows, target_out.shape[1], source.shape[1]))
    return Batch(numbers, source, target_in, target_out, labels, links)


def _futures(
    ids: Ragged, numbers: Ragged, rows: NDArray[np.integer], shape: BatchShape
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Vectors to be written, and the same one later, after ``<start>``, as they are read: two of (B, T, 1 + F)."""
    bare = ids.padded(rows, shape.target - 1, PAD)
    bare = np.pad(bare, ((0, shape.rows - len(rows)), (0, 0)), constant_values=PAD)
    written = np.concatenate((bare[:, :, None], _beside(ids, numbers, rows, bare.shape)), 2).astype(np.float32)
    read = np.pad(written, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    read[:, 0, 0] = START
    return read, written


def _ids(side: NDArray[Any]) -> NDArray[Any]:
    return side if side.ndim == 2 else side[:, :, 0]


def _links(column: Ragged, rows: NDArray[np.integer], shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    """(B, T, S); links of pieces that were cut off are left out."""
    table = np.zeros(shape, np.bool_)
    counts = column.offsets[rows + 1] - column.offsets[rows]
    pairs = column.padded(rows, int(counts.max(initial=0)), 0)[np.arange(counts.max(initial=0)) < counts[:, None]]
    source, target = pairs.reshape(-1, 2).T
    owners = np.repeat(np.arange(len(rows)), counts // 2)
    inside = (source < shape[2]) & (target < shape[1])
    table[owners[inside], target[inside], source[inside]] = True
    return table


def _cut_off(column: Ragged, rows: NDArray[np.integer], width: int) -> Numbers:
    """Sources of one width. One that ends with `<end>`, as in translation, still does so when it is cut off."""
    matrix = column.padded(rows, width, PAD)
    ends = column.offsets[rows + 1]
    long = np.flatnonzero(ends - column.offsets[rows] > width)
    matrix[long[column.numbers[ends[long] - 1] == END], -1] = END
    return matrix


def trimmed(batch: Batch) -> Batch:
    """The same without columns in which every row has padding."""
    sides = _ids(batch.source), _ids(batch.target_in)
    reading, writing = (int(np.flatnonzero(side.any(0)).max(initial=0)) + 1 for side in sides)
    return replace(
        batch,
        source=batch.source[:, :reading],
        target_in=batch.target_in[:, :writing],
        target_out=batch.target_out[:, :writing],
        labels=batch.labels if batch.labels.shape[1] == 1 else batch.labels[:, :reading],
        links=batch.links[:, :writing, :reading],
    )


def _fill_up(matrix: Numbers, rows: int, first: int) -> Numbers:
    """Add filler rows, one token and padding, up to so many rows."""
    filler = np.zeros((rows - len(matrix), matrix.shape[1]), np.int64)
    filler[:, :1] = first
    return np.concatenate([matrix, filler]) if len(filler) else matrix


def _beside(ids: Ragged, column: Ragged, rows: NDArray[np.integer], shape: tuple[int, ...]) -> NDArray[Any]:
    """The letters or numbers that belong to the ids of a batch, (B, S, L). Every id has the same number of them."""
    places = len(column.numbers) // max(1, len(ids.numbers))
    matrix = column.padded(rows, shape[1] * places, PAD).reshape(len(rows), shape[1], places)
    return np.pad(matrix, ((0, shape[0] - len(rows)), (0, 0), (0, 0)), constant_values=PAD)
