"""The ladder: every preset on the same corpus, BLEU by sentence length.

    python bench/ladder.py [PRESET …] [--time 4m] [--batch 512] [--jobs 1] [--threads 2] [--device cpu] [a.b=c …]
    python bench/ladder.py [PRESET …] --steps N …

Every model trains for the same time on the same sentences of the built-in corpus and is then tested on held-out
sentences of four lengths. The fixed context vector has to give way on long ones. As in most corpora, short sentences
are the more frequent. Each preset's result is kept in bench/ladder.json; docs/ladder.md is made of all of them, so that
one preset can be measured again, or on another machine. On a busy one, where minutes say nothing, `--steps` takes the
place of the time: the steps of a row of the same kind, by what a step of either costs in seconds of computing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from random import Random

import torch

import regard
from regard.fable.corpus import Split, generate
from regard.metrics.translation import bleu
from regard.tasks.load import load
from regard.trainer import start as training

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "ladder.json"
PAGE = ROOT / "docs" / "ladder.md"
BUCKETS = {(5, 10): 0.4, (11, 20): 0.3, (21, 30): 0.2, (31, 40): 0.1}  # words, and their share of the training text
TESTED = 250  # sentences of each length
SETTINGS = (
    *("text.tokenizer=word", "text.joint=false"),
    *("train.warmup=200", "train.schedule=linear", "train.smoothing=0.0", "train.shapes=10"),
    *("train.steps=1000000", "train.validate_every=1000000", "train.average={kind='moving', decay=0.995}"),
)
RATES = {"transformer-base": 4e-4, "transformer-big": 2e-4}  # wide models bear less
OWN = {  # the tokenizers are two, and a norm after the residual sum must be warmed up slowly
    "transformer-base": ("model.tie=target", "train.warmup=1000"),
    "transformer-big": ("model.tie=target", "train.warmup=1000", "model.dropout=0.1"),
}
Result = dict[str, str | int | float]


def write_corpus(folder: Path, sizes: dict[Split, int]) -> None:
    """Sentences of every length, in their shares, in random order."""
    for split, size in sizes.items():
        pairs = [
            pair
            for (low, high), share in BUCKETS.items()
            for pair in generate("fr", count=int(size * share), split=split, minimum_words=low, maximum_words=high)
        ]
        Random(1).shuffle(pairs)
        (folder / f"{split}.en").write_text("".join(f"{pair.source}\n" for pair in pairs), encoding="utf-8")
        (folder / f"{split}.fr").write_text("".join(f"{pair.target}\n" for pair in pairs), encoding="utf-8")


def measure(preset: str, folder: Path, options: argparse.Namespace) -> Result:
    """Train one preset, then test it."""
    corpus = {"source": "train.en", "target": "train.fr", "valid_source": "valid.en", "valid_target": "valid.fr"}
    files = [f"data.{name}={json.dumps(str(folder / file))}" for name, file in corpus.items()]
    limit = f"train.steps={options.steps}" if options.steps else f"train.time={options.time}"
    size = [f"train.rate={RATES.get(preset, 2e-3)}", f"train.batch={options.batch}", limit]
    settings = regard.load_settings(preset, *SETTINGS, *files, *size, *OWN.get(preset, ()), *options.overrides)
    outcome = training.start(folder / preset, settings, device=options.device)
    translator = load(folder / preset, device=options.device)
    result: Result = {"preset": preset, "steps": outcome.progress.step, "tokens": outcome.progress.tokens}
    result["parameters"] = sum(parameter.numel() for parameter in translator.model.parameters())
    for low, high in BUCKETS:
        pairs = list(generate("fr", count=TESTED, split="test", minimum_words=low, maximum_words=high))
        outputs = translator.translate([pair.source for pair in pairs])
        result[f"{low}-{high}"] = round(
            bleu([output.text for output in outputs], [pair.target for pair in pairs]).score, 1
        )
    spent = f"{options.steps:,} steps" if options.steps else options.time
    result |= {"time": spent, "batch": options.batch, "machine": machine(options), "torch": torch.__version__}
    result |= {"command": command(options), "date": time.strftime("%Y-%m-%d")}
    print(json.dumps(result), file=sys.stderr, flush=True)
    return result


def machine(options: argparse.Namespace) -> str:
    if options.device == "cuda":
        return torch.cuda.get_device_name()
    return "1 CPU core" if options.threads == 1 else f"{options.threads} CPU cores"


def command(options: argparse.Namespace) -> str:
    limit = f"--steps {options.steps}" if options.steps else f"--time {options.time}"
    flags = f"{limit} --batch {options.batch} --jobs {options.jobs} --device {options.device}"
    return f"python bench/ladder.py {flags} {' '.join(options.overrides)}".strip()


def settle(seat: Synchronized[int], threads: int) -> None:
    """Give a worker process cores of its own, so that several at once do not disturb each other."""
    with seat.get_lock():
        mine, seat.value = seat.value, seat.value + 1
    cores = sorted(os.sched_getaffinity(0))
    first = mine * threads % len(cores)
    os.sched_setaffinity(0, cores[first : first + threads])
    torch.set_num_threads(threads)


def render(results: list[Result]) -> str:
    names = [f"{low}-{high}" for low, high in BUCKETS]
    shares = ", ".join(f"{share:.0%} of {low} to {high}" for (low, high), share in BUCKETS.items())
    head = [
        f"| preset | parameters | steps | {' | '.join(f'{name} words' for name in names)} | fall | trained |",
        "|---|---:|---:|" + "---:|" * (len(names) + 1) + "---|",
    ]
    lines = [
        "# The ladder",
        "",
        "Every architecture on the same data: English to French of the built-in corpus, 100,000 training sentences",
        f"({shares} words),",
        f"a few minutes of training each, then BLEU (sacreBLEU, beam 5) on {TESTED} held-out sentences of each length.",
        "*Fall* is what a model loses from the shortest to the longest.",
        "The corpus has got objects that are pronouns, comparisons, conditions and more since, which makes it harder:",
        "these rows do not compare with trainings on it as it is now.",
        "",
    ]
    timed = [result for result in results if "steps" not in str(result["time"])]
    lines += [*head, *(row(result, names) for result in timed), "", *READING, ""]
    if len(timed) < len(results):
        others = (row(result, names) for result in results if result not in timed)
        lines += [*LATER, "", *head, *others, ""]
    lines += ["Made by", ""]
    made = sorted({f"- `{result['command']}` ({result['date']}, torch {result['torch']})" for result in results})
    return "\n".join([*lines, *made, ""])


def row(result: Result, names: list[str]) -> str:
    scores = [float(result[name]) for name in names]
    cells = " | ".join(f"{score:.1f}" for score in scores)
    begin = f"| `{result['preset']}` | {float(result['parameters']) / 1e6:.1f} M | {result['steps']:,} | {cells} "
    return f"{begin}| {scores[0] - scores[-1]:.1f} | {result['time']} on {result['machine']} |"


READING = (
    "How to read it: `gru` and `lstm` hand over one vector, however long the sentence: they do well on what fits into",
    "it and fall steeply. Reading the source back to front (`lstm-reversed`) brings its first words close to the first",
    "words to be written, and helps. Models with attention look the words up instead, and do not fall. The plain `rnn`",
    "learns nothing of use: its gradient vanishes. `luong-hard`, which has to find out by trial where to look, and the",
    "four layers of `lstm-deep` need more than these minutes; so do the larger Transformers on a CPU, which is why",
    "they were trained on a GPU here (`transformer-small` in four minutes on two cores: 91.1, 87.5, 80.8, 67.7).",
)


LATER = (
    "## Measured later",
    "",
    "These were trained on a machine that was busy with other work, so for steps and not for minutes: roughly as many",
    "as four minutes on two cores would have been. A step of `conditional` cost 0.39 seconds of computing, one of",
    "`bahdanau` 0.23, one of `transformer-ssru` 0.14, one of `transformer-tiny` 0.12: the least of three rounds, which",
    "were far apart. The built-in corpus had more words by then than for the table above, which makes models larger",
    "and sentences harder. So the rows of one table do not compare with those of the other.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train every preset and compare them by sentence length.")
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--time", default="4m")
    parser.add_argument("--steps", type=int, default=0, help="in place of a time")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_intermixed_args()
    options.overrides = [word for word in options.presets if "=" in word]
    presets = [word for word in options.presets if "=" not in word] or regard.preset_names()
    folder = Path(tempfile.mkdtemp())
    write_corpus(folder, {"train": options.pairs, "valid": 300})
    context = get_context("spawn")
    seat = context.Value("i", 0)
    with ProcessPoolExecutor(options.jobs, context, settle, (seat, options.threads)) as pool:
        for result in pool.map(partial(measure, folder=folder, options=options), presets):
            keep(result)


def keep(result: Result) -> None:
    """Put one preset's result in the place of its last, and write the page anew."""
    kept = {row["preset"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))} if RESULTS.exists() else {}
    kept[result["preset"]] = result
    results = [kept[name] for name in regard.preset_names() if name in kept]
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(render(results), encoding="utf-8")


if __name__ == "__main__":
    main()
