"""Averages of the weights: often better than the weights themselves, and never used to train on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

Weights = dict[str, Tensor]


class MovingAverage:
    """``average ← decay · average + (1 − decay) · weights`` after each step, quicker at first.

    The decay of step n is at most ``(1 + n) / (10 + n)``, so that the random beginning is soon forgotten.
    """

    def __init__(self, weights: Weights, decay: float) -> None:
        self.decay = decay
        self.floating = [name for name, tensor in weights.items() if tensor.is_floating_point()]
        self._weights = [weights[name] for name in self.floating]
        self._average = [tensor.clone() for tensor in self._weights]

    def share(self, step: int) -> float:
        """How much of the weights goes into the average at this step."""
        return 1 - min(self.decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def update(self, share: Tensor | float) -> None:
        if isinstance(share, Tensor):
            differences = torch._foreach_sub(self._weights, self._average)
            torch._foreach_mul_(differences, share)
            torch._foreach_add_(self._average, differences)
        else:
            torch._foreach_lerp_(self._average, self._weights, share)

    def weights(self) -> Weights:
        return dict(zip(self.floating, self._average, strict=True))

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        for name, tensor in self.weights().items():
            tensor.copy_(weights[name])


def mean(snapshots: list[Mapping[str, Tensor]]) -> Weights:
    """The mean of several sets of weights, in float64 on the way."""
    names = [name for name, tensor in snapshots[0].items() if tensor.is_floating_point()]
    return {
        name: torch.stack([snapshot[name].double() for snapshot in snapshots]).mean(0).to(snapshots[0][name].dtype)
        for name in names
    }


@contextmanager
def swapped(weights: Weights, average: Mapping[str, Tensor]) -> Iterator[None]:
    """The model with averaged weights for the time being."""
    kept = {name: weights[name].clone() for name in average}
    with torch.no_grad():
        for name, tensor in average.items():
            weights[name].copy_(tensor)
    try:
        yield
    finally:
        with torch.no_grad():
            for name, tensor in kept.items():
                weights[name].copy_(tensor)
