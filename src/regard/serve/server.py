"""The service on a port: sockets, patience with slow clients, and an orderly end."""

from __future__ import annotations

import asyncio
import atexit
import errno
import logging
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.errors import ResourceError

SPARE = 50  # connections: so many are kept free by hanging up on those that have asked for nothing
GRACE = 20  # seconds that requests in flight get to finish when the server is stopped
LAST = 10  # seconds more for all that is behind them


def listen(host: str, port: int) -> socket.socket:
    """The socket, bound. A port of 0 is any that is free."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as problem:
        found.close()
        if problem.errno == errno.EADDRINUSE:
            raise ResourceError(
                f"--port = {port}: is taken by another program; use another, or 0 for any that is free"
            ) from None
        raise ResourceError(f"--host = {host}, --port = {port}: {problem.strerror or problem}") from None
    return found


def address(listening: socket.socket) -> str:
    """What to type into a browser."""
    host, port = listening.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/"


def own_names() -> list[str]:
    """What others may call this machine: its name, and the address by which it reaches them. Nothing is sent."""
    found = [socket.gethostname().lower()]
    for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))  # chooses a way; nothing is sent
            found.append(probe.getsockname()[0])
    return [name for name in dict.fromkeys(found) if name]


def listens_on(listening: socket.socket) -> str:
    """The same as it was asked for: others reach ``0.0.0.0`` at whatever this machine is called."""
    host, port = listening.getsockname()[:2]
    everywhere = " (every address of this machine)" if host in ("0.0.0.0", "::") else ""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/{everywhere}"


def make(app: FastAPI, *, reading: float, started: Callable[[], object] = lambda: None) -> uvicorn.Server:
    """A server of the app that calls `started` when it listens, and ends in good order."""
    config = uvicorn.Config(
        app,
        http=_patient(reading, app.state.library.limits.connections),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=int(reading),
        timeout_graceful_shutdown=GRACE,
        backlog=512,
    )
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # bugs are logged by `watch`, and clients are refused
    return _Server(config, started, app.state.jobs.closing.set)


def run(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM; requests in flight are finished, a second Ctrl-C does not wait for them."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn hands a signal back when it has ended; we end by returning
    server.run([listening])


class _Server(uvicorn.Server):
    """Says when it is ready, and when it is about to end, so that endless streams end too."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object], ending: Callable[[], object]) -> None:
        super().__init__(config)
        self._started, self._ending, self._over = started, ending, threading.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        atexit.register(self._end)
        try:
            await super().serve(sockets)
        finally:
            self._over.set()
            atexit.unregister(self._end)

    def _end(self) -> None:
        """In a thread beside a main one that has come to its end: requests get their time, then it ends, too."""
        self.should_exit = True
        self._over.wait(GRACE + LAST)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        await super().shutdown(sockets)


def _patient(seconds: float, connections: int) -> type[H11Protocol]:
    """Uvicorn's protocol, with an end to its patience: a request's head must be there within ``seconds``.

    Without it a client that sends a byte now and then holds its connection for ever (slowloris). Where there are too
    many connections, the one that has said nothing longest makes room for the next.
    """
    waiting: dict[H11Protocol, None] = {}  # whose request is not there yet, the oldest first

    class Patient(H11Protocol):
        _alarm: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > connections - SPARE and waiting:
                oldest = next(iter(waiting))
                assert isinstance(oldest, Patient)
                oldest._relax()
                oldest._hang_up()
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._relax()
            else:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self._alarm is None:
                waiting[self] = None
                self._alarm = self.loop.call_later(seconds, self._hang_up)

        def _relax(self) -> None:
            waiting.pop(self, None)
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

        def _hang_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return Patient
