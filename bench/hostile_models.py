"""Damage models from elsewhere and import them: one line, exit code 4, nothing written, memory bounded.

    PYTHONPATH=tests python bench/hostile_models.py [--seed 1] [--cases 1000] [--format NAME] [--case N]

For each format a small model is made, and in each case one file of it, or the archive around it, is damaged. An import
that succeeds all the same has numbers that are only other numbers; it must then translate. What else comes
out is a finding, printed with what tries it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import resource
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import torch

from importing import FORMATS
from mutations import mutate, mutate_json
from regard.cli import main as verbs

CODES = (0, 4)
ABOVE_IDLE = 1 << 29  # bytes
USED = 20  # one in so many that could be imported is used


def call(*words: object) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = verbs.run([str(word) for word in words])
    return code, err.getvalue().strip()


def damaged(model: Path, place: Path, chance: random.Random) -> Path:
    """A copy with one file changed; or all of it in an archive that is."""
    if chance.random() < 0.15:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            for path in sorted(model.rglob("*")):
                if path.is_file():
                    file.write(path, f"model/{path.relative_to(model)}")
        packed = place / "x.argosmodel"
        packed.write_bytes(mutate(archive.getvalue(), chance))
        return packed
    copy = shutil.copytree(model, place / "model")
    files = [path for path in sorted(copy.rglob("*")) if path.is_file()]
    heavy = [path for path in files if path.suffix in (".bin", ".npz", ".pt", ".safetensors")]
    chosen = chance.choice(heavy if heavy and chance.random() < 0.6 else files)
    data = chosen.read_bytes()
    head = chance.random() < 0.5 and chosen in heavy  # where names, sizes and kinds are
    if chosen.suffix == ".json":
        chosen.write_bytes(mutate_json(data, chance))
    else:
        chosen.write_bytes(mutate(data[:4096], chance) + data[4096:] if head else mutate(data, chance))
    return copy


def one(model: Path, number: int, seed: int, folder: Path) -> tuple[int, str]:
    """Run a case: its exit code, and what is wrong, or nothing."""
    chance = random.Random(f"{seed}/{model.name}/{number}")
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        what = damaged(model, place, chance)
        code, said = call("import", what, "--out", place / "out" / "run")
        if code not in CODES or (code and len(said.splitlines()) != 1):
            return code, f"exit code {code}\n{said[-2000:]}"
        if code and (place / "out").exists() and any((place / "out").iterdir()):
            return code, "something was left behind by an import that was refused"
        if not code and number % USED == 0:
            used, told = call("translate", place / "out" / "run", "the cat", "--device", "cpu")
            return code, "" if used == 0 else f"imported, but does not translate: {told[-500:]}"
        return code, ""
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Import damaged models.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000, help="of each format")
    parser.add_argument("--format", choices=sorted(FORMATS), default=None)
    parser.add_argument("--case", type=int, default=None, help="this one alone")
    given = parser.parse_args()
    torch.set_num_threads(1)
    findings, codes = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        models = {name: make(folder / name) for name, make in FORMATS.items() if given.format in (None, name)}
        for model in models.values():
            assert call("import", model, "--out", folder / f"whole-{model.name}")[0] == 0
        idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        for name, model in models.items():
            for number in range(given.cases) if given.case is None else (given.case,):
                code, wrong = one(model, number, given.seed, folder)
                codes[f"{name}: exit code {code}"] += 1
                if wrong:
                    findings += 1
                    print(
                        f"{name}, again with: --seed {given.seed} --format {name} --case {number}\n{wrong}", flush=True
                    )
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if highest - idle > ABOVE_IDLE:
        findings += 1
        print(f"memory: {(highest - idle) / 2**20:,.0f} MiB more than idle")
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(codes.items()))
    print(f"{findings} findings; {counts}; memory {idle / 2**20:,.0f} MiB idle, {highest / 2**20:,.0f} at the highest")
    return min(1, findings)


if __name__ == "__main__":
    sys.exit(main())
