"""One update of the weights, in two ways that give the same result.

A step is forward, backward, clip, optimizer, average. Eager runs it as it is written; graph captures all of it as one
CUDA graph for each batch shape and replays that, because a small model on a GPU otherwise spends its time launching
kernels; its parts may be compiled first.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from regard.device import can_compile, take_threads
from regard.errors import ResourceError, SettingsError
from regard.nn.embeddings import Embedding, VectorEmbedding
from regard.nn.fast import allocator as memory
from regard.nn.fast import random as chance
from regard.nn.layers import BatchNorm
from regard.settings import TrainSettings
from regard.tasks.task import Task, Tensors
from regard.trainer.optimizer import Adapters, MovingAverage, set_rate
from regard.trainer.workers import ALONE, Exchange, Workers

# A batch on several threads of a CPU, each with some of its rows from the first operation to the last.
#
# Torch divides every operation among its threads and synchronises them after each: hundreds of times in a step, which
# often takes longer than the work. Here they synchronise once. The loss is a sum over rows, so the sum of the
# gradients is the gradient of the whole, up to rounding; `tests/parity/test_parts.py` binds the two.
#
# Beside another busy process two threads may be slower than one, because each step waits for the one that shares its
# core. So the parts are run in parallel or one after another, whichever has been faster lately. The parts are the same
# either way, and so are the numbers.

MOST = 4  # parts: more of them would wait for Python's lock
FEATURES = 1 << 14  # tokens times width of a part at least: with less, threads wait for Python's lock
TRY_EVERY = 10.0  # seconds after which the other way to run the parts is tried again
TRIED, CLEARLY = 3, 0.95  # steps that it is tried for, and the share of the time that it must not exceed

Loss = Callable[[Tensors], Tensor]
Found = tuple[Tensor, tuple[Tensor | None, ...]]


class Concurrency:
    """Decides whether parts run in parallel, or one after another because other processes use the cores, by measuring
    both."""

    def __init__(self) -> None:
        self.parallel_is_faster = True
        self._usual: deque[float] = deque(maxlen=5)  # seconds a token, of the last steps
        self._tried: list[float] | None = None  # the same, the other way, while that is being tried
        self._last = time.monotonic()

    @property
    def parallel(self) -> bool:
        """How the next step is run."""
        return self.parallel_is_faster if self._tried is None else not self.parallel_is_faster

    def measured(self, cost: float) -> None:
        """How long the step took, in seconds a token."""
        if self._tried is None:
            self._usual.append(cost)
            if len(self._usual) == self._usual.maxlen and time.monotonic() - self._last >= TRY_EVERY:
                self._tried = []
            return
        self._tried.append(cost)
        if len(self._tried) == TRIED:
            if median(self._tried) < CLEARLY * median(self._usual):
                self.parallel_is_faster = not self.parallel_is_faster
                self._usual.clear()
            self._tried, self._last = None, time.monotonic()


class Parts:
    """Losses and gradients by parts. The seed of each part is drawn from torch's generator, so that a training can be
    repeated exactly with as many threads."""

    def __init__(self, loss: Loss, parameters: Sequence[nn.Parameter], width: int) -> None:
        """``width`` is that of the model: features a token."""
        self.loss, self.parameters, self.width = loss, parameters, width
        threads = torch.get_num_threads()
        self.count = min(threads, MOST)
        each, ready = threads // self.count, threading.Barrier(self.count)
        self.concurrency = Concurrency()
        self.pool = ThreadPoolExecutor(self.count, "part", take_threads, (each,))
        list(self.pool.map(lambda _: ready.wait(), range(self.count)))  # all threads have started

    @staticmethod
    def of(task: nn.Module, loss: Loss) -> Parts | None:
        """None with one thread, with statistics of a whole batch, and for recurrent models, whose loops over time are
        Python's and run in one thread at a time."""
        modules = list(task.modules())
        if torch.get_num_threads() == 1 or any(isinstance(module, BatchNorm | nn.RNNBase) for module in modules):
            return None
        width = max(module.width for module in modules if isinstance(module, Embedding | VectorEmbedding))
        return Parts(loss, [parameter for parameter in task.parameters() if parameter.requires_grad], width)

    def divides(self, batch: Tensors) -> bool:
        """Whether a batch is large enough to be divided."""
        tokens = max(column.shape[:2].numel() for column in batch.columns())
        return len(batch) >= self.count and tokens * self.width >= self.count * FEATURES

    def backward(self, batch: Tensors, scale: float) -> float:
        """Add the gradient of ``scale · loss`` to that of the parameters; returns the loss."""
        seeds = torch.randint(1 << 62, (self.count,)).tolist()
        parts, began = list(zip(batch.parts(self.count), seeds, strict=True)), time.monotonic()
        if self.concurrency.parallel:
            jobs = [self.pool.submit(self._gradients, part, scale, seed) for part, seed in parts]
            found = [job.result() for job in jobs]
        else:
            found = [self.pool.submit(self._gradients, part, scale, seed).result() for part, seed in parts]
        self.concurrency.measured(
            (time.monotonic() - began) / max(column.shape[:2].numel() for column in batch.columns())
        )
        self._add([gradients for _, gradients in found])
        return sum(float(loss) for loss, _ in found)

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Sums, clipping and the optimizer run in one thread: several would wait for each other, and a norm is rounded
        differently with another number of them."""
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def _gradients(self, part: Tensors, scale: float, seed: int) -> Found:
        with chance.seeded(seed):
            loss = self.loss(part)
            return loss.detach(), torch.autograd.grad(loss * scale, self.parameters, allow_unused=True)

    def _add(self, found: list[tuple[Tensor | None, ...]]) -> None:
        """Add gradients, always in the same order, so that rounding is the same."""
        for parameter, gradients in zip(self.parameters, zip(*found, strict=True), strict=True):
            there = [gradient for gradient in (parameter.grad, *gradients) if gradient is not None]
            parameter.grad = reduce(torch.add, there) if there else None


Tell = Callable[[str], None]
Captured = tuple[torch.cuda.CUDAGraph, Tensors, Tensor, Tensor]  # a step with its inputs, its loss and its norm


@dataclass(frozen=True)
class Taken:
    """The result of a step. The loss may still be computed on the device; `float` waits for it."""

    loss: Tensor | float  # summed over the predictions of this process
    norm: Tensor | float  # of the gradient, before clipping
    skipped: bool = False


class TrainStep(ABC):
    """Takes one update."""

    def __init__(
        self,
        task: Task,
        optimizer: torch.optim.Optimizer,
        average: MovingAverage | None = None,
        *,
        clip: float = 1.0,
        autocast: bool = False,
        compiled: bool = False,
        workers: Workers = ALONE,
        adapters: Adapters | None = None,
        tell: Tell = print,
    ) -> None:
        self.task, self.optimizer, self.average, self.adapters = task, optimizer, average, adapters
        self.clip, self.autocast, self.workers, self.tell = clip, autocast, workers, tell
        self.device = next(task.parameters()).device
        self.exchange: Exchange | None = None
        if workers.world > 1:
            own = set() if adapters is None else set(adapters.parameters())  # theirs come from those of the matrices
            self.exchange = Exchange(each for each in task.parameters() if each.requires_grad and each not in own)
        self._set_up(compiled=compiled)

    @abstractmethod
    def _set_up(self, *, compiled: bool) -> None:
        """Prepare what this kind of step needs."""

    @abstractmethod
    def __call__(self, group: Sequence[Tensors], count: float, rate: float, number: int) -> Taken:
        """Update from the batches of one step with ``count`` predictions over all processes; ``number`` is 1, 2, …"""

    def _precision(self) -> Any:
        if not self.autocast:
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    def _adding(self) -> AbstractContextManager[None]:
        """Around the last backward pass of a step: gradients become sums over all processes."""
        return nullcontext() if self.exchange is None else self.exchange.adding()

    def _clip(self) -> Tensor:
        """Clip the gradient to the norm ``clip``; returns its norm before. Never waits for the device."""
        if self.adapters is not None:
            self.adapters.project()
        gradients = [parameter.grad for parameter in self.task.parameters() if parameter.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if self.clip:
            torch._foreach_mul_(gradients, torch.clamp(self.clip / (norm + 1e-6), max=1.0))
        return norm

    def _change(self, share: Tensor | float) -> None:
        """Update the weights, and their average with this ``share`` of them."""
        self.optimizer.step()
        if self.adapters is not None:
            self.adapters.merge()
        if self.average is not None:
            self.average.update(share)


class EagerStep(TrainStep):
    """The step as it is written. A batch that does not fit into memory is split, which is reported."""

    def _set_up(self, *, compiled: bool) -> None:  # noqa: ARG002  only captured steps are
        if self.device.type == "cpu":
            memory.keep_freed()
        alone = self.device.type == "cpu" and self.workers.world == 1
        self.parts = Parts.of(self.task, self._loss) if alone else None

    def __call__(self, group: Sequence[Tensors], count: float, rate: float, number: int) -> Taken:
        with nullcontext() if self.parts is None else self.parts.one_thread():
            self.optimizer.zero_grad(set_to_none=True)
            total = sum(self._backward(batch, count, last=batch is group[-1]) for batch in group)
            norm = self._clip()
            (whole,) = self.workers.sum(total)  # all processes leave out the same steps
            if not math.isfinite(whole) or not bool(norm.isfinite()):
                self.optimizer.zero_grad(set_to_none=True)
                return Taken(total, norm, skipped=True)
            set_rate(self.optimizer, rate)
            self._change(0.0 if self.average is None else self.average.share(number))
            return Taken(total, norm)

    def _loss(self, batch: Tensors) -> Any:
        with self._precision():
            return self.task(batch)

    def _backward(self, batch: Tensors, count: float, *, last: bool) -> float:
        """Add a batch's gradient; returns its summed loss."""
        if self.parts is not None and self.parts.divides(batch):
            return self.parts.backward(batch, 1 / count)
        try:
            with self._adding() if last else nullcontext():
                loss = self._loss(batch)
                (loss * (1 / count)).backward()
            return float(loss.detach())
        except torch.OutOfMemoryError:
            if len(batch) == 1 or self.workers.world > 1:
                raise ResourceError(
                    f"memory: not enough for a batch of {len(batch)} rows; lower train.batch or data.longest"
                ) from None
        self.tell(f"memory: not enough for {len(batch)} rows at once; they go in two halves")
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return sum(self._backward(half, count, last=last) for half in batch.parts(2))


