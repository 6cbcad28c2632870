"""The service on a port: sockets, timeouts for slow clients, and an orderly shutdown."""

from __future__ import annotations

import asyncio
import atexit
import errno
import logging
import math
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.errors import ResourceError

SPARE = 50  # connections kept free by closing those that have sent no request
LAST = 10  # seconds for the shutdown once requests are finished


def listen(host: str, port: int) -> socket.socket:
    """A bound socket. Port 0 takes any that is free."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as problem:
        bound.close()
        if problem.errno == errno.EADDRINUSE:
            raise ResourceError(
                f"--port = {port}: is taken by another program; use another, or 0 for any that is free"
            ) from None
        raise ResourceError(f"--host = {host}, --port = {port}: {problem.strerror or problem}") from None
    return bound


def address(listening: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listening.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/"


def own_names() -> list[str]:
    """The names of this machine for others: its host name and its outward addresses. Nothing is sent."""
    names = [socket.gethostname().lower()]
    for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))  # chooses a route; nothing is sent
            names.append(probe.getsockname()[0])
    return [name for name in dict.fromkeys(names) if name]


def listens_on(listening: socket.socket) -> str:
    """The address as it was given: others reach ``0.0.0.0`` by any name of this machine."""
    host, port = listening.getsockname()[:2]
    everywhere = " (every address of this machine)" if host in ("0.0.0.0", "::") else ""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/{everywhere}"


def make(
    app: FastAPI, *, reading: float, drain: float = 0.0, started: Callable[[], object] = lambda: None
) -> uvicorn.Server:
    """A server of the app that calls `started` once it listens and goes on for `drain` seconds after SIGTERM."""
    limits = app.state.library.limits
    config = uvicorn.Config(
        app,
        http=_with_timeout(reading, limits.connections),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=int(reading),
        timeout_graceful_shutdown=math.ceil(limits.seconds) + 1,  # all that a request may take
        backlog=512,
    )
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # `watch` logs bugs
    return _Server(config, app, drain, started)


def run(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM; requests in progress are finished, unless there is a second Ctrl-C."""
    # Uvicorn takes the signals only while it runs, and raises them again at its end; both must not end the process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    server.run([listening])


class _Server(uvicorn.Server):
    """Calls back when it is ready. Before it ends, it drains: the app says so, and new requests are still answered."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, drain: float, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._app, self._drain, self._started, self._over = app, drain, started, threading.Event()
        self._drains = False

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        atexit.register(self._end)
        try:
            await super().serve(sockets)
        finally:
            self._over.set()
            atexit.unregister(self._end)

    def _end(self) -> None:
        """Called when the main thread has ended: requests in progress are finished, then the server ends."""
        self.should_exit = True
        self._over.wait((self.config.timeout_graceful_shutdown or 0) + LAST)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._drains = sig == signal.SIGTERM  # who presses Ctrl-C does not wait
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.draining = True
        end = time.monotonic() + self._drain
        while self._drains and time.monotonic() < end:
            await asyncio.sleep(0.1)
        self._app.state.jobs.closing.set()  # event streams end, too
        await super().shutdown(sockets)


def _with_timeout(seconds: float, connections: int) -> type[H11Protocol]:
    """Uvicorn's protocol with a timeout: the head of a request must arrive within ``seconds``.

    Without it a client that sends a byte now and then holds its connection for ever (slowloris). Where there are too
    many connections, the one that has been idle longest is closed.
    """
    waiting: dict[H11Protocol, None] = {}  # connections without a request yet, the oldest first

    class Timed(H11Protocol):
        _alarm: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > connections - SPARE and waiting:
                oldest = next(iter(waiting))
                assert isinstance(oldest, Timed)
                oldest._stop_waiting()
                oldest._hang_up()
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            else:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self._alarm is None:
                waiting[self] = None
                self._alarm = self.loop.call_later(seconds, self._hang_up)

        def _stop_waiting(self) -> None:
            waiting.pop(self, None)
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

        def _hang_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return Timed
