"""One update of the weights, in three ways that give the same result.

A step is forward, backward, clip, optimizer, average. Eager runs it as it is written; compiled lets
torch.compile fuse the loss and its gradient; graph captures all of it as one CUDA graph for each batch
shape and replays that, because a small model on a GPU otherwise spends its time launching kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.errors import ResourceError
from regard.nn.fast import allocator as memory
from regard.tasks.task import Task, Tensors
from regard.trainer.adapting import Adapters
from regard.trainer.averaging import MovingAverage
from regard.trainer.optimizer import set_rate
from regard.trainer.parts import Parts
from regard.trainer.workers import ALONE, Workers


@dataclass(frozen=True)
class StepContext:
    """What every kind of step needs."""

    task: Task
    optimizer: torch.optim.Optimizer
    average: MovingAverage | None
    clip: float
    autocast: bool
    device: torch.device
    workers: Workers = ALONE
    adapters: Adapters | None = None

    def precision(self) -> Any:
        if not self.autocast:
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.task.parameters())


@dataclass(frozen=True)
class Taken:
    """What a step found. The loss may still be under way on the device; `float` waits for it."""

    loss: Tensor | float  # summed over the predictions of this process
    norm: Tensor | float  # of the gradient, before clipping
    skipped: bool = False


class TrainStep(Protocol):
    """Takes one update."""

    def __call__(self, group: Sequence[Tensors], count: float, rate: float, number: int) -> Taken:
        """Update from the batches of one step with ``count`` predictions over all processes; ``number`` is 1, 2, …"""


class EagerStep:
    """The step as it is written. Batches that do not fit into memory are split, and it says so.

    Compiled, the loss is one graph for all shapes. A choice of the real targets has a shape that depends on
    the data and would cut that graph in two, so it goes without (``static``).
    """

    def __init__(
        self,
        recipe: StepContext,
        *,
        compiled: bool = False,
        backend: str = "inductor",
        tell: Callable[[str], None] = print,
    ) -> None:
        if recipe.device.type == "cpu":
            memory.keep_freed()
        self.recipe = recipe
        self.tell = tell
        self.static = compiled
        loss: nn.Module = recipe.task
        if recipe.workers.world > 1:
            loss = DistributedDataParallel(loss, find_unused_parameters=recipe.adapters is not None)
        self.loss: Any = torch.compile(loss, dynamic=True, backend=backend) if compiled else loss
        alone = recipe.device.type == "cpu" and recipe.workers.world == 1 and not compiled
        self.parts = Parts.of(recipe.task, self._loss) if alone else None

    def __call__(self, group: Sequence[Tensors], count: float, rate: float, number: int) -> Taken:
        with nullcontext() if self.parts is None else self.parts.meeting():
            return self._update(group, count, rate, number)

    def _update(self, group: Sequence[Tensors], count: float, rate: float, number: int) -> Taken:
        recipe = self.recipe
        recipe.optimizer.zero_grad(set_to_none=True)
        total = sum(self._backward(batch, count, last=batch is group[-1]) for batch in group)
        if recipe.adapters is not None:
            recipe.adapters.project()
        norm = _clip(recipe.parameters(), recipe.clip)
        if not math.isfinite(total) or not bool(norm.isfinite()):
            recipe.optimizer.zero_grad(set_to_none=True)
            return Taken(total, norm, skipped=True)
        set_rate(recipe.optimizer, rate)
        recipe.optimizer.step()
        if recipe.adapters is not None:
            recipe.adapters.merge()
        if recipe.average is not None:
            recipe.average.update(recipe.average.share(number))
        return Taken(total, norm)

    def _loss(self, batch: Tensors) -> Any:
        with self.recipe.precision():
            return self.loss(batch, static=self.static)

    def _backward(self, batch: Tensors, count: float, *, last: bool) -> float:
        """Add a batch's gradient; returns its summed loss. DDP averages over processes, so that is undone here."""
        recipe = self.recipe
        if self.parts is not None and self.parts.divides(batch):
            return self.parts.backward(batch, 1 / count)
        sync = self.loss.no_sync() if recipe.workers.world > 1 and not last else nullcontext()
        try:
            with sync:
                loss = self._loss(batch)
                (loss * (recipe.workers.world / count)).backward()
                return float(loss.detach())
        except torch.OutOfMemoryError:
            if len(batch) == 1 or recipe.workers.world > 1:
                raise ResourceError(
                    f"memory: not enough for a batch of {len(batch)} rows; lower train.batch or data.longest"
                ) from None
        self.tell(f"memory: not enough for {len(batch)} rows at once; they go in two halves")
        if recipe.device.type == "cuda":
            torch.cuda.empty_cache()
        return sum(self._backward(half, count, last=last) for half in batch.parts(2))


