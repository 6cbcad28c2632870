"""What looking costs: 60 tokens through 6 + 6 layers of 8 heads, decoded, replayed and packed, on two threads.

    python bench/trace.py [--rounds N] [--ledger]

The model is transformer-base with random weights; 60 tokens in, and as many out, since it never learned to stop. A
trace as it is transported is the pair of files that `Trace.save` writes: all weights, states and probabilities in
single precision, and their description. The bounds are 1.5 s for all three together and 5 MB. ``--ledger`` appends
the result to bench/ledger.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from ledger import enter
from regard import encoder_decoder, load_settings
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.explain.replay import replay
from regard.explain.trace import DESCRIPTION, TENSORS
from regard.models.generator import EncoderDecoder
from regard.text.vocabulary import END

PRESET, SIZE, LENGTH, BEAM, THREADS = "transformer-base", 8000, 60, 5, 2
SECONDS, MEGABYTES = 1.5, 5.0


def once(model: EncoderDecoder, source: list[int], folder: Path) -> tuple[float, float, float, int]:
    """Seconds to decode, to replay and to pack, and how many bytes that makes."""
    began = time.perf_counter()
    with torch.no_grad():
        first, state = model.start(torch.tensor([source]))
        found = search(model, first, state, torch.tensor([LENGTH]), rule=Beam(BEAM))
    decoded = time.perf_counter()
    trace = replay(model, source, [*found[0][0].tokens, END][: LENGTH + 1])
    replayed = time.perf_counter()
    trace.save(folder / "trace")
    packed = time.perf_counter()
    size = sum((folder / f"trace{suffix}").stat().st_size for suffix in (TENSORS, DESCRIPTION))
    return decoded - began, replayed - decoded, packed - replayed, size


def measure(rounds: int) -> dict[str, object]:
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    settings = load_settings(PRESET).model
    model = encoder_decoder(settings, SIZE, SIZE).eval()
    source = [*torch.randint(4, SIZE, (LENGTH,)).tolist(), END]
    with tempfile.TemporaryDirectory() as folder:
        times = [once(model, source, Path(folder)) for _ in range(rounds + 1)][1:]  # the first warms up
    decode, replayed, packed = (statistics.median(column) for column in list(zip(*times, strict=True))[:3])
    return {
        "preset": PRESET,
        "tokens": LENGTH,
        "beam": BEAM,
        "rounds": rounds,
        "decode_s": round(decode, 3),
        "replay_s": round(replayed, 3),
        "pack_s": round(packed, 3),
        "together_s": round(statistics.median(sum(each[:3]) for each in times), 3),
        "megabytes": round(times[0][3] / 1e6, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and size of a trace of 60 tokens through a base Transformer.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.rounds)
    for name, value in found.items():
        print(f"{name:12}{value}")
    good = float(str(found["together_s"])) < SECONDS and float(str(found["megabytes"])) < MEGABYTES
    print(f"bounds: {SECONDS} s, {MEGABYTES} MB: {'within' if good else 'above'}")
    if arguments.ledger:
        about = {"threads": THREADS, "torch": torch.__version__}
        enter("trace", about | found, f"python bench/trace.py --rounds {arguments.rounds} --ledger")
    return not good


if __name__ == "__main__":
    sys.exit(main())
