"""A training's log as server-sent events: whole lines with their numbers, from any of them on, until the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import studios
from regard.runs.log import Moment
from regard.serve.jobs import Jobs
from regard.serve.library import Library
from regard.serve.trainings import Trainings

STEP = {"event": "step", "time": 7.0, **asdict(Moment(3, 0, 2.5, 1.0, 0.1, 5, 5.0, 1.0, 0.25, 1))}


def written(folder: Path, *events: dict[str, Any] | str) -> Path:
    path = folder / "log.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.writelines(event if isinstance(event, str) else json.dumps(event) + "\n" for event in events)
    return path


def parsed(text: str) -> list[dict[str, str]]:
    """The events of a stream, by field."""
    blocks = [block for block in text.split("\n\n") if block]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "runs").mkdir()
    with studios.client(tmp_path / "runs") as client:
        yield client


def test_a_stream_has_every_line_with_its_number_and_then_the_end(service: TestClient, tmp_path: Path) -> None:
    written(
        studios.run_folder(tmp_path / "runs", "one"), {"event": "note", "text": str(tmp_path.resolve()) + "/x"}, STEP
    )
    answer = service.get("/api/v1/trainings/one/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    retry, *events, end = parsed(answer.text)
    assert retry == {"retry": "1000"}
    assert [(event["id"], json.loads(event["data"])) for event in events] == [
        ("1", {"event": "note", "text": "x"}),
        ("2", STEP),
    ]
    assert end["event"] == "end"
    assert json.loads(end["data"])["state"] == "prepared"


@pytest.mark.parametrize(("last", "first"), [("1", "2"), ("0", "1"), ("nonsense", "1"), ("9" * 40, "1")])
def test_a_stream_goes_on_after_the_last_line_that_came_through(
    service: TestClient, tmp_path: Path, last: str, first: str
) -> None:
    written(studios.run_folder(tmp_path / "runs", "one"), STEP, STEP)
    answer = service.get("/api/v1/trainings/one/events", headers={"Last-Event-ID": last})
    assert parsed(answer.text)[1]["id"] == first


def test_a_stream_tells_whole_lines_that_are_json_and_has_no_number_that_is_none(
    service: TestClient, tmp_path: Path
) -> None:
    folder = studios.run_folder(tmp_path / "runs", "one")
    written(folder, "not json\n", "[1]\n", "\n", {"event": "note", "loss": float("nan")}, '{"event": "no')
    _, *events, _ = parsed(service.get("/api/v1/trainings/one/events").text)
    assert events == [{"id": "4", "data": '{"event": "note", "loss": null}'}]


def test_there_are_no_events_of_what_is_not_known(service: TestClient) -> None:
    assert service.get("/api/v1/trainings/none/events").status_code == 404
    assert service.get("/api/v1/trainings/..%2f..%2fetc/events").status_code == 404


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_stream_follows_the_stages_beats_when_nothing_happens_and_ends_with_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    assert anyio_backend == "asyncio"
    monkeypatch.setattr("regard.serve.trainings.TICK", 0.01)
    monkeypatch.setattr("regard.serve.trainings.HEARTBEAT", 0.02)
    folder = studios.run_folder(tmp_path, "one", f"{studios.SETTINGS}[train]\nvalidate_every = 5\n")
    jobs = Jobs(Library(tmp_path))
    running = [True]
    monkeypatch.setattr(jobs, "is_training", lambda _: running[0])
    stream = Trainings(jobs).events("one", 0)
    assert await anext(stream) == "retry: 1000\n\n"
    assert '"preparing"' in await anext(stream)
    assert await anext(stream) == ": still here\n\n"
    written(folder, STEP)
    assert (await anext(stream)).startswith("id: 1\n")
    assert '"training"' in await anext(stream)
    written(folder, {**STEP, "step": 5})
    assert (await anext(stream)).startswith("id: 2\n")
    assert '"validating"' in await anext(stream)
    running[0] = False
    written(folder, {"event": "validation", "time": 8.0, "step": 5, "best": False})
    assert (await anext(stream)).startswith("id: 3\n")
    assert (await anext(stream)).startswith("event: end\n")
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_stream_ends_when_the_server_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    assert anyio_backend == "asyncio"
    studios.run_folder(tmp_path, "one")
    jobs = Jobs(Library(tmp_path))
    monkeypatch.setattr(jobs, "is_training", lambda _: True)
    stream = Trainings(jobs).events("one", 0)
    await anext(stream)
    await anext(stream)
    jobs.closing.set()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


def test_a_run_that_was_removed_ends_its_stream(tmp_path: Path) -> None:
    jobs = Jobs(Library(tmp_path))
    assert Trainings(jobs)._ending("gone")["state"] == "failed"
