"""Dropout (Srivastava et al., 2014): ``x ⊙ m / (1 − p)`` with each of m zero by chance p, else one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import chance

_STEPS = 1 << 15  # values of the 15 bits that decide about one feature


class Dropout(nn.Module):
    """Torch's own on a GPU. On a CPU that draws one number after another, in double precision, for 15 bits of need;
    here one draw decides about four features. ``p`` is met to within 1/65,536, and the scale is that of what is met.
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        return _Masked.apply(x, keep_some(x.shape, self.p), scale_of(self.p))  # type: ignore[no-untyped-call]

    def extra_repr(self) -> str:
        return f"p={self.p}"


def dropped_steps(p: float) -> int:
    """Of 32,768 values the lowest so many mean: dropped."""
    return round(p * _STEPS)


def scale_of(p: float) -> float:
    """``1 / (1 − p)``, of the p that is met; where everything is dropped, there is nothing to scale."""
    return _STEPS / max(_STEPS - dropped_steps(p), 1)


def keep_some(shape: torch.Size, p: float) -> Tensor:
    """Which features stay: int16, one or zero, from torch's generator. A comparison would be slower than this."""
    count = shape.numel()
    fours = torch.empty(-(-count // 4), dtype=torch.int64)
    drawn = fours.random_(-(1 << 63), None, generator=chance.generator()).view(torch.int16)[:count]
    halved = drawn.bitwise_right_shift_(1)  # from −16,384 to 16,383, so that the difference does not overflow
    return halved.sub_(dropped_steps(p) - _STEPS // 2 - 1).clamp_(0, 1).view(shape)


class _Masked(torch.autograd.Function):
    """``scale · x ⊙ kept``. Its gradient is the same function; a narrow mask is all that it keeps."""

    @staticmethod
    def forward(context: Any, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        context.save_for_backward(kept)
        context.scale = scale
        return (x * kept).mul_(scale)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = context.saved_tensors
        return (gradient * kept).mul_(context.scale), None, None
