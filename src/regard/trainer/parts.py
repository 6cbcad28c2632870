"""A batch on several threads of a CPU, each with some of its rows from the first operation to the last.

Torch divides every operation among its threads, and they meet after each: hundreds of times in a step, often for less
work than the meeting takes. Here they meet once. The loss is a sum over rows, so that the sum of the gradients is the
gradient of the whole, up to rounding; `tests/parity/test_parts.py` binds the two.

Beside another busy process two threads may be slower than one: each step waits for the one that shares its core. So the
parts are run side by side or one after another, whichever has been faster of late. They are the same parts either way:
who runs them changes no number.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from statistics import median

import torch
from torch import Tensor, nn

from regard.device import take_threads
from regard.nn.embeddings import Embedding
from regard.nn.fast import random as chance
from regard.nn.norms import BatchNorm
from regard.tasks.task import Tensors

MOST = 4  # parts: more of them would wait for Python's lock
FEATURES = 1 << 14  # that a layer has for the tokens of a part at least: with less, threads wait for Python's lock
TRY_EVERY = 10.0  # seconds after which the other way to run the parts is tried again
TRIED, CLEARLY = 3, 0.95  # steps that it is tried for, and the share of the time it may take to be kept

Loss = Callable[[Tensors], Tensor]
Found = tuple[Tensor, tuple[Tensor | None, ...]]


class Company:
    """Parallel, or sequential because other processes need the cores? Whichever is faster now, found by measuring."""

    def __init__(self) -> None:
        self.together = True
        self._usual: deque[float] = deque(maxlen=5)  # seconds a token, of the last steps
        self._tried: list[float] | None = None  # the same, the other way, while that is being tried
        self._last = time.monotonic()

    @property
    def side_by_side(self) -> bool:
        """How the next step is run."""
        return self.together if self._tried is None else not self.together

    def took(self, cost: float) -> None:
        """How long the step took, in seconds a token."""
        if self._tried is None:
            self._usual.append(cost)
            if len(self._usual) == self._usual.maxlen and time.monotonic() - self._last >= TRY_EVERY:
                self._tried = []
            return
        self._tried.append(cost)
        if len(self._tried) == TRIED:
            if median(self._tried) < CLEARLY * median(self._usual):
                self.together = not self.together
                self._usual.clear()
            self._tried, self._last = None, time.monotonic()


class Parts:
    """Losses and gradients by parts. Each part draws its random numbers from a seed that torch's generator gives, so
    that a training is the same whenever it is repeated with as many threads."""

    def __init__(self, loss: Loss, parameters: Sequence[nn.Parameter], width: int) -> None:
        """``width`` is that of the model: features a token."""
        self.loss, self.parameters, self.width = loss, parameters, width
        threads = torch.get_num_threads()
        self.count = min(threads, MOST)
        each, ready = threads // self.count, threading.Barrier(self.count)
        self.company = Company()
        self.pool = ThreadPoolExecutor(self.count, "part", take_threads, (each,))
        list(self.pool.map(lambda _: ready.wait(), range(self.count)))  # all threads have started

    @staticmethod
    def of(task: nn.Module, loss: Loss) -> Parts | None:
        """None where there is one thread alone, where statistics are those of a whole batch, and for recurrent models:
        their loops over time are Python's, which one thread at a time can go through."""
        modules = list(task.modules())
        if torch.get_num_threads() == 1 or any(isinstance(module, BatchNorm | nn.RNNBase) for module in modules):
            return None
        width = max(module.weight.shape[1] for module in modules if isinstance(module, Embedding))
        return Parts(loss, [parameter for parameter in task.parameters() if parameter.requires_grad], width)

    def divides(self, batch: Tensors) -> bool:
        """Whether there is enough to do."""
        tokens = max(column.shape[0] * column.shape[1] for column in batch.columns())
        return len(batch) >= self.count and tokens * self.width >= self.count * FEATURES

    def backward(self, batch: Tensors, scale: float) -> float:
        """Add the gradient of ``scale · loss`` to that of the parameters; returns the loss."""
        seeds = torch.randint(1 << 62, (self.count,)).tolist()
        parts, began = list(zip(batch.parts(self.count), seeds, strict=True)), time.monotonic()
        if self.company.side_by_side:
            jobs = [self.pool.submit(self._gradients, part, scale, seed) for part, seed in parts]
            found = [job.result() for job in jobs]
        else:
            found = [self.pool.submit(self._gradients, part, scale, seed).result() for part, seed in parts]
        self.company.took((time.monotonic() - began) / max(column.numel() for column in batch.columns()))
        self._add([gradients for _, gradients in found])
        return sum(float(loss) for loss, _ in found)

    @contextmanager
    def meeting(self) -> Iterator[None]:
        """What is done for all parts together (sums, clipping, the optimizer) is done by one thread: torch's team would
        wait for each other, and a norm is rounded differently with another number of them."""
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
        """Always in the same order, so that rounding is the same."""
        for parameter, gradients in zip(self.parameters, zip(*found, strict=True), strict=True):
            there = [gradient for gradient in (parameter.grad, *gradients) if gradient is not None]
            parameter.grad = reduce(torch.add, there) if there else None
