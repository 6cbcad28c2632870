"""Who may come in, and how much of what they send is read."""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import pickle
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.requests import ClientDisconnect

import serving
from regard.runs.folder import digest
from regard.serve.guard import COOKIE, Doors
from regard.serve.library import Library
from regard.serve.limits import Limits
from regard.serve.watch import Metrics, Watch
from serving import CAT

KEY = "a token, ключ"
ASKED = {"run": "attentive", "texts": [CAT]}


@pytest.fixture(scope="module")
def client(runs: Path) -> Iterator[TestClient]:
    with serving.client(runs, studio=True) as found:
        yield found


def line(answer: Any) -> str:
    """The one line of a refusal."""
    content = answer.json()
    assert set(content) == {"error", "hint"}
    assert "\n" not in content["error"]
    return str(content["error"])


# Host


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_names_of_this_machine_are_welcome(client: TestClient, host: str) -> None:
    assert client.get("/health", headers={"Host": host}).json() == {"status": "ok"}


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "a b"]
)
def test_a_host_that_is_not_on_the_list_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/v1/runs", headers={"Host": host})
    assert answer.status_code == 421
    assert "not a name of this service" in line(answer)


def test_two_hosts_are_none(client: TestClient) -> None:
    answer = client.get("/health", headers=[("Host", "localhost"), ("Host", "evil.example")])  # type: ignore[arg-type]
    assert answer.status_code == 421


def test_a_name_that_was_allowed_is_welcome(runs: Path) -> None:
    with serving.client(runs, Doors(hosts=frozenset(("box.lan",))), host="box.lan:5000") as client:
        assert client.get("/health").status_code == 200


