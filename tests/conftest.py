"""Settings that all tests share."""

from __future__ import annotations

import gc
import importlib
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The models are tiny: a second thread only waits. NumPy and the processes that tests begin ask once, at their start.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch
from hypothesis import settings

# most properties are checked for every preset
settings.register_profile("house", deadline=None, max_examples=6, derandomize=True)
settings.load_profile("house")

pytest_plugins = ["raises"]

LONG = {"test_documented_commands", "test_studio_train", "test_studio_training", "test_studio_compare", "test_training"}

# While modules and tests are collected nearly nothing is garbage, and to look for it would take 40 % of the time.
gc.set_threshold(50_000, 20, 50)

torch.set_num_threads(1)

# `torch.manual_seed` notes its caller for every kind of device that is not there: a third of a millisecond a test.
SEED = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes many seconds comes first: at the end, no process waits for another's last test."""
    items.sort(key=lambda item: item.path.stem not in LONG)


def pytest_collection_finish() -> None:
    """What is there now stays: it is not looked through for garbage again."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test draws the same numbers, whatever ran before it."""
    SEED(0)


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """No power fails here: to wait until the disk has all that was written takes as long as a small training does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def demo() -> Iterator[Path]:
    """Where the run is that comes with the package. Tests do without it, unless they put it back: `with_demo`."""
    run = importlib.import_module("regard.runs.folder")
    place: Path = run.PACKAGED
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "PACKAGED", place.with_name("no-demo"))
        yield place


@pytest.fixture
def with_demo(demo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As it is for everybody: ``demo`` is a run."""
    monkeypatch.setattr("regard.runs.folder.PACKAGED", demo)
    return demo


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[None]:
    """Nearly every run here learns from the same sentences of the built-in corpus: a process draws them once.

    And it validates on fewer of them, and translates still fewer; what is compared with a training in another process
    must undo that.
    """
    fable = importlib.import_module("regard.fable.corpus")  # not above: `--raises` must see the package come in
    known: dict[object, list[Any]] = defaultdict(list)
    lock = threading.Lock()

    def drawn(language: str, *, count: int, **asked: Any) -> Iterator[Any]:
        fable.generate(language, count=count, **asked)  # complains of what is wrong; nothing is drawn yet
        kept = known[language, *asked.items()]

        def sentence(number: int) -> Any:
            with lock:
                if number == len(kept):
                    kept.extend(fable.generate(language, count=min(101, count - number), start=number, **asked))
                return kept[number]

        return map(sentence, range(count))

    with pytest.MonkeyPatch.context() as patch:
        for room in ("regard.tasks.corpus", "regard.explain.alignment"):
            patch.setattr(f"{room}.generate", drawn)
        patch.setattr("regard.tasks.corpus.VALID", 101)
        patch.setattr("regard.trainer.start.HELD_OUT", 23)
        yield
