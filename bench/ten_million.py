"""Prepare a large corpus and read one epoch of it, and say how much memory and time that took.

    python bench/ten_million.py --pairs 10000000 --folder /somewhere/with/5GB --processes 2

The corpus is made up on the spot: random sentences over a few thousand words, written as two plain files.
Memory is the peak of the resident set of this process and, apart, of the largest process it started.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from regard.data import Batches, Corpus, PairEncoder, prepare_corpus, read_pairs
from regard.text import Tokenizers

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
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    times, begin = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal begin
        times[name] = round(time.perf_counter() - begin, 1)
        begin = time.perf_counter()

    corpus = write_corpus(options.folder, options.pairs)
    lap("write")
    sides = [(pair.source for pair in read_pairs(corpus)), (pair.target for pair in read_pairs(corpus))]
    tokenizers = Tokenizers.learn("bpe", *sides, joint=True, size=8000)
    lap("learn tokenizer")
    encoder, folder = PairEncoder(tokenizers), options.folder / "shards"
    shards = prepare_corpus(corpus, encoder, folder, processes=options.processes)
    lap("prepare")
    batches = Batches(shards, budget=options.budget)
    plan = batches.plan(0)
    lap("plan")
    rows = sum(len(batch) for batch in batches.epoch(0))
    lap("read")
    tokens = {name: column.numbers for name, column in shards.manifest.columns.items()}
    padding = [round(share, 4) for share in plan.padding]
    print(json.dumps({"rows": rows, "tokens": tokens, "padding": padding, "seconds": times, "MiB": memory()}, indent=2))


if __name__ == "__main__":
    main()
