"""Which map to believe for a run: what was measured (`regard.evaluate.faithful` measures it), kept with the run.

A map says how much each word read was to each word written. For an output word of probability p, and the words read in
the order in which its row of a map puts them,

    comprehensiveness  mean over k of p − p(without the first k)      higher is better
    sufficiency        mean over k of p − p(with the first k alone)   lower is better
    faithfulness       the former less the latter

are areas over the perturbation curve (DeYoung et al., 2020). What is found holds for this run and these sentences;
other runs, languages and texts have other winners. `RUN/faithful.json` keeps it with the hash of the weights it was
found for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from regard.errors import ModelError
from regard.explain.answer import Answer, computed
from regard.explain.attribution import METHODS
from regard.files import new_file
from regard.metrics.numbers import signed
from regard.runs.folder import MANIFEST, Run, best_checkpoint, digest

FILE = "faithful.json"
RANDOM = "random"  # words in random order: what every map is held against
MEAN = "attention, mean"  # of all heads; plain *attention* is read as the run's aligner does
KNOWN = (*METHODS, MEAN, RANDOM)
Figure = tuple[float, float, float]  # a mean over sentences, and where the middle 95 % of resamples begin and end


@dataclass(frozen=True)
class MapQuality(Answer):
    """One method on the sentences of a measurement."""

    method: Annotated[
        str, Field(examples=["alti"], description=f"A method; '{MEAN}' has no aligner, '{RANDOM}' no map.")
    ]
    comprehensiveness: Annotated[Figure, Field(description="What the words put first take away, of a probability.")]
    sufficiency: Annotated[Figure, Field(description="What is missing with these alone; low is good.")]
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
        with new_file(folder / FILE) as file:
            file.write(self.to_json() + b"\n")

    @classmethod
    def load(cls, folder: Path) -> Faithfulness | None:
        """What a folder keeps, if it does."""
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            found: Faithfulness = TypeAdapter(cls).validate_json(path.read_bytes())
            known = {each.method for each in found.methods}
            if not known <= set(KNOWN) or not {found.best, RANDOM} <= known or found.links not in {"", *known}:
                raise ValueError
        except (ValueError, RecursionError):  # what pydantic finds wrong is a ValueError too
            names = ", ".join(field.name for field in fields(cls))
            raise ModelError(f"{path}: does not say which map to believe; remove it, or give it {names}") from None
        return found


def method_and_head(name: str) -> tuple[str, str]:
    """Of *attention, mean*, or any method."""
    method, _, head = name.partition(", ")
    return method, head or "best"


def remembered(run: Run | None) -> Faithfulness | None:
    """What was measured for the weights that a run has, if it was."""
    if run is None:
        return None
    kept = Faithfulness.load(run.folder) or Faithfulness.load(run.cache)
    return kept if kept is not None and kept.weights == weights_of(run) else None


def weights_of(run: Run) -> str:
    """Their hash."""
    return digest(best_checkpoint(run) / MANIFEST)
