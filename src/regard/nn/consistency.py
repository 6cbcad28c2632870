"""Two passes over the same sentences must predict the same: what is lost besides the cross-entropy where they do not.

A model with dropout, or with some of its input hidden, is another model each time. R-Drop and SimCut let two of them
learn side by side and pay for the distance between their distributions P and Q over the next piece.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.fast.output_loss import widened
from regard.nn.fast.random import uniform
from regard.nn.observe import UNOBSERVED, Unobserved
from regard.text.vocabulary import PAD


def smoothed(log_probabilities: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """``−(1 − ε) log p(target) − ε mean log p``, cross-entropy with label smoothing ε, by rows. (N, V), (N,) → (N,)"""
    surprise = F.nll_loss(log_probabilities, targets, reduction="none")  # compiled, its gradient is no table of zeros
    return (1 - smoothing) * surprise - smoothing * log_probabilities.mean(1)


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """``KL(P ‖ Q) = Σ_v P(v) (log P(v) − log Q(v))`` of log-probabilities, row by row. (N, V), (N, V) → (N,)"""
    return (first.exp() * (first - second)).sum(1)


def r_drop(first: Tensor, second: Tensor, targets: Tensor, smoothing: float, weight: float) -> Tensor:
    """``½ Σ (CE(P) + CE(Q) + weight · ½ (KL(P ‖ Q) + KL(Q ‖ P)))`` over real targets, for the logits of two passes with
    dropout of their own (R-Drop, Liang et al., 2021; theirs halved, to be as large as the loss of one pass)."""
    real, one, other = targets != PAD, widened(first).log_softmax(1), widened(second).log_softmax(1)
    apart = ((one.exp() - other.exp()) * (one - other)).sum(1)  # both divergences together
    both = smoothed(one, targets, smoothing) + smoothed(other, targets, smoothing)
    return 0.5 * torch.where(real, both + 0.5 * weight * apart, 0.0).sum()


def sim_cut(whole: Tensor, cut: Tensor, targets: Tensor, smoothing: float, weight: float) -> Tensor:
    """``Σ CE(P) + weight · KL(P ‖ Q)`` over real targets, for the logits of a pass over whole sentences, P, and of one
    in which some tokens of both sides have no embedding, Q (SimCut, Gao et al., 2022). Both passes learn."""
    real, one, other = targets != PAD, widened(whole).log_softmax(1), widened(cut).log_softmax(1)
    lost = smoothed(one, targets, smoothing) + weight * divergence(one, other)
    return torch.where(real, lost, 0.0).sum()


class Inconsistency(nn.Module):
    """`r_drop` or `sim_cut` as a module, so that it can be compiled by itself: then no probabilities are stored."""

    def __init__(self, kind: Literal["rdrop", "simcut"], weight: float) -> None:
        super().__init__()
        self.kind, self.weight = kind, weight

    def forward(self, first: Tensor, second: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        loss = r_drop if self.kind == "rdrop" else sim_cut
        return loss(first, second, targets, smoothing, self.weight)


class TokenCutoff:
    """An observer that takes away the embedding of a share of all tokens in the second half of a batch: token cutoff
    (Shen et al., 2020). It looks at nothing else, so attention takes its fused path."""

    active = False

    def __init__(self, share: float, *, outside: bool = True) -> None:
        self._share, self._outside = share, outside

    def at(self, place: str | int) -> TokenCutoff | Unobserved:
        """The encoder or the decoder; further in there is nothing to cut."""
        del place
        return TokenCutoff(self._share, outside=False) if self._outside else UNOBSERVED

    def see(self, name: str, value: Tensor) -> Tensor:
        if name != "embedded":
            return value
        gone = uniform(value.shape[:2], value.device) < self._share  # (B, T)
        gone = torch.cat((torch.zeros_like(gone[: len(gone) // 2]), gone[len(gone) // 2 :]))
        return value.masked_fill(gone[:, :, None], 0.0)
