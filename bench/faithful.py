"""Which map to believe, measured: every method of attribution on several runs, in one table each.

    python bench/faithful.py demo runs/bahdanau runs/transformer-small [--sentences 50] [--ledger]
    python bench/faithful.py RUN --source de-en.de --target de-en.en --alignment de-en.align [--ledger]
    python bench/faithful.py RUN … --device cuda --out FOLDER
    python bench/faithful.py --greek WHEEL --out FOLDER

Without files, the sentences are of the test part of the built-in corpus, with its gold links, the reference given. With
them, they are those of the files. What each run has is kept as ``regard faithful`` keeps it, so that the runs show it
first from then on. Below the table stand the marks: the fewest errors are to be 30 % fewer than those of mean
cross-attention, and the most faithful method is to be better than random order beyond its interval.
``--greek`` writes the verses and gold links of the Greek New Testament of the package bible-alignments as such files
(grc.txt, en.txt, grc-en.align), to train and to measure with; the run of docs/looking-inside.md is
``regard train transformer-small text.size=4000 text.joint=false text.case=mark text.sampling=true model.dropout=0.3
train.batch=8192 train.rate=0.001 train.warmup=400 train.schedule=cosine train.smoothing=0.1 train.steps=2500
"train.average={kind='moving', decay=0.998}"`` on all verses but every fiftieth, which it is measured on.
``--train PRESET`` makes the run RUN first, with the settings and text of ``regard demo`` but so many ``--steps``.
``--out`` also writes FOLDER/RUN.json with all figures.
``--ledger`` appends the results to bench/ledger.jsonl.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import zipfile
from itertools import product
from pathlib import Path

from ledger import enter
from regard.cli.display import display
from regard.cli.faithful import lines_of
from regard.cli.streams import LineCounter
from regard.data.lines import read_lines
from regard.device import pick_device
from regard.evaluate.faithful import faithful
from regard.explain.faithful import MEAN, RANDOM, Faithfulness
from regard.fable.corpus import generate
from regard.metrics.alignment import Gold, check_inside, read_gold
from regard.settings.call import MeasureSettings
from regard.settings.demo import PRESET, demo_settings
from regard.tasks.load import load
from regard.trainer import start as training

FEWER = 0.3  # errors than mean cross-attention
FIGURES = (*("faithfulness", "comprehensiveness", "sufficiency", "agreement", "redrawn", "error_rate", "riddles"),)
OTHERS = (
    "train.batch=2048",
    "train.schedule=linear",
    "train.smoothing=0.0",
    "train.validate_every=500",
)  # than the demo
Texts = list[tuple[str, str | None]]


def fable(count: int) -> tuple[Texts, list[Gold], str]:
    sentences = list(generate("fr", count=count, split="test", maximum_words=14))
    links = [frozenset(each.alignment) for each in sentences]
    return (
        [(each.source, each.target) for each in sentences],
        [Gold(each, each) for each in links],
        "fable:fr, test part",
    )


def given(source: Path, target: Path, alignment: Path) -> tuple[Texts, list[Gold], str]:
    sources, targets = (list(read_lines(path)) for path in (source, target))
    golds = read_gold(read_lines(alignment), str(alignment), sentences=len(sources))
    check_inside(golds, sources, targets, str(alignment))
    return list(zip(sources, targets, strict=True)), golds, source.name


def greek(wheel: Path, out: Path) -> int:
    """Write the verses that have links, Greek, English, and their links; gives how many."""
    with zipfile.ZipFile(wheel) as package:

        def words(path: str) -> dict[str, str]:
            table = csv.DictReader(io.TextIOWrapper(package.open(path), "utf-8", newline=""), delimiter="\t")
            return {row["id"].lstrip("n"): row["text"].replace(" ", "_") for row in table if not row.get("exclude")}

        sides = words("data/sources/SBLGNT.tsv"), words("data/eng/targets/BSB/nt_BSB.tsv")
        records = json.load(package.open("data/eng/alignments/BSB/SBLGNT-BSB-manual.json"))["records"]
    places: tuple[dict[str, tuple[str, int]], ...] = ({}, {})
    verses: tuple[dict[str, list[str]], ...] = ({}, {})
    for side, found, placed in zip(sides, verses, places, strict=True):
        for number, word in side.items():
            several = found.setdefault(number[:8], [])
            placed[number] = number[:8], len(several)
            several.append(word)
    links: dict[str, set[str]] = {}
    for record in records:
        for one, other in product(record["source"], record["target"]):
            first, second = places[0].get(one.lstrip("n")), places[1].get(other)
            if first and second and first[0] == second[0]:
                links.setdefault(first[0], set()).add(f"{first[1]}-{second[1]}")
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in (
        ("grc.txt", [" ".join(verses[0][verse]) for verse in links]),
        ("en.txt", [" ".join(verses[1][verse]) for verse in links]),
        ("grc-en.align", [" ".join(sorted(several)) for several in links.values()]),
    ):
        (out / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return len(links)


def gain(found: Faithfulness) -> tuple[str, float, float, float]:
    """The method with the fewest errors, its rate, that of mean cross-attention, and the relative difference."""
    rates = {each.method: each.error_rate[0] for each in found.methods if each.error_rate and each.method != RANDOM}
    best = min(rates, key=lambda name: rates[name])
    mean = rates.get(MEAN, rates[best])
    return best, rates[best], mean, 1 - rates[best] / mean if mean else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Every method of attribution on several runs.")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--alignment", type=Path)
    parser.add_argument("--sentences", type=int, default=50)
    parser.add_argument("--train", metavar="PRESET", help="train the run first, if it is not there")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--greek", type=Path, metavar="WHEEL")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    if arguments.greek:
        print(greek(arguments.greek, arguments.out or Path()), "verses")
    for run in arguments.runs:
        if arguments.train and not (run / "best").exists():
            with display() as shown:
                preset, more = arguments.train, () if arguments.train == PRESET else OTHERS
                settings = demo_settings(preset, f"train.steps={arguments.steps}", *more)
                training.start(run, settings, shown, device=arguments.device)
        measure(run, arguments)


def measure(run: Path, arguments: argparse.Namespace) -> None:
    files = arguments.source, arguments.target, arguments.alignment
    texts, golds, name = given(*files) if arguments.source else fable(arguments.sentences)
    translator = load(run, device=str(pick_device(arguments.device)))
    how = MeasureSettings(limit=arguments.sentences)
    found = faithful(translator, texts, golds, named=name, how=how, tell=LineCounter("measured", what="sentences"))
    found.save(translator.loaded_from.cache)
    print(run, *lines_of(found), sep="\n", flush=True)
    print(*marks(found), sep="\n", flush=True)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / f"{run.name}.json").write_bytes(found.to_json())
    if arguments.ledger:
        record(run, found, name)


def marks(found: Faithfulness) -> list[str]:
    """What the table has to show, and whether it does."""
    best, rate, mean, less = gain(found)
    first, chance = found[found.best].faithfulness, found[RANDOM].faithfulness
    lines = [
        f"fewest errors: {best} {rate:.3f}, mean cross-attention {mean:.3f}: {less:.0%} fewer, "
        f"{'met' if less >= FEWER else 'missed'}: {FEWER:.0%}",
        f"most faithful: {found.best} {first[0]:.3f} [{first[1]:.3f}, {first[2]:.3f}], random order {chance[0]:.3f} "
        f"[{chance[1]:.3f}, {chance[2]:.3f}], {'met' if first[1] > chance[2] else 'missed'}: intervals apart",
    ]
    if found.aligner is not None:
        rate, low, high = found.aligner
        lines.append(f"the run's own links: {rate:.3f} [{low:.3f}, {high:.3f}]")
    return lines


def record(run: Path, found: Faithfulness, name: str) -> None:
    best, _, _, less = gain(found)
    rows = {
        each.method: {
            figure: [round(end, 3) for end in ends] for figure in FIGURES if (ends := getattr(each, figure)) is not None
        }
        for each in found.methods
    }
    about = {"run": run.name, "on": name, "sentences": found.sentences, "words": found.words, "best": found.best}
    links = {"fewest_errors": best, "fewer_than_mean_attention": round(less, 3), "aligner": found.aligner}
    enter("faithful", {**about, **links, "methods": rows}, "python " + " ".join(sys.argv))


if __name__ == "__main__":
    main()
