"""What torch.compile buys on this machine: a training step of a Transformer, compiled against eager.

    python bench/compiled.py [PRESET …] [--rounds 30] [--ledger]

Both kinds of step run on the same batches of the built-in corpus in one process, in turn; their losses are compared.
The figure is the median of the ratios eager time / compiled time; above 1 the compiled step is faster. Time is the
processor's, so that a busy machine changes little. Compiling is paid for once a run, at the first batches;
``pays_after_steps`` is the number of steps that win it back.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch._dynamo.utils import counters

import regard
from ledger import enter
from regard.data.batches import Batches
from regard.runs.folder import Run
from regard.tasks.task import Task, Tensors
from regard.trainer.optimizer import make_optimizer
from regard.trainer.start import open_task
from regard.trainer.steps import EagerStep

SETTINGS = (
    *("data.corpus='fable:fr'", "data.pairs=4000", "text.tokenizer=word", "text.joint=false"),
    *("model.tie=target", "model.dropout=0.0"),
)
CPU = torch.device("cpu")
WARM = 8  # batches that each kind of step meets first


def make_step(task: Task, *, compiled: bool) -> EagerStep:
    optimizer = make_optimizer("adam", task, weight_decay=0.0, momentum=0.0, second_moment=0.98)
    return EagerStep(task, optimizer, compiled=compiled)


def seconds(step: EagerStep, batch: Tensors) -> float:
    began = time.process_time()
    step([batch], float((batch.target_out != 0).sum()), 1e-4, 1)
    return time.process_time() - began


@torch.no_grad()
def largest_difference(task: Task, compiled: EagerStep, batches: list[Tensors]) -> float:
    """Between the two kinds of loss, relative."""
    pairs = [(float(task(batch)), float(compiled.loss(batch, static=True))) for batch in batches]
    return max(abs(first - second) / abs(first) for first, second in pairs)


def measure(preset: str, budget: int, rounds: int) -> dict[str, object]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", regard.load_settings(preset, *SETTINGS))
        task = open_task(run, lambda _: None).train()
        batches = [Tensors.of(batch, CPU) for batch in Batches(task.train_examples, budget).epoch(0)]
        eager, compiled = make_step(task, compiled=False), make_step(task, compiled=True)
        plain = [seconds(eager, batch) for batch in batches[:WARM]]
        cost = sum(seconds(compiled, batch) for batch in batches[:WARM]) - sum(plain)
        times = []
        for number in range(rounds):
            batch = batches[(WARM + number) % len(batches)]
            times.append((seconds(eager, batch), seconds(compiled, batch)))
    ratios = sorted(first / second for first, second in times)
    saved = statistics.median(first - second for first, second in times)
    return {
        "preset": preset,
        "batch": budget,
        "eager_over_compiled": round(statistics.median(ratios), 2),
        "range": [round(ratios[0], 2), round(ratios[-1], 2)],
        "eager_milliseconds": round(1000 * statistics.median(first for first, _ in times), 1),
        "compile_seconds": round(cost, 1),
        "graphs": counters["stats"]["unique_graphs"],
        "graph_breaks": sum(counters["graph_break"].values()),
        "largest_difference": largest_difference(task, compiled, batches[:3]),
        "pays_after_steps": round(cost / saved) if saved > 0 else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Eager time over compiled time of a training step.")
    parser.add_argument("presets", nargs="*", default=["transformer-tiny", "transformer-small"])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    for preset in options.presets:
        result = measure(preset, options.batch, options.rounds)
        print(json.dumps(result), flush=True)
        if options.ledger:
            about = {"threads": torch.get_num_threads(), "torch": torch.__version__}
            enter("compiled", about | result, "python bench/compiled.py --ledger")


if __name__ == "__main__":
    main()
