"""Whether doubt tells good translations from bad ones: AUC of each signal and of all on text that is not learned on.

    python bench/doubt.py RUN --source FILE --target FILE [--sentences 500] [--plot FILE.svg] [--ledger]

RUN's weights of the signals are learned on its own validation text (and kept in RUN). FILE is held-back text, of which
pairs are made by another seed: good ones are the run's own translations and the references; bad ones are damaged
inputs with their translations (words shuffled or removed, the other language, letters replaced) and outputs that are
not their own (of another sentence, repeated, cut off). An AUC of 0.5 is a coin's. The plot shows, by tenths of doubt,
which share of the pairs was bad, good and bad weighing alike. Then what doubt costs beside a search with links.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from ledger import enter
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.explain.doubt import DAMAGES, DETACHED, GOOD, SIGNALS, labelled, signals
from regard.show.pictures import Chart, Point, Series, linear
from regard.show.svg import svg
from regard.tasks.load import load
from regard.tasks.translator import Translator

SEED = 7
Numbers = NDArray[np.float64]


def auc(good: Numbers, bad: Numbers) -> float:
    """How often a bad pair has the larger value; half of a draw."""
    order = np.sort(good)
    below, upto = np.searchsorted(order, bad, "left"), np.searchsorted(order, bad, "right")
    return float(((below + upto) / 2).mean() / max(1, len(good)))


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().removesuffix("\n").split("\n")


def measured(translator: Translator, texts: list[tuple[str, str]]) -> tuple[dict[str, Numbers], list[str]]:
    """The signals and the doubt of all pairs, and their kinds."""
    calibration = translator.calibration
    assert calibration is not None
    made = labelled(translator, texts, Random(SEED))
    found = [values for values, _ in signals(translator, [pair for pair, _ in made], calibration.usual)]
    columns = {name: np.array([values[name] for values in found]) for name in SIGNALS}
    return columns | {"doubt": np.array([calibration.value(values)[0] for values in found])}, [kind for _, kind in made]


def table(columns: dict[str, Numbers], kinds: list[str]) -> dict[str, dict[str, float]]:
    """AUC by signal and by kind of bad pair; a signal that is larger for good pairs is turned round."""
    names = np.array(kinds)
    groups = {
        "all": ~np.isin(names, GOOD),
        "damaged inputs": np.isin(names, list(DAMAGES)),
        "detached outputs": np.isin(names, list(DETACHED)),
        **{kind: names == kind for kind in (*DAMAGES, *DETACHED)},
    }
    result: dict[str, dict[str, float]] = {}
    for name, values in columns.items():
        good = values[np.isin(names, GOOD)]
        turned = -1.0 if name in ("probability", "worst", "source", "coverage") else 1.0
        result[name] = {group: round(auc(turned * good, turned * values[where]), 3) for group, where in groups.items()}
    return result


def plot(doubt: Numbers, kinds: list[str], path: Path) -> list[tuple[float, float, int]]:
    """Doubt against the share of bad pairs, by tenths."""
    bad = np.array([kind not in GOOD for kind in kinds])
    weight = np.where(bad, 0.5 / bad.sum(), 0.5 / (~bad).sum())
    points = []
    for low in np.arange(0, 1, 0.1):
        where = (doubt >= low) & (doubt < low + 0.1 + (low > 0.85))
        if where.any():
            share = float(weight[where & bad].sum() / weight[where].sum())
            points.append((float(np.average(doubt[where], weights=weight[where])), share, int(where.sum())))
    series = [
        Series("measured", [Point(x, y, note=f"{count} pairs") for x, y, count in points]),
        Series("as it should be", [Point(0, 0), Point(1, 1)]),
    ]
    axes = linear("doubt", [0, 1]), linear("share of bad pairs", [0, 1])
    path.write_text(svg(Chart("Doubt against the share of bad pairs", series, *axes)), encoding="utf-8")
    return [(round(x, 3), round(y, 3), count) for x, y, count in points]


def overhead(translator: Translator, sources: list[str], rounds: int = 5) -> dict[str, float]:
    """Processor seconds of a search for all sources with their links, as the service has them, and of the same with
    doubt; the median of turns."""
    spent: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * rounds):
        began = time.process_time()
        outputs = [ranked[0] for ranked in translator.search(sources, Options(Beam(5)))]
        translator.links(outputs) if turn % 2 else translator.doubts_and_links(outputs)
        spent[turn % 2 == 0].append(time.process_time() - began)
    plain, doubting = (statistics.median(spent[doubt]) for doubt in (False, True))
    return {"plain_s": round(plain, 4), "with_doubt_s": round(doubting, 4), "overhead": round(doubting / plain - 1, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description="AUC and calibration of doubt on held-back text.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--plot", type=Path, default=Path("doubt.svg"))
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    translator = load(arguments.run, device="cpu")
    texts = list(zip(lines(arguments.source), lines(arguments.target), strict=True))[: arguments.sentences]
    began = time.perf_counter()
    assert translator.calibration is not None
    learned = time.perf_counter() - began
    columns, kinds = measured(translator, texts)
    found = table(columns, kinds)
    for name, row in found.items():
        print(f"{name:12}", *(f"{group} {value:.3f}" for group, value in row.items()))
    points = plot(columns["doubt"], kinds, arguments.plot)
    cost = {str(size): overhead(translator, [source for source, _ in texts[:size]]) for size in (1, 32)}
    print(f"calibration {learned:.1f} s; {points}; {cost}")
    if arguments.ledger:
        result = {"run": arguments.run.name, "sentences": len(texts), "auc": found, "calibration": points, "cost": cost}
        enter("doubt", result, "python " + " ".join(sys.argv))


if __name__ == "__main__":
    main()
