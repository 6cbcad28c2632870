"""The output layer and its loss in one: ``−Σ log p(target)`` of ``softmax(W x + b)``, with its gradients.

The logits of a batch are its largest tensor by far, and cross-entropy reads and writes them several times. Here they
exist for some rows at a time: the gradient of the loss with respect to them, ``p − target``, needs only the logits, so
it is computed at once, multiplied into the gradients of x, W and b, and freed. Smoothing mixes every target with the
uniform distribution, which is the same for all rows and therefore one vector.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.text.vocabulary import PAD

_ELEMENTS = {"cpu": 1 << 23, "cuda": 1 << 26}  # logits at a time
_SURE = 1e-30  # float32 has full precision for probabilities above this


def widened(logits: Tensor) -> Tensor:
    """In float32 at least: half precision is too coarse for sums of many probabilities."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """The loss of ``logits`` (N, V), in float32 at least: the written-out twin, and the fastest form when compiled."""
    return F.cross_entropy(widened(logits), targets, ignore_index=PAD, reduction="sum", label_smoothing=smoothing)


def linear_cross_entropy(x: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """``cross_entropy(x Wᵀ + b)`` of ``x`` (N, D), ``W`` (V, D), ``b`` (V,) and ``targets`` (N,)."""
    if not torch.is_grad_enabled():
        return cross_entropy(F.linear(x, weight, bias), targets, smoothing)
    kind = x.device.type
    half = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    return _LinearCrossEntropy.apply(x, weight, bias, targets, smoothing, half)  # type: ignore[no-untyped-call]


class _LinearCrossEntropy(torch.autograd.Function):
    """All gradients are made in the forward pass; the backward pass scales them."""

    @staticmethod
    def forward(  # noqa: PLR0917
        context: Any, x: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, half: torch.dtype
    ) -> Tensor:
        each = max(1, _ELEMENTS.get(x.device.type, 1 << 22) // len(weight))
        with torch.autocast(x.device.type, enabled=False):
            gradients = _Gradients(x, weight, bias, smoothing, half, learns=any(context.needs_input_grad[1:3]))
            for first in range(0, len(x), each):
                gradients.add(first, targets[first : first + each, None])
            context.save_for_backward(*gradients.finish())
        return gradients.loss

    @staticmethod
    def backward(context: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if each is None else each * scale.to(each) for each in context.saved_tensors)
        return *scaled, None, None, None


def _log_sum(logits: Tensor, probabilities: Tensor, right: Tensor, targets: Tensor) -> Tensor:
    """``log Σ exp`` of each row without overflow: any logit minus the logarithm of its probability, if that did not
    underflow. On a CPU that of the target (``right``) is mostly used, which saves two passes over all logits."""
    if logits.device.type == "cpu":
        chosen = probabilities.gather(1, targets)
        if bool((chosen > _SURE).all()):
            return right - chosen.log()
    return logits.amax(1, keepdim=True) - probabilities.amax(1, keepdim=True).log()


class _Gradients:
    """The loss and its gradients, summed over rows: products in ``half``, sums in float32 at least. If the layer does
    not learn, only the gradient of x."""

    def __init__(
        self, x: Tensor, weight: Tensor, bias: Tensor, smoothing: float, half: torch.dtype, *, learns: bool
    ) -> None:
        self.learns = learns
        self.full = torch.promote_types(half, torch.float32)
        self.given = x.to(half), weight.to(half), bias.to(half)
        self.smoothing = smoothing
        self.mean_weight, self.mean_bias = weight.to(self.full).mean(0), bias.to(self.full).mean()
        self.x = torch.empty_like(x)
        self.weight, self.bias = (torch.zeros_like(each) if learns else each for each in (weight, bias))
        self.loss, self.count = x.new_zeros((), dtype=self.full), x.new_zeros((), dtype=self.full)
        self.sum = torch.zeros_like(self.mean_weight)  # of the rows that are not padding

    def add(self, first: int, targets: Tensor) -> None:
        """Add some rows, with targets (n, 1)."""
        x, weight, bias = self.given
        end = first + len(targets)
        rows, real = x[first:end], (targets != PAD).to(self.full)
        logits = torch.addmm(bias, rows, weight.T)  # (n, V)
        probabilities, right = logits.softmax(1, dtype=self.full), logits.gather(1, targets)
        normaliser = _log_sum(logits, probabilities, right, targets)
        mean = (rows.to(self.full) @ self.mean_weight + self.mean_bias)[:, None]  # of a row's logits
        self.loss += (real * (normaliser - (1 - self.smoothing) * right - self.smoothing * mean)).sum()
        gradient = probabilities.scatter_add_(1, targets, torch.full_like(real, self.smoothing - 1)).to(x.dtype)
        self.x[first:end] = real * (gradient @ weight - self.smoothing * self.mean_weight)
        if not self.learns:
            return
        counted = real.to(x.dtype) * rows
        self._add_weight(gradient, counted)
        self.bias += (gradient.T @ real.to(x.dtype)).squeeze(1)
        self.sum += counted.sum(0, dtype=self.full)
        self.count += real.sum()

    def _add_weight(self, gradient: Tensor, rows: Tensor) -> None:
        if self.weight.dtype == gradient.dtype:
            self.weight.addmm_(gradient.T, rows)
        else:
            self.weight += gradient.T @ rows

    def finish(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The gradients of x, W and b, with the part of the uniform distribution that all rows share."""
        if not self.learns:
            return self.x, None, None
        share = self.smoothing / len(self.weight)
        return self.x, self.weight.sub_(share * self.sum), self.bias.sub_(share * self.count)
