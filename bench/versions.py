"""Two versions of Regard beside each other: a training step, translations, looking, start-up and the service.

    python bench/versions.py --old TREE --run RUN --texts FILE [--new TREE] [--work NAME …] [--rounds 9] [--ledger]

A tree is a checkout, such as `git worktree add --detach OLD COMMIT` makes; RUN is one that both can read, so the older
one should have trained it. Both versions do the same work in turn, as processes that wait for each other, and who
begins changes from round to round. A ratio is the new version's time divided by the old one's in the same round: its
median, the middle half of the rounds, and the same of the CPU seconds, which a busy machine changes least. Below 1 the
new one is faster. Batches of training are those of `bench/training.py`; everything else uses the sentences of FILE.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from ledger import enter
from load import Tally, load, resident, server
from peers.protocol import Work
from startup import seconds
from training import MODELS, PIECES, ROOT, SHARED, Worker, prepare, surroundings

Answer = dict[str, float]  # "seconds", "cpu_seconds" and what else was seen
Turn = Callable[[], Answer]  # one version does the work once
Line = dict[str, Any]
STEPS = {"transformer": 2, "bahdanau": 2}
WARM = 6  # turns before the first that counts: who searches is decided after 1,000 sentences


def workers(given: argparse.Namespace, folder: Path, stack: ExitStack, *words: str, steps: int = 1) -> list[Turn]:
    """A process of each version, that answers as `peers.protocol` has it."""
    turns: list[Turn] = []
    for number, tree in enumerate((given.old, given.new)):
        bench = tree if words[0] == "peers.regard" else ROOT  # what trains knows its own version, and no other
        environment = surroundings(given.threads, bench / "bench", tree / "src")
        found = Worker(sys.executable, list(words), environment, folder, folder / f"{number}.log")
        stack.callback(found.end)
        turns.append(lambda found=found: found.ask(steps))  # type: ignore[misc]
    return turns


def training(model: str, *, given: argparse.Namespace, folder: Path, stack: ExitStack) -> list[Turn]:
    if not (folder / "batches.npz").exists():
        prepare(given.data, folder, 24, given.tokens)
    work = Work(model=model, vocabulary=PIECES, threads=given.threads, **SHARED, **MODELS[model])  # type: ignore[arg-type]
    (folder / "work.json").write_text(json.dumps(asdict(work)), encoding="utf-8")
    return workers(given, folder, stack, "peers.regard", str(folder), steps=STEPS[model])


def using(work: str, *options: str, given: argparse.Namespace, folder: Path, stack: ExitStack) -> list[Turn]:
    steps = 1 if work == "translate" else 10
    places = str(given.run), str(given.texts)
    return workers(given, folder, stack, "peers.version", work, *places, *options, steps=steps)


def process(*words: str, given: argparse.Namespace, folder: Path, stack: ExitStack) -> list[Turn]:  # noqa: ARG001
    """A whole process each time."""
    known = {"RUN": str(given.run), "TEXT": given.texts.read_text(encoding="utf-8").partition("\n")[0]}
    command = [sys.executable, "-m", "regard", *(known.get(word, word) for word in words)]

    def turn(environment: dict[str, str]) -> Answer:
        began = time.perf_counter()
        used = seconds(command, environment)
        return {"seconds": time.perf_counter() - began, "cpu_seconds": used}

    trees = [surroundings(given.threads, tree / "src") for tree in (given.old, given.new)]
    return [lambda one=one: turn(one) for one in trees]  # type: ignore[misc]


def service(
    clients: int,
    *engine: str,
    given: argparse.Namespace,
    folder: Path,  # noqa: ARG001
    stack: ExitStack,
) -> list[Turn]:
    """Both services, asked in turn for some seconds; seconds are those of one request."""
    texts = cycle(given.texts.read_text(encoding="utf-8").splitlines())

    def turn(address: str, number: int) -> Answer:
        tally, before = Tally(), processor(number)
        asyncio.run(load(address, texts, clients, tally, given.seconds, 10**9))
        count = tally.statuses.total()
        assert tally.statuses[200] == count, tally.statuses
        return {
            "seconds": 1 / tally.rates[0],
            "cpu_seconds": (processor(number) - before) / count,
            "p99_ms": tally.milliseconds(0.99),
            "mib": resident(number) / 2**20,
        }

    turns: list[Turn] = []
    for tree, options in zip((given.old, given.new), ((), engine), strict=True):
        environment = surroundings(given.threads, tree / "src")
        place = stack.enter_context(server(given.run, *options, environment=environment))
        turns.append(lambda place=place: turn(*place))  # type: ignore[misc]
    return turns


def processor(number: int) -> float:
    """CPU seconds of a process so far, all its threads."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


