"""Which sentence of a text is looked into, and what is to be said of it before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.errors import DataError
from regard.serve.schema.look import SentenceAnswer, UnknownAnswer
from regard.serve.worker import Model
from regard.tasks.translator import Translator
from regard.text.sentences import cut

UNKNOWN = "<unk>"  # as a search writes it


@dataclass(frozen=True)
class Asked:
    """A sentence of a text."""

    sentences: list[SentenceAnswer]
    sentence: int
    text: str
    model: Model

    def fields(self, output: str) -> dict[str, Any]:
        """What every answer about one sentence says of it, once it is known what became of it."""
        unknown, warning = self._remarks(output)
        return {"sentences": self.sentences, "sentence": self.sentence, "unknown": unknown, "warning": warning}

    def _remarks(self, output: str) -> tuple[list[UnknownAnswer], str]:
        """Words that a translator has never seen, and what it warns of."""
        if not isinstance(self.model, Translator):
            return [], ""
        passage = self.model.search.read(self.text)
        unknown = [UnknownAnswer(start=each.start, end=each.end, word=each.word) for each in passage.unknown]
        words = list(dict.fromkeys(each.word for each in passage.unknown))
        copied = [output, *words] if output.count(UNKNOWN) >= len(words) else [output]  # each has its <unk>
        return unknown, "; ".join(passage.remarks(" ".join(copied), self.model.language))


def cut_up(text: str) -> list[SentenceAnswer]:
    """Every sentence with its place."""
    found = cut(text)
    places = zip(found.sentences, found.spans, strict=True)
    return [SentenceAnswer(start=start, end=end, text=sentence) for sentence, (start, end) in places]


def choose(model: Model, text: str, number: int) -> Asked:
    """A sentence by its number from 0. What does not translate reads a text whole."""
    found = cut_up(text) if isinstance(model, Translator) else []
    if not found:
        found = [SentenceAnswer(start=0, end=len(text), text=text)]
    if number >= len(found):
        raise DataError(f"sentence = {number}: the text has {len(found)}, counted from 0; choose one of these")
    return Asked(found, number, found[number].text, model)
