"""Which sentence of a text is looked into, and the remarks on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from regard.errors import DataError
from regard.explain.answer import OfSentence, Sentence
from regard.serve.worker import Model
from regard.text.reading import Unknown
from regard.text.sentences import cut

Found = TypeVar("Found", bound=OfSentence)
UNKNOWN = "<unk>"  # as a search writes it


@dataclass(frozen=True)
class ChosenSentence:
    """A sentence of a text."""

    sentences: tuple[Sentence, ...]
    sentence: int
    text: str
    model: Model

    def about(self, found: Found, output: str) -> Found:
        """An answer with its sentence and the remarks on it, which depend on the output."""
        unknown, warning = self._remarks(output)
        return replace(found, sentences=self.sentences, sentence=self.sentence, unknown=unknown, warning=warning)

    def _remarks(self, output: str) -> tuple[tuple[Unknown, ...], str]:
        """Words that a translator has never seen, and what it warns of."""
        if self.model.task != "translate":
            return (), ""
        passage = self.model.search.read(self.text)
        words = list(dict.fromkeys(each.word for each in passage.unknown))
        copied = [output, *words] if output.count(UNKNOWN) >= len(words) else [output]  # each has its <unk>
        return passage.unknown, "; ".join(passage.remarks(" ".join(copied), self.model.language))


def cut_up(text: str) -> tuple[Sentence, ...]:
    """Every sentence with its place."""
    found = cut(text)
    places = zip(found.sentences, found.spans, strict=True)
    return tuple(Sentence(start, end, sentence) for sentence, (start, end) in places)


def choose(model: Model, text: str, number: int) -> ChosenSentence:
    """A sentence by its number from 0. What does not translate reads a text whole."""
    found = cut_up(text) if model.task == "translate" else ()
    if not found:
        found = (Sentence(0, len(text), text),)
    if number >= len(found):
        raise DataError(f"sentence = {number}: the text has {len(found)}, counted from 0; choose one of these")
    return ChosenSentence(found, number, found[number].text, model)
