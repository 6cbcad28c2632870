"""Masks: bool, True = visible. All are made here, except in the steps that are written for speed (`decode/fused.py`,
`decode/engines/pooled.py`), which add −inf instead.

Sequences are padded on the right. A mask of a batch of sequences is ``(B, S)``; a mask of pairs of query and key is
``(T, S)`` or, with rows, ``(B, 1, T, S)``, which broadcasts over heads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import DataError
from regard.text.vocabulary import PAD


def padding(ids: Tensor) -> Tensor:
    """Real tokens: ``[4, 5, <pad>] → [True, True, False]``, by the id also if more follows it, (B, S, 1 + L)."""
    return (ids if ids.dim() < 3 else ids[..., 0]) != PAD


def from_lengths(lengths: Tensor, size: int) -> Tensor:
    """The mask of right-padded rows with these lengths: ``(B,) → (B, size)``."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def causal(queries: Tensor, keys: Tensor) -> Tensor:
    """Causal mask of positions ``(T,)`` and ``(S,)``: a query sees itself and its past. ``(T, S)``"""
    return keys <= queries[:, None]


def window(centre: Tensor, reach: float, size: int) -> Tensor:
    """Keys no further than ``reach`` from each query's ``centre``: ``(…, T) → (…, T, size)``."""
    keys = torch.arange(size, device=centre.device)
    return (keys - centre[..., None]).abs() <= reach


def over_keys(mask: Tensor) -> Tensor:
    """A mask of sequences as one of pairs: ``(B, S) → (B, 1, 1, S)``."""
    return mask[:, None, None, :]


def combine(*masks: Tensor | None) -> Tensor | None:
    """The logical and of all masks; None means that everything is visible."""
    result = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result & mask
    return result


def reverse(values: Tensor, mask: Tensor) -> Tensor:
    """Each row's real tokens in reverse, padding still on the right: ``(B, S, …)``. Its own inverse."""
    size = mask.shape[1]
    positions = torch.arange(size, device=mask.device)
    mirrored = mask.sum(1, keepdim=True) - 1 - positions  # (B, S), negative on padding
    order = torch.where(mask, mirrored, positions)
    order = order.reshape(*order.shape, *[1] * (values.dim() - 2)).expand_as(values)
    return values.gather(1, order)


def check(mask: Tensor, values: Tensor) -> Tensor:
    """The mask, if it fits ``values`` (B, S, …): right shape and type, padding on the right, no row empty.

    The contents are not checked on a GPU, which would have to wait for it.
    """
    if mask.shape != values.shape[:2] or mask.dtype != torch.bool:
        raise DataError(
            f"mask = {mask.dtype} of {tuple(mask.shape)}: does not fit {tuple(values.shape[:2])} tokens; "
            "a mask is torch.bool, one entry a token, True where the token is real"
        )
    if mask.device.type != "cpu" or torch.compiler.is_compiling():
        return mask
    if not mask[:, 0].all():
        row = int((~mask[:, 0]).nonzero()[0])
        raise DataError(
            f"mask[{row}, 0] = False: the row begins with padding; "
            "pad on the right, and give every sequence at least one token, if only <end>"
        )
    if (gaps := mask[:, 1:] & ~mask[:, :-1]).any():
        row = int(gaps.any(1).nonzero()[0])
        raise DataError(f"mask[{row}] = {mask[row].int().tolist()}: padding between tokens; pad on the right only")
    return mask
