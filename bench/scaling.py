"""How the cost of training grows with processes, sentence length, width, depth and batch; of search, with the beam.

    python bench/scaling.py [--parts processes length width depth batch beam] [--rounds 3] [--ledger]

Sizes are small, minutes in all. Speed is tokens a second (source and target, none of them padding: all rows of a batch
are equally long) of a whole training step, and of a search the tokens that it writes. Memory is what a process held at
its highest during that, less what it held before, so that libraries and weights do not hide the growth; each
measurement is a process of its own. The exponent ``e`` is of ``value ∝ size^e``: seconds, at the same number of tokens
in every batch where the batch itself does not grow, and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from ledger import enter, exponent, spread
from peers.protocol import END, Batch, Work, as_batch, peak_mib
from peers.regard import Regard, make_model
from regard.decode.fused import Fused
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.trainer.workers import Workers

ROOT = Path(__file__).parents[1]
TOKENS = 1024  # a side, in every batch of a length, width or depth
LENGTH = 32  # of sentences, where that is not what grows
BASE = Work(
    model="transformer",
    vocabulary=2000,
    width=128,
    depth=2,
    heads=4,
    hidden=512,
    dropout=0.1,
    smoothing=0.1,
    rate=3e-4,
    clip=1.0,
    threads=2,
)
ASLEEP = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that spin while they wait collapse on a machine that is shared
SIZES = {
    "length": (16, 32, 64, 128, 256),
    "width": (64, 128, 256, 512),
    "depth": (1, 2, 4, 8),
    "batch": (256, 512, 1024, 2048, 4096),
    "beam": (1, 2, 4, 8, 16),
    "processes": (1, 2, 4),
}
MODELS = {
    "length": ("transformer", "bahdanau", "luong"),
    "width": ("transformer", "bahdanau"),
    "depth": ("transformer",),
    "batch": ("transformer", "bahdanau"),
    "beam": ("transformer", "bahdanau"),
}


def batch_of(length: int, rows: int, vocabulary: int, seed: int = 0) -> Batch:
    """Rows without padding: ids are above those of the special tokens."""
    chance = np.random.default_rng(seed)
    source, target = (chance.integers(4, vocabulary, (rows, length)) for _ in range(2))
    return as_batch(source, target, target)


def work_for(part: str, model: str, size: int, threads: int) -> tuple[Work, int]:
    """The model at a size, and the length of its sentences."""
    work = replace(BASE, model=model, threads=threads, depth=BASE.depth if model == "transformer" else 1)
    match part:
        case "width":
            return replace(work, width=size, hidden=4 * size), LENGTH
        case "depth":
            return replace(work, depth=size), LENGTH
        case _:
            return work, size if part == "length" else LENGTH


def measured(work: Work, length: int, tokens: int, rounds: int) -> dict[str, float]:
    """In this process: the median time of a step, and the memory that steps took."""
    batch = batch_of(length, tokens // length, work.vocabulary)
    contestant = Regard(work)
    contestant.step(batch_of(length, 1, work.vocabulary))  # what every first step needs, optimizer included
    before, times = peak_mib(), []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        contestant.step(batch)
        times.append(time.perf_counter() - began)
    return {"seconds": statistics.median(times[1:]), "mib": peak_mib() - before, "tokens": batch.tokens}


@torch.inference_mode()
def searched(work: Work, beam: int, rounds: int) -> dict[str, float]:
    """The median time of a search that writes as much as it has read, and the memory that it took."""
    model = make_model(work).eval()
    model.decoder.output.bias[END] = -torch.inf  # nobody ends before the limit
    source = batch_of(LENGTH, TOKENS // LENGTH, work.vocabulary).source
    limits = torch.full((len(source),), LENGTH)
    writer = Fused(model) if Fused.fits(model) else model
    before, times = peak_mib(), []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        search(writer, *writer.start(source), limits, rule=Beam(beam))
        times.append(time.perf_counter() - began)
    return {"seconds": statistics.median(times[1:]), "mib": peak_mib() - before, "tokens": source.numel()}


def one(part: str, model: str, size: int, threads: int, rounds: int) -> dict[str, float]:
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    work, length = work_for(part, model, size, threads)
    if part == "beam":
        return searched(work, size, rounds)
    return measured(work, length, size if part == "batch" else TOKENS, rounds)


def in_a_process(*asked: object) -> dict[str, float]:
    """`one` in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--one", json.dumps(asked)]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | ASLEEP)
    return json.loads(ran.stdout)


