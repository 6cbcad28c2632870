"""Monitoring: metrics for Prometheus, and one JSON line for each request. Texts of users are never logged."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.guard import add_headers, refuse
from regard.serve.library import Library

BUG = "this is a bug of Regard's, not yours; the service's log says where"

AGAIN = 5  # seconds after which to ask again when there are too many requests
ELSEWHERE = "(none)"  # unknown routes share this label, so that clients cannot create labels
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self, library: Library) -> None:
        self._registry = registry = CollectorRegistry()
        names = ("method", "route", "status")
        self.requests = Counter("regard_requests", "Requests answered", names, registry=registry)
        self.seconds = Histogram(
            "regard_request_seconds",
            "From the first byte to the last",
            ("route",),
            buckets=SECONDS,
            registry=registry,
        )
        self.batches = Histogram("regard_batch_texts", "Texts in a batch", buckets=SIZES, registry=registry)
        registry.register(_Models(library))

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Models(Collector):
    """The state of the models when metrics are read."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def collect(self) -> Iterator[GaugeMetricFamily]:
        loaded = self._library.loaded
        yield GaugeMetricFamily("regard_models_loaded", "Runs in memory", value=len(loaded))
        waiting = GaugeMetricFamily("regard_queue_length", "Texts and calls that wait", labels=("run",))
        weights = GaugeMetricFamily("regard_model_bytes", "Bytes of weights in memory", labels=("run",))
        engines = GaugeMetricFamily("regard_model_engine", "Engine of a run: always 1", labels=("run", "engine"))
        if not loaded:  # so that an autoscaler sees a service that nobody has asked yet
            waiting.add_metric(("",), 0)
        for name, worker in loaded.items():
            waiting.add_metric((name,), worker.waiting)
            weights.add_metric((name,), worker.bytes)
            if worker.engine:
                engines.add_metric((name, worker.engine), 1)
        yield from (waiting, weights, engines)


class Watch:
    """The outermost middleware: counts and times requests, refuses too many at once, and writes the log.

    An exception that no handler knows is a bug: it is logged with its traceback and answered with 500.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        log: Callable[[str], object] | None,
        most: int,
        draining: Callable[[], bool] = lambda: False,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._log = log
        self._most = most  # requests at once
        self._draining = draining  # whether the service is about to end
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, sent = time.perf_counter(), 0, 0

        async def count(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start" and self._draining():
                MutableHeaders(scope=message)["Connection"] = "close"  # the client's next request goes elsewhere
            status = message.get("status", status)
            sent += len(message.get("body", b""))
            await send(message)

        self._now += 1
        try:
            if self._now > self._most:
                line = f"requests = {self._most} at once: is the limit; ask again in {AGAIN} s"
                await refuse(_with_headers(count), 503, line, {"connection": "close", "retry-after": str(AGAIN)})
            else:
                await self._app(scope, receive, count)
        except ClientDisconnect:
            pass  # while it sent its body
        except Exception:
            where = scope["method"], _route(scope)
            logging.getLogger(__name__).exception("a bug, in the answer to %s %s", *where)
            if status:  # the answer has begun: close the connection
                status = 500
                raise
            await refuse(_with_headers(count), 500, BUG, {"connection": "close"})
        finally:
            self._now -= 1
            status = status or 499  # the client disconnected before the answer
            self._record(scope, status, sent, time.perf_counter() - started)

    def _record(self, scope: Scope, status: int, sent: int, seconds: float) -> None:
        route, received = _route(scope), Headers(scope=scope).get("content-length", "0")
        method = scope["method"] if scope["method"] in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS") else "OTHER"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if self._log is not None:
            line = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "client": (scope.get("client") or ("",))[0],
                "method": method,
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
                "received": int(received) if received.isdecimal() else None,
                "sent": sent,
            }
            self._log(json.dumps(line))


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            add_headers(MutableHeaders(scope=message))
        await send(message)

    return answer


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", ELSEWHERE)
