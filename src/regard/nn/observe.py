"""Watching values flow: one seam for recording a pass and for changing it.

Every module takes an ``observer`` and shows it the values a person may want to see. Usually there is
none: modules then take torch's fused kernels, which never hold the weights. An active observer
makes them take the written-out path, in which every intermediate exists. What the observer returns is
what the module goes on with, so the same seam that records also serves "what if this weight were zero".

The names are stable: ``encoder.0.self.weights``, ``decoder.2.cross.scores``, ``decoder.0.cell.forget``.
Time is always the last axis but one, so that the steps of a loop join into one tensor.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Observer(Protocol):
    """Anything that can stand beside a pass and look."""

    @property
    def active(self) -> bool:
        """Whether values are recorded or changed; if not, modules may take their fused path."""

    def at(self, place: str | int) -> Observer:
        """The same observer one module further in: the names it is shown from here on begin with ``place``."""

    def see(self, name: str, value: Tensor) -> Tensor:
        """Look at ``value``; the module goes on with what is returned."""


class Unobserved:
    """No observer."""

    active = False

    def at(self, place: str | int) -> Unobserved:  # noqa: ARG002
        return self

    def see(self, name: str, value: Tensor) -> Tensor:  # noqa: ARG002
        return value


UNOBSERVED = Unobserved()


class Recorder:
    """Keeps everything it is shown, with its gradient, under its full name."""

    active = True

    def __init__(self, place: str = "", seen: dict[str, list[Tensor]] | None = None) -> None:
        self._place = place
        self._seen: dict[str, list[Tensor]] = {} if seen is None else seen

    def at(self, place: str | int) -> Recorder:
        return Recorder(f"{self._place}{place}.", self._seen)

    def see(self, name: str, value: Tensor) -> Tensor:
        self._seen.setdefault(self._place + name, []).append(value)
        return value

    def names(self) -> list[str]:
        return list(self._seen)

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def __getitem__(self, name: str) -> Tensor:
        """All that was seen under ``name``, the steps of a loop joined along time.

        Self-attention in live steps sees one key more at each; its rows are filled up with zeros on the
        right, which for weights is what a parallel pass has there.
        """
        values = self._seen[name]
        if len(values) == 1:
            return values[0]
        widest = max(value.shape[-1] for value in values)
        return torch.cat([F.pad(value, (0, widest - value.shape[-1])) for value in values], dim=-2)
