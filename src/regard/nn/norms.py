"""Normalisation with learned γ (gain) and β (shift).

Layer norm looks across the features of one token; batch norm across the real tokens of a batch, one
feature at a time; RMS norm is layer norm without the mean and the shift. All share one call,
``norm(x, mask)``, though only batch norm cares which tokens are padding. Computed in float32 under autocast, the
result is still of the type of x.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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

    Padding takes no part in the statistics, which is why the mask is an argument. At inference the running
    statistics serve, so that a sentence does not depend on its batch-mates.
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
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # half precision cannot count tokens
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
