"""A service for tests: small runs, a client that speaks to it in this process, and a real one on a port."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import corpora_for_tests as small
from regard.explain.alignment import Aligner
from regard.fable.sets import png
from regard.serve.app import create_app
from regard.serve.guard import Doors
from regard.serve.library import Library
from regard.serve.limits import Limits
from regard.serve.server import address, listen, make
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import SPECIAL_TOKENS
from regard.trainer.start import start

CAT = "the black cat ate the mouse"
LEARNED = ("train.steps=23", "train.validate_every=23", "train.rate=1e-2", "model.dropout=0.0", "data.pairs=103")
PATIENCE = 60.0  # seconds; more than the service itself takes to start or to end, whatever its clients do
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
        train(folder / "attentive", "luong-dot", "model.depth=1", "train.seed=3")  # which writes several words
        train(folder / "plain", "lstm", "model.depth=1")
        train(folder / "zealous", "lstm", "model.depth=1", "data.corpus='fable:hi'")
    return _KEPT[base]


def vector_runs(folder: Path) -> Path:
    """Runs that read no text: `series` forecasts two channels, `pictures` says whether it is dark or light, `captions`
    writes it."""
    places = folder.parent / f"{folder.name}-data"
    places.mkdir()
    chance, time = np.random.default_rng(1), np.arange(90)[:, None]
    numbers = 5 + 3 * np.sin(2 * np.pi * time / 7 + np.arange(2)) + 0.3 * chance.normal(size=(90, 2))
    lines = (f"2000-01-{day},{first:.2f},{second:.2f}\n" for day, (first, second) in enumerate(numbers, start=1))
    (places / "series.csv").write_text("date,a,b\n" + "".join(lines))
    pixels = ((light, chance.integers(0, 100, (6, 6)) + 150 * light) for light in [0, 1] * 12)
    rows = (f"{png(each.astype(np.uint8))}\t{'light' if light else 'dark'}\n" for light, each in pixels)
    (places / "pictures.tsv").write_text("".join(rows))
    brief = ("train.steps=7", "train.validate_every=7", "train.batch=512", "data.pairs=20000", "model.tie=none")
    series = ("task=forecast", "forecast.context=14", "forecast.horizon=5", "forecast.season=7", "forecast.paths=20")
    train(folder / "series", "luong-general", *brief, *series, f"data.corpus={places / 'series.csv'}")
    seen = ("task=classify", "text.source={kind='vectors', patch=3}", f"data.corpus={places / 'pictures.tsv'}")
    train(folder / "pictures", "transformer-tiny", *brief, *seen)
    train(folder / "captions", "transformer-tiny", *brief, *seen[1:], "task=translate", "data.languages=en-fr")
    return folder


def words(run: Path) -> list[str]:
    """Words that a run has read in small letters and never with a capital, the most frequent first."""
    tokenizer = Tokenizers.load(run / "tokenizer").source
    seen = [tokenizer.token(number) for number in range(len(SPECIAL_TOKENS), tokenizer.size)]
    return [word for word in seen if word.isalpha() and word.islower() and word.capitalize() not in seen]


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
    app = create_app(library, doors, studio=studio, log=None if log is None else log.append)
    with TestClient(app, f"http://{host}", raise_server_exceptions=False) as found:
        yield found


def client_of(library: Library) -> TestClient:
    """Asks about the runs of a library."""
    return TestClient(create_app(library), "http://localhost")


class Kept:
    """A browser keeps the studio's files, which do not change here: to ask anew costs as much as what a test does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["path"].startswith("/studio/"):
                MutableHeaders(scope=message)["Cache-Control"] = "max-age=3600"
            await send(message)

        await self._app(scope, receive, answer)


