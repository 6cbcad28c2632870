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

SETTINGS = (
    *("data.corpus='fable:fr'", "data.pairs=300", "data.words=8", "text.tokenizer=word", "text.joint=false"),
    *("model.width=16", "model.heads=2", "model.hidden=32", "model.encoder_depth=1", "model.decoder_depth=1"),
    *("train.batch=128", "train.steps=60", "train.validate_every=5", "train.average={kind='moving'}"),
)
PARTS = ("weights", "average", "optimizer", "random")


def train(arguments: list[str], patience: float | None) -> bool:
    """Run a training; kill it after so many seconds. True if it came to its end."""
    process = subprocess.Popen([sys.executable, "-m", "regard", "train", *arguments], stderr=subprocess.DEVNULL)
    try:
        return process.wait(patience) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False


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
    whole = time.monotonic() - began

    run, kills = folder / "killed", 0
    while kills < arguments.kills:
        begin = ["--resume", str(run)] if (run / "settings.toml").exists() else [str(file), "--out", str(run)]
        if train([*begin, "--device", "cpu"], chance.uniform(0.2, 1.2) * whole):
            break
        kills += 1
    if kills == arguments.kills:
        assert train(["--resume", str(run), "--device", "cpu"], None)
    same = last_bytes(run) == last_bytes(folder / "peace")
    print(f"killed {kills} times: the result is {'equal, bit for bit' if same else 'ANOTHER'}")
    return not same


if __name__ == "__main__":
    sys.exit(main())
