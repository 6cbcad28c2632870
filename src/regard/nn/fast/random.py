"""Where random numbers come from: torch's own generator or, in a thread that shares the work, one of its own.

Two threads that drew from one generator would draw in an order that is not determined.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_own = threading.local()


def generator() -> torch.Generator | None:
    """That of this thread; None is torch's own."""
    return getattr(_own, "generator", None)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """In this thread, numbers that depend on nothing but the seed. On a CPU."""
    _own.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        del _own.generator


def uniform(shape: torch.Size, device: torch.device) -> Tensor:
    """Between 0 and 1."""
    return torch.rand(shape, device=device, generator=generator())
