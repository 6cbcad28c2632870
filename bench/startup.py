"""How long one sentence takes from the command line, beside `import torch`, which nobody can avoid.

    python bench/startup.py [--run RUN] [--text TEXT] [--rounds 9] [--ledger]

Without a run, one of the preset's size is made, with a single step of training: how good it is changes nothing here.
Each command is a process of its own; they take turns, and CPU seconds are what the system counted for each. The ratio
is the median over rounds of a command's CPU seconds divided by those of `import torch`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import regard
from ledger import enter, spread
from regard.trainer.start import start

REFERENCE = "import torch"


def made(folder: Path) -> Path:
    """A run to translate with."""
    few = ("data.corpus='fable:fr'", "data.pairs=499", "text.size=2000", "train.steps=1", "train.validate_every=1")
    start(folder / "run", regard.load_settings("transformer-small", *few), device="cpu")
    return folder / "run"


def commands(run: Path, text: str) -> dict[str, list[str]]:
    verb = [sys.executable, "-m", "regard"]
    return {
        REFERENCE: [sys.executable, "-c", "import torch"],
        "regard translate": [*verb, "translate", str(run), text, "--beam", "1"],
        "regard --help": [*verb, "--help"],
    }


def seconds(command: list[str], environment: Mapping[str, str] = os.environ) -> float:
    """CPU seconds of a process that must end well; what it writes goes nowhere."""
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    number = os.posix_spawn(command[0], command, environment, file_actions=quiet)
    _, status, used = os.wait4(number, 0)
    assert os.waitstatus_to_exitcode(status) == 0, command
    return used.ru_utime + used.ru_stime


def measure(found: dict[str, list[str]], rounds: int) -> list[dict[str, object]]:
    for command in found.values():
        seconds(command)  # compiled modules, and files in memory
    spent: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, command in found.items():
            spent[name].append(seconds(command))
    lines: list[dict[str, object]] = []
    for name, times in spent.items():
        ratios = [ours / theirs for ours, theirs in zip(times, spent[REFERENCE], strict=True)]
        lines.append(
            {
                "contestant": name,
                "cpu_seconds": round(statistics.median(times), 2),
                "spread": spread(times, 2),
                "times_import_torch": round(statistics.median(ratios), 2),
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="One sentence from the command line, beside importing torch.")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--text", default="the black cat ate the mouse")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = measure(commands(options.run or made(Path(folder)), options.text), options.rounds)
    for line in lines:
        print(json.dumps(line))
        if options.ledger:
            enter("startup", {**line, "rounds": options.rounds}, "python bench/startup.py --ledger")


if __name__ == "__main__":
    main()
