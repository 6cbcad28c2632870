"""Small runs to ask about, what each preset learns in 20 steps, and what the run in the package translates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import commands
from plain import Plain

import regard

SMALL = (
    *("data.words=8", "data.pairs=300", "text.tokenizer=word", "text.joint=false", "model.dropout=0.0"),
    *("train.batch=128", "train.warmup=4", "train.rate=1e-2", "train.validate_every=10", "train.steps=30"),
)
RECURRENT = ("model.width=16", "model.hidden=16", "model.depth=1")
TRANSFORMER = (
    *("model.width=16", "model.heads=2", "model.hidden=32"),
    *("model.encoder_depth=2", "model.decoder_depth=2"),
)


def files(*sides: str) -> tuple[str, ...]:
    """Settings that name the files of a small corpus."""
    parts = {"": "train", "valid_": "valid"}
    names = [
        (f"data.{prefix}{side}", f"fable/{part}") for prefix, part in parts.items() for side in ("source", "target")
    ]
    return tuple(f"{name}={file}.{end}" for (name, file), end in zip(names, 2 * (*sides, "")[:2], strict=True) if end)


BUILT_IN = ("data.corpus='fable:fr'",)  # the others learn from files, which is quicker
RUNS = {
    "attentive": ("bahdanau", *BUILT_IN),
    "transformer": ("transformer-tiny", *files("en", "fr")),
    "plain": ("lstm", *files("en", "fr")),
    "tagger": ("lstm", *files("tokens", "tags"), "task=tag"),
    "classifier": ("bahdanau", *files("en", "sentiment"), "task=classify"),
    "writer": ("lstm", *files("en"), "task=language"),
}
LOSSES = ("train.steps=20", "train.validate_every=20", "text.joint=true")  # tied embeddings need one vocabulary
SENTENCES = 200
VALIDATED = 20


def make_corpus(work: Path) -> None:
    """The built-in corpus as files in the folder ``fable``, and a few of its lines beside them."""
    made = ["data", "make", "fable", "fable", "--pairs", "300", "--held-out", str(SENTENCES), "--words", "1-12"]
    commands.run(made, work)
    for file in (work / "fable").glob("valid.*"):
        _cut(file, file, VALIDATED)
    for side in ("en", "fr"):
        _cut(work / f"fable/test.{side}", work / f"few.{side}", 12)


def _cut(source: Path, target: Path, count: int) -> None:
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    target.write_text("".join(lines[:count]), encoding="utf-8")


def settings(preset: str, *overrides: str) -> list[str]:
    """A preset and what makes it small."""
    sizes = TRANSFORMER if preset.startswith("transformer") else RECURRENT
    window = ("model.decoder.attention.window.reach=2",) if preset == "luong-local" else ()
    return [preset, *sizes, *window, *SMALL, *overrides]


def train(work: Path, name: str, *chosen: str) -> commands.Said:
    words = ["train", *settings(*chosen), "--out", name, "--device", "cpu", "--json"]
    return commands.run(words, work)


def train_runs(work: Path, plain: Plain) -> dict[str, Any]:
    """Make the runs; what was said, and what was logged."""
    found = {}
    for name, (preset, *overrides) in RUNS.items():
        said = train(work, f"runs/{name}", preset, *overrides)
        if said.code:
            raise SystemExit(f"{name}: cannot be trained:\n{said.err}")
        found[name] = {"out": plain.value(json.loads(said.out)), "err": plain.lines(said.err)}
        found[name]["log"] = plain.value(_log(work / "runs" / name))
    return found


def _log(run: Path) -> list[dict[str, Any]]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def losses(work: Path) -> dict[str, list[float]]:
    """What each preset loses in each of 20 steps, and in the validation at their end."""
    found = {}
    for preset in regard.preset_names():
        run = f"losses/{preset}"
        said = train(work, run, preset, *files("en", "fr"), *LOSSES)
        if said.code:
            raise SystemExit(f"{preset}: cannot be trained:\n{said.err}")
        found[preset] = [float(f"{event['loss']:.7g}") for event in _log(work / run) if "loss" in event]
    return found


def translations(work: Path) -> dict[str, Any]:
    """What the run in the package makes of sentences that it has not seen, with scores."""
    found = {}
    for beam in ("1", "5"):
        said = commands.run(["translate", "demo", "--file", "fable/test.en", "--beam", beam, "--json"], work)
        rows = [json.loads(line) for line in said.out.splitlines()]
        found[f"beam {beam}"] = [[row["source"], row["target"], round(row["score"], 4)] for row in rows]
        if len(rows) != SENTENCES:
            raise SystemExit(f"demo: {len(rows)} translations of {SENTENCES}:\n{said.err}")
    return found