class GraphStep(TrainStep):
    """The whole step as one CUDA graph for each batch shape.

    The first batch of a shape is an ordinary step, which also warms up; the second is captured and
    from then on every batch of that shape is copied into the graph's inputs and the graph replayed.
    The exchange between processes is part of the graph; all of them meet the same shapes in the same order.
    Compiled, the parts that a model repeats are fused into fewer kernels first, once for all shapes.
    """

    def _set_up(self, *, compiled: bool) -> None:
        if compiled:
            self.task.compile_parts()
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.met: set[tuple[torch.Size, ...]] = set()
        self.graphs: dict[tuple[torch.Size, ...], Captured] = {}
        self.count = torch.ones((), device=self.device)
        self.share = torch.zeros((), device=self.device)

    def __call__(self, group: Sequence[Tensors], count: float, rate: float, number: int) -> Taken:
        (batch,) = group
        set_rate(self.optimizer, rate)
        self.count.fill_(count)
        self.share.fill_(self.average.share(number) if self.average is not None else 0.0)
        shape = tuple(column.shape for column in batch.columns())
        if shape not in self.met:
            self.met.add(shape)
            return self._warm(batch)
        if shape not in self.graphs:
            self.graphs[shape] = self._capture(batch)
        graph, inputs, loss, norm = self.graphs[shape]
        for kept, column in zip(inputs.columns(), batch.columns(), strict=True):
            kept.copy_(column, non_blocking=True)
        graph.replay()
        return Taken(torch.clone(loss), torch.clone(norm))  # the next replay writes over them

    def _update(self, batch: Tensors) -> tuple[Tensor, Tensor]:
        """The whole step on the device; a gradient that is not finite changes nothing."""
        optimizer = self.optimizer
        optimizer.zero_grad(set_to_none=True)  # captured, each graph makes its own in the pool they share
        with self._precision():
            loss = self.task(batch, static=True)
        with self._adding():
            (loss / self.count).backward()
        norm = self._clip()
        found = (~norm.isfinite()).float()
        optimizer.found_inf = found  # type: ignore[attr-defined]  # the fused kernels leave out such a step
        optimizer.grad_scale = None  # type: ignore[attr-defined]
        self._change(self.share)
        return loss.detach(), norm

    def _warm(self, batch: Tensors) -> Taken:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            loss, norm = self._update(batch)
        torch.cuda.current_stream().wait_stream(self.stream)
        return Taken(loss, norm)

    def _capture(self, batch: Tensors) -> Captured:
        kept = Tensors(*(column.clone() for column in batch.columns()))
        graph = torch.cuda.CUDAGraph()
        alone = self.exchange is None  # NCCL has a thread that looks after its work, and must not end the capture
        mode = "global" if alone else "thread_local"
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode=mode):
            loss, norm = self._update(kept)
        return graph, kept, loss, norm


# Which kind of step a training takes, and in which precision.

GRAPHS = ("graph", "compiled-graph")
PAYS = 300.0  # seconds of training that win back the time to compile


def step_kind(settings: TrainSettings, device: torch.device) -> str:
    """The kind of step of the settings; `auto` chooses one. A kind that is not possible here is refused."""
    can_capture = device.type == "cuda" and settings.accumulate == 1
    can_capture = can_capture and settings.scheduled_sampling == 0
    if settings.step == "auto":
        pays = can_compile() and (settings.seconds is None or settings.seconds >= PAYS)
        return ("compiled-graph" if pays else "graph") if can_capture else "eager"
    if settings.step in GRAPHS and not can_capture:
        raise SettingsError(
            f"train.step = {settings.step}: needs a GPU, train.accumulate = 1 and no scheduled sampling; use 'auto'"
        )
    return settings.step


def uses_bfloat16(settings: TrainSettings, device: torch.device) -> bool:
    if settings.precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return settings.precision == "bfloat16"
