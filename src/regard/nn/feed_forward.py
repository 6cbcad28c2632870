"""The position-wise feed-forward network: each token by itself, wide and back."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.dropout import Dropout
from regard.nn.linear import linear


class FeedForward(nn.Module):
    """``W₂ · activation(W₁ x + b₁) + b₂`` (Vaswani et al., 2017, with ReLU)."""

    def __init__(
        self, width: int, hidden: int, activation: Callable[[Tensor], Tensor] = F.relu, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.expand = linear(width, hidden)
        self.contract = linear(hidden, width)
        self.activation = activation
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.dropout(self.activation(self.expand(x))))


class GatedFeedForward(nn.Module):
    """``W₂ · (silu(W₁ x) ⊙ W₃ x)``: SwiGLU (Shazeer, 2020). Without biases, as in the paper."""

    def __init__(self, width: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = linear(width, hidden, bias=False)
        self.gate = linear(width, hidden, bias=False)
        self.contract = linear(hidden, width, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.dropout(F.silu(self.gate(x)) * self.expand(x)))
