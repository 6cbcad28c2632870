"""Dropout (Srivastava et al., 2014): ``x ⊙ m / (1 − p)``, each element of m zero with probability p, else one."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.fast import random as chance

_ALMOST_ALL = math.nextafter(1.0, 0.0)  # used for p = 1: all are dropped, and the scale is finite
_BITS = 16  # of a random number


class Dropout(nn.Module):
    """On a CPU torch draws a number for every feature, this one for each that is dropped. On a GPU it is torch's own,
    compiled `by_hash`."""

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        if torch.compiler.is_compiling():
            return F.dropout(x, self.p) if x.device.type == "cpu" else by_hash(x, self.p)
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        return _Dropped.apply(x, places_to_drop(x.numel(), self.p), scale_of(self.p))  # type: ignore[no-untyped-call]

    def extra_repr(self) -> str:
        return f"p={self.p}"


def scale_of(p: float) -> float:
    """``1 / (1 − p)``, the factor of what is kept."""
    return 1 / (1 - min(p, _ALMOST_ALL))


def places_to_drop(count: int, p: float) -> Tensor:
    """Which of ``count`` features are dropped, in order.

    The next one is g places further with probability ``p (1 − p)^(g − 1)``: with u uniform between 0 and 1,
    ``g = 1 + ⌊log u / log(1 − p)⌋``. u has 16 bits, so that p is exact to within 1/65,536.
    """
    slope = 1 / math.log1p(-min(p, _ALMOST_ALL))
    drawn = _bits(_enough(count, p)).float().add_(0.5 + (1 << _BITS - 1))  # 2¹⁶ u
    gaps = drawn.log_().mul_(slope).add_(1 - _BITS * math.log(2) * slope).long()
    gaps[0] -= 1  # the first of all places is 0
    places = gaps.cumsum_(0)
    return places[: int(torch.searchsorted(places, count))]


def _enough(count: int, p: float) -> int:
    """How many draws reach the last feature: eight standard deviations more than expected, and some more."""
    return math.ceil(count * p + 8 * math.sqrt(count * p * (1 - p))) + 8


def _bits(count: int) -> Tensor:
    """At least so many numbers of 16 bits from torch's generator, which gives four at a time."""
    fours = torch.empty(-(-count // 4), dtype=torch.int64)
    return fours.random_(-(1 << 63), None, generator=chance.generator()).view(torch.int16)


# Compiled for a GPU, dropout becomes a part of the kernels around it. With torch's own these compute a random number
# for each feature by ten rounds of Philox. A hash of the feature's place takes a few operations, so that the backward
# pass may compute it again, where torch's own reads what was dropped (docs/decisions/0016-dropout-by-a-hash.md).


def by_hash(x: Tensor, p: float) -> Tensor:
    """Dropout of the features whose hash, with two numbers drawn from torch's generator, is among the lowest."""
    if p == 1.0:
        return x.masked_fill(torch.ones((), dtype=torch.bool, device=x.device), 0.0)
    drawn = (torch.rand(2, device=x.device) * (1 << 24)).to(torch.int32) << 8
    places = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    kept = hashed(places, drawn[0], drawn[1]) >= round(p * (1 << 32)) - (1 << 31)
    return torch.where(kept, x * (1 / (1 - p)), 0.0)


def hashed(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """32 bits that look random for 32 bits that do not: multiplications and shifts (the constants are those of
    `triple32` by Wellons, 2018), with one seed before and one between them. Products overflow, as they should. Its last
    shift is left out: it changes only the lower bits, and these decide one comparison in 2¹⁴."""
    x = x + first
    x = (x ^ _shifted(x, 17)) * _signed(0xED5AD4BB)
    x = (x ^ _shifted(x, 11) ^ second) * _signed(0xAC4C1B51)
    return (x ^ _shifted(x, 15)) * _signed(0x31848BAB)


def _shifted(x: Tensor, count: int) -> Tensor:
    """To the right, with zeros from the left: torch's shift of a negative number puts ones there."""
    return (x >> count) & ((1 << 32 - count) - 1)


def _signed(bits: int) -> int:
    """The number of type int32 that has these bits."""
    return bits - (1 << 32) if bits >> 31 else bits


class _Dropped(torch.autograd.Function):
    """``scale · x`` with zeros at some places. Its gradient is the same function of the gradient."""

    @staticmethod
    def forward(context: Any, x: Tensor, places: Tensor, scale: float) -> Tensor:
        context.save_for_backward(places)
        context.scale = scale
        return _drop(x, places, scale)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (places,) = context.saved_tensors
        return _drop(gradient, places, context.scale), None, None


def _drop(x: Tensor, places: Tensor, scale: float) -> Tensor:
    out = torch.mul(x, scale, out=torch.empty(x.shape, dtype=x.dtype))
    out.view(-1).index_fill_(0, places, 0.0)
    return out
