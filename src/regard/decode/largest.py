"""The few largest of many values."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """``values.topk(count)`` over the last axis, in less time."""
    size = values.shape[-1]
    if size // BLOCK < 4 * count:
        return values.topk(min(count, size))
    return by_blocks(values, count)


def by_blocks(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """``values.topk(count)`` of more than ``count`` blocks of 64.

    The k largest values lie in the k blocks with the largest maxima: a block that is not among those has k
    blocks before it, each with a value at least as large. Maxima of blocks are one vectorised pass; only
    k · 64 values are then compared one by one.
    """
    size = values.shape[-1]
    whole = size // BLOCK * BLOCK
    _, blocks = values[..., :whole].reshape(*values.shape[:-1], -1, BLOCK).amax(-1).topk(count)
    within = torch.arange(BLOCK, device=values.device)
    places = (blocks[..., None] * BLOCK + within).flatten(-2)  # (…, count · 64)
    if whole < size:  # what is left over is compared in any case
        rest = torch.arange(whole, size, device=values.device).expand(*places.shape[:-1], -1)
        places = torch.cat((places, rest), -1)
    found, order = values.gather(-1, places).topk(count)
    return found, places.gather(-1, order)
