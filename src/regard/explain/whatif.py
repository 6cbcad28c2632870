"""What if: carry out edits, and see what changes in the output and in its probability.

Two answers for every question. *The same output* replayed under the edits says how probable the old words still
are; *a new output*, written under them, says what the model would write instead. Outputs are greedy, before and
after, so that the difference is that of the edits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

import torch
from torch import Tensor

from regard.decode.constraints import Prefix
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.errors import DataError
from regard.explain.edits import Edit, Editor, ForcePrefix, Scene
from regard.explain.replay import Spelling, reads_backwards, replay, resting
from regard.explain.side import spell
from regard.explain.trace import Trace
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State
from regard.text.special import END
from regard.text.tokenizers import Tokenizers

Change = tuple[tuple[str, ...], tuple[str, ...]]  # words before, words after


@dataclass(frozen=True)
class Outcome:
    """What the edits did."""

    edits: tuple[Edit, ...]
    before: Trace
    same: Trace  # the output of before, under the edits
    after: Trace  # the output that is written under the edits

    @property
    def texts(self) -> tuple[str, str]:
        """The outputs before and after."""
        return " ".join(self.before.target.words), " ".join(self.after.target.words)

    @property
    def fall(self) -> Tensor:
        """By how much the log-probability of each piece of the old output fell, (T,)."""
        return self.before.log_probability - self.same.log_probability

    @property
    def difference(self) -> float:
        """The log-probability of the new output under the edits, less that of the old one without."""
        return self.after.score - self.before.score

    def changes(self) -> list[Change]:
        """The words that were exchanged, in order."""
        old, new = self.before.target.words, self.after.target.words
        steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [(old[a:b], new[c:d]) for tag, a, b, c, d in steps if tag != "equal"]


def what_if(
    model: EncoderDecoder,
    tokenizers: Tokenizers,
    text: str,
    edits: Sequence[Edit],
    *,
    output: Sequence[int] | None = None,
    detail: Literal["usual", "all"] = "usual",
) -> Outcome:
    """Carry out ``edits`` on a sentence. ``output``, with its ``<end>``, is what was written; without it, greedy's.

    Replacements are made first, in order; the other edits count the words of the sentence that results.
    """
    if not text.split():
        raise DataError("text = '': an empty sentence has nothing to change; give it a word")
    source = _source(tokenizers, text)
    written = write(model, source) if output is None else list(output)
    before = replay(model, source, written, spelling=_spelling(tokenizers, text), detail=detail)
    changed = text
    for edit in edits:
        changed = edit.text(changed)
    source = _source(tokenizers, changed)
    scene = Scene(spell(source, tokenizers.source, changed), reads_backwards(model))
    spelling = _spelling(tokenizers, changed)
    middle = before if changed == text else replay(model, source, written, spelling=spelling, detail=detail)
    for edit in edits:
        edit.check(middle)
    same = replay(model, source, written, Editor(edits, scene), spelling=spelling, detail=detail)
    prefix = [edit.prefix for edit in edits if isinstance(edit, ForcePrefix)][-1:]
    start = tokenizers.target.encode(prefix[0]) if prefix else []
    anew = write(model, source, Editor(edits, scene), prefix=start)
    after = replay(model, source, anew, Editor(edits, scene), spelling=spelling, detail=detail)
    return Outcome(tuple(edits), before, same, after)


@dataclass(frozen=True)
class Watched:
    """A model whose every step is watched: all that search wants to know of one."""

    model: EncoderDecoder
    observer: Observer

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        del observer
        return self.model.step(tokens, state, self.observer)


def write(
    model: EncoderDecoder, source_ids: Sequence[int], observer: Observer = UNOBSERVED, *, prefix: Sequence[int] = ()
) -> list[int]:
    """The greedy output, with its ``<end>``, with somebody watching and perhaps changing every step."""
    source = torch.tensor([list(source_ids)], device=next(model.parameters()).device)
    limit = torch.tensor([2 * len(source_ids) + 10 + len(prefix)], device=source.device)
    with torch.no_grad(), resting(model):
        first, state = model.start(source, observer=observer)
        constraints = [Prefix([prefix])] if prefix else []
        found = search(Watched(model, observer), first, state, limit, rule=Beam(1), constraints=constraints)
    return [*found[0][0].tokens, END]


def _source(tokenizers: Tokenizers, text: str) -> list[int]:
    return [*tokenizers.source.encode(text), END]


def _spelling(tokenizers: Tokenizers, text: str) -> Spelling:
    return Spelling(tokenizers.source, tokenizers.target, text)
