"""The batches of a training, grouped by step."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

import torch

from regard.data.batches import Batch, Batches, Position, menu_for, trimmed
from regard.data.plan import BatchShape
from regard.settings import TrainSettings
from regard.tasks.task import Task
from regard.trainer.workers import Workers


@dataclass(frozen=True)
class Group:
    """The batches of one step, and the position after it."""

    batches: list[Batch]
    first: Position  # of the first batch
    after: Position

    def describe(self) -> str:
        """Where its first rows are in the corpus, for a message."""
        rows = self.batches[0].rows.tolist()
        some = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        return f"epoch {self.first.epoch}, batch {self.first.batch} (rows {some})"


class Feed:
    """The training examples of a task, over and over."""

    def __init__(
        self, task: Task, settings: TrainSettings, *, longest: int, kind: str, device: torch.device, workers: Workers
    ) -> None:
        """On a GPU batches have few shapes: each can be captured, and memory is not fragmented."""
        self.task, self.accumulate, self.ahead = task, settings.accumulate, device.type == "cuda"
        examples, budget = task.train_examples, settings.batch
        menu: tuple[BatchShape, ...] = ()
        if self.ahead:
            multiple = 8 if kind == "compiled-graph" else 1
            menu = menu_for(
                examples, budget=budget, size=settings.shapes, longest=longest, multiple=multiple, stretch=task.stretch
            )
        self.batches = Batches(
            examples,
            budget,
            seed=settings.seed,
            longest=longest,
            menu=menu,
            stretch=task.stretch,
            rank=workers.rank,
            world=workers.world,
        )

    def groups(self, position: Position) -> Generator[Group]:
        """The batches of one step after another, from a position on. The caller closes the generator."""
        waiting: list[Batch] = []
        first = position
        batches = self._prepared(position)
        with closing(ahead(batches) if self.ahead else batches) as made:
            for batch, after in made:
                waiting.append(batch)
                if len(waiting) == self.accumulate:
                    yield Group(waiting, first, after)
                    waiting, first = [], after

    def _prepared(self, position: Position) -> Generator[tuple[Batch, Position]]:
        for batch, after in self.batches.read(position):
            prepared = self.task.prepare(batch, after.epoch)
            yield (prepared if self.batches.menu else trimmed(prepared)), after


def ahead(batches: Iterator[tuple[Batch, Position]], count: int = 8) -> Generator[tuple[Batch, Position]]:
    """The same batches, made in advance by a thread, which ends when this is closed. An error is raised where the batch
    would have come."""
    ready: queue.Queue[tuple[Batch, Position] | BaseException] = queue.Queue(count)
    over = threading.Event()

    def work() -> None:
        try:
            for item in batches:
                ready.put(item)
                if over.is_set():
                    return
        except BaseException as error:
            ready.put(error)

    thread = threading.Thread(target=work, daemon=True, name="batches ahead")
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:  # a thread that waits in `put` gets room, and then sees that it must end
        over.set()
        while thread.is_alive():
            _empty(ready)
            thread.join(0.01)
        _empty(ready)


def _empty(ready: queue.Queue[tuple[Batch, Position] | BaseException]) -> None:
    while not ready.empty():
        ready.get_nowait()
