"""Make the run that comes with the package: train the demo for longer, test it, keep what using it takes.

    python bench/demo_model.py [--time 20m] [--seed 1] [--device cpu] [--run FOLDER] [--out src/regard/demo] [a.b=c …]

What is kept: settings, tokenizers, the best weights in 16 bits, the aligner, a thinned log, and ``about.json``: the
command, the settings that differ from `regard demo`, seed, versions, the hash of the training text and the scores on
500 held-out sentences, measured with the very weights that are kept. With ``--run`` a training that was interrupted
goes on: the same command again ends with the same weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shlex
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sacrebleu
import torch

import regard
from regard.cli.display import display
from regard.data.encoding import PairEncoder
from regard.evaluate.evaluate import aligned, alignment_of
from regard.fable.corpus import generate
from regard.files import new_folder
from regard.metrics.alignment import Gold
from regard.metrics.translation import measure
from regard.runs.archive import pack, unpack
from regard.runs.folder import Run, best_checkpoint, load_progress
from regard.runs.listing import parameters, size
from regard.runs.log import read_log
from regard.settings.demo import PRESET, demo_settings
from regard.tasks.corpus import materials
from regard.tasks.load import load
from regard.trainer import start as training

HOME = Path(__file__).parents[1] / "src" / "regard" / "demo"
TESTED = 500  # held-out sentences
LOGGED = 100  # moments of the training that are kept
LARGEST = 3_300_000  # bytes


def package(run: Path, out: Path, *, command: str, changed: Sequence[str] = ()) -> dict[str, Any]:
    """The run, slimmed, takes the place of ``out``; what was found out about it is returned and lies beside it."""
    with tempfile.TemporaryDirectory() as folder:
        slim, archive = Path(folder) / "demo", Path(folder) / "demo.tar"
        pack(run, archive, half=True)
        unpack(archive, slim)
        thin(slim / "log.jsonl")
        (slim / "README.md").unlink(missing_ok=True)  # `regard card` writes it
        about = describe(Run.open(slim), command=command, changed=changed)
        (slim / "about.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if size(slim) > LARGEST:
            raise SystemExit(f"{size(slim):,} bytes: too large for the package; {LARGEST:,} at the most")
        with new_folder(out) as beside:
            for path in sorted(slim.rglob("*")):
                if path.is_file():
                    (beside / path.relative_to(slim)).parent.mkdir(parents=True, exist_ok=True)
                    (beside / path.relative_to(slim)).write_bytes(path.read_bytes())
    return about


def thin(log: Path) -> None:
    """Every validation and note, and so many of the moments between."""
    events = read_log(log)
    moments = [event for event in events if event["event"] == "step"]
    kept = {id(event) for event in moments[:: max(1, len(moments) // LOGGED)]} | {id(event) for event in moments[-1:]}
    lines = [json.dumps(event, ensure_ascii=False) for event in events if event["event"] != "step" or id(event) in kept]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")


def describe(run: Run, *, command: str, changed: Sequence[str]) -> dict[str, Any]:
    """Where a run comes from and what it is worth."""
    progress = load_progress(best_checkpoint(run))
    return {
        "command": command,
        "preset": PRESET,
        "changed": list(changed),
        "seed": run.settings.train.seed,
        "steps": progress.step,
        "seconds": round(progress.seconds),
        "parameters": parameters(run),
        "corpus": {"name": run.settings.data.corpus, "pairs": run.settings.data.pairs, "sha256": corpus_hash(run)},
        "versions": {"regard": regard.__version__, "torch": torch.__version__, "python": platform.python_version()}
        | {"sacrebleu": sacrebleu.__version__},
        "scores": scores(run),
    }


def corpus_hash(run: Run) -> str:
    """Of the training text, line by line: source, tab, target."""
    rows: Iterable[tuple[int, Sequence[str]]] = materials(run.settings)[0].rows(PairEncoder.names)
    found = hashlib.sha256()
    for _, row in rows:
        found.update(("\t".join(row) + "\n").encode())
    return found.hexdigest()


def scores(run: Run) -> dict[str, Any]:
    """On sentences of the test part, which no training sees."""
    language = run.settings.data.corpus.partition(":")[2]
    tests = list(
        generate(language, count=TESTED, split="test", maximum_words=run.settings.data.words)  # type: ignore[arg-type]
    )
    sources, targets = [each.source for each in tests], [each.target for each in tests]
    translator = load(run.folder)
    outputs = [each.text for each in translator.translate(sources)]
    found = {quality.name: quality for quality in measure(outputs, targets)}
    links = [frozenset(each.alignment) for each in tests]
    read = alignment_of(aligned(translator, sources, targets), [Gold(each, each) for each in links])
    return {
        "sentences": len(tests),
        **{name: round(quality.score, 2) for name, quality in found.items()},
        "signatures": {name: quality.signature for name, quality in found.items()},
        "exact": round(sum(one == other for one, other in zip(outputs, targets, strict=True)) / len(tests), 4),
        "alignment error rate": round(read.error_rate, 4),
    }


def train(run: Path, changed: Sequence[str], device: str) -> None:
    """To the end of what the settings say, from wherever an earlier call has come to."""
    with display() as shown:
        if run.exists():
            training.resume(run, shown, device=device)
        else:
            training.start(run, demo_settings(PRESET, *changed), shown, device=device)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the run that comes with the package.")
    parser.add_argument("--time", default="20m", help="train no longer than this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--run", type=Path, help="train in this folder, which stays; without it, in a temporary one")
    parser.add_argument("--out", type=Path, default=HOME)
    parser.add_argument("overrides", nargs="*", help="settings to change: train.steps=20000")
    given = parser.parse_args()
    changed = [f"train.time='{given.time}'", f"train.seed={given.seed}", *given.overrides]
    limits = ["--time", given.time, "--seed", str(given.seed), "--device", given.device]
    with tempfile.TemporaryDirectory() as folder:
        run = given.run or Path(folder) / "demo"
        train(run, changed, given.device)
        command = shlex.join(["python", "bench/demo_model.py", *limits, *given.overrides])
        about = package(run, given.out, command=command, changed=changed)
    print(json.dumps(about, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
