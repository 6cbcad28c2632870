"""Tokens a second of training on the CPU, Regard and its peers in one run.

    python bench/training.py [--models transformer …] [--contestants regard …] [--tokens 4096] [--rounds 5] [--ledger]

Multi30k, German to English, is cut into 8,000 joint pieces and into batches of at most 4,096 padded tokens a side.
Every contestant trains the same model on the same batches in the same order, as a process of its own in an
environment of its own (bench/peers). They take turns, a few steps each, so that whatever the machine does besides
falls on all of them; the figures are medians over the rounds. Tokens are source and target tokens that are not
padding. The loss stands beside the speed: it must be alike, or the work was not the same.

Ways in which threads can share a step of Regard:

    python bench/training.py --models transformer --tokens 448 --contestants "regard, divided" "regard, undivided" …

As it would be on a processor without AVX-512: `--vectors avx2`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from cost import operations_per_token
from ledger import enter, machine, spread
from peers.environments import interpreter
from peers.protocol import Work, read_batches
from regard.data.batches import Batches
from regard.data.encoding import PairEncoder, encode_examples
from regard.text.tokenizers import Tokenizers

ROOT = Path(__file__).parents[1]
BUDGET, PIECES = 4096, 8000
SHARED = {"dropout": 0.1, "smoothing": 0.1, "rate": 3e-4, "clip": 1.0, "width": 256}
MODELS = {
    "transformer": {"depth": 3, "heads": 4, "hidden": 1024},
    "bahdanau": {"depth": 1, "heads": 1, "hidden": 256},
    "luong": {"depth": 1, "heads": 1, "hidden": 256},
}
SPIN = {  # how a thread waits for the others: asleep, a moment awake and then asleep as `regard` has it, or as it comes
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "brief": {"GOMP_SPINCOUNT": "30000"},
    "default": {},
}
VECTORS = {  # the widest that a library may use: all that the processor has, or what an older processor would have
    "all": {},
    "avx2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}
Answer = dict[str, float]


@dataclass(frozen=True)
class Entry:
    """A contestant: which worker, how it is called, and which models it has."""

    worker: str
    models: tuple[str, ...] = ("transformer",)
    arguments: tuple[str, ...] = ()
    spin: str = ""  # its own way of waiting, if not that of all

    @property
    def ours(self) -> bool:
        return self.worker == "regard"


EVERY = tuple(MODELS)
CONTESTANTS = {
    "regard": Entry("regard", EVERY),
    "regard, own threads": Entry("regard", EVERY, spin="brief"),
    "regard, divided": Entry("regard", arguments=("--variant", "divided")),
    "regard, undivided": Entry("regard", arguments=("--variant", "undivided")),
    "regard, divided, own threads": Entry("regard", arguments=("--variant", "divided"), spin="brief"),
    "regard, undivided, own threads": Entry("regard", arguments=("--variant", "undivided"), spin="brief"),
    "huggingface": Entry("huggingface"),
    "huggingface, regard's threads": Entry("huggingface", spin="brief"),
    "huggingface, less dropout": Entry("huggingface", arguments=("--hidden-dropout", "0")),
    "torch": Entry("torch_transformer"),
    "opennmt": Entry("opennmt", EVERY),
    "opennmt, regard's threads": Entry("opennmt", EVERY, spin="brief"),
    "eole": Entry("eole", EVERY),
    "joeynmt": Entry("joeynmt", EVERY),
    "sockeye": Entry("sockeye"),
}
RACE = [name for name in CONTESTANTS if "divided" not in name]  # unless others are named


class Worker:
    """A contestant's process: a Python, a module of `peers` with its arguments, and its environment."""

    def __init__(self, python: str, words: list[str], environment: dict[str, str], folder: Path, log: Path) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [python, "-P", "-W", "ignore", "-m", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w", encoding="utf-8"),
            env=environment,
            cwd=folder,
            text=True,
        )
        self.hello = self._read()

    def ask(self, steps: int) -> Answer:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"steps": steps}) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError("\n".join(self.log.read_text(encoding="utf-8").splitlines()[-8:]))
        return json.loads(line)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class WorkerError(Exception):
    """A contestant gave up."""


def worker(entry: Entry, folder: Path, options: argparse.Namespace, log: Path) -> Worker:
    environment = surroundings(options.threads, ROOT / "bench", *([ROOT / "src"] if entry.ours else []))
    environment |= SPIN[entry.spin or options.spin] | VECTORS[options.vectors]
    words = [f"peers.{entry.worker}", str(folder), *entry.arguments]
    return Worker(interpreter(entry.worker), words, environment, folder, log)


