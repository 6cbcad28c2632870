"""What if, asked of labellers and of language models: how each reads a text, and what its output is.

A labeller's output is its labels. A language model's is how it goes on: the text is what it read before, so that a word
replaced or masked there changes what is written after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.decode.constraints import Prefix, required
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.errors import DataError
from regard.explain.edits import Scene
from regard.explain.replay import Spelling, forward, reads_backwards, replay, resting
from regard.explain.side import Side, spell
from regard.explain.trace import Trace
from regard.explain.whatif import Detail, ObservedModel, Places
from regard.models.labeller import Labeller
from regard.models.language_model import LanguageModel
from regard.nn.observe import UNOBSERVED, Observer
from regard.tasks.labels import Reader
from regard.tasks.language import room
from regard.text.special import END
from regard.text.tokenizer import Tokenizer

WRITTEN = 20  # pieces that a language model goes on for, at the most


@dataclass(frozen=True)
class LabellerSubject:
    """A tagger or, pooled, a classifier."""

    model: Labeller
    reader: Reader
    labels: tuple[str, ...]

    @property
    def tags(self) -> bool:
        return self.model.pool is None

    def read(self, text: str) -> Side:
        rows = self.reader.words(text.split())[0] if self.tags else self.reader.text(text)
        return spell(rows, self.reader.tokenizer, text)

    def scene(self, read: Side) -> Scene:
        return Scene(read, reads_backwards(self.model))

    def write(self, read: Side, observer: Observer = UNOBSERVED, *, prefix: str = "") -> list[int]:  # noqa: ARG002
        with torch.no_grad(), resting(self.model):
            return forward(self.model, read.rows, None, observer).argmax(-1).tolist()

    def kept(self, read: Side, before: Trace, written: Sequence[int]) -> list[int]:
        """Word by word: the first piece of each has its label, and what the others would have does not count."""
        if not self.tags:
            return list(written)
        if len(read.words) != len(before.source.words):
            raise DataError(
                f"replace-word = {len(before.source.words)} words become {len(read.words)}: tags stand word by word; "
                "one word for one word would be right"
            )
        labels = self.write(read)
        for old, new in zip(_firsts(before.source), _firsts(read), strict=True):
            labels[new] = written[old]
        return labels

    def replay(self, read: Side, written: Sequence[int], observer: Observer | None, detail: Detail) -> Trace:
        spelling = Spelling(self.reader.tokenizer, source_text=" ".join(read.words), labels=self.labels)
        return replay(self.model, read.rows, written, observer, spelling=spelling, detail=detail)

    def places(self, trace: Trace, read: Side) -> Places:  # noqa: ARG002
        return tuple(_firsts(read)) if self.tags else None


def _firsts(read: Side) -> list[int]:
    """Where the first piece of each word is."""
    return [read.pieces_of(word)[0] for word in range(len(read.words))]


@dataclass(frozen=True)
class LanguageSubject:
    """A language model that goes on from a text."""

    model: LanguageModel
    tokenizer: Tokenizer
    most: int = WRITTEN

    def read(self, text: str) -> Side:
        return spell(self.tokenizer.encode(text), self.tokenizer, text)

    def scene(self, read: Side) -> Scene:
        return Scene(read, side="decoder")

    def write(self, read: Side, observer: Observer = UNOBSERVED, *, prefix: str = "") -> list[int]:
        """What comes after the text; with its ``<end>``, where it gets that far."""
        device = next(self.model.parameters()).device
        start = required(self.tokenizer, "prefix", prefix) if prefix else []
        with torch.no_grad(), resting(self.model):
            _, state = self.model.start(1)
            tokens = torch.tensor([[self.model.first, *read.ids]], device=device)  # (1, T)
            _, state = self.model.advance(tokens[:, :-1], state, observer=observer)
            limit = torch.tensor([room(self.model, tokens.shape[1], self.most + len(start) + 1)], device=device)
            constraints = [Prefix([start])] if start else []
            watched = ObservedModel(self.model, observer)
            found = search(watched, tokens[:, -1], state, limit, rule=Beam(1), constraints=constraints)
        return [*found[0][0].tokens, END]

    def kept(self, read: Side, before: Trace, written: Sequence[int]) -> list[int]:  # noqa: ARG002
        return list(written)

    def replay(self, read: Side, written: Sequence[int], observer: Observer | None, detail: Detail) -> Trace:
        spelling = Spelling(target=self.tokenizer)
        return replay(self.model, (), [*read.ids, *written], observer, spelling=spelling, detail=detail)

    def places(self, trace: Trace, read: Side) -> Places:
        return tuple(range(len(read), len(trace.target)))
