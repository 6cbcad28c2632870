"""The generator of random numbers: torch's own or, in a thread that computes a part of a batch, one of its own, because
the order of draws of two threads from one generator is not determined."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_own = threading.local()


def generator() -> torch.Generator | None:
    """The generator of this thread; None is torch's own."""
    return getattr(_own, "generator", None)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of this thread, on a CPU, depend only on the seed."""
    _own.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        del _own.generator


def uniform(shape: torch.Size, device: torch.device) -> Tensor:
    """Between 0 and 1."""
    return torch.rand(shape, device=device, generator=generator())
