"""How a training fares beside another busy process: tokens a second with company, over those without.

    python bench/company.py [--preset transformer-tiny] [--seconds 20] [--rounds 3] [--busy 1] [--threads 2] [--ledger]

Each round trains on the built-in corpus for some seconds alone, then as long beside processes that only keep a core
busy, in a process of its own each time, as the command line starts one. The first third of each training is left out:
the threads need some seconds to notice. The figure is the median of the ratios; on two cores beside one busy process a
single thread would have about 0.75, and 2/3 is what three who share two cores fairly leave each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from ledger import enter

SETTINGS = (
    *("data.corpus='fable:fr'", "data.pairs=5000", "text.tokenizer=word", "text.joint=false", "train.batch=1024"),
    *("train.validate_every=1000000", "train.steps=1000000"),
)


def speed(preset: str, seconds: float, threads: int) -> float:
    """Tokens a second of a training, its beginning left out."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "regard", "train", preset, *SETTINGS, "--time", f"{seconds}s"]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        subprocess.run([*command, "--out", f"{place}/run", "--device", "cpu", "--quiet"], check=True, env=environment)
        lines = Path(place, "run", "log.jsonl").read_text().splitlines()
    steps = [event for event in map(json.loads, lines) if event["event"] == "step"]
    begin = next(event for event in steps if event["seconds"] > seconds / 3)
    end = steps[-1]
    return float(end["tokens"] - begin["tokens"]) / (end["seconds"] - begin["seconds"])


def beside(count: int, preset: str, seconds: float, threads: int) -> float:
    """The same with company."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        return speed(preset, seconds, threads)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="transformer-tiny")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--ledger", action="store_true")
    given = parser.parse_args()
    ratios, alone = [], []
    for _ in range(given.rounds):
        quiet = speed(given.preset, given.seconds, given.threads)
        company = beside(given.busy, given.preset, given.seconds, given.threads)
        alone.append(quiet)
        ratios.append(company / quiet)
        print(
            f"alone {quiet:,.0f} tokens/s, beside {given.busy} busy {company:,.0f}: {company / quiet:.2f}", flush=True
        )
    result = {
        "preset": given.preset,
        "threads": given.threads,
        "busy": given.busy,
        "tokens_per_second": round(statistics.median(alone)),
        "share_beside_company": round(statistics.median(ratios), 2),
        "range": [round(min(ratios), 2), round(max(ratios), 2)],
    }
    print(json.dumps(result))
    if given.ledger:
        enter("company", result, " ".join(["python bench/company.py", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
