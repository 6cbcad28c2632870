"""Where the time of a Regard training step goes, by kind of work.

    python bench/step_profile.py [--model transformer] [--steps 4] [--threads 2] [--ledger]

The step is the one that bench/training.py measures, on the same batches, but for its division among threads. Time is
the processor's own time in each kernel, from torch.profiler. Batches come ready: reading them is no part of it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from ledger import enter, spread
from peers.protocol import Batch, Work, read_batches
from peers.regard import Regard
from training import BUDGET, EVERY, MODELS, PIECES, ROOT, SHARED, prepare

# The first kind whose words occur in a kernel's name.
KINDS = {
    "matrix products": ("addmm", "::mm", "bmm", "baddbmm", "mkldnn_linear", "aten::linear", "einsum"),
    "attention": ("scaled_dot_product", "flash_attention"),
    "recurrent cells": ("lstm", "gru", "mkldnn_rnn", "sigmoid", "tanh"),
    "dropout": ("dropout", "bernoulli", "random_", "index_fill", "cumsum", "searchsorted"),
    "norms": ("layer_norm",),
    "softmax and loss": ("softmax", "nll_loss", "cross_entropy", "logsumexp"),
    "optimizer and clipping": ("adam", "_foreach", "linalg_vector_norm", "clip"),
    "embeddings": ("embedding", "index_add"),
    "copies and masks": ("copy", "cat", "clone", "contiguous", "index", "nonzero", "select", "where", "stack", "fill"),
    "element by element": ("add", "mul", "div", "sub", "relu", "threshold", "sum", "sqrt", "neg", "zero", "empty"),
}


def kind_of(kernel: str) -> str:
    return next((kind for kind, words in KINDS.items() if any(word in kernel for word in words)), "rest")


def shares(contestant: Regard, batches: list[Batch]) -> dict[str, float]:
    """The share of each kind in the time of all kernels, largest first."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for batch in batches:
            contestant.step(batch)
    spent: dict[str, float] = defaultdict(float)
    for row in seen.key_averages():
        if row.key.startswith("aten::") or "::" in row.key:
            spent[kind_of(row.key)] += row.self_cpu_time_total
    total = sum(spent.values())
    return {name: round(value / total, 4) for name, value in sorted(spent.items(), key=lambda pair: -pair[1])}


def seconds_a_step(contestant: Regard, batches: list[Batch]) -> list[float]:
    times = []
    for batch in batches:
        began = time.perf_counter()
        contestant.step(batch)
        times.append(time.perf_counter() - began)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the time of a training step goes.")
    parser.add_argument("--model", choices=EVERY, default="transformer")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    work = Work(model=options.model, vocabulary=PIECES, threads=options.threads, **SHARED, **MODELS[options.model])
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(options.data), Path(folder), 1 + 2 * options.steps)
        batches = read_batches(Path(folder))
    contestant = Regard(work)
    contestant.update.parts = None  # the profiler does not look into threads that it has not made
    contestant.step(batches[0])
    times = seconds_a_step(contestant, batches[1 : 1 + options.steps])
    result = {
        "model": options.model,
        "threads": options.threads,
        "batch_tokens": BUDGET,
        "torch": torch.__version__,
        "seconds_a_step": spread(times, 3),
        "shares": shares(contestant, batches[1 + options.steps :]),
        "work": asdict(work),
    }
    print(json.dumps(result, indent=1))
    if options.ledger:
        result.pop("work")
        enter("cpu-profile", result, f"python bench/step_profile.py --model {options.model} --ledger")


if __name__ == "__main__":
    main()
