"""What if: carry out edits, and see what changes in the output and in its probability.

Two answers for every question. *The same output* replayed under the edits says how probable the old words still
are; *a new output*, written under them, says what the model would write instead. Outputs are greedy, before and
after, so that the difference is that of the edits. Labellers and language models are asked in `regard.explain.asked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from regard.decode.constraints import Prefix, required
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.errors import DataError
from regard.explain.edits import Edit, Editor, ForcePrefix, Scene
from regard.explain.replay import Spelling, reads_backwards, replay, resting
from regard.explain.side import Side, spell
from regard.explain.trace import Trace
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.language_model import LanguageModel
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State
from regard.text.special import END
from regard.text.tokenizers import Tokenizers

Change = tuple[tuple[str, ...], tuple[str, ...]]  # words before, words after
Detail = Literal["usual", "all"]
Places = tuple[int, ...] | None


@dataclass(frozen=True)
class EditOutcome:
    """What the edits did. ``places`` are the pieces of each trace that count, where not all do.

    Those of a language model are what it wrote; of a tagger, the first piece of each word, which has its tag.
    """

    edits: tuple[Edit, ...]
    before: Trace
    same: Trace  # the output of before, under the edits
    after: Trace  # the output that is written under the edits
    places: tuple[Places, Places, Places] = (None, None, None)

    @property
    def texts(self) -> tuple[str, str]:
        """The outputs before and after."""
        return " ".join(self._words(self.before, 0)), " ".join(self._words(self.after, 2))

    def _words(self, trace: Trace, number: int) -> tuple[str, ...]:
        """Of a tagger, one tag a word; else all there is."""
        places = self.places[number]
        labelled = trace.task == "label" and places is not None
        return tuple(trace.target.words[place] for place in places or ()) if labelled else trace.target.words

    @property
    def fall(self) -> Tensor:
        """By how much the log-probability of each piece of the old output fell, (T,)."""
        return _counted(self.before, self.places[0]) - _counted(self.same, self.places[1])

    @property
    def scores(self) -> tuple[float, float, float]:
        """Log-probabilities: of the old output, of the same under the edits, of the new one under them."""
        traces = self.before, self.same, self.after
        before, same, after = (
            float(_counted(trace, places).sum()) for trace, places in zip(traces, self.places, strict=True)
        )
        return before, same, after

    @property
    def difference(self) -> float:
        """The log-probability of the new output under the edits, less that of the old one without."""
        return self.scores[2] - self.scores[0]

    def changes(self) -> list[Change]:
        """The words that were exchanged, in order."""
        old, new = self._words(self.before, 0), self._words(self.after, 2)
        steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [(old[a:b], new[c:d]) for tag, a, b, c, d in steps if tag != "equal"]


def _counted(trace: Trace, places: Places) -> Tensor:
    return trace.log_probability if places is None else trace.log_probability[list(places)]


class Subject(Protocol):
    """A model under edits: reads a text, writes an output, and can be replayed."""

    def read(self, text: str) -> Side:
        """The text, as the model reads it."""

    def scene(self, read: Side) -> Scene:
        """What an edit may know of it."""

    def write(self, read: Side, observer: Observer = UNOBSERVED, *, prefix: str = "") -> list[int]:
        """The likeliest output, with an observer that sees and may change every step."""

    def kept(self, read: Side, before: Trace, written: Sequence[int]) -> list[int]:
        """An output written before, for a text that may have changed."""

    def replay(self, read: Side, written: Sequence[int], observer: Observer | None, detail: Detail) -> Trace:
        """An output seen being written."""

    def places(self, trace: Trace, read: Side) -> Places:
        """The pieces of a trace that count; none, where all do."""


def carry_out(
    asked: Subject, text: str, edits: Sequence[Edit], *, output: Sequence[int] | None = None, detail: Detail = "usual"
) -> EditOutcome:
    """Carry out ``edits`` on a text. ``output`` is what was written; without it, what the model would write.

    Replacements are made first, in order; the other edits count the words of the text that results.
    """
    if not text.split():
        raise DataError("text = '': an empty sentence has nothing to change; give it a word")
    first = asked.read(text)
    written = asked.write(first) if output is None else list(output)
    before = asked.replay(first, written, None, detail)
    changed = text
    for edit in edits:
        changed = edit.text(changed, asked.read)
    read = first if changed == text else asked.read(changed)
    kept = asked.kept(read, before, written)
    middle = before if changed == text else asked.replay(read, kept, None, detail)
    scene = asked.scene(read)
    for edit in edits:
        edit.check(middle, scene)
    same = asked.replay(read, kept, Editor(edits, scene), detail)
    prefix = [edit.prefix for edit in edits if isinstance(edit, ForcePrefix)][-1:]
    anew = asked.write(read, Editor(edits, scene), prefix="".join(prefix))
    after = asked.replay(read, anew, Editor(edits, scene), detail)
    places = asked.places(before, first), asked.places(same, read), asked.places(after, read)
    return EditOutcome(tuple(edits), before, same, after, places)


def what_if(
    model: EncoderDecoder,
    tokenizers: Tokenizers,
    text: str,
    edits: Sequence[Edit],
    *,
    output: Sequence[int] | None = None,
    detail: Detail = "usual",
) -> EditOutcome:
    """Carry out ``edits`` on a sentence and its translation. ``output`` ends in ``<end>``; without it, greedy's."""
    return carry_out(TranslatorSubject(model, tokenizers), text, edits, output=output, detail=detail)


