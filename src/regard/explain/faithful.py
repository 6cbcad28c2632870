"""Which map to believe for a run, as measured by `regard.evaluate.faithful` and saved with the run.

A map has the importance of each word read for each word written. For an output word of probability p, and the words
read in the order of its row of a map, most important first,

    comprehensiveness  mean over k of p − p(without the first k)      higher is better
    sufficiency        mean over k of p − p(with the first k alone)   lower is better
    faithfulness       the former less the latter

are areas over the perturbation curve (DeYoung et al., 2020). The result holds for this run and these sentences
only. `RUN/faithful.json` keeps it with the hash of the weights it was measured for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from regard.explain.answer import Answer, computed, load_kept, save_kept
from regard.explain.attribution import METHODS
from regard.metrics.numbers import signed
from regard.runs.folder import MANIFEST, Run, best_checkpoint, digest

FILE = "faithful.json"
RANDOM = "random"  # words in random order, the baseline of every map
MEAN = "attention, mean"  # of all heads; plain *attention* is read as the run's aligner does
KNOWN = (*METHODS, MEAN, RANDOM)
Figure = tuple[float, float, float]  # a mean over sentences, and where the middle 95 % of resamples begin and end


@dataclass(frozen=True)
class MapQuality(Answer):
    """One method on the sentences of a measurement."""

    method: Annotated[
        str, Field(examples=["alti"], description=f"A method; '{MEAN}' has no aligner, '{RANDOM}' no map.")
    ]
    comprehensiveness: Annotated[Figure, Field(description="The fall of the probability without the words put first.")]
    sufficiency: Annotated[Figure, Field(description="Its fall with these words alone; low is good.")]
    faithfulness: Annotated[Figure, Field(description="The former less the latter.")]
    agreement: Annotated[Figure, Field(description="Rank correlation of rows with those of masking.")]
    redrawn: Annotated[
        Figure, Field(description="The same with this method's map of the model with weights drawn anew; low is good.")
    ]
    error_rate: Annotated[Figure | None, Field(description="Of links to each row's heaviest word; null without gold.")]
    riddles: Annotated[
        Figure | None, Field(description="How often it points to the noun that a pronoun stands for; fable:fr alone.")
    ]
    seconds: Annotated[float, Field(description="That a map takes, on average.")]
    as_good: Annotated[bool, Field(description="Whether the measurement cannot tell it from the best.")]
    caution: Annotated[str, Field(description="Where it misleads: why; else empty.")]


@dataclass(frozen=True)
class Faithfulness(Answer):
    """Which map to believe for a run."""

    run: str
    weights: Annotated[str, Field(description="The hash of those it was measured for.")]
    measured_on: Annotated[str, Field(examples=["test.en, its own translations"])]
    sentences: int
    left_out: Annotated[int, Field(description="Lines that were empty, too short or too long, or beyond the limit.")]
    words: Annotated[int, Field(description="Output words that were measured, some of each sentence.")]
    methods: Annotated[tuple[MapQuality, ...], Field(description="Most faithful first.")]
    refused: Annotated[Mapping[str, str], Field(description="Methods that this model does not have, and why.")]
    best: Annotated[str, Field(description="The most faithful method.")]
    aligner: Annotated[Figure | None, Field(description="Error rate of the run's own links; null without gold.")]
    links: Annotated[str, Field(description="The method whose links have fewer errors than the run's own; else empty.")]
    resamples: int
    seed: int

    def __getitem__(self, method: str) -> MapQuality:
        return next(each for each in self.methods if each.method == method)

    @computed
    def told(self) -> str:
        """Why the best is shown first, in a sentence."""
        best, random = self[self.best], self[RANDOM]
        return (
            f"the most faithful map of this run: {best.faithfulness[0]:.2f}, "
            f"random order {signed(random.faithfulness[0])}, on {self.sentences} sentences of {self.measured_on}"
        )

    def caution(self, method: str) -> str:
        """A sentence where a map misleads; else empty."""
        found = [each.caution for each in self.methods if each.method == method]
        return f"caution, {method} {found[0]}" if found and found[0] else ""

    def save(self, folder: Path) -> None:
        save_kept(self, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> Faithfulness | None:
        """What a folder has saved; None where there is none."""
        return load_kept(cls, folder / FILE, "a measurement of maps", cls._is_whole)

    def _is_whole(self) -> bool:
        known = {each.method for each in self.methods}
        return known <= set(KNOWN) and {self.best, RANDOM} <= known and self.links in {"", *known}


def method_and_head(name: str) -> tuple[str, str]:
    """The method and the head of *attention, mean*, or of any method."""
    method, _, head = name.partition(", ")
    return method, head or "best"


def remembered(run: Run | None) -> Faithfulness | None:
    """The measurement for the weights that a run has, if there is one."""
    if run is None:
        return None
    kept = Faithfulness.load(run.folder) or Faithfulness.load(run.cache)
    return kept if kept is not None and kept.weights == weights_of(run) else None


def weights_of(run: Run) -> str:
    """Their hash."""
    return digest(best_checkpoint(run) / MANIFEST)