# Origin


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:3000", "http://localhost.evil.example", "http://["]
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/v1/runs"), ("POST", "/translate"), ("OPTIONS", "/translate")]
)
def test_another_origin_can_neither_read_nor_post(client: TestClient, origin: str, method: str, path: str) -> None:
    answer = client.request(method, path, headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
    assert answer.status_code == 403
    assert "pages of other origins" in line(answer)
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_form_that_another_site_submits_is_refused_before_it_is_read(client: TestClient) -> None:
    form = {"q": CAT, "source": "en", "target": "fr"}
    assert client.post("/translate", data=form, headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.post("/translate", data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/translate", data=form, headers={"Origin": "http://localhost"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_picture_on_another_page_cannot_ask(client: TestClient, site: str) -> None:
    fetch = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert client.get("/api/v1/runs", headers=fetch).status_code == 403
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    assert client.post("/translate", headers=link).status_code == 403


def test_an_origin_that_was_allowed_may_read_and_post(runs: Path) -> None:
    friend = "https://friend.example"
    with serving.client(runs, Doors(origins=frozenset((friend,)))) as client:
        asked = client.options("/translate", headers={"Origin": friend, "Access-Control-Request-Method": "POST"})
        assert asked.status_code == 204
        answer = client.get("/languages", headers={"Origin": friend})
        assert answer.headers["Access-Control-Allow-Origin"] == friend
        assert answer.headers["Vary"] == "Origin"
        assert client.get("/languages", headers={"Origin": "https://evil.example"}).status_code == 403
        assert "Access-Control-Allow-Origin" not in client.get("/languages").headers


# Headers


@pytest.mark.parametrize(
    "path", ["/", "/studio/main.js", "/docs", "/docs/docs.js", "/health", "/nowhere", "/api/v1/runs"]
)
def test_every_answer_forbids_what_is_not_ours(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Cache-Control"] == (
        "no-cache" if path.startswith(("/studio", "/docs")) or path == "/" else "no-store"
    )


# Token


@pytest.fixture(scope="module")
def guarded(runs: Path) -> Iterator[TestClient]:
    with serving.client(runs, Doors(token=KEY), studio=True) as found:
        yield found


def bearer(key: str) -> dict[str, bytes]:
    return {"Authorization": f"Bearer {key}".encode()}


@pytest.mark.parametrize("path", ["/api/v1/runs", "/metrics", "/api/v1/trainings", "/nowhere"])
def test_a_token_is_needed_for_all_that_is_the_users(guarded: TestClient, path: str) -> None:
    answer = guarded.get(path)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "token: is needed" in line(answer)
    wrong = guarded.get(path, headers=bearer("another"))
    assert wrong.status_code == 401
    assert line(wrong) == "token: is wrong"


@pytest.mark.parametrize("path", ["/", "/health", "/docs", "/openapi.json", "/studio/main.js"])
def test_pages_and_health_need_none(guarded: TestClient, path: str) -> None:
    assert guarded.get(path).status_code == 200


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(hmac, "compare_digest", lambda *both: compared.append(both) or both[0] == both[1])
    assert not Doors(token=KEY).opens("x")
    assert Doors(token=KEY).opens(KEY)
    assert compared == [(b"x", KEY.encode()), (KEY.encode(), KEY.encode())]
    assert Doors().opens("anything")


def test_a_header_or_a_cookie_opens(runs: Path) -> None:
    with serving.client(runs, Doors(token="plain"), studio=True) as client:
        assert client.get("/api/v1/runs", headers=bearer("plain")).status_code == 200
        assert client.get("/?token=wrong", follow_redirects=False).status_code == 401
        answer = client.get("/?token=plain", follow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")
        assert answer.headers["Set-Cookie"] == f"{COOKIE}=plain; Path=/; HttpOnly; SameSite=Strict"
        assert client.get("/api/v1/runs").status_code == 200  # the client has kept the cookie


def test_libretranslates_key_opens_what_is_libretranslates(guarded: TestClient) -> None:
    body = {"q": CAT, "source": "en", "target": "fr"}
    missing = guarded.post("/translate", json=body)
    assert (missing.status_code, line(missing)) == (400, "api_key: is needed; send the service's token")
    wrong = guarded.post("/translate", json=body | {"api_key": "x"})
    assert (wrong.status_code, line(wrong)) == (403, "api_key: is wrong")
    assert guarded.post("/translate", json=body | {"api_key": KEY}).status_code == 200
    assert guarded.post("/detect", data={"q": CAT, "api_key": KEY}).status_code == 200
    assert guarded.request("GET", "/languages", data={"api_key": KEY}).status_code == 200
    assert guarded.get("/languages").status_code == 400
    assert guarded.get("/frontend/settings").json()["keyRequired"] is True
    assert guarded.post("/translate", json=body, headers=bearer("x")).status_code == 401


# Bodies


def test_a_body_that_says_it_is_too_large_is_refused_unread(runs: Path) -> None:
    with serving.client(runs, limits=Limits(body=1000)) as client:
        answer = client.post("/api/v1/translate", content=b"x" * 1001)
        assert answer.status_code == 413
        assert line(answer) == "body = 1,001 bytes: too large; send at most 1,000"


def test_a_body_that_does_not_say_is_counted_while_it_comes(runs: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield from [b"x" * 300] * 7

    with serving.client(runs, limits=Limits(body=1000)) as client:
        answer = client.post("/api/v1/translate", content=parts())
        assert answer.status_code == 413
        assert client.get("/health").status_code == 200


def test_texts_have_limits_with_one_clear_line(runs: Path) -> None:
    with serving.client(runs, limits=Limits(text=31, texts=3)) as client:
        long = client.post("/api/v1/translate", json=ASKED | {"texts": ["x" * 32]})
        assert (long.status_code, line(long)) == (413, "texts = 32 characters: too long; send at most 31 in a text")
        many = client.post("/api/v1/translate", json=ASKED | {"texts": ["x"] * 4})
        assert (many.status_code, line(many)) == (413, "texts = 4 texts: too many at once; send at most 3 in a request")
        libre = client.post("/translate", json={"q": "x" * 32, "source": "en", "target": "fr"})
        assert (libre.status_code, line(libre)) == (400, "q = 32 characters: too long; send at most 31 in a text")


def test_a_full_queue_is_429_with_the_seconds_to_wait(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.serve.limits import BusyError  # noqa: PLC0415
    from regard.serve.worker import Worker  # noqa: PLC0415

    def full(*_: object) -> None:
        raise BusyError("queue = 3 waiting: is full; ask again in 7 s", 7)

    monkeypatch.setattr(Worker, "_enter", full)
    with serving.client(runs) as client:
        answer = client.post("/api/v1/translate", json=ASKED)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
        assert line(answer).startswith("queue = 3 waiting")


def test_a_bug_is_500_counted_and_logged_as_one_without_a_stack_trace_for_the_client(
    runs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("regard.serve.routes.libre.current_pairs", lambda _: 1 // 0)
    log: list[str] = []
    with serving.client(runs, log=log) as client:
        answer = client.get("/languages")
        counted = client.get("/metrics").text
    assert answer.status_code == 500
    assert line(answer) == "this is a bug of Regard's, not yours; the service's log says where"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert 'regard_requests_total{method="GET",route="/languages",status="500"} 1.0' in counted
    assert json.loads(log[0])["status"] == 500
    (record,) = (each for each in caplog.records if each.name.startswith("regard"))
    assert (record.levelname, record.getMessage()) == ("ERROR", "a bug, in the answer to GET /languages")
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


async def nothing(message: Any) -> None:
    del message


def watched(runs: Path, app: Any) -> list[str]:
    """The log of one request to an app."""
    log: list[str] = []
    watch, scope = Watch(app, Metrics(Library(runs)), log.append, 9), {"type": "http", "method": "POST", "headers": []}
    with suppress(KeyError):
        asyncio.run(watch(scope, nothing, nothing))  # type: ignore[arg-type]
    return log


def test_a_bug_after_half_an_answer_cuts_the_connection_and_is_counted(runs: Path) -> None:
    async def half(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise KeyError

    assert json.loads(watched(runs, half)[0])["status"] == 500


def test_who_leaves_within_its_body_is_no_bug(runs: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def left(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        raise ClientDisconnect

    assert json.loads(watched(runs, left)[0])["status"] == 499
    assert not [each for each in caplog.records if each.name.startswith("regard")]


# What the machine refuses


@pytest.mark.parametrize(
    ("problem", "status", "said"),
    [
        (OSError(errno.ENOSPC, "", "/home/somebody/runs/x"), 507, "x: the disk is full"),
        (OSError(errno.EROFS, "", "/home/somebody/runs/x"), 503, "x: can only be read from here"),
        (PermissionError(errno.EACCES, "", "/home/somebody/runs/x"), 503, "x: permission denied"),
        (FileNotFoundError(errno.ENOENT, "", "/home/somebody/runs/x"), 404, "x: is not there"),
        (MemoryError(), 503, "memory: not enough of it"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 503, "memory: not enough of it"),
        (RecursionError("maximum recursion depth exceeded"), 500, "this is a bug"),
        (RuntimeError("another"), 500, "this is a bug"),
    ],
)
def test_what_the_machine_refuses_is_said_by_its_kind(
    runs: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, status: int, said: str
) -> None:
    def refuse(*_: object) -> None:
        raise problem

    monkeypatch.setattr("regard.serve.routes.presets._presets", refuse)
    with serving.client(runs) as client:
        answer = client.get("/api/v1/presets")
    assert (answer.status_code, line(answer)[: len(said)]) == (status, said)
    assert "somebody" not in answer.text


# Names and files


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "../attentive", "..%2fattentive", "attentive%2f..%2fattentive", "%00", "~", "C:"]
)
def test_a_path_in_a_name_does_not_leave_the_folder(client: TestClient, runs: Path, name: str) -> None:
    assert client.get(f"/api/v1/runs/{name}").status_code == 404
    answer = client.post("/api/v1/translate", json={"run": name, "texts": [CAT]})
    assert answer.status_code == 404
    assert str(runs) not in answer.text


@pytest.mark.parametrize(
    "path", ["/studio/../serve/app.py", "/studio/%2e%2e/serve/app.py", "/studio//etc/passwd", "/docs/../app.py"]
)
def test_files_outside_the_pages_are_not_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_pickle_renamed_to_safetensors_is_refused_and_never_run(runs: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "caught",)

    shutil.copytree(runs / "attentive", tmp_path / "runs" / "trapped")
    (checkpoint,) = (tmp_path / "runs" / "trapped" / "checkpoints").iterdir()
    hashes = json.loads((checkpoint / "manifest.json").read_text())
    for file in checkpoint.glob("*.safetensors"):
        file.write_bytes(pickle.dumps(Trap()))
        hashes[file.name] = digest(file)
    (checkpoint / "manifest.json").write_text(json.dumps(hashes))
    with serving.client(tmp_path / "runs") as client:
        answer = client.post("/api/v1/translate", json={"run": "trapped", "texts": [CAT]})
        assert answer.status_code == 404
        assert "trapped/checkpoints" in line(answer)
        assert str(tmp_path) not in answer.text
        assert client.get("/api/v1/runs").status_code == 200
    assert not (tmp_path / "caught").exists()


def test_script_in_a_text_comes_back_as_text(client: TestClient) -> None:
    """As JSON, which no browser takes for a page; and in HTML, escaped."""
    nasty = "<script>alert(1)</script>"
    answer = client.post("/api/v1/translate", json={"run": "attentive", "texts": [nasty]})
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["translations"][0]["source"] == nasty
    found = client.post("/translate", json={"q": f"{nasty}the cat", "source": "en", "target": "fr", "format": "html"})
    assert found.json()["translatedText"].startswith(nasty)  # it was theirs, and stays what it was
    assert found.headers["Content-Type"] == "application/json"
    escaped = client.post("/translate", json={"q": "&lt;script&gt;", "source": "en", "target": "fr", "format": "html"})
    assert "<" not in escaped.json()["translatedText"]


def test_the_log_has_a_line_a_request_and_no_text_of_the_users(runs: Path) -> None:
    log: list[str] = []
    with serving.client(runs, log=log) as client:
        client.post("/api/v1/translate", json=ASKED)
        client.get(f"/api/v1/runs/{CAT}")
        client.get(f"/languages?q={CAT}")
        client.get(f"/{CAT}")
    lines = [json.loads(each) for each in log]
    assert [(each["route"], each["status"]) for each in lines] == [
        ("/api/v1/translate", 200),
        ("/api/v1/runs/{run}", 404),
        ("/languages", 200),
        ("(none)", 404),
    ]
    assert "cat" not in "".join(log)