@dataclass(frozen=True)
class TranslatorSubject:
    """A translator under edits."""

    model: EncoderDecoder
    tokenizers: Tokenizers

    def read(self, text: str) -> Side:
        return spell(self.tokenizers.read(text), self.tokenizers.source, text)

    def scene(self, read: Side) -> Scene:
        return Scene(read, reads_backwards(self.model))

    def write(self, read: Side, observer: Observer = UNOBSERVED, *, prefix: str = "") -> list[int]:
        start = required(self.tokenizers.target, "prefix", prefix) if prefix else []
        return write(self.model, read.ids, observer, prefix=[*self.tokenizers.begin, *start])

    def kept(self, read: Side, before: Trace, written: Sequence[int]) -> list[int]:  # noqa: ARG002
        return list(written)

    def replay(self, read: Side, written: Sequence[int], observer: Observer | None, detail: Detail) -> Trace:
        spelling = Spelling(self.tokenizers.source, self.tokenizers.target, " ".join(read.words))
        return replay(self.model, read.ids, written, observer, spelling=spelling, detail=detail)

    def places(self, trace: Trace, read: Side) -> Places:  # noqa: ARG002
        begun = len(self.tokenizers.begin)  # is given, and so counts for nothing
        return tuple(range(begun, len(trace.target))) if begun else None


@dataclass(frozen=True)
class ObservedModel:
    """A model whose every step is watched: all that search wants to know of one."""

    model: EncoderDecoder | LanguageModel
    observer: Observer

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        del observer
        return self.model.step(tokens, state, self.observer)


def write(
    model: EncoderDecoder, source_ids: Sequence[int], observer: Observer = UNOBSERVED, *, prefix: Sequence[int] = ()
) -> list[int]:
    """The greedy output, with its ``<end>``, under an observer that may change every step."""
    source = torch.tensor([list(source_ids)], device=next(model.parameters()).device)
    limit = torch.tensor([2 * len(source_ids) + 10 + len(prefix)], device=source.device)
    with torch.no_grad(), resting(model):
        first, state = model.start(source, observer=observer)
        constraints = [Prefix([prefix])] if prefix else []
        found = search(ObservedModel(model, observer), first, state, limit, rule=Beam(1), constraints=constraints)
    return [*found[0][0].tokens, END]
