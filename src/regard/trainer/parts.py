"""A batch on several threads of a CPU, each with some of its rows from the first operation to the last.

Torch divides every operation among its threads, and they meet after each: hundreds of times in a step, often for less
work than the meeting takes. Here they meet once. The loss is a sum over rows, so that the sum of the gradients is the
gradient of the whole, up to rounding; `tests/parity/test_parts.py` binds the two.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import torch
from torch import Tensor, nn

from regard.nn import chance
from regard.nn.norms import BatchNorm
from regard.tasks.task import Tensors

MOST = 4  # parts: more of them would wait for Python's lock
ROWS = 8  # that a part has at least,
ROWS_OF_LOOPS = 64  # and more where a recurrent model's loop over time is Python's

Loss = Callable[[Tensors], Tensor]
Found = tuple[Tensor, tuple[Tensor | None, ...]]


class Parts:
    """Losses and gradients by parts. Each part draws its random numbers from a seed that torch's generator gives, so
    that a training is the same whenever it is repeated with as many threads."""

    def __init__(self, loss: Loss, parameters: Sequence[nn.Parameter], rows: int) -> None:
        """``rows`` are those that a part has at least."""
        self.loss, self.parameters, self.rows = loss, parameters, rows
        threads = torch.get_num_threads()
        self.count = min(threads, MOST)
        each, ready = threads // self.count, threading.Barrier(self.count)
        self.pool = ThreadPoolExecutor(self.count, "part", lambda: torch.set_num_threads(each))
        list(self.pool.map(lambda _: ready.wait(), range(self.count)))  # every thread is there, and has its number
        torch.set_num_threads(threads)  # of those that are yet to come

    @staticmethod
    def of(task: nn.Module, loss: Loss) -> Parts | None:
        """None where there is one thread alone, or where statistics are those of a whole batch."""
        modules = list(task.modules())
        if torch.get_num_threads() == 1 or any(isinstance(module, BatchNorm) for module in modules):
            return None
        loops = any(isinstance(module, nn.RNNBase) for module in modules)
        learned = [parameter for parameter in task.parameters() if parameter.requires_grad]
        return Parts(loss, learned, ROWS_OF_LOOPS if loops else ROWS)

    def divides(self, batch: Tensors) -> bool:
        """Whether it has rows enough."""
        return len(batch) >= self.rows * self.count

    def backward(self, batch: Tensors, scale: float) -> float:
        """Add the gradient of ``scale · loss`` to that of the parameters; returns the loss."""
        seeds = torch.randint(1 << 62, (self.count,)).tolist()
        jobs = [
            self.pool.submit(self._gradients, part, scale, seed)
            for part, seed in zip(batch.parts(self.count), seeds, strict=True)
        ]
        found = [job.result() for job in jobs]
        self._add([gradients for _, gradients in found])
        return sum(float(loss) for loss, _ in found)

    def _gradients(self, part: Tensors, scale: float, seed: int) -> Found:
        with chance.seeded(seed):
            loss = self.loss(part)
            return loss.detach(), torch.autograd.grad(loss * scale, self.parameters, allow_unused=True)

    def _add(self, found: list[tuple[Tensor | None, ...]]) -> None:
        """Always in the same order, so that rounding is the same."""
        for parameter, gradients in zip(self.parameters, zip(*found, strict=True), strict=True):
            there = [gradient for gradient in (parameter.grad, *gradients) if gradient is not None]
            parameter.grad = reduce(torch.add, there) if there else None
