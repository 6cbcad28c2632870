"""The position-wise feed-forward network: each token by itself, wide and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.fast.dropout import Dropout, places_to_drop, scale_of
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
        if self._in_one(x):
            maps = self.expand.weight, self.expand.bias, self.contract.weight, self.contract.bias
            return _Rectified.apply(x, *maps, self.dropout.p)  # type: ignore[no-untyped-call]
        return self.contract(self.dropout(self.activation(self.expand(x))))

    def _in_one(self, x: Tensor) -> bool:
        """Whether this is training with ReLU on a CPU, where what lies between two products costs as much as they."""
        plain = x.device.type == "cpu" and not torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()
        return plain and self.training and torch.is_grad_enabled() and self.activation is F.relu


class _Rectified(torch.autograd.Function):
    """``W₂ · dropout(relu(W₁ x + b₁)) + b₂`` with nothing kept but what stands before W₂, h.

    A feature of h is zero where ReLU or dropout made it so, and in both cases no gradient passes: its sign is the mask
    of both. The scale of dropout goes into the second product.
    """

    @staticmethod
    def forward(  # noqa: PLR0917
        context: Any, x: Tensor, expand: Tensor, shift: Tensor, contract: Tensor, bias: Tensor, p: float
    ) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])  # (N, D)
        hidden = torch.addmm(shift, rows, expand.T).relu_()
        if p:
            hidden.view(-1).index_fill_(0, places_to_drop(hidden.numel(), p), 0.0)
        context.scale = scale_of(p)
        context.save_for_backward(rows, hidden, expand, contract)
        return torch.addmm(bias, hidden, contract.T, alpha=context.scale).view(*x.shape[:-1], len(contract))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, hidden, expand, contract = context.saved_tensors
        given = gradient.reshape(len(rows), -1)
        scaled = given * context.scale
        inner = scaled @ contract
        torch.ops.aten.threshold_backward.grad_input(inner, hidden, 0.0, grad_input=inner)
        asked = context.needs_input_grad  # of frozen weights no gradient is asked
        return (
            (inner @ expand).view(*gradient.shape[:-1], -1) if asked[0] else None,
            inner.T @ rows if asked[1] else None,
            inner.sum(0) if asked[2] else None,
            scaled.T @ hidden if asked[3] else None,
            given.sum(0) if asked[4] else None,
            None,
        )


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
