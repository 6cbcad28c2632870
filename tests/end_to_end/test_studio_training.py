"""A training outlives the server that began it, and the next one finds it, follows it and stops it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import corpora_for_tests as small
import serving
from processes import spawned
from regard.fable.corpus import generate
from regard.runs.folder import Run, is_occupied, steps
from regard.serve.jobs import Jobs
from regard.serve.library import Library
from regard.settings import load_settings

SECONDS = 240.0  # of patience; nothing is asserted about time


@contextmanager
def studio(runs: Path) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """A real server, in a process that can be killed."""
    command = [sys.executable, "-m", "regard", "studio", str(runs), "--port", "0", "serve.browser=false", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = next(iter(json.loads(server.stdout.readline()).values()))
        with httpx.Client(base_url=address, headers={"X-Regard": "test"}, timeout=SECONDS) as client:
            yield client, server
    finally:
        server.kill()
        server.communicate(timeout=60)


def follow(client: httpx.Client, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of the log with their numbers, as they come; 0 is an event of another kind."""
    with client.stream("GET", "/api/v1/trainings/small/events", headers={"Last-Event-ID": str(after)}) as answer:
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
                continue
            if "data" in fields:
                yield int(fields.get("id", 0)), json.loads(fields["data"]) | {"name": fields.get("event", "")}
            fields = {}


def until_validated(client: httpx.Client, after: int = 0) -> int:
    """The number of the next validation's line."""
    return next(number for number, event in follow(client, after) if event.get("event") == "validation")


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "runs"
    for job in Jobs(Library(tmp_path / "runs")).trainings().values():
        job.send(signal.SIGKILL)


def send_corpus(client: httpx.Client) -> None:
    """As somebody drops files: the built-in corpus would be validated on a thousand sentences."""
    pairs = list(generate("fr", count=300))
    for side in ("source", "target"):
        text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
        client.put(f"/api/v1/corpora/mine/train.{side}", content=text)
    client.post("/api/v1/corpora/mine/split", json={"valid": 20})


def test_a_server_that_is_killed_leaves_its_training_to_the_next(runs: Path) -> None:
    sizes = [*small.SIZES["transformer"], *small.SMALL[3:6], "train.steps=1000000", "train.validate_every=20"]
    with studio(runs) as (client, server):
        send_corpus(client)
        body = {"name": "small", "preset": "transformer-tiny", "corpus": "mine", "overrides": sizes}
        assert client.post("/api/v1/trainings", json=body).status_code == 201
        seen = until_validated(client)
        server.send_signal(signal.SIGKILL)
        server.wait(60)
    assert is_occupied(runs / "small")
    before = (runs / "small" / "log.jsonl").stat().st_size
    with studio(runs) as (client, _):
        found = client.get("/api/v1/trainings/small").json()
        assert (found["state"], found["ours"]) == ("running", True)
        assert until_validated(client, seen) > seen
        assert (runs / "small" / "log.jsonl").stat().st_size > before
        assert client.post("/api/v1/trainings/small/stop").json()["stage"] == "stopping"
        *_, (_, last) = follow(client, seen)
        assert (last["name"], last["state"]) == ("end", "interrupted")
        assert not is_occupied(runs / "small")
        reached = client.get("/api/v1/trainings/small").json()["steps"]
        assert steps(runs / "small" / "checkpoints")[-1].name == f"step-{reached}"
        assert client.post("/api/v1/trainings/small/resume").status_code == 202
        moments = (event for _, event in follow(client, seen) if event.get("event") == "step")
        assert next(event for event in moments if event["step"] > reached)
        client.post("/api/v1/trainings/small/stop")
        deadline = time.monotonic() + SECONDS
        while client.get("/api/v1/trainings/small").json()["state"] == "running":
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_training_of_the_studio_is_fitted_to_its_corpus_and_what_was_chosen_wins(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.serve.jobs.spawn", spawned)
    asking = {"headers": {"X-Regard": "test"}, "timeout": SECONDS}
    with serving.on_a_port(runs) as address, httpx.Client(base_url=address, **asking) as client:
        send_corpus(client)
        chosen = ["text.tokenizer=bpe", "train.steps=2", "train.warmup=1"]
        body = {"name": "small", "preset": "transformer-tiny", "corpus": "mine", "overrides": chosen}
        assert client.post("/api/v1/trainings", json=body).status_code == 201
        assert [event["state"] for _, event in follow(client) if event["name"] == "end"] == ["finished"]
    settings, usual = Run.open(runs / "small").settings, load_settings("transformer-tiny")
    assert (settings.train.steps, settings.train.warmup) == (2, 1)
    assert settings.text.size < usual.text.size
    assert settings.train.batch < usual.train.batch
