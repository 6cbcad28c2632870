"""No model: how fast this machine multiplies matrices, at the best size and at the sizes of the model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch

from cost import best_rate, model_rate
from peers.protocol import converse, read_batches, read_work


def begin() -> tuple[dict[str, object], Callable[[int], dict[str, float]]]:
    folder = Path(sys.argv[1])
    work, batches = read_work(folder), read_batches(folder)
    torch.set_num_threads(work.threads)

    def answer(steps: int) -> dict[str, float]:
        shapes = sum(model_rate(work, batch) for batch in batches[:steps]) / steps
        return {"best": best_rate(), "model": shapes}

    return {"version": f"torch {torch.__version__}", "torch": torch.__version__, "parameters": 0}, answer


if __name__ == "__main__":
    converse(begin)
