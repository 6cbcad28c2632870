"""Rolling restarts under load: clients ask without pause while one server after the other is ended and started again.

    python bench/rolling.py RUN [--clients 64] [--minutes 5] [--every 10] [--drain 5] [--command "WORDS"] [--ledger]

Two servers of a run stand behind a proxy, which goes round them as the entrance of a cluster does: it keeps connections
open, asks for /health every second, and sends nothing new to a server that does not say 200. Where one refuses a
connection, or closes it before it has answered, the other is asked, and that is counted. Every few seconds one server
gets SIGTERM, goes on for --drain seconds, finishes what it has, and is replaced by a new one. No client may see
anything but a translation. --command says how `regard` is called, here in a container:

    python bench/rolling.py demo --command "podman run --rm --network host --read-only --tmpfs /tmp regard"
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import sys
import time
from collections import Counter
from itertools import count, cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ledger import enter
from load import Client, Tally
from regard.fable.corpus import generate

Address = tuple[str, int]
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PATIENCE = 120.0  # seconds for a server to start, and for one to end
PROBE = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
PERIOD = 1.0  # seconds between two probes


class Proxy:
    """Passes requests on to the servers in turn."""

    def __init__(self) -> None:
        self.servers: dict[Address, bool] = {}  # and whether each is ready
        self.seen: Counter[str] = Counter()
        self._turn = count()
        self._idle: dict[Address, list[Connection]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, as long as it asks."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                writer.write(await self._answer(await _message(reader)))
                await writer.drain()
        writer.close()

    async def _answer(self, request: bytes) -> bytes:
        for _ in range(100):
            ready = [server for server, healthy in self.servers.items() if healthy] or list(self.servers)
            server = ready[next(self._turn) % len(ready)]
            try:
                return await self._ask(server, request)
            except ConnectionRefusedError:
                self.seen["refused"] += 1
            except (asyncio.IncompleteReadError, ConnectionError):
                self.seen["closed before an answer"] += 1
            await asyncio.sleep(0.01)
        return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"

    async def _ask(self, server: Address, request: bytes) -> bytes:
        idle = self._idle.setdefault(server, [])
        while idle and idle[-1][0].at_eof():  # closed by the server
            idle.pop()[1].close()
        reader, writer = idle.pop() if idle else await asyncio.open_connection(*server)
        try:
            writer.write(request)
            answer = await _message(reader)
        except BaseException:
            writer.close()
            raise
        if b"\r\nconnection: close\r\n" in answer.partition(b"\r\n\r\n")[0].lower() + b"\r\n":
            writer.close()
        else:
            idle.append((reader, writer))
        return answer

    async def probe(self) -> None:
        """Ask for the health of all servers, again and again."""
        while True:
            await asyncio.sleep(PERIOD)
            for server in list(self.servers):
                try:
                    healthy = (await self._ask(server, PROBE)).startswith(b"HTTP/1.1 200")
                except (asyncio.IncompleteReadError, ConnectionError):
                    healthy = False
                if server in self.servers:
                    self.servers[server] = healthy


async def _message(reader: asyncio.StreamReader) -> bytes:
    """A request or an answer, whole."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
    return head + await reader.readexactly(length)


class Server:
    """A service in a process of its own."""

    def __init__(self, words: list[str]) -> None:
        self._words = words

    async def start(self) -> Address:
        self.process = await asyncio.create_subprocess_exec(
            *self._words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        place = urlsplit(json.loads(line)["address"])
        self.address = (place.hostname or "", place.port or 80)
        return self.address

    async def end(self) -> float:
        """Seconds between SIGTERM and the end, which must be a good one."""
        began = time.perf_counter()
        self.process.terminate()
        code = await asyncio.wait_for(self.process.wait(), PATIENCE)
        assert code == 0, f"a server ended with {code}"
        return time.perf_counter() - began


async def replaced(proxy: Proxy, servers: list[Server], words: list[str], until: float, every: float) -> list[float]:
    """End and replace the servers in turn; how long each took to end."""
    took = []
    while time.perf_counter() + every < until:
        await asyncio.sleep(every)
        old, new = servers.pop(0), Server(words)
        took.append(await old.end())
        del proxy.servers[old.address]
        proxy.servers[await new.start()] = True
        servers.append(new)
    return took


async def measured(words: list[str], clients: int, minutes: float, every: float) -> dict[str, Any]:
    texts = cycle([each.source for each in generate("fr", count=5000, split="test", maximum_words=20)])
    proxy, servers, tally = Proxy(), [Server(words), Server(words)], Tally()
    for server in servers:
        proxy.servers[await server.start()] = True
    probing = asyncio.create_task(proxy.probe())
    entrance = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    address = "http://{}:{}".format(*entrance.sockets[0].getsockname())
    began = time.perf_counter()
    until = began + 60 * minutes
    everyone = [Client(address, texts, ("en", "fr")) for _ in range(clients)]
    asking = [each.ask_until(until, tally, [10**9]) for each in everyone]
    took, *_ = await asyncio.gather(replaced(proxy, servers, words, until, every), *asking)
    probing.cancel()
    for server in servers:
        await server.end()
    entrance.close()
    return {
        "clients": clients,
        "minutes": minutes,
        "restarts": len(took),
        "answers": dict(tally.statuses),
        "failed": sum(number for status, number in tally.statuses.items() if status != 200),
        "asked_again": dict(proxy.seen),
        "seconds_to_drain": {"median": round(sorted(took)[len(took) // 2], 2), "most": round(max(took), 2)},
        "per_second": round(len(tally.seconds) / (time.perf_counter() - began), 1),
        "p50_ms": tally.milliseconds(0.5),
        "p99_ms": tally.milliseconds(0.99),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Restart servers under load; no request may fail.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two restarts")
    parser.add_argument("--drain", type=float, default=5.0, help="seconds that a server goes on after SIGTERM")
    parser.add_argument("--command", default=shlex.join([sys.executable, "-m", "regard"]), help="how to call regard")
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    words = ["serve", str(asked.run), "--port", "0", "--json", "--quiet", f"serve.drain={asked.drain:g}"]
    found = asyncio.run(measured([*shlex.split(asked.command), *words], asked.clients, asked.minutes, asked.every))
    print(json.dumps(found))
    if asked.ledger:
        flags = f"--clients {asked.clients} --minutes {asked.minutes:g} --every {asked.every:g} --drain {asked.drain:g}"
        if asked.command != parser.get_default("command"):
            flags += f' --command "{asked.command}"'
        enter("rolling", found, f"python bench/rolling.py RUN {flags} --ledger")
    return int(found["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
