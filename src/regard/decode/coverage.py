"""How much of the source an output has looked at (Wu et al., 2016)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.decode.front import Front
from regard.errors import SettingsError
from regard.nn.attention import Memory
from regard.nn.state import State

LEAST = 1e-4  # of attention, so that a word that hard or local attention never saw costs much and not infinity


class CoverageObserver:
    """An observer that keeps the cross-attention weights of one step: averaged over layers, heads and models."""

    active = True

    def __init__(self, place: str = "", seen: list[Tensor] | None = None) -> None:
        self._place = place
        self._seen: list[Tensor] = [] if seen is None else seen

    def at(self, place: str | int) -> CoverageObserver:
        return CoverageObserver(str(place), self._seen)

    def see(self, name: str, value: Tensor) -> Tensor:
        if name == "weights" and self._place == "cross":
            self._seen.append(value.mean(1))  # (B, W, S)
        return value

    def take(self) -> Tensor:
        """The weights (B, W, S) since last time."""
        weights = torch.stack(self._seen).mean(0)
        self._seen.clear()
        return weights


class Cover:
    """The coverage of all hypotheses of one search: ``β Σ_s log min(Σ_t α_ts, 1)``."""

    def __init__(self, penalty: float, state: State[Any, Any]) -> None:
        self.watch = CoverageObserver()
        self._penalty = penalty
        self._mask = _source_mask(state, penalty)  # (sentences, S) which source words there are to cover

    def look(self, front: Front) -> Front:
        """With what the last step has looked at."""
        weights = self.watch.take()  # (B, W, S)
        return replace(front, covered=weights if front.covered is None else front.covered + weights)

    def score(self, front: Front) -> Tensor:
        """(B, W); zero when every source word got its share."""
        assert front.covered is not None
        missing = front.covered.clamp(LEAST, 1.0).log().masked_fill(~self._mask[front.sentences][:, None], 0.0)
        return self._penalty * missing.sum(2)


def _source_mask(state: State[Any, Any], penalty: float) -> Tensor:
    for memory in _memories(state.source):
        keys = memory.keys
        everything = torch.ones(len(keys), keys.shape[2], dtype=torch.bool, device=keys.device)
        return everything if memory.mask is None else memory.mask
    raise SettingsError(
        f"coverage_penalty = {penalty}: this model has no attention over a source, so nothing says what is covered; "
        "use 0"
    )


def _memories(tree: Any) -> list[Memory]:
    if isinstance(tree, Memory):
        return [tree]
    if isinstance(tree, tuple):
        return [memory for child in tree for memory in _memories(child)]
    return []
