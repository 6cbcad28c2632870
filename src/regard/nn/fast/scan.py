"""``c_t = a_t ⊙ c_{t−1} + b_t`` for all t at once. Its written-out twin is the loop in `nn.transformer.SSRU`.

Two steps are one step with ``a = a₂ a₁`` and ``b = a₂ b₁ + b₂``. Each step is joined with the one 1, 2, 4, … places
before it, and so with all earlier ones after log₂ T rounds (Hillis and Steele, 1986). Without division nothing
overflows.
"""

from __future__ import annotations

import torch
from torch import Tensor


def scan(keep: Tensor, new: Tensor, state: Tensor) -> Tensor:
    """``a`` (B, T, D), ``b`` (B, T, D) and c before the first (B, D): every c (B, T, D)."""
    first = keep[:, :1] * state[:, None] + new[:, :1]
    new, reach, steps = torch.cat((first, new[:, 1:]), 1), 1, keep.shape[1]
    while reach < steps:
        late, before = keep[:, reach:], new[:, :-reach]
        new = torch.cat((new[:, :reach], late * before + new[:, reach:]), 1)
        keep = torch.cat((keep[:, :reach], late * keep[:, :-reach]), 1)
        reach *= 2
    return new
