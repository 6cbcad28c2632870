"""Before step one: what the training will need, so that surprises come early."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from regard.data.encoding import Column
from regard.data.examples import Ragged
from regard.data.shards import Shards
from regard.settings import TrainSettings
from regard.tasks.task import Task
from regard.trainer.log import clock
from regard.trainer.loop import Trainer

TOKENS: tuple[Column, ...] = ("source", "target")


@dataclass(frozen=True)
class Preflight:
    """An estimate. The time is that of a few steps on a CPU; on a GPU it is from the rate of matrix products, and right
    within a factor of two or so."""

    parameters: int
    examples: int
    too_long: int
    batches_per_epoch: int
    padding: tuple[float, float]  # share of the batches that holds no token, source and target
    unknown: float  # share of <unk> among the pieces
    longest: int  # pieces
    memory: int  # bytes
    seconds: float
    steps: int  # at the most
    within: int  # that the time is enough for

    def __str__(self) -> str:
        lines = (
            f"parameters      {self.parameters:,}",
            f"examples        {self.examples:,}, longest {self.longest} pieces; {self.too_long:,} left out as too long",
            f"batches         {self.batches_per_epoch:,} an epoch, {100 * max(self.padding):.1f} % padding",
            f"unknown pieces  {100 * self.unknown:.2f} %",
            f"memory          about {self.memory / 2**20:,.0f} MiB",
            f"time            about {clock(self.seconds)} for at most {self.within:,} steps",
        )
        return "\n".join(lines)


def preflight(trainer: Trainer, settings: TrainSettings, *, depth: int, width: int, size: int) -> Preflight:
    """From the model, the first epoch's plan and a quick measurement of the machine."""
    task, plan = trainer.task, trainer.feed.batches.plan(0)
    parameters = sum(parameter.numel() for parameter in task.parameters())
    tokens = _mean_tokens(task, len(plan))
    working = parameters - _embedding_parameters(task)
    work = 6 * tokens * settings.accumulate * working  # forward and backward, two operations a parameter each
    each = trainer.rehearse() if trainer.device.type == "cpu" else work / (_matrix_rate(trainer.device) * 0.4)
    estimate, limit = settings.steps * each, settings.seconds
    return Preflight(
        parameters=parameters,
        examples=len(task.train_examples),
        too_long=plan.too_long,
        batches_per_epoch=len(plan),
        padding=plan.padding,
        unknown=_unknown(task),
        longest=_longest(task),
        memory=_memory(parameters, settings, depth=depth, width=width, size=size),
        seconds=min(estimate, limit) if limit is not None else estimate,
        steps=settings.steps,
        within=settings.steps if limit is None else min(settings.steps, round(limit / each)),
    )


def _memory(parameters: int, settings: TrainSettings, *, depth: int, width: int, size: int) -> int:
    """Weights, gradients and two moments; what the backward pass keeps of each layer and of the logits."""
    states = 4 * (1 + 1 + (1 if settings.optimizer == "sgd" else 2) + (settings.average.kind == "moving"))
    return parameters * states + settings.batch * (16 * width * depth + 3 * size) * 4


def _mean_tokens(task: Task, batches: int) -> float:
    return sum(len(column.numbers) for column in _read_or_written(task)) / max(1, batches)


def _read_or_written(task: Task) -> list[Ragged]:
    """The columns of tokens; how they are written and labelled comes along with them."""
    columns = task.train_examples.columns
    return [columns[name] for name in TOKENS if name in columns]


def _embedding_parameters(task: Task) -> int:
    """Look-ups cost nothing; the output layer, tied or not, costs as much as it has weights."""
    names = ("encoder.embedding.weight", "encoder.embedding.learned.weight")
    return sum(parameter.numel() for name, parameter in task.named_parameters() if name.endswith(names))


def _unknown(task: Task) -> float:
    if not isinstance(task.train_examples, Shards):
        return 0.0
    columns = task.train_examples.manifest.columns
    summaries = [columns[name] for name in TOKENS if name in columns]
    return sum(summary.unknown for summary in summaries) / max(1, sum(summary.numbers for summary in summaries))


def _longest(task: Task) -> int:
    return max(int(column.lengths().max()) for column in _read_or_written(task))


def _matrix_rate(device: torch.device) -> float:
    """Operations a second of a matrix product, in bfloat16."""
    matrix = torch.randn(1024, 1024, device=device, dtype=torch.bfloat16)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        product = matrix @ matrix
        float(product[0, 0])  # waits for the device
        best = min(best, time.perf_counter() - began)
    return 2 * 1024**3 / best