@contextmanager
def on_a_port(
    runs: Path, limits: Limits | None = None, doors: Doors | None = None, *, studio: bool = True, kept: bool = False
) -> Iterator[str]:
    """The address of the whole service, as `regard serve` starts it, in a thread of this process."""
    limits = limits or Limits()
    app = create_app(Library(runs, limits=limits), doors, studio=studio)
    if kept:
        app.add_middleware(Kept)
    listening, ready = listen("127.0.0.1", 0), threading.Event()
    server = make(app, reading=limits.reading, started=ready.set)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        assert ready.wait(PATIENCE), "the service did not start"
        yield address(listening).rstrip("/")
    finally:  # also when a test fails, or it would go on beside all others
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive(), f"the service did not end; its threads are at\n{where_threads_are()}"


def where_threads_are() -> str:
    """The stack of every thread, for a test that has waited in vain."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = sys._current_frames().items()
    return "\n".join(f"{names.get(ident)}:\n{''.join(traceback.format_stack(frame))}" for ident, frame in stacks)


# Eight runs of all tasks and qualities: which one is shown where nobody names one?

EIGHT: dict[str, tuple[str, str, float | None]] = {  # what it is for, what its score is called, and the score
    "bahdanau": ("translate en-fr", "BLEU", 0.0),  # first by name, and the newest
    "classifier": ("classify", "accuracy", 35.0),
    "german": ("translate en-de", "BLEU", 23.4),  # of an own corpus
    "hindi": ("translate en-hi", "BLEU", None),
    "middling": ("translate en-fr", "BLEU", 61.2),
    "tagger": ("tag", "accuracy", 91.5),
    "writer": ("language", "perplexity", 12.3),
    "zebra": ("translate en-fr", "BLEU", 99.1),  # the best, last by name and the oldest
}
_NOW = 1_700_000_000  # seconds since 1970


def eight_runs(folder: Path) -> Path:
    """A folder of eight runs, each trained for two steps; scores and times are written by hand."""
    brief = ("train.steps=2", "train.validate_every=2", "data.pairs=53")
    luong, lstm = ("luong-dot", "model.depth=1", *brief), ("lstm", *brief)
    own = _own_corpus(folder.parent / f"{folder.name}-corpus")
    train(folder / "zebra", *luong)
    shutil.copytree(folder / "zebra", folder / "middling")
    train(folder / "bahdanau", "bahdanau", *brief)
    train(folder / "hindi", *lstm, "data.corpus='fable:hi'")
    train(folder / "german", *lstm, "data.corpus=''", *own)
    for name, task in (("tagger", "tag"), ("classifier", "classify"), ("writer", "language")):
        train(folder / name, *lstm, f"task={task}", "data.pairs=300")  # enough for every tag to occur
    for age, name in enumerate(("bahdanau", *(name for name in EIGHT if name not in ("bahdanau", "zebra")), "zebra")):
        _, score_name, score = EIGHT[name]
        rescore(folder / name, score_name, score, _NOW - 3600 * age)
    return folder


def rescore(run: Path, name: str, score: float | None, changed: float) -> None:
    """Let the last validation of a run have found this, at this time; None, that there was none."""
    log = run / "log.jsonl"
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    kept = [event for event in events if event["event"] != "validation" or score is not None]
    for event in kept:
        if event["event"] == "validation":
            event |= {"score": score, "name": name}
    log.write_text("".join(f"{json.dumps(event)}\n" for event in kept), encoding="utf-8")
    for path in (run / "settings.toml", log, run / "best", run / "checkpoints"):
        os.utime(path, (changed, changed))


def _own_corpus(folder: Path) -> list[str]:
    """The settings of a small corpus in two files a part, whose names say the languages."""
    folder.mkdir(parents=True)
    english = ["the dog sees the cat", "the cat sleeps", "a man eats an apple", "the woman reads"] * 8
    german = ["der Hund sieht die Katze", "die Katze schläft", "ein Mann isst einen Apfel", "die Frau liest"] * 8
    found = []
    for part, prefix in (("train", ""), ("valid", "valid_")):
        for code, side, lines in (("en", "source", english), ("de", "target", german)):
            path = folder / f"{part}.{code}"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            found.append(f"data.{prefix}{side}={str(path)!r}")
    return found
