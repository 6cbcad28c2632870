"""Limits on the size, speed and depth of bodies, checked before they are parsed; and cancelling the work for clients
that disconnect."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from itertools import accumulate

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.errors import DataError
from regard.serve.guard import refuse
from regard.serve.limits import Limits

LINGER = 5.0  # seconds that we go on reading from a client that still sends, so that it can read our answer
LARGE = 1 << 16  # bytes of a body from which on it is checked in a thread
_JSON = re.compile(r"$|application/([^;]*\+)?json", re.IGNORECASE)  # a body without a type is read as JSON, too
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NESTING = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_NESTING))
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # half of a surrogate pair


def check_json(body: bytes, limits: Limits) -> None:
    """Refuse JSON that is too deep, or has too long a number or invalid Unicode. Invalid JSON is left to the parser."""
    try:
        body.decode()
    except UnicodeDecodeError as problem:
        raise DataError(f"body: is not UTF-8 at byte {problem.start:,}; JSON is sent as UTF-8") from None
    rest = _STRING.sub(b"", body)
    if max(accumulate(_NESTING[each] for each in rest.translate(None, _NO_BRACKETS)), default=0) > limits.depth:
        raise DataError(f"body: more than {limits.depth} nested lists or objects; no request needs more")
    if re.search(rb"\d{%d}" % (limits.digits + 1), rest):
        raise DataError(f"body: a number of more than {limits.digits} digits; no request needs more")
    if _HALF.search(body):
        with suppress(json.JSONDecodeError):
            _check_whole(json.loads(body))


def _check_whole(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        half = ascii(problem.object[problem.start])[1:-1]
        raise DataError(f"body: {half} is an unpaired surrogate; send both halves of the character") from None


class Bodies:
    """Middleware that refuses a body over the limit without storing it.

    An upload may take long as long as data arrives; any other body must arrive within the time limit.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(self._limits, scope, receive, send)
        if body.announced > body.limit:
            await body.refuse_size()
        else:
            await self._app(scope, body.receive, body.send)


class _Body:
    """The body of one request while it arrives."""

    def __init__(self, limits: Limits, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._limits = limits
        self._upload = scope["method"] == "PUT"
        self._json = not self._upload and bool(_JSON.match(Headers(scope=scope).get("content-type", "").strip()))
        self.limit = limits.upload if self._upload else limits.body
        self._patience = limits.reading
        self._deadline = time.monotonic() + limits.reading
        announced = Headers(scope=scope).get("content-length", "0")
        self.announced = int(announced) if announced.isdecimal() else 0
        self._read = 0
        self._whole = self._answered = self._refused = False

    async def receive(self) -> Message:
        """The next part of the body; of JSON the whole body at once, after it was checked."""
        if not self._json or self._whole or self._refused:
            return await self._part()
        parts, more = [], True
        while more:
            message = await self._part()
            if message["type"] != "http.request":
                return message
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(parts)
        try:
            if len(body) < LARGE:
                check_json(body, self._limits)
            else:
                await asyncio.to_thread(check_json, body, self._limits)
        except DataError as problem:
            return await self._refuse(400, str(problem))
        return {"type": "http.request", "body": body, "more_body": False}

    async def _part(self) -> Message:
        if self._refused:
            return {"type": "http.disconnect"}
        if self._whole:
            return await self._receive()
        patience = self._patience if self._upload else self._deadline - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), patience)
        except TimeoutError:
            line = f"body: did not arrive within {self._patience:g} s; send it faster, or in parts"
            return await self._refuse(408, line, linger=False)
        self._read += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        return message if self._read <= self.limit else await self.refuse_size()

    async def send(self, message: Message) -> None:
        """Send what the app answers; nothing once the request was refused."""
        if not self._refused:
            self._answered = True
            await self._send(message)

    async def refuse_size(self) -> Message:
        size = max(self.announced, self._read)
        return await self._refuse(413, f"body = {size:,} bytes: too large; send at most {self.limit:,}")

    async def _refuse(self, status: int, line: str, *, linger: bool = True) -> Message:
        """Answer, go on reading for a moment, and tell the app that the client has disconnected.

        A connection that is closed while its client still writes is reset, and the client never reads the answer.
        """
        self._refused = True
        if not self._answered:
            await refuse(self._send, status, line, {"connection": "close"}, more=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while linger and not self._whole:
                        message = await self._receive()
                        self._whole = not message.get("more_body", False)
            await self._send({"type": "http.response.body", "body": b""})
        return {"type": "http.disconnect"}


class Leaving:
    """Middleware that cancels the work for a client that has disconnected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = _Visit(receive, send)
        if not {"content-length", "transfer-encoding"} & set(Headers(scope=scope)):
            await visit.begin()
        work = asyncio.ensure_future(self._app(scope, visit.receive, visit.send))
        watch = asyncio.create_task(visit.watch())
        try:
            await asyncio.wait((work, watch), return_when=asyncio.FIRST_COMPLETED)
            if not (work.done() or visit.answered):
                work.cancel()
            with suppress(asyncio.CancelledError):
                await work
        finally:
            watch.cancel()
            work.cancel()


class _Visit:
    """One request: its body, and when its client disconnects."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._first: Message | None = None
        self._whole, self._gone = asyncio.Event(), asyncio.Event()
        self.answered = False

    async def begin(self) -> None:
        """Receive the empty body of a request, so that watching can begin at once."""
        self._first = await self._receive()
        self._whole.set()

    async def receive(self) -> Message:
        if self._first is not None:
            message, self._first = self._first, None
            return message
        if self._whole.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        message = await self._receive()
        if not message.get("more_body", False):
            self._whole.set()
        return message

    async def send(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.answered = True

    async def watch(self) -> None:
        """Wait until the client has disconnected."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()
