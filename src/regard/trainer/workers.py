"""Several processes that train one model: torchrun starts them, each takes its share of every batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Workers:
    """This process among those that train together."""

    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """The first process writes, validates and reports; the others only compute."""
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        """Each value, added up over all processes."""
        if self.world == 1:
            return list(values)
        together = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(together, group=_plain_group())
        return together.tolist()

    def wait(self) -> None:
        """Until all processes have come this far."""
        if self.world > 1:
            dist.barrier(group=_plain_group())


def _plain_group() -> dist.ProcessGroup | None:
    """The group for small numbers on the host; beside NCCL that is one of its own."""
    return _groups.get("host")


_groups: dict[str, dist.ProcessGroup] = {}


ALONE = Workers()


@contextmanager
def workers(device: torch.device) -> Iterator[Workers]:
    """Join the processes that torchrun has started, or be alone."""
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)  # what is allocated without a name goes there too
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    if device.type == "cuda":
        _groups["host"] = dist.new_group(backend="gloo")
    try:
        yield Workers(dist.get_rank(), dist.get_world_size())
    finally:
        _groups.clear()
        dist.destroy_process_group()
