"""Translate a file in shards, kill the processes at random, and compare the end with what one process writes.

    python bench/bulk.py [--run demo] [--lines 4000] [--words 20] [--shards 64] [--processes 2] [--kills 20] [--ray]
        [--ledger]
    python bench/bulk.py --stand-in 100000000 [--ledger]

The outputs must be equal, byte for byte. The plain verb and one process in blocks run side by side, so that both have
the same neighbours: their CPU time and wall time are compared, and the highest memory in each tenth of the time is
noted. Then come the shards and, with `--ray`, a cluster of this machine: of both so many processes are killed. A
million lines are for a small run and short sentences. `--stand-in` sends lines through everything but the model.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from filecmp import cmp
from itertools import pairwise
from pathlib import Path
from typing import Any

import ledger
from regard.cli.translate import Translating, translate_in_blocks
from regard.data.blocks import Block, Done, Work
from regard.fable.corpus import generate
from regard.runs.folder import Run
from regard.settings.call import BulkSettings, DecodeSettings

PARTS = 10  # of the time, or of the lines, for which memory is noted
PAUSES = (1, 8)  # seconds between two kills: at least and at most
ACTOR = b"ray::_Actor"  # how Ray names the processes that have a model


def write(path: Path, count: int, words: int) -> None:
    """Different sentences, as far as there are some; then the same again."""
    pairs = generate("fr", count=min(count, 20_000), split="test", maximum_words=words)
    texts = [pair.source for pair in pairs]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{texts[number % len(texts)]}\n" for number in range(count))


# Processes, and what they take.


def highest(process: int | str) -> int:
    """The highest memory of a process since the last question, in MiB; 0 if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
        Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def tenths(values: Sequence[int]) -> list[int]:
    """The highest value of each tenth."""
    borders = [len(values) * part // PARTS for part in range(PARTS + 1)]
    return [max(values[first:last], default=0) for first, last in pairwise(borders)]


class Running:
    """A process of ours, watched until it ends."""

    def __init__(self, words: list[str]) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "regard", *words]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
        self._began, self.memory = time.monotonic(), list[int]()
        self.cpu, self.wall, self.code = 0.0, 0.0, 0

    @property
    def number(self) -> int:
        return self._process.pid

    def ended(self) -> bool:
        """Whether it has ended, and what it has taken until then."""
        self.memory.append(highest(self.number))
        ended, status, usage = os.wait4(self.number, os.WNOHANG)
        if ended:
            self._process.returncode = self.code = os.waitstatus_to_exitcode(status)
            self.cpu, self.wall = usage.ru_utime + usage.ru_stime, time.monotonic() - self._began
        return bool(ended)


def side_by_side(*commands: list[str]) -> list[Running]:
    """Run commands at the same time, each to its end."""
    all_of_them = [Running(words) for words in commands]
    left = list(all_of_them)
    while left:
        left = [each for each in left if not each.ended()]
        time.sleep(0.1)
    assert not any(each.code for each in all_of_them), commands
    return all_of_them


@dataclass
class Killer:
    """Kills one of some processes now and then."""

    chance: random.Random
    kills: int
    done: int = 0
    due: float = 0.0

    def __call__(self, among: Sequence[int]) -> None:
        now = time.monotonic()
        if not self.due or (now > self.due and among and self.done < self.kills):
            if self.due:
                os.kill(self.chance.choice(sorted(among)), signal.SIGKILL)
                self.done += 1
            self.due = now + self.chance.uniform(*PAUSES)


def in_shards(words: list[str], shards: int, processes: int, kill: Killer) -> tuple[float, int]:
    """Work on all shards, a few at a time; one that was killed waits for its next turn. CPU time and highest memory."""
    waiting, running = [f"{number}/{shards}" for number in range(1, shards + 1)], dict[str, Running]()
    kill.chance.shuffle(waiting)
    cpu, memory = 0.0, 0
    while waiting or running:
        while waiting and len(running) < processes:
            shard = waiting.pop(0)
            running[shard] = Running([*words, "--shard", shard])
        for shard, process in list(running.items()):
            if process.ended():
                del running[shard]
                waiting += [shard] if process.code else []
                cpu, memory = cpu + process.cpu, max(memory, *process.memory)
        kill([process.number for process in running.values()])
        time.sleep(0.02)
    return cpu, memory


def on_ray(words: list[str], kill: Killer) -> tuple[Running, int]:
    """The same on a cluster of this machine, whose actors are killed; also the highest memory of an actor."""
    process, memory = Running(words), 0
    while not process.ended():
        actors = [each for each in below(process.number) if named(each).startswith(ACTOR)]
        memory = max([memory, *map(highest, actors)])
        kill([each for each in actors if b".work" in named(each)])
        time.sleep(0.1)
    assert not process.code, words
    return process, memory


