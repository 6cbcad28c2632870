"""Blocks on a Ray cluster: with a stand-in for Ray, and with Ray itself where it is installed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.data import cluster
from regard.data.blocks import Block, Work, blocks
from regard.data.cluster import about, address_of, spread
from regard.errors import DataError, ResourceError, SettingsError

ROWS = [(f"line {number}",) for number in range(23)]


class RayTaskError(Exception):
    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class AuthenticationError(Exception):
    pass


class StandIn:
    """As much of Ray as is used, in this process; answers come last in, first out."""

    __version__ = "2.60.0"
    exceptions = SimpleNamespace(RayTaskError=RayTaskError, AuthenticationError=AuthenticationError)

    def __init__(self) -> None:
        self.options, self.asked, self.open = dict[str, Any](), list[Any](), False

    def init(self, *address: str, **options: Any) -> None:
        if address == ("nowhere:1",):
            raise ConnectionError("refused\nmore")
        if address == ("closed:1",):
            raise AuthenticationError("no token was found\nmore")
        self.options, self.open = {"address": address, **options}, True

    def shutdown(self) -> None:
        self.open = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def remote(self, **options: Any) -> Callable[[type], Any]:
        self.options |= options

        def made(kind: type) -> Any:
            def start(*arguments: Any) -> Any:
                actor = kind(*arguments)
                return SimpleNamespace(
                    about=SimpleNamespace(remote=actor.about), work=SimpleNamespace(remote=partial(partial, actor.work))
                )

            return SimpleNamespace(remote=start)

        return made

    def wait(self, pending: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        assert num_returns == 1
        self.asked.append(len(pending))
        return pending[-1:], pending[:-1]

    def get(self, answer: Any) -> Any:
        if isinstance(answer, list):
            return answer
        try:
            return answer()
        except DataError as error:
            raise RayTaskError(error) from None


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found = StandIn()
    monkeypatch.setitem(sys.modules, "ray", found)  # type: ignore[arg-type]
    monkeypatch.setattr(cluster, "_knock", lambda *_: None)
    for name in cluster._ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    return found


def shouting() -> Work:
    return lambda block: "".join(row[0].upper() for row in block.rows).encode()


def complaining() -> Work:
    def work(block: Block) -> bytes:
        raise DataError(f"line {block.first + 1}: cannot be read")

    return work


def test_every_block_is_done_once_and_few_wait_at_a_time(ray: StandIn) -> None:
    found = dict(_named(spread(shouting, blocks(ROWS, 2), "", 0, "auto")))
    assert found == {block.name: shouting()(block) for block in blocks(ROWS, 2)}
    assert max(ray.asked) == 6  # two for each of three actors
    assert ray.options["address"] == ("local",)  # not another cluster that runs on this machine
    assert ray.options["max_restarts"] == ray.options["max_task_retries"] == -1
    assert (os.environ["RAY_USAGE_STATS_ENABLED"], os.environ["RAY_AUTH_MODE"]) == ("0", "token")
    assert not ray.open


def _named(found: Iterator[tuple[Block, bytes]]) -> Iterator[tuple[str, bytes]]:
    return ((block.name, output) for block, output in found)


def test_a_complaint_of_an_actor_is_ours(ray: StandIn) -> None:
    with pytest.raises(DataError, match="line 1: cannot be read"):
        list(spread(complaining, blocks(ROWS, 30), "head:6379", 1, "cpu"))
    assert ray.options["address"] == ("head:6379",)
    assert not ray.open


def test_where_nobody_listens_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said at once; where somebody listens it is Ray's turn."""
    monkeypatch.setitem(sys.modules, "ray", found := StandIn())  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert list(spread(shouting, blocks(ROWS, 30), address, 1, "cpu"))
        assert found.options["address"] == (address,)
    with pytest.raises(ResourceError, match=f"ray:{address}: no cluster answers there"):
        list(spread(shouting, blocks(ROWS, 30), address, 1, "cpu"))


def test_no_cluster_an_old_ray_and_other_versions_are_refused(ray: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceError, match=r"ray:nowhere:1: no cluster answers there to this token; refused$"):
        list(spread(shouting, blocks(ROWS, 2), "nowhere:1", 0, "cpu"))
    with pytest.raises(ResourceError, match=r"ray:closed:1: a token is missing; set RAY_AUTH_TOKEN"):
        list(spread(shouting, blocks(ROWS, 2), "closed:1", 0, "cpu"))
    versions = iter([about() | {"torch": "0.1"}, about()])
    monkeypatch.setattr(cluster, "about", lambda: next(versions))
    with pytest.raises(ResourceError, match=r"torch is 0\.1 on a machine of the cluster"):
        list(spread(shouting, blocks(ROWS, 2), "", 1, "cpu"))
    monkeypatch.setattr(ray, "__version__", "2.58.9")
    with pytest.raises(ResourceError, match=r"Ray 2\.58\.9 lets anyone in; pip install 'ray>=2\.59'"):
        list(spread(shouting, blocks(ROWS, 2), "", 0, "cpu"))


def test_more_actors_than_there_is_room_for_are_refused_instead_of_waited_for(
    ray: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ResourceError, match=r"bulk\.workers = 4: the cluster has 3 cores"):
        list(spread(shouting, blocks(ROWS, 2), "head:6379", 4, "auto"))
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 16.0, "GPU": 1.0})
    with pytest.raises(ResourceError, match=r"bulk\.workers = 2: the cluster has 1 GPU, "):
        list(spread(shouting, blocks(ROWS, 2), "", 2, "auto"))
    assert len(list(spread(shouting, blocks(ROWS, 2), "", 2, "cpu"))) == 12


def test_an_engine_is_ray_or_none() -> None:
    assert (address_of("ray"), address_of("ray:head:6379")) == ("", "head:6379")
    with pytest.raises(SettingsError, match="--on = dask: no such engine"):
        address_of("dask")


def dying(folder: Path) -> Work:
    """An actor that is killed at its third block, the first two times."""

    def work(block: Block) -> bytes:
        if block.number in (2, 5) and not (mark := folder / str(block.number)).exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return "".join(row[0].upper() for row in block.rows).encode()

    return work


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.filterwarnings("ignore")
def test_ray_itself_does_every_block_though_actors_are_killed(tmp_path: Path) -> None:
    found = dict(_named(spread(partial(dying, tmp_path), blocks(ROWS, 2), "", 2, "cpu")))
    assert found == {block.name: shouting()(block) for block in blocks(ROWS, 2)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "5"]
