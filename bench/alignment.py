"""How well attention aligns on the built-in corpus: trains each preset, chooses its aligner, measures it.

    python bench/alignment.py [--preset bahdanau --preset transformer-tiny] [--runs FOLDER] [--ledger]

Trains what is not in FOLDER yet, with the settings of ``regard demo``, but 2,000 steps on the corpus without more
riddles than it has: alignment needs neither. The aligner is chosen on 300 sentences of
the validation part; the figures are of 1,000 sentences of the test part that nothing was chosen on, with the
reference given. Beside the chosen aligner stand the best single head, and the head that would be chosen without
gold links. ``--ledger`` appends the result to bench/ledger.jsonl.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path

from ledger import enter
from regard.cli.display import display
from regard.explain.alignment import Aligner, attend, choose, choose_without_gold, sides
from regard.explain.trace import Side
from regard.fable.corpus import Split, generate
from regard.metrics.alignment import Gold, alignment_quality
from regard.settings.demo import demo_settings
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.trainer import start as training

PLAIN = ("data.riddles=0.0", "train.steps=2000")
CHOSEN_ON, TESTED, BLIND = 300, 1000, 40
Pairs = list[tuple[Side, Side]]


def pairs_of(translator: Translator, split: Split, count: int) -> tuple[Pairs, list[Gold]]:
    sentences = list(generate("fr", count=count, split=split, maximum_words=20))
    pairs = [sides(translator.tokenizers, sentence.source, sentence.target) for sentence in sentences]
    links = [frozenset(sentence.alignment) for sentence in sentences]
    return pairs, [Gold(found, found) for found in links]


def measure(preset: str, folder: Path) -> dict[str, object]:
    if not (folder / "best").exists():
        with display() as shown:
            training.start(folder, demo_settings(preset, *PLAIN), shown)
    translator = load(folder)
    model = translator.model
    valid, valid_gold = pairs_of(translator, "valid", CHOSEN_ON)
    seen = attend(model, valid)
    chosen = choose(seen, valid_gold, "valid")
    chosen.save(folder)
    aligners = {
        "chosen": chosen,
        "chosen, largest weight only": replace(chosen, threshold=None, cover=None, rule="piece"),
        "one head": choose(seen, valid_gold, "valid", several=False),
        "without gold": choose_without_gold(model, valid[:BLIND], "valid"),
    }
    test, test_gold = pairs_of(translator, "test", TESTED)
    test_seen = attend(model, test)
    return {"preset": preset} | {
        name: {"aligner": _told(aligner)}
        | asdict(alignment_quality([aligner.align(pair) for pair in test_seen], test_gold))
        for name, aligner in aligners.items()
    }


def _told(aligner: Aligner) -> str:
    parts = (("rule", aligner.rule), ("threshold", aligner.threshold), ("cover", aligner.cover))
    told = "".join(f", {name} {value}" for name, value in parts if value is not None)  # to cover from 0 is a choice too
    return aligner.describe() + (", late" if aligner.late else "") + told


def main() -> None:
    parser = argparse.ArgumentParser(description="Alignment error rate of attention on the built-in corpus.")
    parser.add_argument("--preset", action="append", default=None)
    parser.add_argument("--runs", type=Path, default=Path("runs/alignment"))
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    print(f"{TESTED:,} test sentences\n{'':34}{'AER':>7}{'precision':>11}{'recall':>8}")
    for preset in arguments.preset or ["bahdanau", "transformer-tiny"]:
        result = measure(preset, arguments.runs / preset)
        print(preset)
        for name, found in result.items():
            if isinstance(found, dict):
                figures = f"{found['error_rate']:>7.4f}{found['precision']:>11.3f}{found['recall']:>8.3f}"
                print(f"  {name:32}{figures}   {found['aligner']}")
        if arguments.ledger:
            enter("alignment", result, "python bench/alignment.py --ledger")


if __name__ == "__main__":
    main()
