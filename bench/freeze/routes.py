"""Every route of the service with the studio, found in its OpenAPI, asked over HTTP about the small runs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from models import RUNS, SMALL
from plain import Plain, words_of

Json = dict[str, Any]
CAT, RIVER = "the black cat ate the mouse", "the old man sees the river"
EVERY = ["demo", *RUNS]
NOISY_HEADERS = ("date", "server", "content-length", "etag", "last-modified", "connection", "transfer-encoding")
TINY = [
    *SMALL,
    "model.depth=1",
    "model.width=8",
    "model.hidden=8",
    "train.steps=2",
    "train.validate_every=1",
    "data.pairs=50",
]


@dataclass(frozen=True)
class Ask:
    """One request to a route. ``places`` fill the braces of its path."""

    places: dict[str, str] = field(default_factory=dict)
    body: Json | bytes | None = None
    query: str = ""
    until_done: bool = False  # ask again while the state is `running`


def about(**body: Any) -> list[Ask]:
    """The same question about every run."""
    return [Ask(body={"run": run, **body}) for run in EVERY]


def each_run(query: str = "") -> list[Ask]:
    return [Ask({"run": run}, query=query) for run in (*EVERY, "nowhere")]


# Asked in this order: what changes something comes last.
ASKED: dict[str, list[Ask]] = {
    "get /health": [Ask()],
    "get /metrics": [Ask()],
    "get /frontend/settings": [Ask()],
    "get /languages": [Ask()],
    "get /api/v1/runs": [Ask()],
    "get /api/v1/presets": [Ask()],
    "get /api/v1/corpora": [Ask()],
    "get /api/v1/trainings": [Ask()],
    "get /api/v1/runs/{run}": each_run(),
    "get /api/v1/runs/{run}/settings": each_run(),
    "get /api/v1/runs/{run}/examples": each_run("?count=3"),
    "get /api/v1/runs/{run}/export": each_run(),
    "get /api/v1/runs/{run}/report": [Ask({"run": run}) for run in (*RUNS, "nowhere")],
    "post /translate": [
        Ask(body={"q": CAT, "source": "en", "target": "fr", "alternatives": 2}),
        Ask(body={"q": [CAT, RIVER], "source": "auto", "target": "fr"}),
        Ask(body={"q": f"<p>{CAT} <b>{RIVER}</b></p>", "source": "en", "target": "fr", "format": "html"}),
        Ask(body={"q": CAT, "source": "en", "target": "xx"}),
    ],
    "post /translate_file": [Ask(body={"source": "en", "target": "fr"})],  # files go by multipart: tests send them
    "get /download_file/{name}": [Ask({"name": "nowhere.po"})],
    "post /detect": [Ask(body={"q": "le chat noir a mangé la souris"}), Ask(body={})],
    "post /api/v1/sentences": [Ask(body={"text": "The cat sleeps. Dr. Smith does not."})],
    "post /api/v1/translate": [
        *about(texts=[CAT, RIVER], best=2),
        Ask(body={"run": "demo", "texts": [CAT], "beam": 1, "prefix": "un", "alignment": False}),
        Ask(body={"run": "nowhere", "texts": [CAT]}),
        Ask(body={"run": "demo", "texts": [CAT], "beam": 99}),
    ],
    "post /api/v1/predict": about(texts=[CAT, RIVER], length=7),
    "post /api/v1/trace": [
        *about(text=CAT),
        *about(text=CAT, rank=1, edits=[{"kind": "mask-word", "word": 1}]),
        Ask(body={"run": "demo", "text": CAT, "edits": [{"kind": "nonsense"}]}),
    ],
    "post /api/v1/importance": about(text=CAT),
    "post /api/v1/gates": about(text=CAT),
    "post /api/v1/map": about(text=CAT),
    "post /api/v1/forecast": about(text="[[1], [2], [3]]"),  # no run here forecasts: the complaint is the answer
    "post /api/v1/beam": about(text=CAT, beam=3),
    "post /api/v1/meaning": about(word="the", sentences=[CAT, RIVER]),
    "post /api/v1/walkthrough": [*about(text=CAT), *about(text=CAT, word=1, side="decoder")],
    "post /api/v1/estimate": [Ask(body={"preset": "lstm", "corpus": "fable:fr", "overrides": TINY})],
    "put /api/v1/corpora/{name}/{file}": [
        Ask({"name": "small", "file": "train.source"}, b"".join(b"a cat number %d sleeps\n" % n for n in range(40))),
        Ask({"name": "small", "file": "train.target"}, b"".join(b"un chat %d dort\n" % n for n in range(40))),
        Ask({"name": "small", "file": "nonsense"}, b"a cat\n"),
    ],
    "post /api/v1/corpora/{name}/check": [Ask({"name": "small"}), Ask({"name": "nowhere"})],
    "post /api/v1/corpora/{name}/split": [Ask({"name": "small"}, {"valid": 5, "test": 3})],
    "delete /api/v1/corpora/{name}": [Ask({"name": "small"}), Ask({"name": "nowhere"})],
    "post /api/v1/corpora/{name}/restore": [Ask({"name": "small"}), Ask({"name": "nowhere"})],
    "post /api/v1/trainings": [
        Ask(body={"preset": "lstm", "corpus": "fable:fr", "name": "young", "overrides": TINY, "watch": CAT}),
        Ask(body={"preset": "nonsense", "corpus": "fable:fr", "name": "other"}),
    ],
    "get /api/v1/trainings/{run}/events": [Ask({"run": "young"}), Ask({"run": "nowhere"})],
    "get /api/v1/trainings/{run}": [Ask({"run": "young"}, until_done=True), Ask({"run": "demo"})],
    "post /api/v1/trainings/{run}/stop": [Ask({"run": "young"}), Ask({"run": "nowhere"})],
    "post /api/v1/trainings/{run}/resume": [Ask({"run": "young"}), Ask({"run": "nowhere"})],
    "delete /api/v1/trainings/{run}": [Ask({"run": "young"}), Ask({"run": "nowhere"})],
    "post /api/v1/compare": [
        Ask(body={"runs": ["attentive", "plain"], "limit": 9}),
        Ask(body={"runs": ["attentive", "tagger"]}),
    ],
    "get /api/v1/jobs/{job}": [Ask({"job": "{job}"}, until_done=True), Ask({"job": "nowhere"})],
    "delete /api/v1/jobs/{job}": [Ask({"job": "{job}"}), Ask({"job": "nowhere"})],
    "post /api/v1/runs/{run}/rename": [Ask({"run": "young"}, {"to": "older"}), Ask({"run": "demo"}, {"to": "x"})],
    "delete /api/v1/runs/{run}": [Ask({"run": "older"}), Ask({"run": "demo"}), Ask({"run": "nowhere"})],
    "post /api/v1/runs/{run}/restore": [Ask({"run": "older"}), Ask({"run": "nowhere"})],
}
PAGES = ("/", "/docs", "/studio/index.html", "/nowhere")  # that OpenAPI does not speak of


def answers(work: Path, plain: Plain) -> Iterator[tuple[str, Any]]:
    """The name of a file, and what belongs into it."""
    with _served(work) as address:
        service = Service(address, plain)
        openapi = json.loads(service.open("get", "/openapi.json").body)
        _check_known(openapi)
        yield "openapi", inlined(openapi, openapi)
        yield "routes/pages", {page: service.answer("get", page, Ask(), words=False) for page in PAGES}
        for route, asked in ASKED.items():
            method, path = route.split()
            if method not in openapi["paths"].get(path, {}):
                continue  # gone, and missed in openapi.json
            found = [{"asked": _told(ask), "answer": service.answer(method, path, ask)} for ask in asked]
            yield f"routes/{method}{path.replace('/', '-').replace('{', '').replace('}', '')}", found


def _told(ask: Ask) -> Json:
    body = ask.body.decode() if isinstance(ask.body, bytes) else ask.body
    return {"places": ask.places, "query": ask.query, "body": body}


def _check_known(openapi: Json) -> None:
    """A route that nobody knows how to ask would be forgotten."""
    known = {f"{method} {path}" for path, methods in openapi["paths"].items() for method in methods}
    if unknown := known - {*ASKED}:
        raise SystemExit(f"routes that are not asked anything: {', '.join(sorted(unknown))}; add them to routes.py")


def inlined(value: Any, openapi: Json, inside: tuple[str, ...] = ()) -> Any:
    """OpenAPI in which schemas stand where they are used, without titles, and in one order."""
    if isinstance(value, list):
        return sorted((inlined(each, openapi, inside) for each in value), key=partial(json.dumps, sort_keys=True))
    if not isinstance(value, dict):
        return value
    if isinstance(name := value.get("$ref"), str):
        if name in inside:
            return {"$ref": "itself"}
        return inlined(openapi["components"]["schemas"][name.rpartition("/")[2]], openapi, (*inside, name))
    kept = {key: each for key, each in value.items() if not (key == "title" and isinstance(each, str))}
    return {key: inlined(each, openapi, inside) for key, each in kept.items() if key != "components"}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


class Service:
    """Asks, and tells the answers in a form that can be compared."""

    def __init__(self, address: str, plain: Plain) -> None:
        self._address = address.rstrip("/")
        self._plain = plain
        self._known = {"job": "no-job-yet"}

    def open(self, method: str, path: str, body: Json | bytes | None = None) -> Answer:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        headers = {"Content-Type": kind} if body is not None else {}
        request = Request(f"{self._address}{path}", data, headers, method=method.upper())
        try:
            with urlopen(request, timeout=300) as reply:
                return Answer(reply.status, dict(reply.headers), reply.read())
        except HTTPError as reply:
            return Answer(reply.code, dict(reply.headers), reply.read())

    def answer(self, method: str, path: str, ask: Ask, *, words: bool = True) -> Json:
        places = {name: place.format(**self._known) for name, place in ask.places.items()}
        address = path.format(**places) + ask.query
        found = self.open(method, address, ask.body)
        while ask.until_done and b'"running"' in found.body:
            time.sleep(0.5)
            found = self.open(method, address)
        headers = {name.lower(): text for name, text in found.headers.items() if name.lower() not in NOISY_HEADERS}
        body = self._body(found, headers.get("content-type", "")) if words else len(found.body) > 0
        return {"status": found.status, "headers": self._plain.value(headers), "body": body}

    def _body(self, found: Answer, kind: str) -> Any:
        if "gzip" in kind:
            with tarfile.open(fileobj=io.BytesIO(found.body)) as archive:
                return sorted(archive.getnames())
        text = found.body.decode()
        if "event-stream" in kind:
            return [self._plain.value(event) for event in _events(text)]
        if "json" in kind and text:
            value = json.loads(text)
            if isinstance(value, dict) and "job" in value:
                self._known["job"] = value["job"]
            return self._plain.value(json.loads(text.replace(self._known["job"], "<job>")))
        return self._plain.lines(words_of(text) if "html" in kind else _without_seconds(text))


def _events(text: str) -> Iterator[Json]:
    """Lines of the log, and how it ended; what went on in between is seen or not, as it happens."""
    for block in text.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines())
        if "data" in fields and fields.get("event") != "state":
            yield {"event": fields.get("event", ""), "data": json.loads(fields["data"])}


def _without_seconds(metrics: str) -> str:
    """Names and labels of what is measured; of times and how many there are in each bucket not the numbers."""
    lines = metrics.splitlines(keepends=True)
    noisy = ("_seconds_", "_created", "_bytes")
    return "".join(
        f"{line.rpartition(' ')[0]} <number>\n" if any(each in line for each in noisy) else line for line in lines
    )


@contextmanager
def _served(work: Path) -> Iterator[str]:
    """The studio, as somebody starts it."""
    words = ["studio", "runs", "serve.browser=false", "--port", "0", "--json", "--device", "cpu"]
    words += ["serve.stop_trainings=true", "serve.timeout=600"]  # a slow machine must not give other answers
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "regard", *words], cwd=work, stdout=subprocess.PIPE, env=environment, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["address"]
        finally:
            server.terminate()