NATIVE, LIBRARY = ("--engine", "native"), ("--engine", "ctranslate2")
WORK: dict[str, Callable[..., list[Turn]]] = {
    "training step, transformer": partial(training, "transformer"),
    "training step, bahdanau": partial(training, "bahdanau"),
    "translation, greedy": partial(using, "translate", "--beam", "1"),
    "translation, beam 5": partial(using, "translate"),
    "translation, greedy, native": partial(using, "translate", "--beam", "1", *NATIVE),
    "translation, beam 5, native": partial(using, "translate", *NATIVE),
    "translation, beam 5, CTranslate2": partial(using, "translate", *LIBRARY),
    "look": partial(using, "look"),
    "start-up, --version": partial(process, "--version"),
    "start-up, one sentence": partial(process, "translate", "RUN", "TEXT"),
    "service, 8 clients": partial(service, 8),
    "service, 8 clients, native": partial(service, 8, "decode.engine=native"),
    "service, 64 clients, native": partial(service, 64, "decode.engine=native"),
}


def race(turns: list[Turn], rounds: int) -> list[list[Answer]]:
    """What each took, round by round."""
    for turn in turns:
        for _ in range(WARM):
            turn()
    taken: list[list[Answer]] = [[], []]
    for number in range(rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            taken[side].append(turns[side]())
    return taken


def compared(taken: list[list[Answer]]) -> Line:
    """Medians of both, and their ratio."""
    line: Line = {}
    for name, answers in zip(("old", "new"), taken, strict=True):
        line[f"{name}_ms"] = round(1000 * statistics.median(each["seconds"] for each in answers), 2)
    for name in [name for name in ("seconds", "cpu_seconds") if name in taken[0][0]]:
        ratios = [new[name] / old[name] for old, new in zip(*taken, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        line[f"{name.removesuffix('seconds')}ratio"] = round(middle, 3)
        line[f"{name.removesuffix('seconds')}ratio_spread"] = [round(low, 3), round(high, 3)]
    for name in [name for name in ("p99_ms", "mib", "loss") if name in taken[0][0]]:
        line[name] = [round(statistics.median(each[name] for each in answers), 3) for answers in taken]
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed of two versions of Regard, in one interleaved run.")
    parser.add_argument("--old", type=Path, required=True, help="a checkout")
    parser.add_argument("--new", type=Path, default=ROOT, help="another one; this one if not given")
    parser.add_argument("--run", type=Path, required=True, help="a run that both can read")
    parser.add_argument("--texts", type=Path, required=True, help="sentences for it, one a line")
    parser.add_argument("--work", nargs="+", choices=WORK, default=WORK)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=5.0, help="that a service is asked in a round")
    parser.add_argument("--tokens", type=int, default=1024, help="of a batch of training, on each side, at the most")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the folder of multi30k")
    parser.add_argument("--ledger", action="store_true")
    given = parser.parse_args()
    for name in ("old", "new", "run", "texts"):
        setattr(given, name, getattr(given, name).absolute())
    run = time.strftime("%Y-%m-%d %H:%M:%S")
    for work in given.work:
        with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
            turns = WORK[work](given=given, folder=Path(place), stack=stack)
            line = {"work": work, **compared(race(turns, given.rounds))}
        print(json.dumps(line), flush=True)
        if given.ledger:
            about = {"run": run, "rounds": given.rounds, "threads": given.threads, "load": round(os.getloadavg()[0], 1)}
            flags = f"--rounds {given.rounds} --seconds {given.seconds:g} --threads {given.threads}"
            enter(
                "versions",
                {**about, **line},
                f"python bench/versions.py --old OLD --run RUN --texts FILE {flags} --ledger",
            )


if __name__ == "__main__":
    main()
