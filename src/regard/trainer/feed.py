"""What a training feeds on: batches in the shapes that its steps want, and as many as belong to one step."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from regard.data.batches import Batch, Batches, Position, menu_for
from regard.data.menu import Shape
from regard.settings import TrainSettings
from regard.tasks.task import Task
from regard.trainer.workers import Workers


@dataclass(frozen=True)
class Group:
    """The batches of one step, and where to go on after it."""

    batches: list[Batch]
    first: Position  # of the first batch
    after: Position

    def describe(self) -> str:
        """Where its first rows can be found, for a message."""
        rows = self.batches[0].rows.tolist()
        some = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        return f"epoch {self.first.epoch}, batch {self.first.batch} (rows {some})"


class Feed:
    """The training examples of a task, over and over."""

    def __init__(
        self, task: Task, settings: TrainSettings, *, longest: int, kind: str, device: torch.device, workers: Workers
    ) -> None:
        """On a GPU there are few shapes: each can be captured, and memory is not cut into odd pieces."""
        self.task, self.accumulate, self.ahead = task, settings.accumulate, device.type == "cuda"
        examples, budget = task.train_examples, settings.batch
        menu: tuple[Shape, ...] = ()
        if self.ahead:
            multiple = 8 if kind == "compiled-graph" else 1
            menu = menu_for(examples, budget=budget, size=settings.shapes, longest=longest, multiple=multiple)
        self.batches = Batches(
            examples,
            budget,
            seed=settings.seed,
            longest=longest,
            menu=menu,
            rank=workers.rank,
            world=workers.world,
        )

    def groups(self, position: Position) -> Iterator[Group]:
        """The batches of one step after another, from here on."""
        waiting: list[Batch] = []
        first = position
        batches = self._prepared(position)
        for batch, after in ahead(batches) if self.ahead else batches:
            waiting.append(batch)
            if len(waiting) == self.accumulate:
                yield Group(waiting, first, after)
                waiting, first = [], after

    def _prepared(self, position: Position) -> Iterator[tuple[Batch, Position]]:
        for batch, after in self.batches.read(position):
            yield self.task.prepare(batch, after.epoch), after


def ahead(batches: Iterator[tuple[Batch, Position]], count: int = 8) -> Iterator[tuple[Batch, Position]]:
    """The same, made by a thread of its own a little ahead of use. An error comes out where it would have."""
    ready: queue.Queue[tuple[Batch, Position] | BaseException] = queue.Queue(count)

    def work() -> None:
        try:
            for item in batches:
                ready.put(item)
        except BaseException as error:
            ready.put(error)

    threading.Thread(target=work, daemon=True).start()
    while True:
        item = ready.get()
        if isinstance(item, BaseException):
            raise item
        yield item
