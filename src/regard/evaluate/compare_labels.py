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
from regard.metrics.labels import ClassResult, TagResult
from regard.metrics.language import LanguageResult
from regard.metrics.translation import Quality
from regard.runs.folder import Run
from regard.settings import Settings
from regard.tasks.corpus import COLUMNS, Files, materials
from regard.tasks.labels import Classifier, Tagger
from regard.tasks.load import Predictor, Result, Rows, evaluate
from regard.tasks.writer import Writer

TIMED = 256  # texts that every run labels, in turns, while the clock runs
Tell = Callable[[str], None]


@dataclass(frozen=True)
class LabelledMaterial:
    """What is labelled, with the right answers, and where it comes from."""

    name: str
    task: str
    rows: Rows

    def fingerprint(self) -> tuple[str, int]:
        """Of all rows, and how many there are."""
        digest, count = hashlib.sha256(), 0
        for _, row in self.rows.rows(COLUMNS[self.task]):
            digest.update("\t".join(row).encode("utf-8", "surrogatepass") + b"\n")
            count += 1
        return digest.hexdigest(), count

    def sample(self) -> list[str]:
        """The first texts, for the clock."""
        return [row[0] for _, row in islice(self.rows.rows(COLUMNS[self.task]), TIMED)]


@dataclass(frozen=True)
class First:
    """The first rows of a material."""

    whole: Rows
    count: int

    def rows(self, names: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        return islice(self.whole.rows(names), self.count)


def labelled_material(
    runs: Sequence[Run], task: str, source: str, target: str, limit: int | None = None
) -> LabelledMaterial:
    """The files that are given (one that holds all columns, or two), else the validation text that all runs share."""
    given = tuple(name for name in (source, target) if name)
    if given:
        return LabelledMaterial(" and ".join(given), task, _first(Files(Corpus(given)), limit))
    settings = [run.settings for run in runs]
    sides = ("corpus", "source", "target")
    named = {tuple(getattr(one.data, f"{part}{side}") for part in ("", "valid_") for side in sides) for one in settings}
    if len(named) > 1:
        raise SettingsError("--source: missing, and the runs share no validation text; name a file with the answers")
    name = "the validation text, by which each run chose its best checkpoint"
    return LabelledMaterial(name, task, _first(materials(settings[0])[1], limit))


def _first(rows: Rows, limit: int | None) -> Rows:
    return rows if limit is None else First(rows, limit)


def caller(predictor: Predictor) -> Callable[[list[str]], list[str]]:
    """What a run does with texts, for the clock."""
    match predictor:
        case Tagger():
            return lambda texts: [str(found) for found in predictor.tag(texts)]
        case Classifier():
            return lambda texts: [found.label for found in predictor.classify(texts)]
        case Writer():
            return lambda texts: [str(found) for found in predictor.log_probabilities(texts)]


def scores(run: Run, material: Rows, device: str) -> tuple[Quality, ...]:
    """What the task is measured by, the first number deciding; higher is better."""
    return qualities(evaluate(run.folder, material, device))


def qualities(result: Result) -> tuple[Quality, ...]:
    match result:
        case TagResult():
            return (
                _percent("accuracy", result.words.accuracy),
                _percent("unknown words", result.unknown.accuracy),
                _percent("macro F1", result.words.macro_f1),
            )
        case ClassResult():
            return _percent("accuracy", result.accuracy), _percent("macro F1", result.confusion.macro_f1)
        case LanguageResult():
            return (
                Quality("perplexity/word", result.perplexity_per_word, "", None, None),
                Quality("perplexity/byte", result.perplexity_per_byte, "", None, None),
            )


def _percent(name: str, share: float) -> Quality:
    return Quality(name, 100 * share, "", None, None)


def baseline_rows(settings: Settings, material: Rows, tell: Tell) -> list[Row]:
    """What counting words reaches after the same training text; nothing where scikit-learn is not installed."""
    names = COLUMNS["classify"]
    train = ((row[0], row[1]) for _, row in materials(settings)[0].rows(names))
    held_out = ((row[0], row[1]) for _, row in material.rows(names))
    try:
        found = baselines(train, held_out)
    except ResourceError as problem:
        tell(f"baselines left out: {problem}")
        return []
    return [
        Row(
            each.name, (_percent("accuracy", each.accuracy), _percent("macro F1", each.macro_f1)), origin="scikit-learn"
        )
        for each in found
    ]