def surroundings(threads: int, *path: Path) -> dict[str, str]:
    """An environment with so many threads and these places to import from, whatever ours says."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "MKL_"))}
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, path)), "OMP_NUM_THREADS": str(threads)}


# What they work on


def prepare(data: Path, folder: Path, count: int, budget: int = BUDGET) -> float:
    """Write the first batches of an epoch into a folder; returns the share of padding in them."""
    lines = {side: _read_lines(data / "multi30k" / f"train.{side}.gz") for side in ("de", "en")}
    tokenizers = Tokenizers.learn("bpe", lines["de"], lines["en"], joint=True, size=PIECES)
    examples = encode_examples(zip(lines["de"], lines["en"], strict=True), PairEncoder(tokenizers))
    chosen = list(islice(Batches(examples, budget, seed=1).epoch(0), count))
    arrays = {
        f"{side}_{number}": getattr(batch, side).astype(np.int32)
        for number, batch in enumerate(chosen)
        for side in ("source", "target_in", "target_out")
    }
    np.savez(folder / "batches.npz", **arrays)
    sides = [array for name, array in arrays.items() if not name.startswith("target_in")]
    return 1 - sum(np.count_nonzero(side) for side in sides) / sum(side.size for side in sides)


def _read_lines(path: Path) -> list[str]:
    if not path.exists():
        raise SystemExit(f"{path}: not there; give the folder that holds multi30k with --data or REGARD_DATA")
    return gzip.decompress(path.read_bytes()).decode("utf-8").rstrip("\n").split("\n")


# The race


@contextmanager
def workers(names: list[str], folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Worker]]:
    """All contestants, started one after another. One that cannot be had is named and left out."""
    with ExitStack() as stack:
        found: dict[str, Worker] = {}
        for number, name in enumerate(names):
            entry = Entry("matrix") if name == "matrix" else CONTESTANTS[name]
            try:
                found[name] = worker(entry, folder, options, folder / f"worker-{number}.log")
            except (WorkerError, subprocess.CalledProcessError) as error:
                print(f"{name}: left out; {error}", file=sys.stderr)
                continue
            stack.callback(found[name].end)
        yield found


def race(
    found: dict[str, Worker], rounds: int, steps: int, warm: int
) -> tuple[dict[str, Answer], dict[str, list[Answer]]]:
    """Each contestant's first steps, and what it took in each round. Who begins changes from round to round."""
    first = {}
    for name in list(found):
        try:
            first[name] = found[name].ask(1 if name == "matrix" else warm)
        except WorkerError as error:
            print(f"{name}: left out; {error}", file=sys.stderr)
            del found[name]
    names = list(found)
    taken: dict[str, list[Answer]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            taken[name].append(found[name].ask(1 if name == "matrix" else steps))
        told = ", ".join(f"{name} {_speed(answers[-1])}" for name, answers in taken.items())
        print(f"round {number + 1} of {rounds}: {told}", file=sys.stderr, flush=True)
    return first, taken


def _speed(answer: Answer) -> str:
    """For whoever watches: a run that is broken off has told something all the same."""
    if "tokens" not in answer:
        return f"{answer['best'] / 1e9:.0f} GFLOP/s"
    return f"{answer['tokens'] / answer['seconds']:,.0f} ({answer['tokens'] / answer['cpu_seconds']:,.0f} per CPU s)"


def summary(first: Answer, taken: list[Answer], matrix: list[Answer], operations: float) -> dict[str, object]:
    """One contestant's figures. The share of the peak is of the matrix rate measured in the same round."""
    speeds = [one["tokens"] / one["seconds"] for one in taken]
    pairs = list(zip(speeds, matrix, strict=True))
    return {
        "tokens_per_second": round(statistics.median(speeds)),
        "spread": spread(speeds),
        "tokens_per_cpu_second": round(statistics.median(one["tokens"] / one["cpu_seconds"] for one in taken)),
        "first_loss": round(first["loss"], 3),
        "loss": round(taken[-1]["loss"], 3),
        "peak_mib": round(max(one["peak_mib"] for one in taken)),
        "share_of_peak": round(statistics.median(speed * operations / one["best"] for speed, one in pairs), 3),
        "share_of_model_rate": round(statistics.median(speed * operations / one["model"] for speed, one in pairs), 3),
    }


def against(ours: list[Answer], theirs: list[Answer]) -> dict[str, object]:
    """How many times as fast, round by round; a busy moment falls on both."""
    ratios = [
        (mine["tokens"] / mine["seconds"]) / (other["tokens"] / other["seconds"])
        for mine, other in zip(ours, theirs, strict=True)
    ]
    return {"times": round(statistics.median(ratios), 2), "times_spread": spread(ratios, 2)}


def measure(model: str, names: list[str], folder: Path, options: argparse.Namespace) -> list[dict[str, object]]:
    work = Work(model=model, vocabulary=PIECES, threads=options.threads, **SHARED, **MODELS[model])
    (folder / "work.json").write_text(json.dumps(asdict(work)), encoding="utf-8")
    operations = operations_per_token(work, read_batches(folder))
    chosen = [name for name in names if model in CONTESTANTS[name].models]
    with workers(["matrix", *chosen], folder, options) as found:
        first, taken = race(found, options.rounds, options.steps, options.warm)
        hello = {name: worker.hello for name, worker in found.items()}
    matrix = taken.pop("matrix")
    results = {name: summary(first[name], taken[name], matrix, operations) for name in taken}
    peers = [name for name in taken if not CONTESTANTS[name].ours]
    fastest = max(peers, key=lambda name: results[name]["tokens_per_second"], default=None)  # type: ignore[arg-type,return-value]
    common = {
        "model": model,
        "batch_tokens": options.tokens,
        "threads": options.threads,
        "spin": options.spin,
        "vectors": options.vectors,
        "load": round(os.getloadavg()[0], 1),  # above the number of cores, others were at work too
        "rounds": options.rounds,
        "steps": options.steps,
        "mflop_per_token": round(operations / 1e6, 1),
        "matrix_gflops": round(statistics.median(one["best"] for one in matrix) / 1e9, 1),
        "model_gflops": round(statistics.median(one["model"] for one in matrix) / 1e9, 1),
    }
    lines = []
    for name, result in results.items():
        compared = {}
        if fastest is not None:
            compared = {"against": fastest, **against(taken[name], taken[fastest])}
        lines.append({**common, "contestant": name, **hello[name], **result, **compared})
    return sorted(lines, key=lambda line: -line["tokens_per_second"])  # type: ignore[operator]


def table(lines: list[dict[str, object]]) -> str:
    """For a terminal."""
    if not lines:
        return "nobody could be measured"
    head = lines[0]
    rows = [
        f"{head['model']}: {head['mflop_per_token']} MFLOP a token; matrix products {head['matrix_gflops']} GFLOP/s at "
        f"best, {head['model_gflops']} at the model's shapes",
        f"{'':22}{'tokens/s':>9}{'spread':>13}{'/CPU s':>8}{'× best peer':>12}{'of peak':>9}{'of shapes':>10}"
        f"{'loss':>14}{'MiB':>7}{'parameters':>12}",
    ]
    for line in lines:
        low, high = line["spread"]  # type: ignore[misc]
        rows.append(
            f"{line['contestant']:22}{line['tokens_per_second']:>9,}{f'{low:,}–{high:,}':>13}"
            f"{line['tokens_per_cpu_second']:>8,}{line.get('times', ''):>12}{line['share_of_peak']:>9.0%}"
            f"{line['share_of_model_rate']:>10.0%}{line['first_loss']:>7.2f}{line['loss']:>7.2f}{line['peak_mib']:>7,}"
            f"{line['parameters']:>12,}"
        )
    return "\n".join(rows)


def command(options: argparse.Namespace) -> str:
    """What to type to measure the same again; where the corpus lies is everybody's own matter."""
    lists = {"models": options.models, "contestants": options.contestants}
    numbers = ("tokens", "rounds", "steps", "warm", "batches", "threads", "spin", "vectors")
    flags = [part for name, values in lists.items() for part in (f"--{name}", *values)]
    flags += [part for name in numbers for part in (f"--{name}", str(getattr(options, name)))]
    return f"python bench/training.py {shlex.join([*flags, '--ledger'])}"


def kind(options: argparse.Namespace) -> str:
    """Under which name it goes into the ledger: races that are no rivals of each other."""
    if all(CONTESTANTS[name].ours for name in options.contestants):
        return "cpu-threads"
    return "cpu-training" if options.vectors == "all" else f"cpu-training-{options.vectors}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Tokens a second of training on the CPU, Regard and its peers.")
    parser.add_argument("--models", nargs="+", choices=EVERY, default=list(EVERY))
    parser.add_argument("--contestants", nargs="+", choices=tuple(CONTESTANTS), default=RACE)
    parser.add_argument("--tokens", type=int, default=BUDGET, help="of a batch, on each side, at the most")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="of each contestant in a round")
    parser.add_argument("--warm", type=int, default=3, help="steps before the first round")
    parser.add_argument("--batches", type=int, default=24, help="different ones, used again and again")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--spin", choices=tuple(SPIN), default="passive", help="how threads wait for each other")
    parser.add_argument("--vectors", choices=tuple(VECTORS), default="all", help="the widest that libraries may use")
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))
    )
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    run = time.strftime("%Y-%m-%d %H:%M:%S")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        padding = prepare(options.data, folder, options.batches, options.tokens)
        print(f"{machine()}; {padding:.1%} of the batches is padding", file=sys.stderr, flush=True)
        for model in options.models:
            lines = measure(model, options.contestants, folder, options)
            print(table(lines), flush=True)
            for line in lines if options.ledger else []:
                enter(kind(options), {"run": run, "padding": round(padding, 3), **line}, command(options))


if __name__ == "__main__":
    main()
