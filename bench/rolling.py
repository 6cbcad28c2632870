"""Rolling restarts under load: clients ask without pause while one server after the other is ended and started again.

    python bench/rolling.py RUN [--clients 64] [--minutes 5] [--every 10] [--ledger]

Two servers of a run stand behind a proxy, which goes round them as the entrance of a cluster does: where one refuses a
connection, or closes it before it has answered, the other is asked. Every few seconds one gets SIGTERM, finishes what
it has, and is replaced by a new one. It stays known to the proxy until it has ended, so that asking a server that
drains is part of the measurement. No client may see anything but a translation.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
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
PATIENCE = 120.0  # seconds for a server to start, and for one to end


class Proxy:
    """Passes requests on to the servers in turn."""

    def __init__(self) -> None:
        self.servers: list[Address] = []
        self.seen: Counter[str] = Counter()
        self._turn = count()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, as long as it asks."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                writer.write(await self._answer(await _message(reader)))
                await writer.drain()
        writer.close()

    async def _answer(self, request: bytes) -> bytes:
        for _ in range(100):
            server = self.servers[next(self._turn) % len(self.servers)]
            try:
                return await self._ask(server, request)
            except ConnectionRefusedError:
                self.seen["refused"] += 1
            except (asyncio.IncompleteReadError, ConnectionError):
                self.seen["closed before an answer"] += 1
            await asyncio.sleep(0.01)
        return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"

    async def _ask(self, server: Address, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*server)
        try:
            writer.write(request)
            return await _message(reader)
        finally:
            writer.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """A request or an answer, whole."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
    return head + await reader.readexactly(length)


class Server:
    """A service in a process of its own."""

    def __init__(self, run: Path) -> None:
        self._run = run

    async def start(self) -> Address:
        words = ["-m", "regard", "serve", str(self._run), "--port", "0", "--json", "--quiet"]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
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


async def replaced(proxy: Proxy, servers: list[Server], run: Path, until: float, every: float) -> list[float]:
    """End and replace the servers in turn; how long each took to end."""
    took = []
    while time.perf_counter() + every < until:
        await asyncio.sleep(every)
        old, new = servers.pop(0), Server(run)
        took.append(await old.end())
        proxy.servers.remove(old.address)
        proxy.servers.append(await new.start())
        servers.append(new)
    return took


async def measured(run: Path, clients: int, minutes: float, every: float) -> dict[str, Any]:
    texts = cycle([each.source for each in generate("fr", count=5000, split="test", maximum_words=20)])
    proxy, servers, tally = Proxy(), [Server(run), Server(run)], Tally()
    for server in servers:
        proxy.servers.append(await server.start())
    entrance = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    address = "http://{}:{}".format(*entrance.sockets[0].getsockname())
    began = time.perf_counter()
    until = began + 60 * minutes
    everyone = [Client(address, texts, ("en", "fr")) for _ in range(clients)]
    asking = [each.ask_until(until, tally, [10**9]) for each in everyone]
    took, *_ = await asyncio.gather(replaced(proxy, servers, run, until, every), *asking)
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
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    found = asyncio.run(measured(asked.run, asked.clients, asked.minutes, asked.every))
    print(json.dumps(found))
    if asked.ledger:
        flags = f"--clients {asked.clients} --minutes {asked.minutes:g} --every {asked.every:g}"
        enter("rolling", found, f"python bench/rolling.py RUN {flags} --ledger")
    return int(found["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
