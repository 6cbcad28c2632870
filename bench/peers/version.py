"""A version of Regard, the one that PYTHONPATH names: what a trained run is used for, again and again.

    python -m peers.version translate|look RUN TEXTS [--beam 5] [--engine NAME]

It uses only what versions have in common, `regard.load` and the verbs of what that returns, and speaks as in
`peers.protocol`: a step is all sentences of the file translated, or one of them looked into.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import regard
from peers.protocol import converse


def begin() -> tuple[dict[str, object], Callable[[int], dict[str, float]]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=("translate", "look"))
    parser.add_argument("run", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--engine", default="", help="who searches; the version's own choice if not given")
    given = parser.parse_args()
    texts = given.texts.read_text(encoding="utf-8").splitlines()
    translator = regard.load(given.run, **({"engine": given.engine} if given.engine else {}))
    waiting = cycle(texts)

    def answer(steps: int) -> dict[str, float]:
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(steps):
            if given.work == "translate":
                translator.translate(texts, beam=given.beam)
            else:
                translator.explain(next(waiting))
        return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}

    return {}, answer


if __name__ == "__main__":
    converse(begin)
