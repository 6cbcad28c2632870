"""The ladder: every preset on the same corpus, BLEU by sentence length.

    python bench/ladder.py [PRESET …] [--time 3m] [--jobs 1] [--device auto] [--out docs/ladder.md] [a.b=c …]

Every model trains for the same time on the same sentences of 5 to 40 words of the built-in corpus and is then
tested on held-out sentences of four lengths. The fixed context vector has to give way on long ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch

import regard
from regard import training
from regard.corpora.fable import generate
from regard.corpora.files import write
from regard.loading import load
from regard.measure.translation import bleu

BUCKETS = ((5, 10), (11, 20), (21, 30), (31, 40))
TESTED = 250  # sentences in each
SETTINGS = (
    *("text.tokenizer=word", "text.joint=false"),
    *("train.warmup=200", "train.schedule=linear", "train.smoothing=0.0", "train.shapes=10"),
    *("train.steps=1000000", "train.validate_every=1000000", "train.average={kind='moving', decay=0.995}"),
)
RATES = {"transformer-base": 7e-4, "transformer-big": 2e-4}  # wide models bear less
OWN = {"transformer-base": ["model.tie=target"], "transformer-big": ["model.tie=target"]}  # the tokenizers are two


def measure(preset: str, folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """Train one preset, then test it."""
    corpus = {"source": "train.en", "target": "train.fr", "valid_source": "valid.en", "valid_target": "valid.fr"}
    files = [f"data.{name}={json.dumps(str(folder / 'corpus' / file))}" for name, file in corpus.items()]
    size = [f"train.rate={RATES.get(preset, 2e-3)}", f"train.batch={options.batch}", f"train.time={options.time}"]
    settings = regard.load_settings(preset, *SETTINGS, *files, *size, *OWN.get(preset, []), *options.overrides)
    outcome = training.start(folder / preset, settings, device=options.device)
    translator = load(folder / preset, device_name(options.device))
    result: dict[str, object] = {"preset": preset, "steps": outcome.progress.step, "tokens": outcome.progress.tokens}
    result["parameters"] = sum(parameter.numel() for parameter in translator.model.parameters())
    for low, high in BUCKETS:
        pairs = list(generate("fr", count=TESTED, split="test", minimum_words=low, maximum_words=high))
        outputs = translator.translate([pair.source for pair in pairs])
        result[f"{low}-{high}"] = round(bleu(outputs, [pair.target for pair in pairs]).score, 1)
    print(json.dumps(result), file=sys.stderr, flush=True)
    return result


def device_name(asked: str) -> str:
    return ("cuda" if torch.cuda.is_available() else "cpu") if asked == "auto" else asked


def render(results: list[dict[str, object]], options: argparse.Namespace, machine: str) -> str:
    names = [f"{low}-{high}" for low, high in BUCKETS]
    lines = [
        "# The ladder",
        "",
        f"Every architecture on the same data: English to French, {options.pairs:,} sentences of 5 to 40 words, "
        f"{options.time} of training each on {machine}, batches of {options.batch:,} tokens, "
        f"then BLEU (sacreBLEU, beam 5) on {TESTED} held-out sentences of each length.",
        "",
        f"| preset | parameters | steps | {' | '.join(f'{name} words' for name in names)} | fall |",
        "|---|---:|---:|" + "---:|" * (len(names) + 1),
    ]
    for result in results:
        scores = [float(str(result[name])) for name in names]
        cells = " | ".join(f"{score:.1f}" for score in scores)
        size = float(str(result["parameters"])) / 1e6
        lines.append(
            f"| `{result['preset']}` | {size:.1f} M | {result['steps']:,} | {cells} | {scores[0] - scores[-1]:.1f} |"
        )
    flags = f"--time {options.time} --batch {options.batch} --pairs {options.pairs}"
    command = f"python bench/ladder.py {flags} {' '.join(options.overrides)}".strip()
    lines += ["", f"Made by `{command}` on {time.strftime('%Y-%m-%d')}, torch {torch.__version__}.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train every preset and compare them by sentence length.")
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--time", default="3m")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_intermixed_args()
    options.overrides = [word for word in options.presets if "=" in word]
    presets = [word for word in options.presets if "=" not in word] or regard.preset_names()
    folder = Path(tempfile.mkdtemp())
    write(folder / "corpus", "fr", train=options.pairs, valid=300, test=1, maximum_words=BUCKETS[-1][1])
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        results = list(pool.map(partial(measure, folder=folder, options=options), presets))
    gpu = device_name(options.device) == "cuda"
    machine = torch.cuda.get_device_name() if gpu else f"{torch.get_num_threads()} CPU cores"
    page = render(results, options, machine + (f", {options.jobs} at a time" if options.jobs > 1 else ""))
    print(page) if options.out is None else options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
