"""What guided alignment gives and costs: the same model guided and not, by alignment error rate and BLEU.

    python bench/guided.py DATA --model de-en --model de-en-guided [--time 150s] [--out runs/guided] [--set A=B ...]
    python bench/guided.py DATA --model en-de-guided --ledger

DATA has train.{de,en}.gz and dev.{de,en}.gz (Europarl) and the gold links de-en.{de,en,align}. Every model is that of
configs/europarl-de-en.toml, with one seed; those that are there already are not trained again. The error rate is that
of the gold sentences, whose reference is given: of a guided model by its own aligner; of the other by the single head
that is best on this very gold, which is more than one could know. With both directions, guided, there is also the
error rate of both together, symmetrised (grow-diag-final-and). BLEU is of the dev set, beam 5. What each model found is
kept in OUT/NAME.json, from which the table is made. The model `links` is none: these are the links that the others are
taught with, learned with the gold sentences among the text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ledger import enter
from regard.cli.display import display
from regard.data.encoding import parts_of
from regard.device import pick_device
from regard.explain.alignment import Aligner, Rule, attend, choose, sides
from regard.metrics.alignment import Gold, alignment_quality, flipped, read_gold, symmetrise
from regard.metrics.translation import bleu
from regard.runs.folder import Run
from regard.settings import Settings, load_settings
from regard.tasks.linking import learn_links
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.text.words import space_words
from regard.trainer import start as training

MODELS = ("de-en", "de-en-guided", "en-de-guided", "links")
RECIPE = Path(__file__).parent.parent / "configs" / "europarl-de-en.toml"
READINGS: dict[str, tuple[Rule, float | None]] = {
    "word": ("word", None),
    "piece": ("piece", None),
    **{f"threshold {least}": ("threshold", least) for least in (0.2, 0.3, 0.4, 0.5, 0.6)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Guided alignment: error rate and BLEU, with and without.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--time", default="150s")
    parser.add_argument("--out", type=Path, default=Path("runs/guided"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--ledger", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="SETTING=VALUE")
    arguments = parser.parse_args()
    for name in arguments.model or MODELS:
        began = time.monotonic()
        result = learned(arguments) if name == "links" else measured(name, arguments)
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / f"{name}.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    table = summary(arguments.out, read_golds(arguments.data))
    for name, row in table.items():
        print(name, json.dumps(row))
    if arguments.ledger:
        enter("guided", {"time": arguments.time, "table": table}, "python " + " ".join(sys.argv))


def settings_of(name: str, data: Path, limit: str, more: list[str]) -> Settings:
    source, target = name.split("-")[:2]
    files = {"": "train", "valid_": "dev"}
    given = [f"data.{kind}source='{data}/{part}.{source}.gz'" for kind, part in files.items()]
    given += [f"data.{kind}target='{data}/{part}.{target}.gz'" for kind, part in files.items()]
    guide = ["train.alignment.kind=guided"] if name.endswith("guided") else []
    return load_settings(RECIPE, *given, f"train.time={limit}", "train.step=graph", *guide, *more)


def trained(name: str, arguments: argparse.Namespace) -> Path:
    """The run of that name. What another one has prepared of the same text is taken over."""
    folder: Path = arguments.out / name
    if (folder / "best").exists():
        return folder
    settings = training.absolute(settings_of(name, arguments.data.absolute(), arguments.time, arguments.settings))
    Run.create(folder, settings)
    for other in MODELS:
        if other != name and not (folder / "tokenizer").exists() and (arguments.out / other / "tokenizer").exists():
            shutil.copytree(arguments.out / other / "tokenizer", folder / "tokenizer")  # joint: whichever way
            if other[:5] == name[:5]:
                for part in ("train", "valid"):
                    shutil.copytree(arguments.out / other / "data" / part, folder / "data" / part)
    with display() as shown:
        training.start(folder, settings, shown, device=arguments.device)
    return folder


def read_golds(data: Path) -> list[Gold]:
    lines = (data / "de-en.align").read_text(encoding="utf-8").splitlines()
    return read_gold(lines, "de-en.align")


def measured(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """BLEU, and the links that each reading finds between the gold sentences, German first."""
    translator = load(trained(name, arguments), device=str(pick_device(arguments.device)))
    source, target = name.split("-")[:2]
    texts = [(arguments.data / f"de-en.{side}").read_text(encoding="utf-8").splitlines() for side in (source, target)]
    pairs = [sides(translator.tokenizers, *pair) for pair in zip(*texts, strict=True)]
    seen = attend(translator.model, pairs)
    golds = read_golds(arguments.data)
    golds = golds if source == "de" else [gold.flipped() for gold in golds]
    aligner = translator.aligner if name.endswith("guided") else choose(seen, golds, "this gold", several=False)
    readings = {"own": aligner} | {
        how: replace(aligner, rule=rule, threshold=least, cover=None) for how, (rule, least) in READINGS.items()
    }
    return {
        "aligner": f"{aligner.describe()}, {'reading' if aligner.late else 'predicting'} row, rule {aligner.rule}",
        "bleu": dev_bleu(translator, arguments.data, source, target),
        "steps": steps_of(translator),
        "links": {how: found_links(one, seen, source) for how, one in readings.items()},
    }


def learned(arguments: argparse.Namespace) -> dict[str, Any]:
    """The links that are learned between the gold sentences, between words at spaces."""
    gold = [(arguments.data / f"de-en.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en")]
    text = [lines_of(arguments.data / f"train.{side}.gz") for side in ("de", "en")]
    pairs = [*zip(*gold, strict=True), *zip(*text, strict=True)]
    found = learn_links(pairs, pick_device(arguments.device))[: len(gold[0])]
    links = []
    for pair, line in zip(pairs, found, strict=False):
        owners = [[place for place, word in enumerate(space_words(side)) for _ in parts_of(word)] for side in pair]
        parts = (tuple(map(int, link.split("-"))) for link in line.split())
        links.append(sorted({(owners[0][source], owners[1][target]) for source, target in parts}))
    return {"aligner": "learned links", "bleu": None, "steps": 0, "links": {"own": links}}


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")


def found_links(aligner: Aligner, seen: list[Any], source: str) -> list[list[tuple[int, int]]]:
    found = (aligner.align(pair) for pair in seen)
    return [sorted(links if source == "de" else flipped(links)) for links in found]


def steps_of(translator: Translator) -> int:
    assert translator.run is not None
    log = translator.run.log.read_text(encoding="utf-8").splitlines()
    return max((json.loads(line).get("step", 0) for line in log), default=0)


def dev_bleu(translator: Translator, data: Path, source: str, target: str) -> dict[str, Any]:
    read, wanted = (lines_of(data / f"dev.{side}.gz") for side in (source, target))
    found = bleu([each.text for each in translator.translate(read)], wanted)
    return {"score": round(found.score, 2), "signature": found.signature}


def summary(out: Path, golds: list[Gold]) -> dict[str, Any]:
    """A row for each model that was measured, and one for both directions together."""
    known = {name: json.loads((out / f"{name}.json").read_text()) for name in MODELS if (out / f"{name}.json").exists()}
    table: dict[str, Any] = {}
    for name, result in known.items():
        rates = {how: rate(links, golds) for how, links in result["links"].items()}
        table[name] = {key: result[key] for key in ("aligner", "bleu", "steps")} | {"aer": rates}
    if {"de-en-guided", "en-de-guided"} <= set(known):
        there, back = (known[name]["links"] for name in ("de-en-guided", "en-de-guided"))
        both = {
            f"{how}, {method}": rate(
                [symmetrise(map(tuple, a), map(tuple, b), method) for a, b in zip(there[how], back[how], strict=True)],
                golds,
            )
            for how in there
            for method in ("grow-diag-final-and", "intersection", "grow-diag")
        }
        table["both, guided"] = {"aer": both}
    return table


def rate(links: list[Any], golds: list[Gold]) -> float:
    quality = alignment_quality([frozenset(map(tuple, each)) for each in links], golds)
    return round(asdict(quality)["error_rate"], 4)


if __name__ == "__main__":
    main()