def below(process: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        started = [int(each) for task in tasks for each in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return
    for each in started:
        yield each
        yield from below(each)


def named(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


# Everything but the model.


@dataclass(frozen=True)
class StandIn(Translating):
    """Answers every line with itself, and makes remarks."""

    memory: Callable[[int], None] = print

    def about(self) -> dict[str, Any]:
        return {"verb": "stand-in"}

    def __call__(self, opening: Sequence[tuple[str, ...]]) -> Work:
        del opening

        def work(block: Block) -> Done:
            self.memory(block.first)
            first = [(block.first + place, "a remark on this line") for place in range(1, 11)]
            return Done("".join(f"{row[0]}\n" for row in block.rows).encode(), {"first": first, "count": 100})

        return work


def without_model(lines: int, block: int) -> dict[str, object]:
    """Lines through everything but the model, in this process: CPU time, and the highest memory by tenths."""
    found = [0] * PARTS

    def note(line: int) -> None:
        part = line * PARTS // lines
        found[part] = max(found[part], highest("self"))

    with tempfile.TemporaryDirectory() as name:
        source, out = Path(name, "in"), Path(name, "out")
        with source.open("w", encoding="utf-8") as file:
            file.writelines(f"{number}\n" for number in range(lines))
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
        work = StandIn((), "cpu", DecodeSettings(), "text", json=False, memory=note)
        translate_in_blocks(work, source, out, "1/1", "", BulkSettings(lines=block))
        merging, after = highest("self"), resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            "lines": lines,
            "block": block,
            "same": cmp(source, out, shallow=False),
            "mib": found,
            "mib_merging": merging,
            "cpu_s": round(cpu),
            "wall_s": round(time.monotonic() - began),
        }


def with_model(asked: argparse.Namespace) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "in", asked.lines, asked.words)
        blocks = f"bulk.lines={asked.block}"

        def words(out: str, *more: str) -> list[str]:
            files = ["--file", str(folder / "in"), "--out", str(folder / out)]
            return ["translate", asked.run, *files, "decode.beam=1", "--device", "cpu", *more]

        plain, whole = side_by_side(words("plain"), words("whole", blocks, "--shard", "1/1"))
        print(f"plain: {plain.cpu:.0f} s of CPU time in {plain.wall:.0f} s, MiB {tenths(plain.memory)}", flush=True)
        print(f"in blocks: {whole.cpu:.0f} s in {whole.wall:.0f} s, MiB {tenths(whole.memory)}", flush=True)
        chance, began = random.Random(asked.seed), time.monotonic()
        kill = Killer(chance, asked.kills)
        cpu, memory = in_shards(words("many", blocks), asked.shards, asked.processes, kill)
        wall = {"plain": plain.wall, "blocks": whole.wall, "shards": time.monotonic() - began}
        print(f"in {asked.shards} shards: {kill.done} killed, {cpu:.0f} s in {wall['shards']:.0f} s", flush=True)
        model = Run.open(Path(asked.run)).settings.model
        result: dict[str, object] = {
            "model": f"{model.kind}, width {model.width}",
            "load": round(os.getloadavg()[0], 1),
            "lines": asked.lines,
            "words": asked.words,
            "shards": asked.shards,
            "processes": asked.processes,
            "block": asked.block,
            "kills": kill.done,
            "of_plain_verb": round(plain.cpu / whole.cpu, 3),
            "of_plain_verb_wall": round(plain.wall / whole.wall, 3),
            "mib_plain": tenths(plain.memory),
            "mib": tenths(whole.memory),
            "mib_shard": memory,
        }
        made = ["whole", "many"]
        if asked.ray:
            kill = Killer(chance, asked.kills)
            on_a_cluster = words("ray", blocks, "--on", "ray", f"bulk.workers={asked.processes}")
            driver, actor = on_ray(on_a_cluster, kill)
            print(f"on Ray: {kill.done} killed, {driver.wall:.0f} s", flush=True)
            wall["ray"] = driver.wall
            result |= {"ray_kills": kill.done, "mib_ray": tenths(driver.memory), "mib_ray_actor": actor}
            made.append("ray")
        same = [name for name in made if cmp(folder / "plain", folder / name, shallow=False)]
        cpus = {"plain": plain.cpu, "blocks": whole.cpu, "shards": cpu}
        for kind, values in (("cpu_s", cpus), ("wall_s", wall)):
            result[kind] = {each: round(value) for each, value in values.items()}
        return result | {"ray": asked.ray, "same": same == made}


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill processes that translate a file; the output must not change.")
    parser.add_argument("--run", default="demo")
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--words", type=int, default=20, help="of a sentence, at the most")
    parser.add_argument("--block", type=int, default=1024)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20, help="of processes with shards, and as many of Ray's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--stand-in", type=int, default=0, help="send so many lines through everything but the model")
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    result = without_model(asked.stand_in, asked.block) if asked.stand_in else with_model(asked)
    print(result)
    if asked.ledger:
        bench = "bulk, stand-in" if asked.stand_in else "bulk"
        ledger.enter(bench, result, shlex.join(["python", "bench/bulk.py", *sys.argv[1:]]))
    return not result["same"]


if __name__ == "__main__":
    sys.exit(main())
