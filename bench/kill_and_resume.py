"""Kill a training at random moments, resume it each time, and compare the end with a training left in peace.

    python bench/kill_and_resume.py [--kills 20] [--processes 1] [--folder F] [--seed N]

The weights, their average and the optimizer must come out equal, bit for bit. With several processes (gloo) each has
dropout of its own, subwords are sampled, and now one of them is killed, now all.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import regard
from regard.runs import checkpoint

STEPS = 120
SETTINGS = (
    *("data.corpus='fable:fr'", "data.pairs=300", "data.words=8", "text.tokenizer=word", "text.joint=false"),
    *("model.width=16", "model.heads=2", "model.hidden=32", "model.encoder_depth=1", "model.decoder_depth=1"),
    *("train.batch=128", f"train.steps={STEPS}", "train.validate_every=5", "train.average={kind='moving'}"),
)
TOGETHER = (
    *("text.tokenizer=bpe", "text.size=601", "text.sampling=true", "model.dropout=0.3", "train.word_dropout=0.1"),
    "train.average={kind='last', count=3}",
)
PARTS = ("weights", "average", "optimizer")


def train(arguments: list[str], patience: float | None, processes: int, first: int) -> bool:
    """Run a training; kill it after so many seconds, the process with the number ``first`` a moment before the others.
    True if it came to its end."""
    command, started = [sys.executable, "-m", "regard", "train", *arguments], []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for rank in range(processes):
        names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "MASTER_PORT": port}
        own = {name: str(value) for name, value in names.items()} | {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **(own if processes > 1 else {})}
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment))
    try:
        until = None if patience is None else time.monotonic() + patience
        codes = [one.wait(None if until is None else max(0.0, until - time.monotonic())) for one in started]
        return codes == [0] * processes
    except subprocess.TimeoutExpired:
        started[first].send_signal(signal.SIGKILL)
        time.sleep(0.2 * (processes > 1))
        return False
    finally:
        for one in started:
            one.kill()
            one.wait()


def finished(run: Path) -> bool:
    made = checkpoint.steps(run / "checkpoints")
    return bool(made) and made[-1].name == f"step-{STEPS}"


def last_bytes(run: Path) -> list[bytes]:
    last = checkpoint.steps(run / "checkpoints")[-1]
    return [(last / f"{name}.safetensors").read_bytes() for name in PARTS]


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill and resume a training; the result must not change.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp())
    chance = random.Random(arguments.seed)

    file = folder / "settings.toml"
    several = TOGETHER if arguments.processes > 1 else ()
    file.write_text(regard.load_settings("transformer-tiny", *SETTINGS, *several).to_toml())
    began = time.monotonic()
    assert train([str(file), "--out", str(folder / "peace"), "--device", "cpu"], None, arguments.processes, 0)
    whole, peace = time.monotonic() - began, last_bytes(folder / "peace")

    kills, runs, same = 0, 0, True
    while kills < arguments.kills or not finished(folder / f"killed-{runs}"):
        run = folder / f"killed-{runs}"
        if finished(run):  # before all kills were spent: compare, and begin another
            same, runs = same and last_bytes(run) == peace, runs + 1
            continue
        begin = ["--resume", str(run)] if (run / "settings.toml").exists() else [str(file), "--out", str(run)]
        patience = chance.uniform(0.1, 0.8) * whole if kills < arguments.kills else None
        first = chance.randrange(arguments.processes)
        ended = train([*begin, "--device", "cpu"], patience, arguments.processes, first)
        assert ended or patience is not None, "a training that nobody killed did not come to its end"
        kills += not ended
    same = same and last_bytes(folder / f"killed-{runs}") == peace
    print(f"killed {kills} times in {runs + 1} runs: the results are {'equal, bit for bit' if same else 'OTHERS'}")
    return not same


if __name__ == "__main__":
    sys.exit(main())
