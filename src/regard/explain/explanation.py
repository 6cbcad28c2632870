"""All that is shown of one sentence, gathered once: the trace, its links, and importance beside attention."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from regard.explain.alignment import Aligner
from regard.explain.attribution import masking_between
from regard.explain.heatmap import HeatMap
from regard.explain.recurrent import saliency
from regard.explain.replay import Model
from regard.explain.side import OUTSIDE, Side
from regard.explain.trace import Trace
from regard.explain.views import View, attention_map, read_so_far, saliency_map, sides_of, spoken
from regard.explain.words import Folded


@dataclass(frozen=True)
class Explanation:
    """A trace with the model that made it. ``aligner`` reads its cross-attention, where there is some."""

    model: Model
    trace: Trace
    aligner: Aligner | None = None
    name: str = ""  # of the run
    text: str = ""  # the output as text, where pieces alone do not say it

    @property
    def sides(self) -> list[str]:
        """The attention there is to show."""
        return sides_of(self.trace)

    @property
    def read(self) -> Side:
        """What is read: the source or, for a language model, the text so far."""
        return read_so_far(self.trace) if self.trace.task == "language" else self.trace.source

    @property
    def output(self) -> str:
        return self.text or " ".join(self.trace.target.words)

    @property
    def speaks(self) -> bool:
        """Whether words were read and words written: an output may be nothing but its end."""
        return all(any(owner != OUTSIDE for owner in side.word_of) for side in (self.read, self.trace.target))

    @cached_property
    def effect(self) -> Folded:
        """Of masking each word of what is read, (T words, S words)."""
        return masking_between(self.model, self.read, self.trace.target)

    @cached_property
    def saliency(self) -> Tensor:
        """Gradient norms, (T, S): for models that attend to nothing."""
        sources = () if self.trace.task == "language" else self.trace.source.rows
        return saliency(self.model, sources, self.trace.target.ids)

    def picture(self, view: View) -> HeatMap:
        """The picture that a view asks for. Where nothing is attended to, gradient saliency takes its place."""
        if self.sides and view.side in self.sides:
            return attention_map(self.trace, view, self.aligner)
        if self.sides or view != View(words=view.words, special=view.special):
            return attention_map(self.trace, view)  # says what there is
        return saliency_map(self.trace, self.saliency, self.read, view)

    @cached_property
    def links(self) -> frozenset[tuple[int, int]]:
        """Which word came from which, (read, written): by the aligner; without attention, by masking."""
        if self.aligner is not None and "cross" in self.sides:
            return self.aligner.align(self.trace)
        if not self.speaks:
            return frozenset()
        effect = spoken(self.trace, self.effect).weights
        return frozenset((source, target) for target, source in enumerate(effect.argmax(1).tolist()))

    @property
    def links_origin(self) -> str:
        if self.aligner is not None and "cross" in self.sides:
            return self.aligner.describe()
        return "the word whose masking hurts most"


def first_view(trace: Trace) -> View:
    """What to show by default: the source if it is attended to, else what there is."""
    sides = sides_of(trace)
    return View(side=sides[0]) if sides else View()
