"""Prepare a large corpus and read one epoch of it, and say how much memory and time that took.

    python bench/ten_million.py --pairs 10000000 --folder /somewhere/with/5GB --processes 2

The corpus is made up on the spot: random sentences over a few thousand words, written as two plain files.
Memory is sampled over this process and all that it started, at the same moment: the sum of their proportional set
sizes (PSS), in which a page that several processes share counts once. Beside it stand the system's own peaks of the
resident set, of this process and of the largest one it started, which count shared pages in each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from regard.data import Batches, Corpus, PairEncoder, prepare_corpus
from regard.text import Tokenizers

LEDGER = Path(__file__).parent / "ledger.jsonl"
WORDS = 5000
BLOCK = 100_000


def write_corpus(folder: Path, pairs: int) -> Corpus:
    """Random sentences of 1 to 40 words, and "translations" that are about as long."""
    paths = (folder / "train.source", folder / "train.target")
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(random.choice(letters, size)) for size in random.integers(2, 10, WORDS)]
    with paths[0].open("w", encoding="utf-8") as source, paths[1].open("w", encoding="utf-8") as target:
        for begin in range(0, pairs, BLOCK):
            count = min(BLOCK, pairs - begin)
            lengths = np.clip(random.gamma(4, 3, count).astype(int) + 1, 1, 40)
            others = np.clip(lengths + random.integers(-2, 3, count), 1, 40)
            for file, sizes in ((source, lengths), (target, others)):
                drawn = iter((random.zipf(1.2, int(sizes.sum())) % WORDS).tolist())
                file.writelines(" ".join(words[next(drawn)] for _ in range(size)) + "\n" for size in sizes)
    return Corpus(tuple(map(str, paths)))


def family(root: int) -> list[int]:
    """A process and all its descendants, as the system lists them now."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended meanwhile
    found = [root]
    for process in found:  # grows while it is read
        found += [child for child, parent in parents.items() if parent == process]
    return found


def proportional(process: int) -> int:
    """The PSS of a process in KiB; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


class Sampler(threading.Thread):
    """Watches the memory of all processes, by the stage that is under way."""

    def __init__(self, every: float = 0.2) -> None:
        super().__init__(daemon=True)
        self.every, self.stage, self.peaks = every, "", dict[str, int]()
        self.samples, self.most_processes = 0, 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(self.every):
            processes = family(os.getpid())
            total = sum(map(proportional, processes)) // 1024
            self.peaks[self.stage] = max(self.peaks.get(self.stage, 0), total)
            self.most_processes, self.samples = max(self.most_processes, len(processes)), self.samples + 1


@contextmanager
def sampled() -> Iterator[Sampler]:
    sampler = Sampler()
    sampler.start()
    try:
        yield sampler
    finally:
        sampler.over.set()
        sampler.join()


def memory() -> dict[str, float]:
    """Peak resident memory so far, in MiB."""
    kinds = {"own": resource.RUSAGE_SELF, "largest child": resource.RUSAGE_CHILDREN}
    return {name: round(resource.getrusage(kind).ru_maxrss / 1024) for name, kind in kinds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--budget", type=int, default=16_384)
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sampled() as sampler:
        result = measure(options, sampler)
    tree = {"peak": max(sampler.peaks.values()), "by stage": sampler.peaks, "processes": sampler.most_processes}
    result["MiB"] = {"all processes (PSS)": tree, "samples": sampler.samples, **memory()}
    print(json.dumps(result, indent=2))
    if options.ledger:
        flags = f"--pairs {options.pairs} --processes {options.processes}"
        record = {"bench": "ten_million", "date": time.strftime("%Y-%m-%d"), "machine": platform.machine()}
        with LEDGER.open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps({**record, **result, "command": f"python bench/ten_million.py {flags}"}) + "\n")


def measure(options: argparse.Namespace, sampler: Sampler) -> dict[str, object]:
    """Each stage's time and the numbers that say that it did its work."""
    times: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        sampler.stage, begin = name, time.perf_counter()
        yield
        times[name] = round(time.perf_counter() - begin, 1)

    with stage("write"):
        corpus = write_corpus(options.folder, options.pairs)
    with stage("learn tokenizer"):
        rows = [corpus.rows(PairEncoder.names) for _ in range(2)]
        sides = [(source for _, (source, _) in rows[0]), (target for _, (_, target) in rows[1])]
        tokenizers = Tokenizers.learn("bpe", *sides, joint=True, size=8000)
    with stage("prepare"):
        shards = prepare_corpus(corpus, PairEncoder(tokenizers), options.folder / "shards", processes=options.processes)
    with stage("plan"):
        batches = Batches(shards, budget=options.budget)
        plan = batches.plan(0)
    with stage("read"):
        rows = sum(len(batch) for batch in batches.epoch(0))
    tokens = {name: column.numbers for name, column in shards.manifest.columns.items()}
    padding = [round(share, 4) for share in plan.padding]
    return {"pairs": options.pairs, "rows": rows, "tokens": tokens, "padding": padding, "seconds": times}


if __name__ == "__main__":
    main()
