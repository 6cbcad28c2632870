"""Forecasts of real series by the recurrent ladder and a Transformer, beside the naive ones.

    python bench/forecast.py FOLDER [--series airline,co2,…] [--rungs rnn,gru,…] [--seeds 1]
                              [--part test] [--ledger] [a.b=c …]

FOLDER holds the series, each as `regard data make NAME FOLDER/NAME` writes it. Every rung has the same width, the same
steps and the same windows; the test part is forecast from each of its moments on, given all that came before, or with
`--part valid` the validation part, by which a recipe is chosen. The table has MASE, CRPS, the coverage of the intervals
of 80 and 90 %, and MASE of the first moment ahead and of the last: where memory fades the two come apart.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import mean
from time import process_time

import torch

import regard
from ledger import enter
from regard.data.readers import Corpus
from regard.metrics.forecast import ForecastResult, ForecastScore
from regard.settings import Settings
from regard.tasks.corpus import Files
from regard.tasks.load import evaluate, task_of
from regard.trainer.start import start

SERIES = {  # moments of a season, of the context and of the horizon, steps; and what else validation parts chose
    "airline": (12, 24, 12, 200),
    "co2": (52, 104, 26, 300),
    "electricity": (168, 336, 24, 300, "forecast.scale=season", "data.longest=400", "train.batch=8192"),
    "elnino": (12, 48, 12, 300, "forecast.anchor=mean"),
    "sunspots": (11, 44, 11, 200),
}
RUNGS = {"rnn": "rnn", "gru": "gru", "lstm": "lstm", "bahdanau": "bahdanau", "luong": "luong-general"}
RUNGS |= {"transformer": "transformer-tiny"}
SIZES = {
    "recurrent": ("model.width=32", "model.hidden=32"),
    "transformer": ("model.width=32", "model.hidden=64", "model.heads=4", "model.depth=1"),
}
LEARN = (
    *("task=forecast", "train.batch=1536", "train.rate=3e-3", "train.schedule=cosine", "train.warmup=30"),
    *("train.validate_every=50", "train.average={kind='moving', decay=0.98}", "train.weight_decay=0.01"),
    *("train.optimizer=adamw", "model.dropout=0.1"),
)


def settings(folder: Path, series: str, rung: str, seed: int, overrides: list[str]) -> Settings:
    season, context, horizon, steps, *own = SERIES[series]
    cut = (f"forecast.season={season}", f"forecast.context={context}", f"forecast.horizon={horizon}")
    data = (f"data.corpus={folder / series / 'train.csv'}", f"data.valid_source={folder / series / 'train.csv'}")
    kind = "transformer" if rung == "transformer" else "recurrent"
    more = (*data, f"data.valid_target={folder / series / 'valid.csv'}", f"train.steps={steps}", f"train.seed={seed}")
    return regard.load_settings(RUNGS[rung], *SIZES[kind], *LEARN, *cut, *more, *map(str, own), *overrides)


class Silence:
    """Hears nothing of a training."""

    def moment(self, moment: object) -> None: ...

    def validation(self, validation: object) -> None: ...

    def watch(self, step: int, watched: object) -> None: ...

    def tell(self, line: str) -> None: ...


def measured(folder: Path, chosen: Settings, part: str) -> tuple[ForecastResult, float]:
    """A training and its test on a part of a series; with the seconds of computing that the training took."""
    with tempfile.TemporaryDirectory() as place:
        began = process_time()
        start(Path(place) / "run", chosen, Silence(), device="cpu")
        spent = process_time() - began
        past = Path(place) / "past.csv"
        lines = [(folder / f"{each}.csv").read_text().splitlines() for each in ("train", "valid")]
        past.write_text("\n".join(lines[0] + (lines[1][1:] if part == "test" else [])) + "\n")
        files = Files(Corpus((str(past), str(folder / f"{part}.csv"))), vectors=True)
        found = evaluate(Path(place) / "run", task_of("forecast").material(files, chosen))
    assert isinstance(found, ForecastResult)
    return found, spent


def line(series: str, name: str, found: list[ForecastScore], seconds: float) -> dict[str, object]:
    """The means over seeds."""
    figures = {
        "MASE": mean(one.mase for one in found),
        "CRPS": mean(one.crps for one in found),
        "in 80 %": 100 * mean(one.coverage[0] for one in found),
        "in 90 %": 100 * mean(one.coverage[1] for one in found),
        "first": mean(one.steps[0] for one in found),
        "last": mean(one.steps[-1] for one in found),
    }
    shown = "  ".join(f"{figures[key]:7.1f}" if "%" in key else f"{figures[key]:7.3f}" for key in figures)
    print(f"{series:9} {name:28} {shown}  {seconds:5.0f} s", flush=True)
    rounded = {key: round(value, 1 if "%" in key else 3) for key, value in figures.items()}
    return {"series": series, "model": name, **rounded, "CPU seconds": round(seconds)}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("folder", type=Path)
    asked.add_argument("--series", default=",".join(SERIES))
    asked.add_argument("--rungs", default=",".join(RUNGS))
    asked.add_argument("--seeds", type=int, default=1)
    asked.add_argument("--part", choices=("valid", "test"), default="test")
    asked.add_argument("--ledger", action="store_true")
    asked.add_argument("overrides", nargs="*")
    given = asked.parse_intermixed_args()
    torch.set_num_threads(1)
    print(f"{'series':9} {'model':28}    MASE     CRPS  in 80 %  in 90 %    first     last")
    for series in given.series.split(","):
        naive: dict[str, ForecastScore] = {}
        for rung in given.rungs.split(","):
            every = [settings(given.folder, series, rung, 1 + seed, given.overrides) for seed in range(given.seeds)]
            runs = [measured(given.folder / series, chosen, given.part) for chosen in every]
            own = [found.scores[0] for found, _ in runs]
            lines = [line(series, rung, own, mean(spent for _, spent in runs))]
            naive = {one.name: one for one in runs[0][0].scores if "naive" in one.name}
            if len(runs[0][0].scores) > 3:
                forced = [found.scores[1] for found, _ in runs]
                lines.append(line(series, f"{rung}, given the true past", forced, 0.0))
            if given.ledger:
                for each in lines:
                    enter("forecast", {**each, "seeds": given.seeds}, f"python {' '.join(sys.argv)}")
        for name, one in naive.items():
            line(series, name, [one], 0.0)


if __name__ == "__main__":
    main()
