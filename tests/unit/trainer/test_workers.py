"""Several processes: how they meet, what they add up, and what is said when one is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from regard.errors import ResourceError
from regard.trainer import workers as processes
from regard.trainer.workers import Exchange, Workers, agreed_name

WORLD, BUCKETS = 3, (1, 60, 1 << 20)


def model() -> nn.Module:
    """With a shared weight, a vector of odd length, and a parameter that no loss reads."""
    torch.manual_seed(3)
    layers = nn.Sequential(nn.Linear(7, 11), nn.Tanh(), nn.Linear(11, 7), nn.Linear(7, 11), nn.Linear(11, 5))
    layers[3].weight = layers[0].weight
    layers.register_parameter("unread", nn.Parameter(torch.ones(3)))
    return layers


def rows() -> Tensor:
    return torch.randn(2 * WORLD, 7, generator=torch.Generator().manual_seed(5))


def loss(layers: nn.Module, some: Tensor) -> Tensor:
    return layers(some).square().sum()


def gradients(layers: nn.Module) -> list[Tensor | None]:
    return [None if each.grad is None else each.grad.clone() for each in layers.parameters()]


def sums(rank: int, bucket: int) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """Gradients of two steps of two batches each, added up during the last backward pass, and after it."""
    during, after = model(), model()
    exchange = Exchange(during.parameters(), bucket)
    for _ in range(2):
        for layers in (during, after):
            layers.zero_grad(set_to_none=True)
            loss(layers, rows()[rank : rank + 1]).backward()
        with exchange.adding():
            loss(during, rows()[rank + WORLD :][:1]).backward()
        loss(after, rows()[rank + WORLD :][:1]).backward()
    for each in after.parameters():
        if each.grad is not None:
            dist.all_reduce(each.grad)
    return gradients(during), gradients(after)


def first_weights(rank: int) -> Tensor:
    """What a weight becomes that is another number in each process."""
    layers = nn.Linear(3, 2)
    nn.init.constant_(layers.weight, rank + 5.0)
    Exchange(layers.parameters())
    return layers.weight.detach()


def work(folder: Path) -> int:
    """In three processes, which are forks: to import torch takes longer than what they do."""
    rank = next((number for number in range(1, WORLD) if not os.fork()), 0)
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=timedelta(seconds=60))
    torch.save([sums(rank, bucket) for bucket in BUCKETS], folder / f"sums {rank}")
    torch.save(first_weights(rank), folder / f"weights {rank}")
    dist.barrier()
    dist.destroy_process_group()
    return 0


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    ran = subprocess.run([sys.executable, __file__, str(folder)], check=False, capture_output=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.parametrize("bucket", BUCKETS)
def test_sums_made_during_the_backward_pass_are_those_made_after_it(bucket: int, found: Path) -> None:
    made = [torch.load(found / f"sums {rank}")[BUCKETS.index(bucket)] for rank in range(WORLD)]
    alone = model()
    loss(alone, rows()).backward()
    for during, after in made:
        for one, other, first, whole in zip(during, after, made[0][0], gradients(alone), strict=True):
            if whole is None:
                assert one is None
                continue
            assert torch.equal(one, first)
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)
            torch.testing.assert_close(one, whole, atol=1e-5, rtol=1e-5)


def test_all_begin_with_the_weights_of_the_first(found: Path) -> None:
    weights = [torch.load(found / f"weights {rank}") for rank in range(WORLD)]
    assert all(torch.equal(each, torch.full((2, 3), 5.0)) for each in weights)


BRIEF = timedelta(seconds=3)  # as long as torch waits in the two processes of the next test


def wait_twice(folder: Path) -> int:
    """The second process waits for the first, which works for longer than torch waits, and then for one that ends."""
    rank = 1 if os.fork() else 0
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2"}
    dist.init_process_group = partial(dist.init_process_group, timeout=BRIEF)
    with processes.workers(torch.device("cpu")) as together:
        if together.leads:
            time.sleep(2 * BRIEF.total_seconds())
        together.wait()
        if together.leads:
            os._exit(0)
        (folder / "came").touch()
        began = time.monotonic()
        try:
            together.wait()
        except ResourceError as error:
            (folder / "line").write_text(str(error))
            (folder / "seconds").write_text(str(time.monotonic() - began))
        os._exit(0)


def test_others_wait_for_a_first_that_works_longer_than_torch_waits_and_not_for_one_that_has_ended(
    tmp_path: Path,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    command = [sys.executable, __file__, str(tmp_path), "waiting"]
    ran = subprocess.run(command, check=False, capture_output=True, timeout=120, env=os.environ | place)
    assert (tmp_path / "came").exists(), ran.stderr
    assert "another one of this training has ended" in (tmp_path / "line").read_text()
    assert float((tmp_path / "seconds").read_text()) < 30


def met(store: dist.Store) -> list[str]:
    """The names that three processes of one start agree upon."""
    names: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda rank=rank: names.update({rank: agreed_name(store, rank, WORLD)}))
        for rank in range(WORLD)
    ]
    for thread in reversed(threads):  # the first comes last
        thread.start()
    for thread in threads:
        thread.join(30)
    return [names[rank] for rank in range(WORLD)]


def test_processes_that_start_again_are_not_misled_by_what_dead_ones_have_left_in_the_store() -> None:
    store = dist.HashStore()
    rounds = [met(store) for _ in range(3)]
    assert [len(set(names)) for names in rounds] == [1, 1, 1]
    assert len({names[0] for names in rounds}) == 3


def test_a_process_that_does_not_come_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MEETING", timedelta(seconds=0))
    with pytest.raises(ResourceError, match="processes: 2 of 3 have not come; start all of them"):
        agreed_name(dist.HashStore(), 0, WORLD)


def gone(*_: object, **__: object) -> None:
    raise RuntimeError("Connection closed by peer")


@pytest.mark.parametrize(
    "ask",
    [lambda: Workers(0, 2).sum(1.0), lambda: Workers(0, 2).wait(), lambda: Exchange(nn.Linear(3, 2).parameters())],
)
def test_a_process_that_has_ended_is_reported_in_one_line(
    ask: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dist, "all_reduce", gone)
    monkeypatch.setattr(dist, "barrier", gone)
    monkeypatch.setattr(dist, "broadcast", gone)
    with pytest.raises(ResourceError, match="another one of this training has ended, or cannot be reached; start all"):
        ask()


if __name__ == "__main__":
    sys.exit((wait_twice if "waiting" in sys.argv else work)(Path(sys.argv[1])))
