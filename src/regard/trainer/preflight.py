"""Before the first step: an estimate of what the training will need."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from regard.data.encoding import Column, Ragged
from regard.data.shards import Shards
from regard.device import matrix_rate
from regard.errors import ResourceError
from regard.explain.answer import Answer, computed
from regard.runs.folder import Run, steps
from regard.runs.log import clock
from regard.settings import TrainSettings, TransformerModel
from regard.tasks.task import Task
from regard.text.tokenizers import Tokenizers
from regard.trainer.loop import Trainer
from regard.trainer.pace import used_memory

TOKENS: tuple[Column, ...] = ("source", "target")


@dataclass(frozen=True)
class Preflight(Answer):
    """What a training will need. On a CPU the time is from a few steps; on a GPU it is from the speed of matrix
    products, and right within a factor of about two."""

    parameters: int
    examples: int
    too_long: Annotated[int, Field(description="Examples that are left out as too long.")]
    batches_per_epoch: int
    padding: Annotated[
        tuple[float, float], Field(description="Share of the batches that holds no token, source and target.")
    ]
    unknown: Annotated[float, Field(description="Share of unknown pieces.")]
    longest: Annotated[int, Field(description="Pieces.")]
    memory: Annotated[int, Field(description="Bytes.")]
    seconds: float
    steps: Annotated[int, Field(description="At the most.")]
    within: Annotated[int, Field(description="Steps that the time is enough for.")]
    disk: Annotated[int, Field(description="Bytes of all checkpoints that are there at once.")]
    free: Annotated[int, Field(description="Bytes on the disk.")]

    @computed
    def words(self) -> str:
        """The same for people."""
        steps = min(self.steps, self.within)
        rounds = steps / max(1, self.batches_per_epoch)
        seen = f"about {rounds:,.0f} times" if rounds >= 1.5 else "about once" if rounds >= 0.75 else "not even once"
        size = f"{self.parameters / 1e6:.1f} million" if self.parameters >= 100_000 else f"{self.parameters:,}"
        left = f" {self.too_long:,} are too long and are left out." if self.too_long else ""
        return (
            f"{_duration(self.seconds)} here for {steps:,} steps, in which each of the {self.examples:,} examples "
            f"is seen {seen}. The model has {size} parameters; to train it takes about "
            f"{_size(self.memory)} of memory.{left}"
        )

    def __str__(self) -> str:
        lines = (
            f"parameters      {self.parameters:,}",
            f"examples        {self.examples:,}, longest {self.longest} pieces; {self.too_long:,} left out as too long",
            f"batches         {self.batches_per_epoch:,} an epoch, {100 * max(self.padding):.1f} % padding",
            f"unknown pieces  {100 * self.unknown:.2f} %",
            f"memory          about {self.memory / 2**20:,.0f} MiB",
            f"disk            about {self.disk / 2**20:,.0f} MiB of checkpoints; {self.free / 2**20:,.0f} MiB are free",
            f"time            about {clock(self.seconds)} for at most {self.within:,} steps",
        )
        return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"About {max(10, round(seconds, -1)):.0f} seconds"
    return f"About {seconds / 60:.0f} minutes" if seconds < 5400 else f"About {seconds / 3600:.1f} hours"


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB" if count < 2**30 else f"{count / 2**30:.1f} GiB"


def preflight(trainer: Trainer, run: Run) -> Preflight:
    """From the model, the first epoch's plan and a quick measurement of the machine."""
    task, plan, settings = trainer.task, trainer.feed.batches.plan(0), trainer.settings
    parameters = sum(parameter.numel() for parameter in task.parameters())
    tokens = _mean_tokens(task, len(plan))
    working = parameters - _embedding_parameters(task)
    work = 6 * tokens * settings.accumulate * working  # forward and backward, two operations a parameter each
    each = (
        trainer.rehearse()
        if trainer.device.type == "cpu"
        else work / (matrix_rate(trainer.device, torch.bfloat16) * 0.4)
    )
    estimate, limit = settings.steps * each, settings.seconds
    return Preflight(
        parameters=parameters,
        examples=len(task.train_examples),
        too_long=plan.too_long,
        batches_per_epoch=len(plan),
        padding=plan.padding,
        unknown=_unknown(task),
        longest=_longest(task),
        memory=_memory(parameters, run) + (used_memory(trainer.device) if trainer.device.type == "cpu" else 0),
        seconds=min(estimate, limit) if limit is not None else estimate,
        steps=settings.steps,
        within=settings.steps if limit is None else min(settings.steps, round(limit / each)),
        disk=_kept(settings) * checkpoint_size(trainer),
        free=shutil.disk_usage(trainer.folder).free,
    )


def check_disk(trainer: Trainer) -> None:
    """Refuse to train where the disk has no room for the checkpoints."""
    if not trainer.workers.leads:
        return
    there = len(steps(trainer.folder / "checkpoints"))
    needed = max(1, _kept(trainer.settings) - there) * checkpoint_size(trainer)
    free = shutil.disk_usage(trainer.folder).free
    if needed > free:
        raise ResourceError(
            f"{trainer.folder}: checkpoints take {needed / 2**20:,.0f} MiB, and {free / 2**20:,.0f} MiB of the disk "
            "are free; free some space, use another disk, or lower train.keep"
        )


def _kept(settings: TrainSettings) -> int:
    """The most checkpoints that exist at once: the last ones, those of an average, which may be others, the best, and
    the one that is being written."""
    return settings.keep + settings.average.count * (settings.average.kind == "last") + 2


def checkpoint_size(trainer: Trainer) -> int:
    """Bytes of a checkpoint: weights and their average, frozen ones too, and the moments of the optimizer."""
    settings = trainer.settings
    trained = 4 * sum(parameter.numel() for parameter in trainer.task.parameters() if parameter.requires_grad)
    whole = sum(tensor.nbytes for tensor in trainer.weights.values())
    return whole * (1 + (settings.average.kind != "none")) + trained * (1 if settings.optimizer == "sgd" else 2)


def _memory(parameters: int, run: Run) -> int:
    """Bytes of weights, gradients and moments, and of the activations that the backward pass needs; the program takes
    more."""
    settings, model, size = run.settings.train, run.settings.model, Tokenizers.load(run.tokenizer).target.size
    depth = model.encoder_depth + model.decoder_depth if isinstance(model, TransformerModel) else 2 * model.depth
    states = 4 * (1 + 1 + (1 if settings.optimizer == "sgd" else 2) + (settings.average.kind == "moving"))
    return parameters * states + settings.batch * (16 * model.width * depth + 3 * size) * 4


def _mean_tokens(task: Task, batches: int) -> float:
    return sum(len(column.numbers) for column in _read_or_written(task)) / max(1, batches)


def _read_or_written(task: Task) -> list[Ragged]:
    """The columns of tokens; letters and labels are not counted."""
    columns = task.train_examples.columns
    return [columns[name] for name in TOKENS if name in columns]


def _embedding_parameters(task: Task) -> int:
    """Those of the source embedding, whose look-ups cost nothing; the output layer, tied or not, is computed."""
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
