"""A service for tests: small runs, a client that speaks to it in this process, and a real one on a port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import corpora_for_tests as small
from regard.explain.alignment import Aligner
from regard.serve.app import Service, create_app
from regard.serve.guard import Doors
from regard.serve.library import Library
from regard.serve.limits import Limits
from regard.serve.server import Place, address, make
from regard.training import start

CAT = "the black cat ate the mouse"
LEARNED = ("train.steps=23", "train.validate_every=23", "train.rate=1e-2", "model.dropout=0.0", "data.pairs=97")
_KEPT: dict[Path, Path] = {}


def train(folder: Path, preset: str = "luong-dot", *overrides: str) -> Path:
    """A run that has learned for a moment, and knows which attention to read."""
    start(folder, small.settings(preset, *LEARNED, *overrides), small.Notes(), device="cpu")
    Aligner().save(folder)
    return folder


def runs(temporary: pytest.TempPathFactory) -> Path:
    """Runs that all tests of a process share: English to French with attention and without, English to Hindi."""
    base = temporary.getbasetemp()
    if base not in _KEPT:
        _KEPT[base] = folder = temporary.mktemp("served")
        train(folder / "attentive", "luong-dot", "model.depth=1")
        train(folder / "plain", "lstm", "model.depth=1")
        train(folder / "zealous", "lstm", "model.depth=1", "data.corpus='fable:hi'")
    return _KEPT[base]


@contextmanager
def client(
    runs: Path,
    doors: Doors | None = None,
    limits: Limits | None = None,
    log: list[str] | None = None,
    *,
    studio: bool = False,
    host: str = "localhost",
) -> Iterator[TestClient]:
    """Asks the app directly. What goes wrong inside is an answer, as it is for everyone."""
    library = Library(runs, limits=limits)
    service = Service(library, studio, doors or Doors(), None if log is None else log.append)
    with TestClient(create_app(service), f"http://{host}", raise_server_exceptions=False) as found:
        yield found


def client_of(library: Library) -> TestClient:
    """Asks about the runs of a library."""
    return TestClient(create_app(Service(library)), "http://localhost")


@contextmanager
def on_a_port(runs: Path, limits: Limits | None = None, doors: Doors | None = None) -> Iterator[str]:
    """The address of the whole service, as `regard serve` starts it, in a thread of this process."""
    limits = limits or Limits()
    app = create_app(Service(Library(runs, limits=limits), studio=True, doors=doors or Doors()))
    listening, ready = Place("127.0.0.1", 0).open(), threading.Event()
    server = make(app, reading=limits.reading, started=ready.set)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    assert ready.wait(20), "the service did not start"
    yield address(listening).rstrip("/")
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive(), "the service did not end"
