"""Attention over short sequences on a GPU, in one program for each row and head; `Attention._written_out` is its twin.

Torch's fused kernels are made for thousands of keys: they cut them into blocks and pass over them again and again. A
sentence is one block, whose whole table of scores fits into registers, so that queries, keys and values are read
once, and in the backward pass once more. `bench/short_attention.py` measures both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.device import runs_programs

LONGEST = 128  # steps and keys: a larger table would not fit into registers
WIDTHS = (16, 32, 64)  # of a head: 128 would take 128 KB of shared memory, of which many GPUs have 99
TYPES = (torch.bfloat16, torch.float16)
DEVICE = "cuda"


def can_compute(query: Tensor, keys: Tensor, values: Tensor, dropout: float) -> bool:
    """Whether contexts of queries (B, H, T, K), keys and values (B, H, S, K) are computed here: in training, without
    dropout."""
    if query.device.type != DEVICE or query.dtype not in TYPES or not runs_programs():
        return False
    if any(each.dtype != query.dtype or each.shape[3] != query.shape[3] for each in (keys, values)):
        return False
    fits = query.shape[2] <= LONGEST and keys.shape[2] <= LONGEST and query.shape[3] in WIDTHS
    return fits and torch.is_grad_enabled() and dropout == 0.0 and query.shape[0] == keys.shape[0]


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, causal: bool, scale: float) -> Tensor:
    """Contexts (B, H, T, K) of queries (B, H, T, K), keys and values (B, H, S, K); ``mask`` (B, S) is True where a key
    may be seen, and with ``causal`` only those up to the query's own place."""
    by_step = (_innermost(each.transpose(1, 2)) for each in (query, keys, values))
    return _attend(*by_step, mask, causal, scale)[0].transpose(1, 2)


def _innermost(x: Tensor) -> Tensor:
    """Features one after another in memory, as the programs read them."""
    return x if x.stride(-1) == 1 else x.contiguous()


@torch.library.custom_op("regard::short_attention", mutates_args=())
def _attend(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    from regard.nn.fast import short_kernels

    return short_kernels.forward(query, keys, values, mask, causal, scale)


@_attend.register_fake
def _(query: Tensor, *_others: Any) -> tuple[Tensor, Tensor]:
    rows, steps, heads, _ = query.shape
    return query.new_empty(query.shape), query.new_empty((rows, heads, steps), dtype=torch.float32)


@torch.library.custom_op("regard::short_attention_backward", mutates_args=())
def _backward(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, out: Tensor, normaliser: Tensor,
    given: Tensor, causal: bool, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    from regard.nn.fast import short_kernels

    return short_kernels.backward(query, keys, values, mask, out, normaliser, given, causal, scale)


@_backward.register_fake
def _(query: Tensor, keys: Tensor, values: Tensor, *_others: Any) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), keys.new_empty(keys.shape), values.new_empty(values.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, causal, scale = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.how = causal, scale


def _gradients(ctx: Any, given: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, out, normaliser = ctx.saved_tensors
    return *_backward(*tensors, out, normaliser, given, *ctx.how), None, None, None


_attend.register_autograd(_gradients, setup_context=_keep)
