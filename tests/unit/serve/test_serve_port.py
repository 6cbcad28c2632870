"""The service on a real port: clients that exist already, clients that misbehave, and the verbs that start it."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI

import serving
from regard.cli import serve as verb
from regard.cli.main import run
from regard.errors import ResourceError
from regard.serve.app import create_app
from regard.serve.guard import Doors
from regard.serve.library import Library
from regard.serve.limits import Limits
from regard.serve.server import address, listen, listens_on, make, own_names
from regard.serve.server import run as serve_until_ended
from regard.serve.worker import Worker
from regard.settings.call import ServeSettings
from serving import CAT

PAGE = Path(__file__).parents[3] / "docs" / "serving.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ports")
    shutil.copytree(serving.runs(tmp_path_factory) / "attentive", folder / "demo")
    return folder


@pytest.fixture(scope="module")
def service(runs: Path) -> Iterator[str]:
    with serving.on_a_port(runs, Limits(reading=1.0)) as found:
        yield found


def connect(service: str) -> socket.socket:
    host, _, port = service.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=serving.PATIENCE)


def request(service: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(service.removeprefix("http://"), timeout=serving.PATIENCE)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {} if data is None else {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def translates(service: str) -> bool:
    status, found = request(service, "POST", "/api/v1/translate", {"run": "demo", "texts": [CAT], "beam": 1})
    return status == 200 and bool(found["translations"])


def test_clients_that_ask_for_nothing_make_room_for_those_who_do(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.serve.server.SPARE", 10)
    with serving.on_a_port(runs, Limits(reading=100.0, connections=30)) as service:
        silent = [connect(service) for _ in range(60)]
        assert translates(service)
        assert request(service, "GET", "/health") == (200, {"status": "ok"})
        silent[-1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.1 200"  # the one that came last is still there
        for each in silent:
            each.close()


# Clients that exist already


def test_libretranslates_client_works_unchanged(service: str) -> None:
    client = LibreTranslateAPI(service)
    assert isinstance(client.translate(CAT, "en", "fr"), str)
    assert client.detect(CAT)[0]["language"] == "en"
    assert client.languages()[0] == {"code": "en", "name": "English", "targets": ["fr"]}


def test_libretranslates_client_brings_its_key(runs: Path) -> None:
    with serving.on_a_port(runs, doors=Doors(token="key")) as service:
        assert LibreTranslateAPI(service, "key").languages()[0]["code"] == "en"
        assert isinstance(LibreTranslateAPI(service, "key").translate(CAT, "en", "fr"), str)
        with pytest.raises(HTTPError, match="403"):
            LibreTranslateAPI(service, "another").translate(CAT, "en", "fr")


def commands() -> list[str]:
    """Every curl command of the documentation."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("curl ")]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_of_the_documentation_work(service: str) -> None:
    assert len(commands()) > 7
    for command in commands():
        line = command.replace("http://127.0.0.1:5000", service).replace("curl ", "curl --silent --fail --max-time 20 ")
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout, command


# Clients that misbehave


def test_a_client_that_hangs_up_is_forgotten_and_others_are_served(service: str) -> None:
    body = json.dumps({"run": "demo", "texts": [f"{CAT} {number}" for number in range(50)]}).encode()
    head = f"POST /api/v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    for _ in range(7):
        gone = connect(service)
        gone.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        gone.close()
    assert translates(service)


def test_a_body_of_a_hundred_megabytes_is_refused_and_never_held(service: str) -> None:
    """The client hears why, though it is still talking; and the answer comes before it has said it all."""
    with connect(service) as large:
        size = 100 << 20
        large.sendall(f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode())
        block = b"x" * (1 << 20)
        sent = 0
        try:
            while sent < size:
                large.sendall(block)
                sent += len(block)
        except OSError:  # it has closed the door
            pass
        answer = b""
        while b"too large" not in answer and (more := large.recv(65536)):
            answer += more
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body = 104,857,600 bytes: too large; send at most 2,097,152" in answer
    assert translates(service)


