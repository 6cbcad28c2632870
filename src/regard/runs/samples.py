"""What people see of a model while it trains: samples, and one sentence that is watched. Plain data, without torch."""

from __future__ import annotations

from dataclasses import dataclass

Weights = tuple[tuple[float, ...], ...]  # (T, S)


@dataclass(frozen=True)
class ValidationSample:
    """A held-out text, the right answer, and what the model writes now."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True)
class Watched:
    """What the model writes for the sentence that is watched and, if it attends to a source, where it looked."""

    text: str
    output: str
    source: tuple[str, ...] = ()  # pieces, <end> included
    target: tuple[str, ...] = ()
    layers: tuple[Weights, ...] = ()  # cross-attention, the mean of each layer's heads
