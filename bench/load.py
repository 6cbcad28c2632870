"""The service under load: 64 clients at once, with batches and without, and the memory over many requests.

    python bench/load.py RUN [--clients 64] [--seconds 60] [--requests 20000 | --minutes 30] [--ledger]

Two servers of the same run, `regard serve` and `regard serve serve.batch=1`, are asked in turn, ten seconds each, by
clients that send one sentence of the built-in corpus, wait for its translation and send the next. Whoever is not asked
is idle, so that both have the machine to themselves. The throughput ratio is the median over the rounds. Then the
first server gets ``--requests`` more, or as many as fit into ``--minutes``, and its resident memory is read on the way:
the figure is the largest distance from the mean after a tenth of them, when every cache is warm.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch

from ledger import enter
from regard.fable.corpus import generate

ROUND = 10.0  # seconds that one server is asked before it is the other's turn


@dataclass
class Tally:
    """What came back."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # of those that were translated
    rates: list[float] = field(default_factory=list)  # translated a second, by round

    def milliseconds(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)


@contextlib.contextmanager
def server(run: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[tuple[str, int]]:
    """The address and the process of a service."""
    command = [sys.executable, "-m", "regard", "serve", str(run), "--port", "0", "--json", "--quiet", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["address"]
    try:
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(60)


class Client:
    """One connection that asks one thing after the other, with as little work of its own as possible."""

    def __init__(self, address: str, texts: Iterator[str], languages: tuple[str, str]) -> None:
        place = urlsplit(address)
        self._host, self._port = place.hostname or "", place.port or 80
        self._texts, self._languages = texts, languages

    async def ask_until(self, end: float, tally: Tally, most: list[int]) -> None:
        """Until a moment, or until nothing is left of ``most``."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        while time.perf_counter() < end and most[0] > 0:
            most[0] -= 1
            started = time.perf_counter()
            writer.write(self._request(next(self._texts)))
            status = await _read(reader)
            tally.statuses[status] += 1
            if status == 200:
                tally.seconds.append(time.perf_counter() - started)
            else:
                await asyncio.sleep(1)  # as Retry-After asks
        writer.close()

    def _request(self, text: str) -> bytes:
        source, target = self._languages
        body = json.dumps({"q": text, "source": source, "target": target}).encode()
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _read(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next(line for line in head.split("\r\n") if line.startswith("content-length:"))
    await reader.readexactly(int(length.partition(":")[2]))
    return int(head.split(" ", 2)[1])


async def load(  # noqa: PLR0917
    address: str, texts: Iterator[str], clients: int, tally: Tally, seconds: float, requests: int
) -> None:
    """Many clients at once, for a time or for so many requests."""
    started, before, most = time.perf_counter(), len(tally.seconds), [requests]
    everyone = [Client(address, texts, ("en", "fr")) for _ in range(clients)]
    await asyncio.gather(*(each.ask_until(started + seconds, tally, most) for each in everyone))
    tally.rates.append((len(tally.seconds) - before) / (time.perf_counter() - started))


def resident(process: int) -> int:
    """Bytes of a process in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory(  # noqa: PLR0917
    address: str, process: int, texts: Iterator[str], clients: int, requests: int, minutes: float
) -> tuple[Tally, list[int]]:
    """Ask so often, or for so long, and look at the memory twenty times."""
    tally, seen = Tally(), []
    part = (60 * minutes / 20, 10**9) if minutes else (3600.0, requests // 20)
    for _ in range(20):
        asyncio.run(load(address, texts, clients, tally, *part))
        seen.append(resident(process))
    return tally, seen[2:]


def measure(run: Path, clients: int, seconds: float, requests: int, minutes: float) -> dict[str, Any]:
    texts = cycle([each.source for each in generate("fr", count=5000, split="test", maximum_words=20)])
    together, alone = Tally(), Tally()
    with server(run) as (batching, process), server(run, "serve.batch=1") as (plain, _):
        for address in (batching, plain):  # each loads its run and warms up
            asyncio.run(load(address, texts, clients, Tally(), 2.0, 10**9))
        span = min(ROUND, seconds)
        for _ in range(max(1, round(seconds / span))):
            asyncio.run(load(batching, texts, clients, together, span, 10**9))
            asyncio.run(load(plain, texts, clients, alone, span, 10**9))
        held, seen = memory(batching, process, texts, clients, requests, minutes)
    mean = statistics.mean(seen)
    errors = together.statuses + alone.statuses + held.statuses
    ratios = [first / second for first, second in zip(together.rates, alone.rates, strict=True)]
    return {
        "torch": torch.__version__,
        "clients": clients,
        "seconds": seconds,
        "requests": dict(together.statuses),
        "errors": sum(count for status, count in errors.items() if status not in (200, 429)),
        "per_second": round(statistics.median(together.rates), 1),
        "p50_ms": together.milliseconds(0.5),
        "p99_ms": together.milliseconds(0.99),
        "without_batching": {
            "per_second": round(statistics.median(alone.rates), 1),
            "p50_ms": alone.milliseconds(0.5),
            "p99_ms": alone.milliseconds(0.99),
        },
        "times_faster": round(statistics.median(ratios), 2),
        "memory": {
            "requests": held.statuses.total(),
            "minutes": minutes,
            "p99_ms": held.milliseconds(0.99),
            "mean_mib": round(mean / 2**20, 1),
            "largest_change": round(max(abs(each - mean) for each in seen) / mean, 4),
            "growth": round(seen[-1] / seen[0] - 1, 4),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="of the second part, instead of a number of requests"
    )
    parser.add_argument("--ledger", action="store_true", help="add the figures to bench/ledger.jsonl")
    chosen = parser.parse_args()
    found = measure(chosen.run, chosen.clients, chosen.seconds, chosen.requests, chosen.minutes)
    print(json.dumps(found, indent=2))
    if chosen.ledger:
        held = f"--minutes {chosen.minutes:g}" if chosen.minutes else f"--requests {chosen.requests}"
        flags = f"--clients {chosen.clients} --seconds {chosen.seconds:g} {held}"
        enter("load", found, f"python bench/load.py RUN {flags} --ledger")


if __name__ == "__main__":
    main()
