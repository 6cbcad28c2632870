"""Blocks of a file on a Ray cluster: one actor a device keeps a loaded model, and any of them may be lost.

The process that asks reads the input and writes the output; actors see lines and a run, which must be at the same place
on every machine. No usage statistics are sent, and a cluster asks for its token (`RAY_AUTH_MODE=token`).
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from typing import Any

from regard.data.blocks import Block, Done, Work
from regard.errors import ResourceError, SettingsError, optional

KNOCKS = 10.0  # seconds until a cluster takes a connection
OLDEST = (2, 59)  # the first Ray with authentication by token
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # an actor without GPU leaves CUDA_VISIBLE_DEVICES as it is
}


def address_of(on: str) -> str:
    """Where the cluster is: of ``ray:ADDRESS`` the address, of ``ray`` nothing, which is a cluster of this machine."""
    name, _, address = on.partition(":")
    if name != "ray":
        raise SettingsError(f"--on = {on}: no such engine; ray is one of this machine, ray:HOST:6379 a cluster")
    return address


def about() -> dict[str, str]:
    """What must be the same on all machines: texts do not become the same with other versions."""
    return {"python": platform.python_version(), "regard": version("regard"), "torch": version("torch")}


class _Actor:
    """A loaded model in a process of its own."""

    def __init__(self, make: Callable[[], Work]) -> None:
        self._make = make
        self._work: Work | None = None

    def about(self) -> dict[str, str]:
        return about()

    def work(self, block: Block) -> Done:
        self._work = self._work or self._make()
        return self._work(block)


@contextmanager
def _connected(address: str, workers: int) -> Iterator[Any]:
    """Ray, connected to a cluster, or to one of its own that ends with the block."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray = optional("ray", "--on")
    if tuple(map(int, ray.__version__.split(".")[:2])) < OLDEST:
        raise ResourceError(
            f"--on = ray: Ray {ray.__version__} lets anyone in; pip install 'ray>={'.'.join(map(str, OLDEST))}'"
        )
    try:
        if address:
            _knock(address)
            ray.init(address, log_to_driver=False, logging_level="error")
        else:
            how = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
            ray.init("local", num_cpus=workers or None, **how)  # local: one of its own, also where another runs
    except ray.exceptions.AuthenticationError as problem:
        raise ResourceError(
            f"--on = ray:{address}: a token is missing; set RAY_AUTH_TOKEN to that of the cluster"
        ) from problem
    except (OSError, RuntimeError, ValueError) as problem:
        reason = str(problem).strip().split("\n")[0]
        raise ResourceError(f"--on = ray:{address}: no cluster answers there to this token; {reason}") from problem
    with redirect_stdout(sys.stderr):  # Ray says which process has died
        try:
            yield ray
        finally:
            ray.shutdown()


def _knock(address: str) -> None:
    """Complain of a HOST:PORT where nobody listens; Ray itself would try again for minutes."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdecimal():
        with socket.create_connection((host, min(int(port), 65535)), timeout=KNOCKS):
            pass


def spread(
    make: Callable[[], Work], blocks: Iterator[Block], address: str, workers: int, device: str
) -> Iterator[tuple[Block, Done]]:
    """The output for each block, as it comes, from one actor a GPU or a core, or from ``workers`` of them.

    An actor has one block in work and one that waits, so memory does not grow with the file. One that dies is
    started again, and its blocks with it.
    """
    with _connected(address, workers) as ray:
        there = ray.cluster_resources()
        gpus = 0 if device == "cpu" else int(there.get("GPU", 0))
        most = gpus or max(1, int(there.get("CPU", 1)))
        if workers > most:  # the others would wait for ever
            room = f"{most} {'GPU' if gpus else 'core'}{'s' if most > 1 else ''}"
            raise ResourceError(f"bulk.workers = {workers}: the cluster has {room}, for one each; ask for fewer")
        count = workers or most
        kind = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_restarts=-1, max_task_retries=-1)(_Actor)
        actors = [kind.remote(make) for _ in range(count)]
        _check(ray.get([actor.about.remote() for actor in actors]))
        free, pending = deque(actors * 2), dict[Any, tuple[Any, Block]]()
        for block in blocks:
            actor = free.popleft()
            pending[actor.work.remote(block)] = actor, block
            if not free:
                yield _next(ray, pending, free)
        while pending:
            yield _next(ray, pending, free)


def _next(ray: Any, pending: dict[Any, tuple[Any, Block]], free: deque[Any]) -> tuple[Block, Done]:
    (ready, *_), _ = ray.wait(list(pending), num_returns=1)
    actor, block = pending.pop(ready)
    free.append(actor)
    try:
        return block, ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # as it was raised there


def _check(found: list[dict[str, str]]) -> None:
    own = about()
    for other in found:
        for name, value in own.items():
            if other[name] != value:
                raise ResourceError(
                    f"--on = ray: {name} is {other[name]} on a machine of the cluster, {value} here; install the same"
                )
