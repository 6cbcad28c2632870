"""Observers record the values of a pass, or change them.

Every module takes an ``observer`` and shows it its intermediate values. Without one, modules use torch's fused kernels,
which never have the attention weights. With an active one they use the written-out path, in which every intermediate
value exists. A module goes on with what the observer returns, so that an observer can also answer "what if this weight
were zero".

The names are stable: ``encoder.0.self.weights``, ``decoder.2.cross.scores``, ``decoder.0.cell.forget``.
Time is always the last axis but one, so that the steps of a loop can be joined.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Observer(Protocol):
    """Anything that is shown the values of a pass."""

    @property
    def active(self) -> bool:
        """Whether values are recorded or changed; if not, modules may use their fused path."""

    def at(self, place: str | int) -> Observer:
        """The same observer for a module inside: names begin with ``place``."""

    def see(self, name: str, value: Tensor) -> Tensor:
        """Take ``value``; the module goes on with what is returned."""


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
        """All values of ``name``, the steps of a loop joined along time.

        In steps, self-attention has one more key each time; its rows are padded with zeros on the right, as the weights
        of a parallel pass are.
        """
        values = self._seen[name]
        if len(values) == 1:
            return values[0]
        widest = max(value.shape[-1] for value in values)
        return torch.cat([F.pad(value, (0, widest - value.shape[-1])) for value in values], dim=-2)
