"""The few largest of many values."""

from __future__ import annotations

from functools import cache

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


def largest_sums(totals: Tensor, values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` largest ``totals[b, w] + values[b, w, v]`` of each b, and where they are in ``W · V``.

    ``totals`` (B, W), ``values`` (B, W, V). Blocks as in `largest`, but a sentence has only ``count`` of them in all:
    a sum rounds monotonically, so the largest of a block is the sum with the block's largest value.
    """
    rows, width, size = values.shape
    block = _divisor(size) if values.device.type == "cpu" else 0
    if not block or width * size < 4 * count * block:
        return (totals[:, :, None] + values).flatten(1).topk(min(count, width * size))
    maxima = values.view(rows, width, -1, block).amax(3).add_(totals[:, :, None]).flatten(1)  # (B, W · V / block)
    if count == 1:
        found, chosen = maxima.max(1, keepdim=True)
        within = values.view(rows, -1, block).gather(1, chosen[:, :, None].expand(-1, -1, block)).argmax(2)
        return found, within.add_(chosen, alpha=block)
    blocks = maxima.topk(count).indices  # (B, count)
    candidates = values.view(rows, -1, block).gather(1, blocks[:, :, None].expand(-1, -1, block))
    candidates += totals.gather(1, blocks // (size // block))[:, :, None]
    found, order = candidates.flatten(1).topk(count)
    places = blocks.gather(1, order // block).mul_(block).add_(order.remainder_(block))
    return found, places


@cache
def _divisor(size: int) -> int:
    """The divisor of ``size`` next to `BLOCK`, not far from it; 0 if there is none."""
    found = [block for block in range(BLOCK // 4, 4 * BLOCK + 1) if size % block == 0]
    return min(found, key=lambda block: abs(block - BLOCK), default=0)
