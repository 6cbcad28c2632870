"""The plain layers: linear maps, norms and feed-forward networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.fast.dropout import Dropout, places_to_drop, scale_of

Kind = TypeVar("Kind", bound=nn.Module)


class Chain(nn.ModuleList, Generic[Kind]):
    """`nn.ModuleList` with a type for its modules."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Kind]: ...
        def __getitem__(self, index: int) -> Kind: ...  # type: ignore[override]


# Linear maps, initialised as in Glorot and Bengio (2010), uniform, with zero bias.


def linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """``y = W x + b`` with ``W ~ U(±√(6 / (inputs + outputs)))``."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def side_by_side(*linears: nn.Linear) -> tuple[Tensor, Tensor]:
    """W and b of several maps of the same input, as one map."""
    return torch.cat([each.weight.detach() for each in linears]), torch.cat([each.bias.detach() for each in linears])


def together(x: Tensor, *linears: nn.Linear) -> tuple[Tensor, ...]:
    """``W x + b`` of several maps, in training on a GPU by one product: its gradients are one product each, too."""
    if x.device.type == "cuda" and torch.is_grad_enabled():
        return in_one_product(x, *linears)
    return tuple(each(x) for each in linears)


def in_one_product(x: Tensor, *linears: nn.Linear) -> tuple[Tensor, ...]:
    """As `together`, whose other branch is the written-out twin."""
    weights: list[Tensor] = [each.weight for each in linears]
    biases: list[Tensor] = [each.bias for each in linears if each.bias is not None]
    made = F.linear(x, torch.cat(weights), torch.cat(biases) if biases else None)
    return torch.split(made, [len(each) for each in weights], -1)


# Normalisation with learned γ (gain) and β (shift).
#
# Layer norm is over the features of one token; batch norm over the real tokens of a batch, one feature at a time; RMS
# norm is layer norm without mean and shift. All are called ``norm(x, mask)``, though only batch norm needs the mask.
# Under autocast they compute in float32, and the result has the type of x.


def layer_norm(x: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> Tensor:
    """``γ ⊙ (x − mean) / √(variance + ε) + β`` over the last axis (Ba et al., 2016). Written out."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return gain * centred / torch.sqrt(variance + epsilon) + shift


def rms_norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """``γ ⊙ x / √(mean(x²) + ε)`` (Zhang and Sennrich, 2019). Written out."""
    return gain * x / torch.sqrt(x.square().mean(-1, keepdim=True) + epsilon)


class LayerNorm(nn.Module):
    """Layer norm by torch's kernel; `layer_norm` is its written-out twin."""

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return F.layer_norm(x, self.gain.shape, self.gain, self.shift, self.epsilon).to(x.dtype)


class RMSNorm(nn.Module):
    """RMS norm by torch's kernel; `rms_norm` is its written-out twin."""

    def __init__(self, width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return F.rms_norm(x, self.gain.shape, self.gain, self.epsilon).to(x.dtype)


class BatchNorm(nn.Module):
    """Per feature across the batch's real tokens (Ioffe and Szegedy, 2015), for comparison with layer norm.

    The statistics are those of real tokens, which is why the mask is an argument. At inference the running statistics
    are used, so that a sentence does not depend on the others of its batch.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, width: int, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))
        self.epsilon = epsilon
        self.momentum = momentum

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # half precision is too coarse for counts
        mean, variance = self._measure(wide, mask) if self.training else (self.running_mean, self.running_variance)
        return (self.gain * (wide - mean) / torch.sqrt(variance + self.epsilon) + self.shift).to(x.dtype)

    def _measure(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        real = x.new_ones(x.shape[:-1]) if mask is None else mask.to(x.dtype)
        real = real.unsqueeze(-1)  # (B, T, 1)
        count = real.sum()
        mean = (real * x).sum((0, 1)) / count
        variance = (real * (x - mean).square()).sum((0, 1)) / count
        with torch.no_grad():
            unbiased = variance * count / (count - 1).clamp(min=1)
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_variance.lerp_(unbiased.to(self.running_variance.dtype), self.momentum)
        return mean, variance


# The position-wise feed-forward network.


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
        """Whether to use `_Rectified`: in training with ReLU on a CPU, where the rest costs as much as the products."""
        plain = x.device.type == "cpu" and not torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()
        return plain and self.training and torch.is_grad_enabled() and self.activation is F.relu


class _Rectified(torch.autograd.Function):
    """``W₂ h + b₂`` with ``h = dropout(relu(W₁ x + b₁))``, of which only h is kept for the backward pass.

    A feature of h is zero if ReLU or dropout made it so, and in both cases no gradient passes: its sign is the mask of
    both. The scale of dropout is part of the second product.
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
        needed = context.needs_input_grad  # frozen weights need no gradient
        return (
            (inner @ expand).view(*gradient.shape[:-1], -1) if needed[0] else None,
            inner.T @ rows if needed[1] else None,
            inner.sum(0) if needed[2] else None,
            scaled.T @ hidden if needed[3] else None,
            given.sum(0) if needed[4] else None,
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
        gate, expanded = together(x, self.gate, self.expand)
        return self.contract(self.dropout(F.silu(gate) * expanded))
