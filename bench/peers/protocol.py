"""What every contestant speaks. One line on its input asks for steps, one line on its output says what they took.

    {"steps": 5}  →  {"seconds": 11.2, "cpu_seconds": 22.1, "tokens": 35120, "loss": 8.9, "peak_mib": 1480}

Between two lines it waits for its input and uses no processor, so that contestants can take turns. This file needs
numpy and torch and nothing of Regard, because it runs in the environments of the others too.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

PAD, START, END, UNK = 0, 1, 2, 3
SECOND_MOMENT = 0.98


@dataclass(frozen=True)
class Work:
    """The model and the training that all contestants have in common."""

    model: str  # "transformer", "bahdanau" or "luong"
    vocabulary: int
    width: int
    depth: int  # layers of the encoder and of the decoder, each
    heads: int
    hidden: int  # of the feed-forward networks
    dropout: float
    smoothing: float
    rate: float
    clip: float
    threads: int


@dataclass(frozen=True)
class Batch:
    """Padded rows; padding is 0 and stands on the right."""

    source: Tensor  # (B, S), each row ends with END
    target_in: Tensor  # (B, T), begins with START
    target_out: Tensor  # (B, T), ends with END
    tokens: int  # source + target, without padding
    predictions: int


class Contestant(Protocol):
    """A model in training."""

    model: nn.Module

    def step(self, batch: Batch) -> float:
        """One update of the weights; returns the loss summed over the predictions."""


def read_work(folder: Path) -> Work:
    return Work(**json.loads((folder / "work.json").read_text(encoding="utf-8")))


def read_batches(folder: Path) -> list[Batch]:
    """What the driver has prepared, in its order."""
    with np.load(folder / "batches.npz") as arrays:
        count = len(arrays.files) // 3
        return [
            as_batch(*(arrays[f"{side}_{number}"] for side in ("source", "target_in", "target_out")))
            for number in range(count)
        ]


def as_batch(source: np.ndarray, target_in: np.ndarray, target_out: np.ndarray) -> Batch:
    predictions = int(np.count_nonzero(target_out))
    columns = (torch.from_numpy(side.astype(np.int64)) for side in (source, target_in, target_out))
    return Batch(*columns, int(np.count_nonzero(source)) + predictions, predictions)


def serve(make: Callable[[Work], Contestant], version: str) -> None:
    """Be a contestant until the input ends."""
    folder = Path(sys.argv[1])

    def begin() -> tuple[dict[str, object], Callable[[int], dict[str, float]]]:
        work, batches = read_work(folder), read_batches(folder)
        torch.set_num_threads(work.threads)
        torch.manual_seed(1)
        contestant = make(work)
        contestant.model.train()
        count = sum(parameter.numel() for parameter in contestant.model.parameters() if parameter.requires_grad)
        endless = cycle(batches)
        hello = {"version": version, "torch": torch.__version__, "parameters": count}
        return hello, lambda steps: measure(contestant, list(islice(endless, steps)))

    converse(begin)


def converse(begin: Callable[[], tuple[dict[str, object], Callable[[int], dict[str, float]]]]) -> None:
    """The first line of the output says who this is; then there is a line for each line of the input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a toolkit prints goes to stderr
    hello, answer = begin()
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(int(json.loads(line)["steps"]))), file=answers, flush=True)


def measure(contestant: Contestant, batches: list[Batch]) -> dict[str, float]:
    """Take one step with each batch."""
    wall, processor = time.perf_counter(), time.process_time()
    loss = sum(contestant.step(batch) for batch in batches)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - processor,
        "tokens": sum(batch.tokens for batch in batches),
        "loss": loss / sum(batch.predictions for batch in batches),
        "peak_mib": peak_mib(),
    }


def peak_mib() -> float:
    """The most memory that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def adam(model: nn.Module, work: Work) -> torch.optim.Optimizer:
    """What a careful user takes: the update of all weights in one kernel."""
    return torch.optim.AdamW(
        model.parameters(), lr=work.rate, betas=(0.9, SECOND_MOMENT), eps=1e-9, weight_decay=0.0, fused=True
    )


def update(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor, work: Work, predictions: int) -> float:
    """The rest of a plain loop: backward, clip, step."""
    optimizer.zero_grad(set_to_none=True)
    (loss / predictions).backward()
    nn.utils.clip_grad_norm_(model.parameters(), work.clip)
    optimizer.step()
    return float(loss.detach())
