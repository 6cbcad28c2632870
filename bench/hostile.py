"""Hostile and valid requests mixed: 300 from 16 threads, what becomes of them, of the memory and of the last SIGTERM.

    python bench/hostile.py [RUN] [--requests 300] [--threads 16] [--seed 1] [--ledger]

`regard serve RUN` is asked by threads that send, in an order drawn with a seed, translations of the built-in corpus and
requests that mean harm: bodies that are no JSON, too deep or too long, texts and edits of thousands of words, HTML of
hundreds of tags; and the most expensive ones that are allowed, whose clients soon leave. Every valid answer is
compared with what `regard.load(RUN)` says. Then a short sentence is sent beside each of the expensive ones: how long it
waits is printed. At last the service is told to end while requests are in flight. What must not be is printed last, and
makes the exit code 1. Without a run the one that comes along is asked.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import regard
from ledger import enter
from load import resident
from regard.fable.corpus import generate
from regard.runs.folder import packaged

Answer = tuple[int, Any]
CAT = "The black cat ate the mouse."


@contextlib.contextmanager
def server(run: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The place and the process of a service; whatever happens, it has ended afterwards."""
    command = [sys.executable, "-m", "regard", "serve", str(run), "--port", "0", "--json", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    place = urlsplit(json.loads(process.stdout.readline())["address"])
    try:
        yield f"{place.hostname}:{place.port}", process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def ask(place: str, path: str, body: bytes, *, patience: float = 90.0) -> Answer:
    """One request on a connection of its own; 0 where there was no answer in time."""
    connection = http.client.HTTPConnection(place, timeout=patience)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        found = connection.getresponse()
        return found.status, json.loads(found.read())
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        connection.close()


def valid(run: str, text: str) -> tuple[str, bytes]:
    return "/api/v1/translate", json.dumps({"run": run, "texts": [text], "alignment": False}).encode()


def hostile(run: str) -> list[tuple[str, bytes]]:
    """What should be refused."""

    def looked(path: str, **body: Any) -> tuple[str, bytes]:
        return f"/api/v1/{path}", json.dumps({"run": run, "text": CAT, **body}).encode()

    many = {"kind": "replace-word", "word": 0, "by": "x " * 490}
    libre = {"source": "en", "target": "fr"}
    return [
        ("/translate", b"[" * 500_000),
        ("/translate", b'{"q": "\\ud800", "source": "en", "target": "fr"}'),
        ("/translate", json.dumps({"q": "<b>" * 700 + "cat", **libre, "format": "html"}).encode()),
        ("/translate", json.dumps({"q": ["x" * 5001], **libre}).encode()),
        ("/translate", json.dumps({"q": "x" * (3 << 20), **libre}).encode()),
        ("/api/v1/translate", json.dumps({"run": "../" + run, "texts": [CAT]}).encode()),
        ("/api/v1/translate", json.dumps({"run": run, "texts": [CAT], "beam": 10**60}).encode()),
        looked("trace", edits=[many]),
        looked("trace", edits=[many] * 40),
        looked("trace", edits=[{**many, "by": "x " * 8000}]),
        looked("trace", text="cat " * 1250),
        looked("beam", prefix="le " * 1600),
        looked("walkthrough", text="cat " * 1250),
        ("/api/v1/trainings", b"\xff\xfe{}"),
    ]


def expensive(run: str) -> list[tuple[str, bytes]]:
    """What takes long, and is allowed."""

    def posted(path: str, **body: Any) -> tuple[str, bytes]:
        return f"/api/v1/{path}", json.dumps({"run": run, **body}).encode()

    return [
        posted("translate", texts=["the cat sees a bird and " * 200] * 40, beam=20),
        posted("trace", text=CAT, edits=[{"kind": "force-prefix", "prefix": "le " * 333}]),
        posted("importance", text="the cat sees a bird and " * 12),
        posted("beam", text=CAT, prefix="le " * 333, beam=20),
        posted("meaning", word="a", sentences=["a " * 500] * 20),
        posted("walkthrough", text="the cat sees a bird and " * 15),
    ]


def highest(process: int) -> int:
    """Bytes of a process in memory, at the most so far."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])


def beside(place: str, run: str, kinds: list[tuple[str, bytes]]) -> float:
    """The longest that a short sentence waits beside each of these, in seconds; its client leaves after 3 s."""
    slowest = 0.0
    for path, body in kinds:
        thread = threading.Thread(target=ask, args=(place, path, body), kwargs={"patience": 3.0})
        thread.start()
        for _ in range(4):
            time.sleep(0.4)
            started = time.perf_counter()
            status, _ = ask(place, *valid(run, CAT))
            assert status == 200, (path, body[:100])
            slowest = max(slowest, time.perf_counter() - started)
        thread.join()
    return slowest


def mixed(place: str, run: Path, requests: int, threads: int, seed: int) -> dict[str, Any]:
    """Half of them valid, in an order that the seed decides."""
    chance = random.Random(seed)
    texts = [each.source for each in generate("fr", count=40, split="test", maximum_words=20)]
    expected = [each.text for each in regard.load(run).translate(texts)]
    nasty, costly = hostile(run.name), expensive(run.name)
    statuses, wrong, seconds = Counter[int](), [0], list[float]()
    chosen = [chance.randrange(len(texts)) if chance.random() < 0.5 else -1 for _ in range(requests)]
    bodies = [valid(run.name, texts[each]) if each >= 0 else chance.choice(nasty + costly) for each in chosen]

    def one(number: int) -> None:
        path, body = bodies[number]
        started = time.perf_counter()
        status, found = ask(place, path, body, patience=1.0 if (path, body) in costly else 90.0)
        if chosen[number] < 0:
            statuses[status] += 1
            return
        seconds.append(time.perf_counter() - started)
        right = status == 200 and found["translations"][0]["outputs"][0]["text"] == expected[chosen[number]]
        wrong[0] += not right

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(requests)))
    ordered = sorted(seconds)
    return {
        "valid": len(seconds),
        "wrong": wrong[0],
        "slowest_valid_s": round(ordered[-1], 2),
        "median_valid_s": round(ordered[len(ordered) // 2], 3),
        "statuses_of_hostile": {str(status or "left"): statuses[status] for status in sorted(statuses)},
    }


def end(place: str, process: subprocess.Popen[str], run: str, threads: int) -> dict[str, Any]:
    """SIGTERM while short ones are in flight, and long ones whose clients have left."""
    for path, body in expensive(run):
        ask(place, path, body, patience=0.1)
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(ask, place, *valid(run, CAT)) for _ in range(threads)]
        time.sleep(0.05)
        started = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        answered = sum(each.result()[0] == 200 for each in waiting)
    code = process.wait(60)
    return {"answered": answered, "of": threads, "exit": code, "seconds": round(time.perf_counter() - started, 2)}


def measure(run: Path, requests: int, threads: int, seed: int) -> dict[str, Any]:
    with server(run) as (place, process):
        ask(place, *valid(run.name, CAT))
        idle = resident(process.pid)
        mixed(place, run, requests // 3, threads, seed + 1)  # every cache is warm, every kind was seen
        before = resident(process.pid)
        found = mixed(place, run, requests, threads, seed)
        after = resident(process.pid)
        waited = beside(place, run.name, expensive(run.name))
        connection = http.client.HTTPConnection(place, timeout=20)
        connection.request("GET", "/metrics")
        bugs = [line for line in connection.getresponse().read().decode().splitlines() if 'status="500"' in line]
        connection.close()
        peak = highest(process.pid)
        ended = end(place, process, run.name, threads)
    return {
        "requests": requests,
        "threads": threads,
        "seed": seed,
        **found,
        "bugs": len(bugs),
        "memory_mib": {"idle": idle >> 20, "before": before >> 20, "after": after >> 20, "peak": peak >> 20},
        "memory_growth": round(after / before - 1, 3),
        "short_beside_long_s": round(waited, 2),
        "sigterm": ended,
    }


def findings(found: dict[str, Any]) -> list[str]:
    """What must not be."""
    memory, ended = found["memory_mib"], found["sigterm"]
    must = {
        "every valid answer is right": found["wrong"] == 0,
        "no answer is a 5xx": not found["bugs"]
        and all(code < "5" for code in found["statuses_of_hostile"] if code != "left"),
        "memory is at most a tenth higher afterwards": found["memory_growth"] <= 0.1,
        "memory is never a gigabyte above idle": memory["peak"] - memory["idle"] <= 1024,
        "a short sentence waits at most 2 s beside a long one": found["short_beside_long_s"] <= 2,
        "SIGTERM lets those in flight end": ended["answered"] == ended["of"] and ended["exit"] == 0,
    }
    return [name for name, holds in must.items() if not holds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", default=packaged())
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", action="store_true", help="add the figures to bench/ledger.jsonl")
    chosen = parser.parse_args()
    found = measure(chosen.run, chosen.requests, chosen.threads, chosen.seed)
    print(json.dumps(found, indent=2))
    if chosen.ledger:
        flags = f"--requests {chosen.requests} --threads {chosen.threads} --seed {chosen.seed}"
        enter("hostile", found, f"python bench/hostile.py RUN {flags} --ledger")
    for name in (wrong := findings(found)):
        print(f"does not hold: {name}")
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main())
