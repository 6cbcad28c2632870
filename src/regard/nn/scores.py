"""How well a query and a key fit: the scores of the attention family.

A score sees heads apart, queries ``(B, H, T, K)`` against keys ``(B, H, S, K)``, and gives ``(B, H, T, S)``.
What depends on the keys alone is done once, in `prepare`, when a source is remembered.

Most scores are inner products after a map of the query or of the keys; those may be computed by torch's
fused attention, which is why they say what their `queries` and their `scale` are.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.observe import UNOBSERVED, Observer


class InnerScore(nn.Module):
    """``e = scale · qᵀ k``: dot (Luong, scale 1) and scaled dot (Vaswani, scale 1/√K)."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def prepare(self, keys: Tensor) -> Tensor:
        return keys

    def queries(self, query: Tensor) -> Tensor:
        return query

    def forward(self, query: Tensor, keys: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        products = observer.see("products", self.queries(query) @ keys.transpose(-1, -2))  # (B, H, T, S)
        return observer.see("scores", products * self.scale)


class GeneralScore(InnerScore):
    """``e = qᵀ W k`` with one W a head (Luong et al., 2015): query and key may differ in width."""

    def __init__(self, heads: int, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, query_width, key_width))
        for matrix in self.weight.data:
            nn.init.xavier_uniform_(matrix)

    def prepare(self, keys: Tensor) -> Tensor:
        return by_head(keys, self.weight.mT)  # (B, H, S, K)


class CosineScore(InnerScore):
    """``e = β · cos(q, k)`` with one learned sharpness β a head (Graves, Wayne and Danihelka, 2014).

    β begins at √K: for vectors of unit variance the scores then spread as those of scaled dot do.
    """

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.full((heads, 1, 1), width**0.5))

    def prepare(self, keys: Tensor) -> Tensor:
        return _unit(keys)

    def queries(self, query: Tensor) -> Tensor:
        return self.sharpness * _unit(query)


def _unit(x: Tensor) -> Tensor:
    """``x / |x|``. Zero stays zero, in float16 too: there torch's own 1e-12 rounds to nothing and 0 / 0 is NaN."""
    return F.normalize(x, dim=-1, eps=max(1e-12, torch.finfo(x.dtype).tiny))


class AdditiveScore(nn.Module):
    """``e = vᵀ tanh(W [q; k] + b)`` (Bahdanau et al., 2015); without ``b`` it is Luong's concat.

    ``W [q; k] = W_q q + W_k k``, so the keys' half is prepared once a source.
    """

    def __init__(self, heads: int, query_width: int, key_width: int, hidden: int, *, bias: bool = True) -> None:
        super().__init__()
        self.query_weight = nn.Parameter(torch.empty(heads, query_width, hidden))
        self.key_weight = nn.Parameter(torch.empty(heads, key_width, hidden))
        self.combine = nn.Parameter(torch.empty(heads, hidden))
        self.bias = nn.Parameter(torch.zeros(heads, 1, hidden)) if bias else None
        bound = (6 / (query_width + key_width + hidden)) ** 0.5
        for parameter in (self.query_weight, self.key_weight):
            nn.init.uniform_(parameter, -bound, bound)
        nn.init.uniform_(self.combine, -(hidden**-0.5), hidden**-0.5)

    def prepare(self, keys: Tensor) -> Tensor:
        return by_head(keys, self.key_weight)  # (B, H, S, A)

    def forward(self, query: Tensor, keys: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        query = by_head(query, self.query_weight)  # (B, H, T, A)
        if self.bias is not None:
            query = query + self.bias
        hidden = torch.tanh(query[:, :, :, None] + keys[:, :, None])  # (B, H, T, S, A)
        return observer.see("scores", torch.einsum("bhtsa,ha->bhts", hidden, self.combine))


Score = InnerScore | AdditiveScore


def by_head(x: Tensor, weight: Tensor) -> Tensor:
    """``x`` (B, H, T, K) times ``weight`` (H, K, A), each head by its own: as a product of H matrices and not of B · H,
    whose gradient would be as many matrices to add up."""
    rows, heads, length, _ = x.shape
    together = x.transpose(0, 1).reshape(heads, rows * length, -1) @ weight  # (H, B · T, A)
    return together.view(heads, rows, length, -1).transpose(0, 1)
