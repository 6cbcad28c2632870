"""Translate a file in shards, kill the processes at random, and compare the end with what one process writes.

    python bench/bulk.py [--run demo] [--lines 4000] [--words 20] [--shards 64] [--processes 2] [--kills 20] [--ray]
        [--ledger]

The outputs must be equal, byte for byte. Also measured: the speed in blocks as a share of the plain verb's, in CPU
time, and the memory of a process at the most, for the whole file and for an eighth of it. A million lines are for a
small run and short sentences.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from filecmp import cmp
from pathlib import Path

import ledger
from regard.fable.corpus import generate


def write(path: Path, count: int, words: int) -> None:
    """Different sentences, as far as there are some; then the same again."""
    pairs = generate("fr", count=min(count, 20_000), split="test", maximum_words=words)
    texts = [pair.source for pair in pairs]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{texts[number % len(texts)]}\n" for number in range(count))


def started(words: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "regard", *words], stderr=subprocess.DEVNULL, env=environment)


def measured(words: list[str]) -> tuple[float, int]:
    """Seconds of CPU time that a process took, and its memory at the most, in MiB."""
    process = started(words)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10


def killed(words: list[str], shards: int, processes: int, kills: int, chance: random.Random) -> int:
    """Work on all shards, a few at a time; one that was killed waits for its next turn. Returns how many were."""
    waiting, running, done = [f"{number}/{shards}" for number in range(1, shards + 1)], dict[str, object](), 0
    chance.shuffle(waiting)
    due = time.monotonic() + chance.uniform(1, 8)
    while waiting or running:
        while waiting and len(running) < processes:
            shard = waiting.pop(0)
            running[shard] = started([*words, "--shard", shard])
        for shard, process in list(running.items()):
            assert isinstance(process, subprocess.Popen)
            if (code := process.poll()) is not None:
                del running[shard]
                waiting += [] if code == 0 else [shard]
        if done < kills and running and time.monotonic() > due:
            process = running[chance.choice(sorted(running))]
            assert isinstance(process, subprocess.Popen)
            process.send_signal(signal.SIGKILL)
            done, due = done + 1, time.monotonic() + chance.uniform(1, 8)
        time.sleep(0.02)
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill processes that translate a file; the output must not change.")
    parser.add_argument("--run", default="demo")
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--words", type=int, default=20, help="of a sentence, at the most")
    parser.add_argument("--block", type=int, default=1024)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "in", asked.lines, asked.words)
        write(folder / "few", asked.lines // 8, asked.words)
        how = ["decode.beam=1", "--device", "cpu"]

        def words(file: str, out: str) -> list[str]:
            return ["translate", asked.run, "--file", str(folder / file), "--out", str(folder / out), *how]

        blocks = f"bulk.lines={asked.block}"
        plain, _ = measured(words("in", "plain"))
        print(f"plain: {plain:.0f} s of CPU time", flush=True)
        whole, memory = measured([*words("in", "whole"), blocks, "--shard", "1/1"])
        _, less = measured([*words("few", "few-out"), blocks, "--shard", "1/1"])
        print(f"in blocks: {whole:.0f} s, {memory} MiB, {less} MiB for an eighth", flush=True)
        kills = killed(
            [*words("in", "many"), blocks], asked.shards, asked.processes, asked.kills, random.Random(asked.seed)
        )
        made = ["whole", "many"]
        print(f"in {asked.shards} shards: {kills} killed", flush=True)
        if asked.ray:
            measured([*words("in", "ray"), blocks, "--on", "ray", f"bulk.workers={asked.processes}"])
            made.append("ray")
        same = all(cmp(folder / "plain", folder / out, shallow=False) for out in made)
        result = {
            "lines": asked.lines,
            "words": asked.words,
            "shards": asked.shards,
            "block": asked.block,
            "kills": kills,
            "ray": asked.ray,
            "same": same,
            "of_plain_verb": round(plain / whole, 3),
            "mib": memory,
            "mib_of_an_eighth": less,
        }
    print(result)
    if asked.ledger:
        ledger.enter("bulk", result, shlex.join(["python", "bench/bulk.py", *sys.argv[1:]]))
    return not same


if __name__ == "__main__":
    sys.exit(main())