def grown(part: str, model: str, options: argparse.Namespace) -> dict[str, object]:
    """One model at all sizes."""
    found = [in_a_process(part, model, size, options.threads, options.rounds) for size in SIZES[part]]
    seconds, memory = ([one[name] for one in found] for name in ("seconds", "mib"))
    result: dict[str, object] = {
        "part": part,
        "model": model,
        "sizes": list(SIZES[part]),
        "tokens_per_second": [round(one["tokens"] / one["seconds"]) for one in found],
        "mib": [round(value, 1) for value in memory],
        "time_exponent": round(exponent(SIZES[part], seconds), 2),
    }
    if min(memory) > 0:
        result["memory_exponent"] = round(exponent(SIZES[part], memory), 2)
    return result


# Several processes


def together(options: argparse.Namespace) -> dict[str, object]:
    """One batch of sentences shared by 1, 2 and 4 processes of one thread each, which agree over gloo."""
    found: dict[int, list[dict[str, float]]] = {size: [] for size in SIZES["processes"]}
    for _ in range(options.rounds):
        for size, measured in found.items():
            measured.append(_race(size, options))
    speeds = [[one["tokens_per_second"] for one in measured] for measured in found.values()]
    cpu = [statistics.median(one["cpu_ms"] for one in measured) for measured in found.values()]
    medians = [statistics.median(values) for values in speeds]
    return {
        "part": "processes",
        "model": "transformer",
        "sizes": list(found),
        "tokens_per_second": [round(value) for value in medians],
        "spread": [spread(values) for values in speeds],
        "times": [round(value / medians[0], 2) for value in medians],
        "cpu_ms_of_all": [round(value, 1) for value in cpu],
        "cpu_of_one": [round(value / cpu[0], 2) for value in cpu],
        "load": round(os.getloadavg()[0], 1),
    }


def _race(world: int, options: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
    environment = os.environ | ASLEEP | {"OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [*command, str(Path(__file__)), "--member", "--rounds", str(options.rounds)],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    return json.loads(ran.stdout.splitlines()[-1])


def member(rounds: int) -> None:
    """One of the processes. Each takes its share of the rows; the first prints tokens a second of all, and the CPU time
    of a step, added up over all."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    work, length = work_for("processes", "transformer", world, 1)
    whole = batch_of(length, 2 * TOKENS // length, work.vocabulary)
    columns = (column[rank::world] for column in (whole.source, whole.target_in, whole.target_out))
    share = Batch(*columns, whole.tokens, whole.predictions)  # the loss is divided by the predictions of all
    together = Workers(rank, world)
    contestant = Regard(work, workers=together)
    times, cpu = [], []
    for _ in range(rounds + 2):
        dist.barrier()
        began, worked = time.perf_counter(), time.process_time()
        contestant.step(share)
        dist.barrier()
        times.append(time.perf_counter() - began)
        cpu.append(together.sum(time.process_time() - worked)[0])
    if rank == 0:
        speed = whole.tokens / statistics.median(times[2:])
        print(json.dumps({"tokens_per_second": speed, "cpu_ms": 1000 * statistics.median(cpu[2:])}))
    together.wait()  # see `regard.trainer.workers`
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description="How the cost of training grows.")
    parser.add_argument("--parts", nargs="+", choices=tuple(SIZES), default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="with several, a batch of many rows is divided")
    parser.add_argument("--ledger", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--member", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*json.loads(options.one))))
        return
    if options.member:
        member(options.rounds)
        return
    for part in options.parts:
        for model in MODELS.get(part, ("transformer",)):
            result = together(options) if part == "processes" else grown(part, model, options)
            print(json.dumps(result), flush=True)
            if options.ledger:
                where = {"threads": options.threads, "torch": torch.__version__}
                enter("scaling", where | result, "python bench/scaling.py --ledger")


if __name__ == "__main__":
    main()
