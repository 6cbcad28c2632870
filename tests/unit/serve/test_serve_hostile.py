"""Requests that mean harm, or nothing: each has a limit, is refused in one line, and harms nobody else."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import serving
from regard.decode.rules import Beam
from regard.errors import DataError
from regard.models.generator import EncoderDecoder
from regard.runs import listing as shelf
from regard.serve.bodies import check_json
from regard.serve.guard import Doors
from regard.serve.library import Library
from regard.serve.limits import Limits
from regard.tasks.language import Writer
from regard.tasks.load import load, load_predictor
from serving import CAT

JSON = {"Content-Type": "application/json"}
LIBRE = {"source": "en", "target": "fr"}


def line(answer: Any) -> str:
    found = str(answer.json()["error"])
    assert "\n" not in found
    return found


# Every field has a limit

CHECKED = {"texts", "q"}  # by `Limits.check`, which depends on who serves


def unlimited(schema: dict[str, Any], known: dict[str, Any], where: str) -> Iterator[str]:
    """The places in a schema where as much may stand as somebody likes."""
    if "$ref" in schema:
        yield from unlimited(known[schema["$ref"].rpartition("/")[2]], known, where)
    for part in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(part, ()):
            yield from unlimited(each, known, where)
    kind = schema.get("type")
    bound = {
        "string": "maxLength" in schema
        or "enum" in schema
        or "const" in schema
        or schema.get("format") == "binary",  # a file: as long as a body may be
        "array": "maxItems" in schema,
        "integer": "maximum" in schema or "exclusiveMaximum" in schema,
        "number": "maximum" in schema,
    }
    if not bound.get(kind, True):  # type: ignore[arg-type]
        yield f"{where}: {kind}"
    if kind == "array":
        yield from unlimited(schema.get("items", {}), known, f"{where}[]")
    for name, inner in schema.get("properties", {}).items():
        if name not in CHECKED:
            yield from unlimited(inner, known, f"{where}.{name}")


def test_every_string_list_and_number_of_every_body_has_a_limit(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    known, found, bodies = described["components"]["schemas"], [], 0
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                if kind != "application/octet-stream":
                    bodies += 1
                    found += list(unlimited(content["schema"], known, f"{method} {path}"))
    assert bodies > 15
    assert found == []


# Bodies


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"a": ' + b"[" * 20 + b"]" * 20 + b"}", "body: more than 20 nested lists or objects"),
        (b'{"a": "' + b"[" * 99 + b'\\"' + b"[" * 99 + b'"}', ""),
        (b'{"a": ' + b"9" * 101 + b"}", "body: a number of more than 100 digits"),
        (b'{"a": "' + b"9" * 101 + b'"}', ""),
        (b'{"a": "\\ud83d\\ude00"}', ""),
        (b'{"a": "\\\\ud800"}', ""),
        (b'{"a": ["\\ud800"]}', "body: \\ud800 is an unpaired surrogate"),
        (b'{"\\uDfff": 1}', "body: \\udfff is an unpaired surrogate"),
        (b'{"a": "\xed\xa0\x80"}', "body: is not UTF-8 at byte 7"),
        (b'{"a": "\\ud800', ""),  # no JSON at all: whoever reads it says so
    ],
)
def test_json_is_looked_through_before_anybody_reads_it(body: bytes, said: str) -> None:
    if not said:
        check_json(body, Limits())
        return
    with pytest.raises(DataError) as refused:
        check_json(body, Limits())
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", {"q": CAT, "source": "\ud800", "target": "fr"}),
        ("/translate", {"q": ["\ud800"], **LIBRE}),
        ("/detect", {"q": "\ud800"}),
        ("/api/v1/translate", {"run": "\ud800", "texts": [CAT]}),
        ("/api/v1/translate", {"run": "attentive", "texts": ["\ud800"]}),
        ("/api/v1/trainings", {"preset": "\ud800", "corpus": "fable:fr", "name": "x"}),
        ("/api/v1/estimate", {"preset": "lstm", "corpus": "\ud800"}),
        ("/api/v1/compare", {"runs": ["\ud800"]}),
        ("/api/v1/trace", {"run": "attentive", "text": "\ud800"}),
    ],
)
def test_half_a_character_is_refused_wherever_it_stands(client: TestClient, path: str, body: Any) -> None:
    for padding in (0, 1 << 17):  # a large body is looked through beside the event loop
        answer = client.post(path, content=json.dumps(body).encode() + b" " * padding, headers=JSON)
        assert (answer.status_code, line(answer)) == (
            400,
            "body: \\ud800 is an unpaired surrogate; send both halves of the character",
        )


@pytest.mark.parametrize("kind", ["", "application/a+b+json", "application/x!y+json;a=b", " Application/Json"])
def test_json_is_looked_through_whatever_it_calls_itself(client: TestClient, kind: str) -> None:
    body = b'{"q": ' + b"[" * 99 + b"]" * 99 + b"}"
    answer = client.post("/detect", content=body, headers={"Content-Type": kind})
    assert (answer.status_code, line(answer)[:18]) == (400, "body: more than 20")


def test_html_of_many_tags_inside_each_other_is_refused(client: TestClient) -> None:
    asked = {**LIBRE, "format": "html"}
    deep = client.post("/translate", json={"q": "<b>" * 700 + "cat" + "</b>" * 700, **asked})
    assert (deep.status_code, line(deep)) == (400, "q: more than 100 nested tags; close some of them")
    assert client.post("/translate", json={"q": "<b>" * 99 + "cat" + "</b>" * 99, **asked}).status_code == 200


def test_a_form_of_many_fields_is_refused(client: TestClient) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/translate", content=b"q=x&" * 1001, headers=form)
    assert (answer.status_code, line(answer)) == (400, "body: more than 1,000 fields; send fewer")


# Before any pass


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model does anything."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a model was asked")

    monkeypatch.setattr(EncoderDecoder, "forward", never)
    monkeypatch.setattr(EncoderDecoder, "start", never)


LONG = {"kind": "replace-word", "word": 0, "by": "cat " * 250}


@pytest.mark.usefixtures("asleep")
@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("trace", {"text": "the cat " * 400}, "text: goes through the model in "),
        ("importance", {"text": "the cat " * 400}, "text: goes through the model in "),
        ("walkthrough", {"text": "the cat " * 400}, "text: goes through the model in "),
        ("beam", {"text": "the cat " * 400}, "text: goes through the model in "),
        ("beam", {"text": CAT, "prefix": "x" * 1001}, "prefix: String should have at most 1000 characters"),
        ("trace", {"text": CAT, "edits": [LONG] * 9}, "text = 2,"),
        ("trace", {"text": CAT, "edits": [LONG]}, "text = 255 pieces after its edits: longer than the "),
        (
            "trace",
            {"text": CAT, "target": "le " * 1666},
            "text = 1,667 pieces: too many to look at; 1,500 are the most",
        ),
        ("trace", {"text": CAT, "edits": [LONG] * 51}, "edits: List should have at most 50 items"),
        ("trace", {"text": CAT, "edits": [{**LONG, "by": "x" * 1001}]}, "replace-word.by = 1,001 long: too long"),
        ("meaning", {"word": "a", "sentences": ["a"] * 21}, "sentences: List should have at most 20 items"),
    ],
)
def test_what_is_too_much_is_refused_before_a_model_is_asked(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr("regard.explain.replay.MOST_PIECES", 1500)
    answer = client.post(f"/api/v1/{path}", json={"run": "attentive", **body})
    assert (answer.status_code, line(answer)[: len(said)]) == (400, said)


def test_prompts_are_continued_together_only_as_far_as_memory_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = load_predictor(serving.train(tmp_path / "writer", "lstm", "task=language", "data.pairs=300"))
    assert isinstance(writer, Writer)
    prompts, sizes = ["the cat", "a dog", "the bear", "the bird"], list[int]()
    expected = writer.write(prompts, length=5, rule=Beam(3))
    kept = Writer._continue

    def watched(self: Writer, chosen: list[list[int]], *others: Any) -> Any:
        sizes.append(len(chosen))
        return kept(self, chosen, *others)

    monkeypatch.setattr(Writer, "_continue", watched)
    monkeypatch.setattr("regard.tasks.language.BUDGET", 1)
    found = writer.write(prompts, length=5, rule=Beam(3))
    assert sizes == [1] * len(prompts)
    assert [each.added for each in found] == [each.added for each in expected]


# Doors

CHANGES = [
    ("POST", "/api/v1/trainings", {"preset": "lstm", "corpus": "fable:fr", "name": "x", "time": "nonsense"}),
    ("POST", "/api/v1/estimate", {"preset": "nonsense", "corpus": "fable:fr"}),
    ("PUT", "/api/v1/corpora/x/nonsense", None),
    ("DELETE", "/api/v1/corpora/nonsense", None),
    ("POST", "/api/v1/runs/nonsense/rename", {"to": "y"}),
    ("DELETE", "/api/v1/runs/nonsense", None),
    ("POST", "/api/v1/compare", {"runs": ["nonsense"]}),
]
USES = [
    ("POST", "/api/v1/translate", {"run": "attentive", "texts": [CAT]}),
    ("POST", "/translate", {"q": CAT, **LIBRE}),
    ("POST", "/api/v1/trace", {"run": "attentive", "text": CAT}),
    ("POST", "/api/v1/map", {"run": "attentive", "text": CAT}),
    ("GET", "/api/v1/runs", None),
    ("GET", "/api/v1/trainings", None),
]


def test_a_read_only_service_is_used_and_not_changed(runs: Path) -> None:
    with serving.client(runs, Doors(read_only=True), studio=True) as client:
        for method, path, body in CHANGES:
            answer = client.request(method, path, json=body)
            assert (answer.status_code, line(answer)[:35]) == (403, "read-only: nothing can be trained, "), path
        for method, path, body in USES:
            assert client.request(method, path, json=body).status_code == 200, path
        assert all(run["fixed"] for run in client.get("/api/v1/runs").json()["runs"])
        assert client.get("/api/v1/runs/attentive").json()["summary"]["fixed"]
        assert client.get("/api/v1/trainings").json()["most"] == 0
        report = client.get("/api/v1/runs/attentive/report")
        assert (report.status_code, "has no report yet" in line(report)) == (403, True)


@pytest.mark.parametrize("token", ["", "the token of those who use"])
def test_another_token_opens_what_changes_something(runs: Path, token: str) -> None:
    admin = "the token of those who train"
    with serving.client(runs, Doors(token=token, admin=admin), studio=True) as client:
        used, trained = ({"Authorization": f"Bearer {each}"} for each in (token or "x", admin))
        for method, path, body in CHANGES:
            refused = client.request(method, path, json=body, headers=used)
            assert (refused.status_code, "serve.admin_token" in line(refused)) == (403, True), path
            assert client.request(method, path, json=body, headers=trained).status_code in (400, 404, 415), path
        report = client.get("/api/v1/runs/attentive/report", headers=used)
        assert (report.status_code, "has no report yet" in line(report)) == (403, True)
        for method, path, body in USES:
            for headers in (used, trained):
                assert client.request(method, path, json=body, headers=headers).status_code == 200, path
        most = [client.get("/api/v1/trainings", headers=each).json()["most"] for each in (used, trained)]
        assert (most[0], most[1] > 0) == (0, True)
        assert client.get("/?token=neither", follow_redirects=False).status_code == 401
        assert client.get(f"/?token={admin}", follow_redirects=False).status_code == 303
        assert client.get("/api/v1/trainings").json()["most"] > 0  # the cookie is that of the token that was given


# Who works beside


def test_a_request_of_many_texts_looks_at_the_disk_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []
    kept = Library.runs

    def watched(self: Library) -> Any:
        looks.append(_on_the_loop())
        return kept(self)

    with serving.client(runs) as client:
        monkeypatch.setattr(Library, "runs", watched)
        answer = client.post("/translate", json={"q": [CAT] * 7, "source": "auto", "target": "fr"})
    assert answer.status_code == 200
    assert looks == [False]


def _on_the_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_trainings_that_did_not_change_are_not_read_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    looks: list[int] = []
    kept, scanned = shelf.outline, Library.runs
    monkeypatch.setattr(shelf, "outline", lambda path: read.append(path) or kept(path))  # type: ignore[func-returns-value]
    monkeypatch.setattr(Library, "runs", lambda self: looks.append(1) or scanned(self))  # type: ignore[func-returns-value]
    with serving.client(runs) as client:
        first = client.get("/api/v1/trainings").json()
        del read[:], looks[:]
        assert client.get("/api/v1/trainings").json() == first
        assert (read, looks) == ([], [1])
        log = runs / "plain" / "log.jsonl"
        os.utime(log, (1, 1))
        client.get("/api/v1/trainings")
        assert read == [log]


def test_an_upload_waits_for_the_disk_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    kept = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(_on_the_loop()) or kept(handle))  # type: ignore[func-returns-value]
    with serving.client(tmp_path) as client:
        assert client.put("/api/v1/corpora/mine/train.source?called=a.en", content=b"the cat\n").status_code == 200
    assert synced
    assert not any(synced)
    assert (tmp_path / "corpora" / "mine" / "train.source").read_bytes() == b"the cat\n"


# All at once

HOSTILE: list[tuple[str, bytes]] = [
    ("/translate", json.dumps({"q": "<b>" * 700, **LIBRE, "format": "html"}).encode()),
    ("/translate", b"[" * 5000),
    ("/translate", b'{"q": "\\ud800", "source": "en", "target": "fr"}'),
    ("/api/v1/translate", json.dumps({"run": "../attentive", "texts": [CAT]}).encode()),
    ("/api/v1/translate", json.dumps({"run": "attentive", "texts": ["x " * 2501]}).encode()),
    ("/api/v1/translate", json.dumps({"run": "attentive", "texts": [CAT], "beam": 10**99}).encode()),
    ("/api/v1/trace", json.dumps({"run": "attentive", "text": CAT, "edits": [LONG] * 20}).encode()),
    ("/api/v1/trace", json.dumps({"run": "attentive", "text": "the cat " * 500}).encode()),
    ("/api/v1/beam", json.dumps({"run": "attentive", "text": CAT, "prefix": "le " * 1600}).encode()),
    ("/api/v1/beam", json.dumps({"run": "attentive", "text": CAT, "length_penalty": float("nan")}).encode()),
    ("/api/v1/meaning", json.dumps({"run": "attentive", "word": "a", "sentences": ["a " * 501]}).encode()),
    ("/api/v1/trainings", b"\xff\xfe{"),
]


def test_hostile_and_valid_requests_mixed_from_several_threads(runs: Path) -> None:
    """Every valid one gets what it gets alone, every other one a 4xx with one line."""
    texts = [CAT, "the bear sleeps", "a bird sings", "the dog ate the bread", "the cat sees a bird"]
    expected = [each.text for each in load(runs / "attentive").translate(texts)]
    with serving.client(runs) as client, ThreadPoolExecutor(8) as threads:

        def ask(number: int) -> tuple[int, int, Any]:
            if number % 2:
                path, body = HOSTILE[number // 2 % len(HOSTILE)]
            else:
                asked = {"run": "attentive", "texts": [texts[number // 2 % len(texts)]]}
                path, body = "/api/v1/translate", json.dumps(asked).encode()
            answer = client.post(path, content=body, headers=JSON)
            return number, answer.status_code, answer.json()

        for number, status, answer in threads.map(ask, range(8 * len(HOSTILE))):
            if number % 2:
                assert 400 <= status < 500, (HOSTILE[number // 2 % len(HOSTILE)], answer)
                assert "\n" not in answer["error"]
            else:
                assert status == 200
                assert answer["translations"][0]["outputs"][0]["text"] == expected[number // 2 % len(texts)]
        counted = client.get("/metrics").text
    assert 'status="5' not in counted
    assert 'status="499"' not in counted