def test_a_body_without_a_length_is_refused_when_it_gets_too_long(service: str) -> None:
    with connect(service) as large:
        large.sendall(b"POST /api/v1/translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        block = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        for _ in range(3):
            large.sendall(block)
        assert large.recv(65536).startswith(b"HTTP/1.1 413")
    assert translates(service)


def test_a_body_that_does_not_come_is_given_up(service: str) -> None:
    with connect(service) as slow:
        slow.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\nq=")
        assert translates(service)
        answer = b"".join(iter(lambda: slow.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body: did not arrive within 1 s" in answer


def test_more_requests_at_once_than_are_answered_are_refused_as_all_others_are(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its head here and not its body; the service answers with its own line, and says when to come again."""
    monkeypatch.setattr("regard.serve.server.SPARE", -10)  # nobody is hung up on
    with serving.on_a_port(runs, Limits(connections=3)) as service:
        crowd = [connect(service) for _ in range(5)]
        for each in crowd:
            each.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n")
        ready, _, _ = select.select(crowd, [], [], serving.PATIENCE)
        answer = b"".join(iter(lambda: ready[0].recv(65536), b""))
        for each in crowd:
            each.close()
        head, _, body = answer.decode().partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 503")
        assert {"retry-after: 5", "x-content-type-options: nosniff"} <= set(head.lower().split("\r\n"))
        assert json.loads(body)["error"] == "requests = 3 at once: is the limit; ask again in 5 s"


def test_heads_that_never_end_are_hung_up_on_and_hold_nobody_up(service: str) -> None:
    """Slowloris: many connections, each with half a request; and one that had a whole request before."""
    crowd = [connect(service) for _ in range(101)]
    for each in crowd:
        each.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
    assert translates(service)
    crowd[0].sendall(b"alhost\r\n\r\n")
    assert crowd[0].recv(65536).startswith(b"HTTP/1.1 200")
    crowd[0].sendall(b"GET /health HT")
    for each in crowd:
        try:
            while each.recv(65536):
                pass
        except ConnectionResetError:
            pass
        each.close()
    assert translates(service)


def test_a_client_that_reads_slowly_holds_nobody_up(service: str) -> None:
    with connect(service) as slow:
        slow.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.recv(1)
        assert translates(service)


def test_what_is_not_http_is_refused_in_one_line(service: str) -> None:
    with connect(service) as strange:
        strange.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert strange.recv(65536).startswith(b"HTTP/1.1 400")
    assert translates(service)


# An orderly end


def test_requests_in_flight_are_finished_when_the_service_ends(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, begun, search = list[tuple[int, Any]](), threading.Event(), Worker._search
    monkeypatch.setattr(Worker, "_search", lambda *given: begun.set() or search(*given))  # type: ignore[func-returns-value]

    def ask(service: str) -> None:
        texts = [f"{CAT} {CAT} {number}" for number in range(61)]
        found.append(request(service, "POST", "/api/v1/translate", {"run": "demo", "texts": texts, "beam": 7}))

    with serving.on_a_port(runs) as service:
        assert translates(service)
        begun.clear()
        asked = threading.Thread(target=ask, args=(service,))
        asked.start()
        assert begun.wait(serving.PATIENCE)
    asked.join(serving.PATIENCE)
    assert [(status, len(answer["translations"])) for status, answer in found] == [(200, 61)]


def test_requests_in_flight_get_all_the_time_that_a_request_may_take(runs: Path) -> None:
    app = create_app(Library(runs, limits=Limits(seconds=97.5)))
    assert make(app, reading=1.0).config.timeout_graceful_shutdown == 99


def test_a_service_in_a_thread_ends_with_its_process(runs: Path) -> None:
    """As `atexit` has it end."""
    app, listening, ready = create_app(Library(runs)), listen("127.0.0.1", 0), threading.Event()
    server = make(app, reading=1.0, started=ready.set)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    assert ready.wait(serving.PATIENCE)
    server._end()  # type: ignore[attr-defined]
    thread.join(serving.PATIENCE)
    assert not thread.is_alive()


COMPUTING = """
import asyncio, sys, threading
from pathlib import Path
import torch
from regard.decode.cancel import check_cancelled
from regard.serve.library import Library

begun = threading.Event()

def work(model):
    while True:
        check_cancelled()
        torch.ones(211, 211) @ torch.ones(211, 211)
        begun.set()

async def ask():
    await (await Library(Path(sys.argv[1])).worker("demo")).call(work)

threading.Thread(target=asyncio.run, args=(ask(),), daemon=True).start()
assert begun.wait(50)
"""


def test_a_process_that_ends_while_a_model_computes_is_not_aborted(runs: Path) -> None:
    command = [sys.executable, "-c", COMPUTING, str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


# The verbs


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A process of its own, and what it says first; it does not outlive the test."""
    with subprocess.Popen(
        [sys.executable, "-m", "regard", *arguments, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "REGARD_TOKEN": ""},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            yield process, json.loads(line)
        finally:
            process.kill()  # nothing where it has ended


def test_serve_says_where_it_is_and_ends_in_good_order(runs: Path) -> None:
    with started("serve", str(runs / "demo")) as (process, told):
        service = told["address"].rstrip("/")
        assert request(service, "GET", "/health") == (200, {"status": "ok"})
        assert LibreTranslateAPI(service).languages()[0]["code"] == "en"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=serving.PATIENCE)
    assert process.returncode == 0
    assert f"the service is at {service}/" in said
    assert '"route": "/health"' in said
    assert "Traceback" not in said


def asked(connection: http.client.HTTPConnection) -> tuple[int, int, str | None]:
    """Status, number of translations, and what becomes of the connection."""
    body = json.dumps({"run": "demo", "texts": [CAT], "beam": 1})
    connection.request("POST", "/api/v1/translate", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, len(json.loads(answer.read())["translations"]), answer.getheader("Connection")


def test_a_service_that_drains_answers_says_so_and_sends_its_clients_elsewhere(runs: Path) -> None:
    with started("serve", str(runs / "demo"), "--quiet", "serve.drain=3600") as (process, told):
        service = told["address"].rstrip("/")
        kept = http.client.HTTPConnection(service.removeprefix("http://"), timeout=serving.PATIENCE)
        assert asked(kept) == (200, 1, None)
        process.send_signal(signal.SIGTERM)
        while (found := request(service, "GET", "/health"))[0] == 200:
            time.sleep(0.05)
        assert found == (503, {"error": "draining: this service is about to end; ask another", "hint": ""})
        assert asked(kept) == (200, 1, "close")  # on the connection from before
        kept.close()
        assert translates(service)  # on a new one
        process.send_signal(signal.SIGINT)  # somebody does not want to wait
        process.communicate(timeout=serving.PATIENCE)
    assert process.returncode == 0


def test_the_studio_of_an_empty_folder_is_there_with_the_run_in_the_package(tmp_path: Path) -> None:
    with started("studio", str(tmp_path / "new")) as (process, told):
        service = told["address"].rstrip("/")
        status, found = request(service, "GET", "/api/v1/runs")
        assert (status, [(each["name"], each["fixed"]) for each in found["runs"]]) == (200, [("demo", True)])
        assert translates(service)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=serving.PATIENCE)
    assert (process.returncode, told["studio"]) == (0, True)
    assert said == (
        f"{tmp_path / 'new'}: there was no such folder; made an empty one\n"
        f"the studio is at {service}/; Ctrl-C stops it\n"
    )
    assert (tmp_path / "new").is_dir()


Capture = pytest.CaptureFixture[str]
OURS = "a-secret-of-mine"


def test_a_port_that_is_taken_is_one_line_and_exit_code_5(runs: Path, capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert run(["serve", str(runs / "demo"), "--port", port]) == 5
        assert capsys.readouterr().err == (
            f"--port = {port}: is taken by another program; use another, or 0 for any that is free\n"
        )


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["serve"], 2, "nothing to serve; name a run"),
        (["serve", "nowhere"], 4, "nowhere: no such folder"),
        (["serve", "--runs", "x", "serve.memory=much"], 2, "serve.memory = much: not a size; write 512M or 4G"),
        (
            ["serve", "--runs", "x", "serve.allow_origin=example.org"],
            2,
            "allow_origin = example.org: not an origin",
        ),
        (
            ["serve", "--runs", "x", "--port", "0", "serve.host=192.0.2.1", f"serve.token={'t' * 16}"],
            5,
            "--host = 192.0.2.1, --port = 0:",
        ),
        (["serve", "--runs", "x", f"serve.token={'t' * 15}"], 2, "serve.token = 15 characters: too short, it could be"),
        (["serve", "--runs", "x", "serve.admin_token=t"], 2, "serve.admin_token = 1 characters: too short"),
        (
            ["serve", "--runs", "x", f"serve.token={'t' * 16}", f"serve.admin_token={'t' * 16}"],
            2,
            "serve.admin_token: is the same as serve.token",
        ),
    ],
)
def test_what_cannot_be_served_is_one_line(arguments: list[str], code: int, expected: str, capsys: Capture) -> None:
    assert run(arguments) == code
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def test_a_folder_of_which_nothing_is_served_is_named(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere, closed = tmp_path / "nowhere", tmp_path / "runs" / "closed"
    closed.mkdir(parents=True)
    empty = f"{closed.parent}: no run in it; nothing of it is served yet"
    assert verb._not_served(Library(runs)) == []
    assert verb._not_served(Library(None, [runs / "demo"])) == []
    assert verb._not_served(Library(nowhere)) == [f"{nowhere}: no such folder; nothing of it is served yet"]
    assert verb._not_served(Library(closed.parent)) == [empty]
    monkeypatch.setattr(verb.os, "access", lambda path, _: path != closed)
    assert verb._not_served(Library(closed.parent)) == [f"{closed}: this user may not read it; it is not served", empty]


def test_a_service_that_is_ended_while_it_starts_ends(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is the first process of a container, to which SIGTERM does nothing by itself."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(verb, "_library", lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        assert run(["serve", str(runs / "demo")]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_just_before_the_server_takes_over_ends_it(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.getsignal(number) for number in numbers]
    server, listening = make(create_app(Library(runs)), reading=1.0), listen("127.0.0.1", 0)
    monkeypatch.setattr(server, "run", lambda _: signal.raise_signal(signal.SIGTERM))
    try:
        serve_until_ended(server, listening)
    finally:
        listening.close()
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert server.should_exit


def test_sizes_are_read_as_people_write_them() -> None:
    assert [verb._bytes(text) for text in ("7", "512M", "1.5 GiB", "2kb")] == [7, 512 << 20, 3 << 29, 2048]


def test_a_machine_knows_its_name_and_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert socket.gethostname().lower() in own_names()

    def nowhere(*_: object) -> None:
        raise OSError("no way out")

    monkeypatch.setattr(socket.socket, "connect", nowhere)
    assert own_names() == [socket.gethostname().lower()]


def test_off_this_machine_a_token_is_made_up_and_names_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.serve.server.own_names", lambda: ["here", "10.0.0.9"])
    named = ServeSettings(host="0.0.0.0", allow_host=("Box.lan:5000",), allow_origin=("https://a.example",))
    doors, made_up = verb._doors(named)
    assert made_up
    assert len(doors.token) >= 32
    assert doors.hosts == {"127.0.0.1", "localhost", "::1", "box.lan", "here", "10.0.0.9"}
    assert doors.origins == {"https://a.example"}
    given, made_up = verb._doors(ServeSettings(host="10.0.0.7", token=OURS))
    assert (given.token, made_up, "10.0.0.7" in given.hosts) == (OURS, False, True)
    assert verb._doors(ServeSettings(host="localhost"))[0].token == ""
    assert verb._doors(ServeSettings(host="box.lan"))[1]


@pytest.mark.parametrize(("token", "shown"), [("", True), (OURS, False)])
def test_a_token_is_shown_only_when_it_was_made_up(
    runs: Path, token: str, shown: bool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.serve.server.run", lambda server, listening: (server._started(), listening.close()))
    opened: list[str] = []
    monkeypatch.setattr(verb.webbrowser, "open", opened.append)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    given = [f"serve.token={token}"] if token else []
    assert run(["studio", str(runs), "--host", "0.0.0.0", "--port", "0", "--json", *given]) == 0
    said = capsys.readouterr()
    assert ("made up for this start" in said.err) is shown
    assert OURS not in said.err + said.out
    assert "the studio is at http://0.0.0.0:" in said.err
    (names,) = [line for line in said.err.splitlines() if line.startswith("its names are ")]
    assert "localhost" in names
    assert names.endswith("; add others with serve.allow_host=NAME")
    assert json.loads(said.out)["address"].startswith("http://127.0.0.1:")
    assert "?token=" in opened[0]


def test_a_read_only_service_says_so_and_keeps_its_doors(
    runs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.serve.server.run", lambda server, listening: (server._started(), listening.close()))
    monkeypatch.setenv("REGARD_ADMIN_TOKEN", OURS)
    assert run(["serve", "--runs", str(runs), "serve.read_only=true", "--port", "0", "serve.host=127.0.0.1"]) == 0
    said = capsys.readouterr().err
    assert "read-only: no client can train, upload, rename or remove here\n" in said
    assert OURS not in said
    doors, _ = verb._doors(ServeSettings(host="localhost", admin_token=OURS, read_only=True))
    assert (doors.token, doors.admin, doors.opens(""), doors.opens_changes("")) == ("", OURS, True, False)


def test_a_studio_says_how_a_browser_may_train_where_that_needs_a_token(
    runs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.serve.server.run", lambda server, listening: (server._started(), listening.close()))
    assert run(["studio", str(runs), f"serve.admin_token={OURS}", "--port", "0", "serve.browser=false"]) == 0
    assert re.search(r"to train and upload, open it once with the token: \S+\?token=TOKEN\n", capsys.readouterr().err)


def test_an_address_is_one_that_a_browser_can_open() -> None:
    for host, expected in (
        ("0.0.0.0", "http://127.0.0.1:"),
        ("127.0.0.1", "http://127.0.0.1:"),
        ("::1", "http://[::1]:"),
        ("::", "http://[::1]:"),
    ):
        try:
            listening = listen(host, 0)
        except ResourceError:
            assert ":" in host  # a machine without IPv6
            continue
        assert address(listening).startswith(expected)
        assert listens_on(listening).startswith(f"http://[{host}]:" if ":" in host else f"http://{host}:")
        assert listens_on(listening).endswith(" (every address of this machine)") is (host in ("0.0.0.0", "::"))
        listening.close()
