"""The search for one sentence as plain numbers: what ``regard beam`` and a report show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Twig:
    """A candidate of the beam search."""

    number: int
    parent: int | None
    step: int
    token: str
    log_probability: float
    score: float  # normalised for its length so far
    fate: str
    reason: str


@dataclass(frozen=True)
class OtherBeam:
    """What a beam of another size writes."""

    beam: int
    output: str
    log_probability: float
    score: float  # normalised for its length


@dataclass(frozen=True)
class BeamTree:
    """Every candidate of the search for one sentence."""

    source: str
    output: str
    beam: int
    length_penalty: float
    twigs: tuple[Twig, ...]
    outputs: tuple[int, ...]
    others: tuple[OtherBeam, ...] = ()  # from narrow to wide, the searched beam among them
    name: str = ""  # of the run

    def numbers(self) -> dict[str, Any]:
        """As plain values, ready for JSON."""
        return {
            "source": self.source,
            "output": self.output,
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "nodes": [asdict(twig) for twig in self.twigs],
            "outputs": list(self.outputs),
            "others": [asdict(other) for other in self.others],
        }
