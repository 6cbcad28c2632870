"""What if: carry out edits, and see what changes in the output and in its probability.

Two answers for every question. *The same output* replayed under the edits says how probable the old words still
are; *a new output*, written under them, says what the model would write instead. Outputs are greedy, before and
after, so that the difference is that of the edits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial

from torch import Tensor

from regard.errors import DataError
from regard.explain import asked
from regard.explain.answer import Answer, Hidden, computed
from regard.explain.edits import Edit, Editor, changed_text, forced_prefix
from regard.explain.replay import Detail, reads_backwards
from regard.explain.trace import Trace
from regard.tasks.load import Trained


@dataclass(frozen=True)
class ScoredText(Answer):
    """An output and its log-probability."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class Difference(Answer):
    """What the edits did. Outputs are greedy, before and after."""

    editor: Hidden[Editor]  # carries out the edits
    traces: Hidden[tuple[Trace, Trace, Trace]]  # the old output, the same under the edits, the one written under them
    places: Hidden[tuple[asked.Places, asked.Places, asked.Places]]  # the pieces of each trace that count

    def _counted(self, number: int) -> Tensor:
        trace, places = self.traces[number], self.places[number]
        return trace.log_probability if places is None else trace.log_probability[list(places)]

    def _words(self, number: int) -> tuple[str, ...]:
        """Of a tagger, one tag a word; else all there is."""
        trace, places = self.traces[number], self.places[number]
        if trace.task != "label" or places is None:
            return trace.target.words
        return tuple(trace.target.words[place] for place in places)

    def _scored(self, number: int) -> ScoredText:
        words = self._words(2 if number == 2 else 0)
        return ScoredText(" ".join(words), float(self._counted(number).sum()))

    @computed
    def before(self) -> ScoredText:
        return self._scored(0)

    @computed
    def after(self) -> ScoredText:
        return self._scored(2)

    @computed
    def change_in_log_probability(self) -> float:
        """Of the new output under the edits, less that of the old."""
        return self.after.log_probability - self.before.log_probability

    @computed
    def same(self) -> ScoredText:
        """The old output, under the edits."""
        return self._scored(1)

    @computed
    def fall(self) -> tuple[float, ...]:
        """By how much the log-probability of each piece of the old output fell."""
        return tuple((self._counted(0) - self._counted(1)).tolist())

    @computed
    def pieces(self) -> tuple[str, ...]:
        """The pieces of the old output."""
        pieces, places = self.traces[0].target.pieces, self.places[0]
        return pieces if places is None else tuple(pieces[place] for place in places)

    @computed
    def changes(self) -> tuple[dict[str, tuple[str, ...]], ...]:
        """Words that were exchanged, before and after."""
        old, new = self._words(0), self._words(2)
        steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return tuple({"before": old[a:b], "after": new[c:d]} for tag, a, b, c, d in steps if tag != "equal")


def what_if(
    predictor: Trained,
    text: str,
    edits: Sequence[Edit],
    *,
    output: Sequence[int] | None = None,
    detail: Detail = "usual",
) -> Difference:
    """Carry out ``edits`` on a text. ``output`` is what was written; without it, what the model would write.

    Replacements are made first, in order; the other edits count the words of the text that results.
    """
    if not text.split():
        raise DataError("text = '': an empty sentence has nothing to change; give it a word")
    first = asked.read(predictor, text)
    written = asked.write(predictor, first) if output is None else list(output)
    before = asked.seen_writing(predictor, first, written, detail=detail)
    changed = changed_text(text, edits, partial(asked.read, predictor))
    read = first if changed == text else asked.read(predictor, changed)
    kept = asked.kept(predictor, read, before, written)
    middle = before if changed == text else asked.seen_writing(predictor, read, kept, detail=detail)
    side = "decoder" if predictor.task == "language" else "encoder"
    editor = Editor(tuple(edits), read, reads_backwards(predictor.model), side)
    for edit in edits:
        edit.check(middle, editor)
    same = asked.seen_writing(predictor, read, kept, editor.anew(), detail=detail)
    anew = asked.write(predictor, read, editor.anew(), prefix=forced_prefix(edits))
    after = asked.seen_writing(predictor, read, anew, editor.anew(), detail=detail)
    pairs = (before, first), (same, read), (after, read)
    places = [asked.counted(predictor, *pair) for pair in pairs]
    return Difference(editor, (before, same, after), (places[0], places[1], places[2]))
