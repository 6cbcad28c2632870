"""Runs of the other tasks side by side: taggers, classifiers and language models on one corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from regard.data.readers import Corpus
from regard.errors import ResourceError, SettingsError
from regard.evaluate.comparison import Row
from regard.metrics.baselines import baselines
from regard.metrics.translation import Quality
from regard.runs.folder import Run
from regard.settings import Settings
from regard.tasks.corpus import Files, materials
from regard.tasks.predictor import Result, Rows
from regard.tasks.task import Task

TIMED = 256  # texts that every run labels, in turns, while the clock runs
Tell = Callable[[str], None]


@dataclass(frozen=True)
class LabelledSet:
    """What is labelled, with the right answers, and where it comes from."""

    name: str
    task: type[Task]
    whole: Rows
    limit: int | None  # of the rows, the first of which are used
    held_out: bool  # False: by this text checkpoints were chosen

    def rows(self, names: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        return islice(self.whole.rows(names), self.limit)

    def fingerprint(self) -> tuple[str, int]:
        """Of all rows, and how many there are."""
        digest, count = hashlib.sha256(), 0
        for _, row in self.rows(self.task.columns):
            digest.update("\t".join(row).encode("utf-8", "surrogatepass") + b"\n")
            count += 1
        return digest.hexdigest(), count

    def sample(self) -> list[str]:
        """The first texts, for the clock."""
        return [row[0] for _, row in islice(self.rows(self.task.columns), TIMED)]


def labelled_material(
    runs: Sequence[Run], task: type[Task], source: str, target: str, limit: int | None = None
) -> LabelledSet:
    """The files that are given (one that holds all columns, or two), else the validation text that all runs share."""
    given = tuple(name for name in (source, target) if name)
    if given:
        return LabelledSet(" and ".join(given), task, Files(Corpus(given)), limit, held_out=True)
    settings = [run.settings for run in runs]
    sides = ("corpus", "source", "target")
    named = {tuple(getattr(one.data, f"{part}{side}") for part in ("", "valid_") for side in sides) for one in settings}
    if len(named) > 1:
        raise SettingsError("--source: missing, and the runs share no validation text; name a file with the answers")
    name = "the validation text, by which each run chose its best checkpoint"
    return LabelledSet(name, task, materials(settings[0])[1], limit, held_out=False)


def qualities(result: Result) -> tuple[Quality, ...]:
    """What the task is measured by, the first number deciding."""
    return tuple(Quality(name, score, "") for name, score in result.numbers())


def baseline_rows(settings: Settings, material: LabelledSet, tell: Tell) -> list[Row]:
    """What counting words reaches after the same training text; nothing where scikit-learn is not installed."""
    names = material.task.columns
    train = ((row[0], row[1]) for _, row in materials(settings)[0].rows(names))
    held_out = ((row[0], row[1]) for _, row in material.rows(names))
    try:
        known = baselines(train, held_out)
    except ResourceError as problem:
        tell(f"baselines left out: {problem}")
        return []
    return [
        Row(
            name,
            (Quality("accuracy", 100 * found.accuracy, ""), Quality("macro F1", 100 * found.macro_f1, "")),
            origin="scikit-learn",
        )
        for name, found in known.items()
    ]
