"""Tagging: a label for each word, or for each vector."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from regard.data.encoding import RowEncoder, TagEncoder
from regard.data.tables import Row
from regard.errors import DataError
from regard.metrics.labels import TagResult, Tally
from regard.runs.folder import Run
from regard.settings import Settings
from regard.settings.call import DecodeSettings
from regard.tasks.labels import LabelPredictor, LabelTask, vocabulary
from regard.tasks.predictor import GREEDY, Rows
from regard.tasks.task import column
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import Vectors
from regard.text.vocabulary import Vocabulary

VECTORS = "·"  # what stands for a vector where words are counted
_VECTORS = re.compile(r"\[[\[\d-]|data:")  # how a text begins that denotes vectors, and not words


@dataclass(frozen=True)
class TaggedText:
    """The words of a text, each with its tag and how sure the model is of it."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]

    def __str__(self) -> str:
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))

    def to_dict(self) -> dict[str, Any]:
        sure = [round(value, 4) for value in self.probabilities]
        return {"words": self.words, "tags": self.tags, "probabilities": sure}

    def fields(self) -> dict[str, Any]:
        rows = zip(self.words, self.tags, self.probabilities, strict=True)
        return {"tags": [{"word": word, "tag": tag, "probability": value} for word, tag, value in rows]}


@dataclass(frozen=True)
class Tagger(LabelPredictor):
    """Tags words, which are separated by spaces as in the training text."""

    task: ClassVar[Literal["tag"]] = "tag"

    def tag(self, texts: Sequence[str]) -> list[TaggedText]:
        """Each text's words with their tags; order is kept, and an empty text has no words."""
        read = [self.reader.units(text) for text in texts]
        results = [TaggedText((), (), ())] * len(texts)
        for row, probabilities in self.probabilities([pieces for _, pieces, _ in read]):
            words, _, first = read[row]
            best, which = probabilities[first].max(-1)  # of the piece that has each word's label
            tags = tuple(self.labels.token(number) for number in which.tolist())
            results[row] = TaggedText(words, tags, tuple(best.tolist()))
        return results

    def predict(
        self,
        texts: Sequence[str],
        how: DecodeSettings = GREEDY,  # noqa: ARG002
        *,
        first: int = 0,  # noqa: ARG002
    ) -> Sequence[TaggedText]:
        return self.tag(texts)

    def read(self, texts: Sequence[str]) -> list[str]:
        return [str(tagged) for tagged in self.tag(texts)]

    def evaluate(self, chunks: Iterable[list[Row]], name: str) -> TagResult:
        """Words that are not in the training text are also counted by themselves."""
        vectors = isinstance(self.reader.tokenizer, Vectors)  # none of which is an unknown word
        tally = Tally({VECTORS} if vectors else () if self.run is None else set(vocabulary(self.run.words)))
        for chunk in chunks:
            for (line, row), guess in zip(chunk, self.tag([row[0] for _, row in chunk]), strict=True):
                tags, units = row[1].split(), "vectors" if vectors else "words"
                if len(guess.words) != len(tags):
                    problem = f"{len(guess.words)} {units} but {len(tags)} tags; every {units[:-1]} needs one tag"
                    raise DataError(f"{name} line {line}: {problem}")
                tally.tags([VECTORS] * len(tags) if vectors else guess.words, tags, guess.tags)
        return TagResult(tally.texts, tally.confusion(), tally.unknown())


class TagTask(LabelTask):
    """A tagger in training."""

    columns = TagEncoder.names
    labelled = TagEncoder
    predictor = Tagger

    @staticmethod
    def labels_of(text: str) -> list[str]:
        return text.split()

    @staticmethod
    def pool(settings: Settings) -> None:  # noqa: ARG004
        return None

    @staticmethod
    def fault(row: Sequence[str]) -> str:
        words, tags = row[0].split(), row[1].split()
        if len(words) == 1 and _VECTORS.match(row[0]):  # the encoder counts them
            return ""
        return "" if len(words) == len(tags) else f"{len(words)} words but {len(tags)} tags"

    @classmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:
        encoder = super().encoder(run, tokenizers, train, valid)
        if not run.words.exists() and not isinstance(tokenizers.source, Vectors):
            words = (word for text in column(train, cls.columns, 0) for word in text.split())
            Vocabulary.count(words, special=False).save(run.words)
        return encoder
