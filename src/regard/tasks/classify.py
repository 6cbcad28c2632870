"""Classification: one label for the whole text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from regard.data.encoding import LabelEncoder
from regard.data.tables import Row
from regard.errors import DataError, did_you_mean
from regard.metrics.labels import ClassResult, Tally
from regard.models.build import PoolName
from regard.settings import Settings
from regard.settings.call import DecodeSettings
from regard.tasks.labels import LabelPredictor, LabelTask
from regard.tasks.predictor import GREEDY


@dataclass(frozen=True)
class Classified:
    """The classes of a text, the likeliest first. An empty text has none."""

    text: str
    classes: tuple[tuple[str, float], ...]

    @property
    def label(self) -> str:
        return self.classes[0][0] if self.classes else ""

    def __str__(self) -> str:
        return f"{self.label}\t{self.classes[0][1]:.3f}" if self.classes else ""

    def to_dict(self) -> dict[str, Any]:
        sure = {label: round(value, 4) for label, value in self.classes}
        return {"text": self.text, "label": self.label, "probabilities": sure}

    def fields(self) -> dict[str, Any]:
        return {"classes": [{"label": label, "probability": value} for label, value in self.classes]}


@dataclass(frozen=True)
class Classifier(LabelPredictor):
    """Finds the class of a text."""

    task: ClassVar[Literal["classify"]] = "classify"

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Each text's classes with their probabilities; order is kept."""
        results = [Classified(text, ()) for text in texts]
        for row, probabilities in self.probabilities([self.reader.text(text) for text in texts]):
            best, which = probabilities.sort(descending=True, stable=True)
            names = map(self.labels.token, which.tolist())
            results[row] = Classified(texts[row], tuple(zip(names, best.tolist(), strict=True)))
        return results

    def predict(
        self,
        texts: Sequence[str],
        how: DecodeSettings = GREEDY,  # noqa: ARG002
        *,
        first: int = 0,  # noqa: ARG002
    ) -> Sequence[Classified]:
        return self.classify(texts)

    def read(self, texts: Sequence[str]) -> list[str]:
        return [classified.label for classified in self.classify(texts)]

    def evaluate(self, chunks: Iterable[list[Row]], name: str) -> ClassResult:
        tally, labels = Tally(), frozenset(self.labels)
        for chunk in chunks:
            for (line, (_, truth)), guess in zip(chunk, self.classify([row[0] for _, row in chunk]), strict=True):
                if truth not in labels:
                    hint = did_you_mean(truth, labels)
                    raise DataError(f"{name} line {line}: label = {truth!r}: not one the run knows; {hint}")
                tally.label(truth, guess.label)
        return ClassResult(tally.confusion())


class ClassifyTask(LabelTask):
    """A classifier in training."""

    columns = LabelEncoder.names
    counting = True
    labelled = LabelEncoder
    predictor = Classifier

    @staticmethod
    def labels_of(text: str) -> list[str]:
        return [text]

    @staticmethod
    def pool(settings: Settings) -> PoolName:
        return settings.pool
