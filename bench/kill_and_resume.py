"""Kill a training at random moments, resume it each time, and compare the end with a training left in peace.

    python bench/kill_and_resume.py [--kills 20] [--folder F] [--seed N]

The weights, the optimizer and the random state must come out equal, bit for bit.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import regard
from regard.trainer import checkpoint

STEPS = 120
SETTINGS = (
    *("data.corpus='fable:fr'", "data.pairs=300", "data.words=8", "text.tokenizer=word", "text.joint=false"),
    *("model.width=16", "model.heads=2", "model.hidden=32", "model.encoder_depth=1", "model.decoder_depth=1"),
    *("train.batch=128", f"train.steps={STEPS}", "train.validate_every=5", "train.average={kind='moving'}"),
)
PARTS = ("weights", "average", "optimizer")


def train(arguments: list[str], patience: float | None) -> bool:
    """Run a training; kill it after so many seconds. True if it came to its end."""
    process = subprocess.Popen([sys.executable, "-m", "regard", "train", *arguments], stderr=subprocess.DEVNULL)
    try:
        return process.wait(patience) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False


def finished(run: Path) -> bool:
    made = checkpoint.steps(run / "checkpoints")
    return bool(made) and made[-1].name == f"step-{STEPS}"


def last_bytes(run: Path) -> list[bytes]:
    last = checkpoint.steps(run / "checkpoints")[-1]
    return [(last / f"{name}.safetensors").read_bytes() for name in PARTS]


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill and resume a training; the result must not change.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp())
    chance = random.Random(arguments.seed)

    file = folder / "settings.toml"
    file.write_text(regard.load_settings("transformer-tiny", *SETTINGS).to_toml())
    began = time.monotonic()
    assert train([str(file), "--out", str(folder / "peace"), "--device", "cpu"], None)
    whole, peace = time.monotonic() - began, last_bytes(folder / "peace")

    kills, runs, same = 0, 0, True
    while kills < arguments.kills or not finished(folder / f"killed-{runs}"):
        run = folder / f"killed-{runs}"
        if finished(run):  # before all kills were spent: compare, and begin another
            same, runs = same and last_bytes(run) == peace, runs + 1
            continue
        begin = ["--resume", str(run)] if (run / "settings.toml").exists() else [str(file), "--out", str(run)]
        patience = chance.uniform(0.1, 0.8) * whole if kills < arguments.kills else None
        kills += not train([*begin, "--device", "cpu"], patience)
    same = same and last_bytes(folder / f"killed-{runs}") == peace
    print(f"killed {kills} times in {runs + 1} runs: the results are {'equal, bit for bit' if same else 'OTHERS'}")
    return not same


if __name__ == "__main__":
    sys.exit(main())
