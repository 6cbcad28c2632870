"""What guided alignment gives and costs: the same model guided and not, by alignment error rate and BLEU.

    python bench/guided.py DATA --model de-en --model de-en-guided --model en-de-guided [--steps 9000] [--out FOLDER]
    python bench/guided.py DATA --model de-en-guided+train.alignment.weight=1 --ledger

DATA has europarl-de-en/{train,dev}.{de,en}.gz and the gold links alignment/de-en.{de,en,align}. The gold sentences are
in small letters with punctuation apart, so the text is brought into that form first (OUT/text). Every model is that of
configs/europarl-de-en.toml with one seed and the same number of steps; settings may follow its name, each after a +. A
training that was interrupted goes on. BLEU is of the dev set in that form, beam 5.

The error rate is that of the gold sentences, whose reference is given. How links are read (of a model that is not
guided also by which head) is chosen by agreement with the learned links of some dev sentences, never on the gold;
beside that stands what the run itself reads ("own"). With both directions, guided, there is also the error rate of both
together, symmetrised. What each model found is kept in OUT/NAME.json, from which the table is made; OUT/NAME.npz has
the weights of a guided head, so that other readings can be tried without the model. The model `links` is none: these
are the links that the others are taught with, learned with gold and dev sentences among the text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ledger import enter
from regard.cli.display import display
from regard.data.encoding import parts_of
from regard.device import pick_device
from regard.explain.alignment import (
    COVERS,
    THRESHOLDS,
    Aligner,
    Attended,
    Rule,
    attend,
    choose,
    choose_without_gold,
    error_rate,
    sides,
)
from regard.metrics.alignment import Gold, alignment_quality, flipped, read_gold, symmetrise
from regard.metrics.translation import bleu
from regard.runs.folder import Run
from regard.settings import load_settings
from regard.tasks.linking import learn_links
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.text.words import space_words
from regard.trainer.start import absolute, go_on

MODELS = ("links", "de-en", "de-en-guided", "en-de-guided")
RECIPE = Path(__file__).parent.parent / "configs" / "europarl-de-en.toml"
CHOSEN_ON, LONGEST = 300, 40  # dev sentences, and their words at the most
READINGS: dict[str, tuple[Rule, float | None]] = {
    "word": ("word", None),
    "piece": ("piece", None),
    **{f"threshold {least}": ("threshold", least) for least in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)},
}
JOINED = ("grow-diag-final-and", "intersection", "grow-diag", "union")
Pairs = list[tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Guided alignment: error rate and BLEU, with and without.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", action="append", metavar="NAME[+SETTING=VALUE...]")
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--lines", type=int, default=10**9, help="of the training text at the most")
    parser.add_argument("--out", type=Path, default=Path("runs/guided"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--ledger", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="SETTING=VALUE")
    arguments = parser.parse_args()
    for name in arguments.model or MODELS:
        began = time.monotonic()
        result = learned(arguments) if name == "links" else measured(name, arguments)
        write(arguments.out / f"{name}.json", json.dumps(result) + "\n")
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    table = summary(arguments.out, read_golds(arguments.data))
    for name, row in table.items():
        print(name, json.dumps(row))
    if arguments.ledger:
        enter("guided", {"steps": arguments.steps, "table": table}, "python " + " ".join(sys.argv))


def write(path: Path, text: str) -> None:
    """Whole or not at all: several of these may run at once."""
    beside = path.with_name(f"{path.name}.{time.time_ns()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


# Text


def as_gold(line: str) -> str:
    """A line in the form of the gold sentences."""
    return " ".join(part.lower() for word in space_words(line) for part in parts_of(word)).replace("’", "'")


def text_of(arguments: argparse.Namespace) -> Path:
    """The folder with the text in that form, made if it is not there."""
    folder: Path = arguments.out / "text"
    folder.mkdir(parents=True, exist_ok=True)
    for part, side in product(("train", "dev"), ("de", "en")):
        if not (folder / f"{part}.{side}").exists():
            packed = arguments.data / "europarl-de-en" / f"{part}.{side}.gz"
            lines = gzip.decompress(packed.read_bytes()).decode().removesuffix("\n").split("\n")[: arguments.lines]
            write(folder / f"{part}.{side}", "".join(f"{as_gold(line)}\n" for line in lines))
    return folder.absolute()


def read(folder: Path, name: str, sides: Sequence[str]) -> Pairs:
    texts = [(folder / f"{name}.{side}").read_text(encoding="utf-8").splitlines() for side in sides]
    return list(zip(*texts, strict=True))


def held_out(folder: Path, sides: Sequence[str]) -> Pairs:
    """The dev sentences on which readings are chosen."""
    pairs = (pair for pair in read(folder, "dev", sides) if all(0 < len(side.split()) <= LONGEST for side in pair))
    return list(pairs)[:CHOSEN_ON]


def read_golds(data: Path) -> list[Gold]:
    lines = (data / "alignment" / "de-en.align").read_text(encoding="utf-8").splitlines()
    return read_gold(lines, "de-en.align")


# Links


def learned(arguments: argparse.Namespace) -> dict[str, Any]:
    """The links that are learned between the gold sentences, and between those that are held out."""
    folder = text_of(arguments)
    gold, held = read(arguments.data / "alignment", "de-en", ("de", "en")), held_out(folder, ("de", "en"))
    pairs = [*gold, *held, *read(folder, "train", ("de", "en"))]
    found = learn_links(pairs, pick_device(arguments.device))[: len(gold) + len(held)]
    links = []
    for pair, line in zip(pairs, found, strict=False):
        owners = [[place for place, word in enumerate(space_words(side)) for _ in parts_of(word)] for side in pair]
        parts = (tuple(map(int, link.split("-"))) for link in line.split())
        links.append(sorted({(owners[0][source], owners[1][target]) for source, target in parts}))
    here, there = links[: len(gold)], links[len(gold) :]
    return {"aligner": "learned links", "bleu": None, "steps": 0, "links": {"own": here}, "held out": there}


def learned_between(arguments: argparse.Namespace, source: str) -> list[Gold]:
    """The learned links of the held-out sentences, as if they were gold."""
    path: Path = arguments.out / "links.json"
    if not path.exists():
        write(path, json.dumps(learned(arguments)) + "\n")
    links = [frozenset(map(tuple, each)) for each in json.loads(path.read_text(encoding="utf-8"))["held out"]]
    golds = [Gold(each, each) for each in links]
    return golds if source == "de" else [gold.flipped() for gold in golds]


# Models


def trained(name: str, arguments: argparse.Namespace) -> Path:
    """The run of that name. What another one has prepared of the same text is taken over."""
    folder: Path = arguments.out / name
    plain, *more = name.split("+")
    source, target = plain.split("-")[:2]
    text = text_of(arguments)
    files = {"": "train", "valid_": "dev"}
    given = [f"data.{kind}source='{text}/{part}.{source}'" for kind, part in files.items()]
    given += [f"data.{kind}target='{text}/{part}.{target}'" for kind, part in files.items()]
    step = "graph" if pick_device(arguments.device).type == "cuda" else "eager"
    limits = ("train.time=''", f"train.steps={arguments.steps}", f"train.step={step}")
    guide = ["train.alignment.kind=guided"] if plain.endswith("guided") else []
    settings = (*given, *limits, *guide, *arguments.settings, *more)
    if not folder.exists():
        Run.create(folder, absolute(load_settings(RECIPE, *settings)))
        take_over(folder, source, target)
    with display() as shown:
        go_on(folder, RECIPE, shown, overrides=settings, device=arguments.device)
    return folder


def take_over(folder: Path, source: str, target: str) -> None:
    """The tokenizer of both languages, and the encoded text of the same direction."""
    for other in folder.parent.glob("*-*"):
        if other == folder or not (other / "data" / "valid" / "manifest.json").exists():
            continue
        if not (folder / "tokenizer").exists():
            shutil.copytree(other / "tokenizer", folder / "tokenizer")
        if other.name.startswith(f"{source}-{target}") and not (folder / "data" / "train").exists():
            for part in ("train", "valid"):
                shutil.copytree(other / "data" / part, folder / "data" / part)


def measured(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """BLEU, and the links that each reading finds between the gold sentences, German first."""
    translator = load(trained(name, arguments), device=str(pick_device(arguments.device)))
    plain = name.partition("+")[0]
    source, target = plain.split("-")[:2]
    folder, order = text_of(arguments), (source, target)
    texts = read(arguments.data / "alignment", "de-en", order), held_out(folder, order)
    pairs, held = ([sides(translator.tokenizers, *pair) for pair in several] for several in texts)
    seen, tried = (
        [replace(each, cross=each.cross.float().cpu()) for each in attend(translator.model, several)]
        for several in (pairs, held)
    )
    wanted = learned_between(arguments, source)
    if plain.endswith("guided"):
        own = translator.aligner
        write_weights(arguments.out / f"{name}.npz", own, {"gold": seen, "dev": tried})
        chosen = reading(own, tried, wanted)
    else:
        own = choose_without_gold(translator.model, held[:40], "dev")
        chosen = choose(tried, wanted, "learned links of dev", several=False)
    readings = {"own": own, "chosen": chosen} | {
        how: replace(chosen, rule=rule, threshold=least, cover=None) for how, (rule, least) in READINGS.items()
    }
    return {
        "aligner": {how: told(each) for how, each in (("own", own), ("chosen", chosen))},
        "agreement": {how: round(1 - error_rate(each, tried, wanted), 4) for how, each in readings.items()},
        "bleu": dev_bleu(translator, read(folder, "dev", order)),
        "steps": steps_of(translator),
        "links": {how: found_links(each, seen, source) for how, each in readings.items()},
    }


def reading(aligner: Aligner, seen: Sequence[Attended], wanted: Sequence[Gold]) -> Aligner:
    """The rule, threshold and cover by which a head agrees best with the learned links."""
    rules: tuple[Rule, ...] = get_args(Rule)
    every = product(rules, (None, *THRESHOLDS), (None, *COVERS))
    tried = [replace(aligner, rule=rule, threshold=least, cover=cover) for rule, least, cover in every]
    return min(
        (each for each in tried if each.rule != "threshold" or each.threshold is not None),
        key=lambda each: error_rate(each, seen, wanted),
    )


def told(aligner: Aligner) -> str:
    rule = f"rule {aligner.rule}, threshold {aligner.threshold}, cover {aligner.cover}"
    return f"{aligner.describe()}, {'reading' if aligner.late else 'predicting'} row, {rule}"


def write_weights(path: Path, aligner: Aligner, several: dict[str, list[Attended]]) -> None:
    """The weights of the head between pieces (T, S) of each pair, and the word of each piece on both sides."""
    table = {}
    for name, pairs in several.items():
        for number, pair in enumerate(pairs):
            table[f"{name}-{number}"] = aligner.weights(aligner.rows(pair).cross).half().numpy()
            table[f"{name}-{number}-words"] = np.array([*pair.source.word_of, -9, *pair.target.word_of], np.int16)
    np.savez_compressed(path, **table)


def found_links(aligner: Aligner, seen: list[Attended], source: str) -> list[list[tuple[int, int]]]:
    found = (aligner.align(pair) for pair in seen)
    return [sorted(links if source == "de" else flipped(links)) for links in found]


def steps_of(translator: Translator) -> int:
    assert translator.run is not None
    log = translator.run.log.read_text(encoding="utf-8").splitlines()
    return max((json.loads(line).get("step", 0) for line in log), default=0)


def dev_bleu(translator: Translator, pairs: Pairs) -> dict[str, Any]:
    found = bleu([each.text for each in translator.translate([source for source, _ in pairs])], [t for _, t in pairs])
    return {"score": round(found.score, 2), "signature": found.signature}


# The table


def summary(out: Path, golds: list[Gold]) -> dict[str, Any]:
    """A row for each model that was measured, and one for both directions together."""
    found = sorted(out.glob("*.json"))
    known = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in found}
    known = {name: result for name, result in known.items() if "links" in result}
    table: dict[str, Any] = {}
    for name, result in known.items():
        rates = {how: rate(links, golds) for how, links in result["links"].items()}
        table[name] = {key: result.get(key) for key in ("aligner", "agreement", "bleu", "steps")} | {"aer": rates}
    for name in known:
        back = name.replace("de-en-guided", "en-de-guided", 1)
        if name.startswith("de-en-guided") and back in known:
            table[f"{name}, both directions"] = {"aer": together(known[name]["links"], known[back]["links"], golds)}
    return table


def together(there: dict[str, Any], back: dict[str, Any], golds: list[Gold]) -> dict[str, float]:
    return {
        f"{how}, {method}": rate(
            [symmetrise(map(tuple, a), map(tuple, b), method) for a, b in zip(there[how], back[how], strict=True)],
            golds,
        )
        for how in there
        for method in JOINED
    }


def rate(links: list[Any], golds: list[Gold]) -> float:
    quality = alignment_quality([frozenset(map(tuple, each)) for each in links], golds)
    return round(asdict(quality)["error_rate"], 4)


if __name__ == "__main__":
    main()
