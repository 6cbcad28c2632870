"""A client that hangs up: what its request awaits is cancelled, and nothing else is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from regard.serve.app import create_app
from regard.serve.bodies import Leaving
from regard.serve.jobs import Jobs
from regard.serve.library import Library

GET: Scope = {"type": "http", "method": "GET", "headers": []}
POST: Scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"6")]}


def visit(app: Any, scope: Scope, said: list[Message], left: asyncio.Event | None = None) -> list[Message]:
    """What a client hears that says these things, and leaves when it is time."""
    heard: list[Message] = []

    async def meet() -> None:
        gone, waiting = left or asyncio.Event(), list(said)

        async def receive() -> Message:
            if waiting:
                return waiting.pop(0)
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            heard.append(message)

        async with asyncio.timeout(60):
            await Leaving(app)(scope, receive, send)

    asyncio.run(meet())
    return heard


def body(data: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


@pytest.mark.parametrize(("scope", "said"), [(GET, [body(b"")]), (POST, [body(b"abc", more=True), body(b"def")])])
def test_a_closed_connection_stops_its_work(scope: Scope, said: list[Message]) -> None:
    left, ended = asyncio.Event(), []

    async def endless(_: Scope, receive: Receive, __: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        left.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("cancelled")

    assert visit(endless, scope, said, left) == []
    assert ended == ["cancelled"]


def test_a_stream_is_told_that_its_client_has_left() -> None:
    left = asyncio.Event()

    async def stream(_: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b""
        await send({"type": "http.response.start", "status": 200})
        left.set()
        assert (await receive())["type"] == "http.disconnect"

    assert [message["type"] for message in visit(stream, GET, [body(b"")], left)] == ["http.response.start"]


def test_what_comes_after_the_answer_is_not_cut_short() -> None:
    """A server says that the client is gone as soon as the answer is complete; work may go on then."""
    left, done = asyncio.Event(), []

    async def thorough(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"x"})
        left.set()
        await asyncio.sleep(0.01)
        done.append("tidied up")

    visit(thorough, GET, [body(b"")], left)
    assert done == ["tidied up"]


def test_a_problem_of_the_app_is_the_servers() -> None:
    async def broken(_: Scope, __: Receive, ___: Send) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        visit(broken, GET, [body(b"")])


@pytest.mark.parametrize("asked", [True, False])
def test_trainings_go_on_unless_they_shall_stop(asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    jobs = {"one": SimpleNamespace(alive=True), "two": SimpleNamespace(alive=False)}
    monkeypatch.setattr(Jobs, "trainings", lambda _: jobs)
    monkeypatch.setattr(Jobs, "stop", lambda _, run: stopped.append(run))
    app = create_app(Library(tmp_path), stop_trainings=asked)

    async def live() -> None:
        async with app.router.lifespan_context(app):
            assert stopped == []

    asyncio.run(live())
    assert stopped == (["one"] if asked else [])
