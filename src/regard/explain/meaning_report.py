"""One word in several sentences, layer by layer, as plain numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True)
class Neighbour:
    """A word of a corpus that stands near."""

    word: str
    sentence: str
    cosine: float


@dataclass(frozen=True)
class Place:
    """The word in one sentence: where it stands, how it is translated, and what stands near it at the last layer."""

    sentence: str
    word: int  # counted from 0
    translation: str = ""  # of the word; empty where nothing is translated
    whole: str = ""  # of the sentence
    neighbours: tuple[Neighbour, ...] = ()


Matrix = tuple[tuple[float, ...], ...]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class MeaningReport:
    """All that is shown. Layer 0 is the embedding; cosines are of every two places in every layer."""

    word: str
    control: str
    places: tuple[Place, ...]
    layers: tuple[str, ...]
    cosines: tuple[Matrix, ...]
    control_cosines: tuple[Matrix, ...]  # of the control word in the sentences that have it; empty without one
    points: tuple[Points, ...]  # a layer; the word's places, on axes of their own
    explained: tuple[float, ...]  # a layer: the share of the variance that the two axes show
    searched: str  # where neighbours were looked for
    name: str = ""  # of the run

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.places)), 2))

    def of_pair(self, pair: tuple[int, int]) -> list[float]:
        """Their cosine in every layer."""
        return [layer[pair[0]][pair[1]] for layer in self.cosines]

    def of_control(self) -> list[float]:
        """The control's mean over its pairs, in every layer; none, where it does not stand in two sentences."""
        found = []
        for layer in self.control_cosines:
            values = [layer[one][other] for one, other in combinations(range(len(layer)), 2)]
            found += [sum(values) / len(values)] if values else []
        return found

    def numbers(self) -> dict[str, Any]:
        """As plain values, ready for JSON."""
        return asdict(self)