class GraphStep:
    """The whole step as one CUDA graph for each batch shape.

    The first batch of a shape is an ordinary step, which also warms up; the second is captured and
    from then on every batch of that shape is copied into the graph's inputs and the graph replayed.
    Compiled, the parts that a model repeats are fused into fewer kernels first, once for all shapes.
    """

    def __init__(self, recipe: StepContext, *, compiled: bool = False) -> None:
        self.recipe = recipe
        if compiled:
            recipe.task.compile_parts()
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.met: set[tuple[torch.Size, ...]] = set()
        self.graphs: dict[tuple[torch.Size, ...], _Captured] = {}
        self.count = torch.ones((), device=recipe.device)
        self.share = torch.zeros((), device=recipe.device)

    def __call__(self, group: Sequence[Tensors], count: float, rate: float, number: int) -> Taken:
        (batch,) = group
        average = self.recipe.average
        set_rate(self.recipe.optimizer, rate)
        self.count.fill_(count)
        self.share.fill_(average.share(number) if average is not None else 0.0)
        shape = tuple(column.shape for column in batch.columns())
        if shape not in self.met:
            self.met.add(shape)
            return self._warm(batch)
        if shape not in self.graphs:
            self.graphs[shape] = self._capture(batch)
        captured = self.graphs[shape]
        for kept, column in zip(captured.batch.columns(), batch.columns(), strict=True):
            kept.copy_(column, non_blocking=True)
        captured.graph.replay()
        return Taken(torch.clone(captured.loss), torch.clone(captured.norm))  # the next replay writes over them

    def _update(self, batch: Tensors) -> tuple[Tensor, Tensor]:
        """Everything on the device; a gradient that is not finite changes nothing."""
        recipe = self.recipe
        recipe.optimizer.zero_grad(set_to_none=True)  # captured, each graph makes its own in the pool they share
        with recipe.precision():
            loss = recipe.task(batch, static=True)
        (loss / self.count).backward()
        if recipe.adapters is not None:
            recipe.adapters.project()
        norm = _clip(recipe.parameters(), recipe.clip)
        found = (~norm.isfinite()).float()
        recipe.optimizer.found_inf = found  # type: ignore[attr-defined]  # the fused kernels leave out such a step
        recipe.optimizer.grad_scale = None  # type: ignore[attr-defined]
        recipe.optimizer.step()
        if recipe.adapters is not None:
            recipe.adapters.merge()
        if recipe.average is not None:
            recipe.average.update(self.share)
        return loss.detach(), norm

    def _warm(self, batch: Tensors) -> Taken:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            loss, norm = self._update(batch)
        torch.cuda.current_stream().wait_stream(self.stream)
        return Taken(loss, norm)

    def _capture(self, batch: Tensors) -> _Captured:
        kept = Tensors(*(column.clone() for column in batch.columns()))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            loss, norm = self._update(kept)
        return _Captured(graph, kept, loss, norm)


@dataclass(frozen=True)
class _Captured:
    graph: torch.cuda.CUDAGraph
    batch: Tensors
    loss: Tensor
    norm: Tensor


def _clip(parameters: list[nn.Parameter], largest: float) -> Tensor:
    """The norm of the gradient, which is at most ``largest`` afterwards. Never waits for the device."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if largest:
        torch._foreach_mul_(gradients, torch.clamp(largest / (norm + 1e-6), max=1.0))
    return norm
