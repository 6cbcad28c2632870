"""The processes that train one model together: how they meet, agree on numbers, and add up their gradients."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store, Work
from torch.distributed.rendezvous import rendezvous

from regard.errors import ResourceError


@dataclass(frozen=True)
class Workers:
    """This process among those that train one model: torchrun starts them, and each takes its share of every batch."""

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
        with _reached():
            dist.all_reduce(together, group=_groups.get("host"))
        return together.tolist()

    def wait(self) -> None:
        """Wait until all processes are here, however long the first one prepares a corpus or validates."""
        if self.world > 1:
            with _reached():
                dist.barrier(group=_groups.get("waiting"))


# Beside the group of the gradients: beside NCCL one for small numbers on the host, and one that waits longer.
_groups: dict[str, dist.ProcessGroup] = {}
ALONE = Workers()


@contextmanager
def _reached() -> Iterator[None]:
    """One line when another process has ended: torch's libraries have no error of their own for that."""
    try:
        yield
    except RuntimeError as error:
        raise ResourceError(
            "processes: another one of this training has ended, or cannot be reached; start all of them again, with "
            "--continue or --resume"
        ) from error


# Meeting

MEETING = timedelta(minutes=10)  # for all processes to come, and for one to answer
PATIENCE = timedelta(days=7)  # for one that works while the others wait; one that ends is noticed at once


def processes() -> int:
    """How many torchrun has started, or this one."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


@contextmanager
def workers(device: torch.device) -> Iterator[Workers]:
    """Join the processes that torchrun has started, or be alone."""
    if processes() == 1:
        yield ALONE
        return
    on_gpu = device.type == "cuda"
    if on_gpu and device.index is not None:
        torch.cuda.set_device(device)  # also for allocations that name no device
    with _reached():
        store, rank, world = next(rendezvous("env://", timeout=MEETING))
        own = PrefixStore(agreed_name(store, rank, world), store)
        dist.init_process_group("nccl" if on_gpu else "gloo", store=own, rank=rank, world_size=world)
        if on_gpu:
            _groups["host"] = dist.new_group(backend="gloo")
        _groups["waiting"] = dist.new_group(backend="gloo", timeout=PATIENCE)
    finished = False
    try:
        yield (together := Workers(rank, world))
        together.wait()  # after a last `sum` gloo would still hold its numbers while the interpreter ends, and abort
        finished = True
    finally:
        _groups.clear()
        if finished or not on_gpu:  # NCCL would wait for a process that has ended
            dist.destroy_process_group()


def agreed_name(store: Store, rank: int, world: int) -> str:
    """A name that all processes know and none has used before.

    torchrun keeps one store over its restarts. The addresses that dead processes have left there would be taken for
    those of the living, who then wait for each other without end. So the first process draws a name; every other asks
    by a question of its own, which only a living process can have answered.
    """
    drawn = uuid.uuid4().hex
    if rank:
        store.set(f"question {rank}", drawn)
        name = store.get(f"answer to {drawn}").decode()
        store.set(f"{name} heard by {rank}", "")
        return name
    missing, until = set(range(1, world)), time.monotonic() + MEETING.total_seconds()
    while missing:
        if time.monotonic() > until:
            raise ResourceError(f"processes: {len(missing)} of {world} have not come; start all of them")
        for other in sorted(missing):
            if store.check([f"{drawn} heard by {other}"]):
                missing.remove(other)
            elif store.check([f"question {other}"]):  # perhaps that of a dead process, which stays without effect
                store.set(f"answer to {store.get(f'question {other}').decode()}", drawn)
        time.sleep(0.01)
    return drawn


# Gradients

BUCKET = 1 << 23  # numbers that travel together: each journey costs a GPU some ten microseconds
ALIGNED = 64  # numbers: where the gradient of a parameter begins, kernels can read it in large words


class _Bucket:
    """Some parameters, and the room for their gradients side by side."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        rooms = [-(-parameter.numel() // ALIGNED) * ALIGNED for parameter in parameters]
        self.flat = parameters[0].new_zeros(sum(rooms))
        places = zip(parameters, accumulate(rooms, initial=0), strict=False)
        self.views = [self.flat[place : place + each.numel()].view_as(each) for each, place in places]

    def fill(self) -> None:
        """Copy the gradients here; one that is missing is zero."""
        found = [torch.zeros_like(each) if each.grad is None else each.grad for each in self.parameters]
        torch._foreach_copy_(self.views, found)

    def give(self) -> None:
        """Let the parameters have the sums. One without gradient has none in the other processes either."""
        for view, each in zip(self.views, self.parameters, strict=True):
            if each.grad is not None:
                each.grad = view


class Exchange:
    """Adds up gradients over all processes, bucket by bucket, while the backward pass computes the next ones.

    On a GPU all of it can be captured in a CUDA graph. Adding up after the pass gives the same sums
    (`tests/unit/trainer/test_workers.py`).
    """

    def __init__(self, parameters: Iterable[nn.Parameter], bucket: int = BUCKET) -> None:
        self._buckets = [_Bucket(some) for some in _divided(list(parameters)[::-1], bucket)]  # the last come first
        self._place = {each: number for number, one in enumerate(self._buckets) for each in one.parameters}
        self._missing: list[set[nn.Parameter]] = []
        self._sent: list[Work] | None = None  # None outside of `adding`
        for parameter in self._place:
            with _reached():
                dist.broadcast(parameter.detach(), 0)
            parameter.register_post_accumulate_grad_hook(self._arrived)  # type: ignore[no-untyped-call]

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Around the last backward pass of a step, after which the gradients are the sums over all processes."""
        self._missing, self._sent = [set(each.parameters) for each in self._buckets], []
        try:
            yield
            while len(self._sent) < len(self._buckets):
                self._send()
            for bucket, work in zip(self._buckets, self._sent, strict=True):
                with _reached():
                    work.wait()
                bucket.give()
        finally:
            self._sent = None

    def _arrived(self, parameter: Tensor) -> None:
        """Send the buckets that are complete now: always in the same order, so that all processes send the same."""
        if self._sent is None:
            return
        self._missing[self._place[parameter]].discard(parameter)  # type: ignore[index]
        while len(self._sent) < len(self._buckets) and not self._missing[len(self._sent)]:
            self._send()

    def _send(self) -> None:
        assert self._sent is not None
        bucket = self._buckets[len(self._sent)]
        bucket.fill()
        with _reached():
            self._sent.append(dist.all_reduce(bucket.flat, async_op=True))


def _divided(parameters: list[nn.Parameter], size: int) -> Iterator[list[nn.Parameter]]:
    """Neighbours, until they have so many numbers."""
    some, count = list[nn.Parameter](), 0
    for parameter in parameters:
        some.append(parameter)
        count += parameter.numel()
        if count >= size:
            yield some
            some, count = [], 0
    if some:
        yield some
