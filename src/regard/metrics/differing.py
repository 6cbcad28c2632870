"""The sentences on which systems differ most: where to look first when one of them is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from sacrebleu.metrics.chrf import CHRF

from regard.errors import DataError


@dataclass(frozen=True)
class Differing:
    """One sentence, each system's output for it, and how good each is: chrF2 of the sentence alone."""

    line: int  # of the test, from 1
    source: str
    reference: str
    outputs: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def spread(self) -> float:
        return max(self.scores) - min(self.scores)


def most_differing(
    sources: Sequence[str],
    references: Sequence[str],
    outputs: Sequence[Sequence[str]],
    *,
    count: int = 10,
    seed: int = 1,
) -> list[Differing]:
    """The sentences with the largest distance between the best and the worst output, largest first.

    Among equals the seed decides, and not the order in the file. A pair of texts that the test repeats is
    shown once; one on which all agree is never shown.
    """
    for texts in (references, *outputs):
        if len(texts) != len(sources):
            raise DataError(f"texts = {len(texts):,} lines: the sources have {len(sources):,}; one is needed for each")
    metric = CHRF()
    drawn = Random(seed)
    found: dict[tuple[str, str], tuple[float, Differing]] = {}
    for row, (source, reference) in enumerate(zip(sources, references, strict=True)):
        texts = tuple(side[row] for side in outputs)
        chance = drawn.random()
        if len(set(texts)) > 1 and (source, reference) not in found:
            scores = tuple(metric.sentence_score(text, [reference]).score for text in texts)
            found[source, reference] = (chance, Differing(row + 1, source, reference, texts, scores))
    ordered = sorted(found.values(), key=lambda item: (-item[1].spread, item[0]))
    return [one for _, one in ordered[:count]]
