"""Triton's programs for `short_attention`: one for each row and head, which holds the whole table of scores.

Kept apart because Triton is there only with torch for GPUs, and is imported when the first batch is computed. A program
is compiled once for 32, 64 and 128 positions, which takes about a second: so what differs between self-attention and
cross-attention is an argument, not another program.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

WARPS = {32: 4, 64: 4, 128: 8}  # of a program, by the positions of its block
SIZES = ("heads", "queries", "length", "causal", "masked")  # programs are not compiled again for other values of these


@triton.jit
def _places(first, row, by_row, head, by_head, steps, by_step, features):
    """Where the features of each step of one row and head are."""
    return first + row * by_row + head * by_head + steps[:, None] * by_step + features[None, :]


@triton.jit
def _read(first, row, by_row, head, by_head, steps, by_step, features, length):
    """The features of the first ``length`` steps of one row and head, and zeros."""
    places = _places(first, row, by_row, head, by_head, steps, by_step, features)
    return tl.load(places, mask=steps[:, None] < length, other=0.0)


@triton.jit
def _visible(mask, row, places, length, causal, masked):
    """Whether each step may look at each key."""
    known = tl.load(mask + row * length + places, mask=places < length * masked, other=1)
    ahead = (1 - causal) * length  # how far
    seen = (places < length) & (known != 0)
    return seen[None, :] & (places[None, :] <= places[:, None] + ahead)


@triton.jit(do_not_specialize=SIZES)
def _forward(
    query, keys, values, mask, out, normaliser, scale, heads, queries, length, causal, masked,
    query_row, query_step, query_head, key_row, key_step, key_head, value_row, value_step, value_head,
    width: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    places, features = tl.arange(0, block), tl.arange(0, width)
    q = _read(query, row, query_row, head, query_head, places, query_step, features, queries)
    k = _read(keys, row, key_row, head, key_head, places, key_step, features, length)
    v = _read(values, row, value_row, head, value_head, places, value_step, features, length)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(_visible(mask, row, places, length, causal, masked), scores, float("-inf"))
    largest = tl.max(scores, 1)
    largest = tl.where(largest == float("-inf"), 0.0, largest)  # a step that may look at nothing
    weights = tl.exp(scores - largest[:, None])
    total = tl.sum(weights, 1)
    total = tl.where(total == 0.0, 1.0, total)
    contexts = tl.dot(weights.to(v.dtype), v, input_precision="ieee") / total[:, None]
    line = heads * width  # features of all heads of a step
    made = _places(out, row, queries * line, head, width, places, line, features)
    tl.store(made, contexts.to(out.dtype.element_ty), mask=places[:, None] < queries)
    sums = normaliser + tl.program_id(0).to(tl.int64) * queries + places
    tl.store(sums, largest + tl.log(total), mask=places < queries)


@triton.jit(do_not_specialize=SIZES)
def _backward(
    query, keys, values, mask, out, normaliser, given, to_query, to_keys, to_values,
    scale, heads, queries, length, causal, masked,
    query_row, query_step, query_head, key_row, key_step, key_head, value_row, value_step, value_head,
    width: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    places, features = tl.arange(0, block), tl.arange(0, width)
    q = _read(query, row, query_row, head, query_head, places, query_step, features, queries)
    k = _read(keys, row, key_row, head, key_head, places, key_step, features, length)
    v = _read(values, row, value_row, head, value_head, places, value_step, features, length)
    line = heads * width  # features of all heads of a step
    contexts = _read(out, row, queries * line, head, width, places, line, features, queries)
    gradient = _read(given, row, queries * line, head, width, places, line, features, queries)
    sums = normaliser + tl.program_id(0).to(tl.int64) * queries + places
    logs = tl.load(sums, mask=places < queries, other=0.0)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = _visible(mask, row, places, length, causal, masked)
    weights = tl.where(seen, tl.exp(scores - logs[:, None]), 0.0)
    passed = tl.dot(gradient, tl.trans(v), input_precision="ieee")  # the gradient of the weights
    mean = tl.sum(contexts.to(tl.float32) * gradient.to(tl.float32), 1)
    inner = (weights * (passed - mean[:, None]) * scale).to(q.dtype)  # that of the products
    written = _places(0, row, queries * line, head, width, places, line, features)
    read, known = _places(0, row, length * line, head, width, places, line, features), places[:, None] < length
    of_query = tl.dot(inner, k, input_precision="ieee")
    tl.store(to_query + written, of_query.to(q.dtype), mask=places[:, None] < queries)
    of_keys = tl.dot(tl.trans(inner), q, input_precision="ieee")
    tl.store(to_keys + read, of_keys.to(q.dtype), mask=known)
    of_values = tl.dot(tl.trans(weights.to(q.dtype)), gradient, input_precision="ieee")
    tl.store(to_values + read, of_values.to(q.dtype), mask=known)


def forward(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """Contexts (B, T, H, K) and the logarithms of the normalisers (B, H, T) of (B, T, H, K) and two of (B, S, H, K)."""
    rows, steps, heads, _ = query.shape
    made = query.new_empty(query.shape), query.new_empty(rows, heads, steps, dtype=torch.float32)
    sizes, how = _arguments(query, keys, values, mask, causal=causal)
    with torch.cuda.device_of(query):  # Triton starts programs on the current device
        _forward[(rows * heads,)](query, keys, values, _there(mask, query), *made, scale, *sizes, **how)
    return made


def backward(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, out: Tensor, normaliser: Tensor,
    given: Tensor, causal: bool, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of queries, keys and values."""
    rows, _, heads, _ = query.shape
    made = query.new_empty(query.shape), keys.new_empty(keys.shape), values.new_empty(values.shape)
    sizes, how = _arguments(query, keys, values, mask, causal=causal)
    inputs = query, keys, values, _there(mask, query), out, normaliser, given.contiguous()
    with torch.cuda.device_of(query):
        _backward[(rows * heads,)](*inputs, *made, scale, *sizes, **how)
    return made


def _there(mask: Tensor | None, like: Tensor) -> Tensor:
    """The mask, or memory that is not read."""
    return like.new_empty(1, dtype=torch.bool) if mask is None else mask.contiguous()


def _arguments(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, causal: bool
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Sizes and strides, and what a program is compiled for."""
    _, steps, heads, width = query.shape
    length = keys.shape[1]
    block = next(size for size in WARPS if max(steps, length) <= size)
    strides = (stride for each in (query, keys, values) for stride in each.stride()[:3])
    how = {"width": width, "block": block, "num_warps": WARPS[block], "num_stages": 1}
    return (heads, steps, length, int(causal), int(mask is not None), *strides), how
