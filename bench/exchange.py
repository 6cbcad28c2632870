"""What the exchange of gradients between processes costs a step, measured where there is nobody to exchange with.

    torchrun --standalone --nproc-per-node=1 bench/exchange.py [--sizes transformer-small transformer-base]
        [--kinds graph compiled-graph] [--tokens 8192] [--rounds 7] [--ledger]

Two trainings of the same weights on the same batches of the built-in corpus, one without a process group, one with all
that several processes would do: gradients copied into buckets, and NCCL adding them up inside the captured step (gloo,
without a GPU). They take turns, a round of each; the figure is the median over the rounds of the milliseconds that a
step takes. After equally many steps, with dropout, both must have the same weights, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import regard
from ledger import enter, spread
from regard.data.batches import Position
from regard.runs.folder import Run
from regard.tasks.task import Tensors
from regard.trainer.feed import Feed
from regard.trainer.loop import begin_chance, step_seed
from regard.trainer.optimizer import make_optimizer
from regard.trainer.start import open_task
from regard.trainer.steps import GRAPHS, EagerStep, GraphStep, TrainStep, uses_bfloat16
from regard.trainer.workers import ALONE, BUCKET, Exchange

RATE = 3e-4
BATCHES = 24  # different ones, over and over


class Contestant:
    """A training, alone or as the only member of a process group."""

    def __init__(self, run: Run, kind: str, device: torch.device, *, exchanging: bool) -> None:
        torch.manual_seed(1)
        self.task, self.device, self.taken = open_task(run, print).to(device).train(), device, 0
        settings = run.settings.train
        optimizer = make_optimizer(
            "adamw", self.task, weight_decay=0.0, momentum=0.0, second_moment=0.98, capturable=kind in GRAPHS
        )
        chosen: type[TrainStep] = GraphStep if kind in GRAPHS else EagerStep
        compiled, autocast = kind.startswith("compiled"), uses_bfloat16(settings, device)
        self.step = chosen(self.task, optimizer, autocast=autocast, compiled=compiled)
        if exchanging:
            self.step.exchange = Exchange(self.task.parameters())
        longest = self.task.longest(run.settings.data.longest)
        feed = Feed(self.task, settings, longest=longest, kind=kind, device=device, workers=ALONE)
        groups = feed.groups(Position(0, 0))
        self.batches = [Tensors.of(group.batches[0], device) for group in islice(groups, BATCHES)]
        self.tokens = [float(batch.target_out.count_nonzero()) for batch in self.batches]
        groups.close()

    def take(self, rounds: int) -> float:
        """All batches so many times over; seconds a step."""
        self._wait()
        began = time.perf_counter()
        for batch, count in islice(cycle(zip(self.batches, self.tokens, strict=True)), rounds * BATCHES):
            self.taken += 1
            begin_chance(step_seed(1, 0, self.taken), self.device)
            self.step([batch], count, RATE, self.taken)
        self._wait()
        return (time.perf_counter() - began) / (rounds * BATCHES)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def measured(size: str, kind: str, tokens: int, rounds: int, device: torch.device) -> dict[str, Any]:
    settings = regard.load_settings(
        size,
        *("data.corpus='fable:fr'", "data.pairs=6000", f"train.batch={tokens}", "train.shapes=6"),
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", settings)
        alone, joined = (Contestant(run, kind, device, exchanging=each) for each in (False, True))
        began = time.perf_counter()
        for each in (alone, joined):  # every shape is met, captured, and replayed
            each.take(3)
        captured = time.perf_counter() - began
        times: dict[str, list[float]] = {"alone": [], "joined": []}
        for _ in range(rounds):
            times["alone"].append(1000 * alone.take(2))
            times["joined"].append(1000 * joined.take(2))
        pairs = zip(alone.task.parameters(), joined.task.parameters(), strict=True)
        same = all(torch.equal(first, second) for first, second in pairs)
        count = sum(each.numel() for each in alone.task.parameters())
    medians = {name: statistics.median(found) for name, found in times.items()}
    ratios = [joined / alone for alone, joined in zip(times["alone"], times["joined"], strict=True)]
    return {
        "size": size,
        "parameters": count,
        "kind": kind,
        "tokens": tokens,
        "backend": dist.get_backend(),
        "bucket": BUCKET,
        "steps": alone.taken,
        "first_seconds": round(captured, 1),
        "alone_ms": round(medians["alone"], 3),
        "joined_ms": round(medians["joined"], 3),
        "ratio": round(statistics.median(ratios), 4),
        "ratio_spread": spread(ratios, 3),
        "same_weights": same,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of exchanging gradients.")
    parser.add_argument("--sizes", nargs="+", default=["transformer-small", "transformer-base"])
    parser.add_argument("--kinds", nargs="+", default=["graph", "compiled-graph"])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    where = {"torch": torch.__version__}
    if device.type == "cuda":
        torch.cuda.set_device(device)
        where |= {"device": torch.cuda.get_device_name(device)}
    for size in asked.sizes:
        for kind in asked.kinds:
            result = measured(size, kind, asked.tokens, asked.rounds, device)
            print(json.dumps(result), flush=True)
            if asked.ledger:
                enter("exchange", where | result, "torchrun --standalone --nproc-per-node=1 bench/exchange.py --ledger")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
