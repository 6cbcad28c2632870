"""What the fused paths buy: each preset's forward pass and training step against its written-out twin.

    python bench/fused.py [--rounds N] [--ledger]

Both paths run the same weights on the same batch in one process, interleaved; the figure is the median of
the ratios. ``--ledger`` appends the result to bench/ledger.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor

import regard
from ledger import enter
from regard.models.generator import EncoderDecoder
from regard.nn.observe import UNOBSERVED, Observer

PRESETS = ["lstm", "lstm-deep", "bahdanau", "luong-general", "transformer-tiny", "transformer-small"]


class Onlooker:
    """Watches and keeps nothing: makes every module take its written-out path at no further cost."""

    active = True

    def at(self, place: str | int) -> Observer:  # noqa: ARG002
        return self

    def see(self, name: str, value: Tensor) -> Tensor:  # noqa: ARG002
        return value


def seconds(model: EncoderDecoder, source: Tensor, target: Tensor, observer: Observer, *, train: bool) -> float:
    began = time.perf_counter()
    with torch.set_grad_enabled(train):
        logits = model(source, target, observer=observer)
        if train:
            model.zero_grad()
            logits.logsumexp(-1).sum().backward()
    return time.perf_counter() - began


def measure(preset: str, rounds: int) -> dict[str, object]:
    torch.manual_seed(0)
    model = regard.encoder_decoder(regard.load_settings(preset).model, 8000, 8000)
    source, target = torch.randint(4, 8000, (32, 24)), torch.randint(4, 8000, (32, 24))
    for row in range(32):  # unequal lengths, as in a bucket
        source[row, 24 - row % 6 :] = 0
    result: dict[str, object] = {"preset": preset}
    for name, train in (("forward", False), ("train", True)):
        model.train(train)
        ratios = []
        for trial in range(rounds + 1):
            written = seconds(model, source, target, Onlooker(), train=train)
            fused = seconds(model, source, target, UNOBSERVED, train=train)
            if trial:  # the first round warms up
                ratios.append(written / fused)
        result[name] = round(statistics.median(ratios), 2)
        result[f"{name}_range"] = [round(min(ratios), 2), round(max(ratios), 2)]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Written-out time over fused time; above 1 the fused path is faster.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    print(f"{'preset':20}{'forward':>9}{'training':>10}   written-out time / fused time, 32 × 24 tokens")
    for preset in PRESETS:
        result = measure(preset, arguments.rounds)
        print(f"{preset:20}{result['forward']:>9}{result['train']:>10}")
        if arguments.ledger:
            about = {"threads": torch.get_num_threads(), "torch": torch.__version__}
            enter("fused", about | result, "python bench/fused.py --ledger")


if __name__ == "__main__":
    main()
