"""Losses over predictions, summed; and what training does to its inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.nn.fast import random as chance
from regard.nn.fast.output_loss import cross_entropy
from regard.nn.observe import UNOBSERVED, Unobserved
from regard.settings import ReinforceSettings
from regard.text.special import UNK


class CrossEntropy(nn.Module):
    """`cross_entropy` as a module, so that it can be compiled by itself: then wide logits are never written down."""

    def forward(self, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), smoothing)


def drop_words(ids: Tensor, rate: float) -> Tensor:
    """Replace a share of the ordinary tokens by ``<unk>``, so that the model learns to do without any one.

    Where letters follow the ids, (B, S, 1 + L), they stay: an unknown word is read by its letters.
    """
    if rate == 0.0:
        return ids
    if ids.dim() == 3:
        return torch.cat((drop_words(ids[..., :1].squeeze(-1), rate).unsqueeze(-1), ids[..., 1:]), -1)
    chosen = (chance.uniform(ids.shape, ids.device) < rate) & (ids > UNK)
    return ids.masked_fill(chosen, UNK)


class Choices:
    """An observer that records what a recurrent decoder's hard attention chose, and from which state."""

    active = True

    def __init__(self) -> None:
        self._seen: dict[str, list[Tensor]] = {"log_probability": [], "probabilities": [], "queries": []}

    def at(self, place: str | int) -> Choices | Unobserved:
        return self if place in ("decoder", "cross") else UNOBSERVED

    def see(self, name: str, value: Tensor) -> Tensor:
        if name in self._seen:
            self._seen[name].append(value)
        return value

    def __getitem__(self, name: str) -> Tensor:
        return torch.cat(self._seen[name], 2)  # (B, H, T, …)


def reinforce(
    choices: Choices, reward: Tensor, mask: Tensor, baseline: nn.Linear, settings: ReinforceSettings
) -> Tensor:
    """The loss whose gradient is REINFORCE's, for the choices of hard attention (Williams, 1992; Xu et al., 2015).

    ``−(R_t − b_t) · log α_t``, with ``R_t`` the discounted log-probabilities of the words from t on and ``b_t`` a
    learned guess of it from the state before the choice. Plus the guess's own squared error, and a reward
    for entropy.
    """
    chosen = choices["log_probability"].sum((1, 3))  # (B, T)
    states = choices["queries"].transpose(1, 2).flatten(2).detach()  # (B, T, D)
    returns = _discounted(reward.detach() * mask, settings.discount)
    guess = baseline(states).squeeze(-1)
    probabilities = choices["probabilities"]  # (B, H, T, S)
    entropy = -(probabilities * probabilities.clamp_min(1e-9).log()).sum((1, 3))  # (B, T)
    advantage = (returns - guess).detach()
    each = -advantage * chosen - settings.entropy * entropy + (returns - guess).square()
    return settings.weight * (each * mask).sum()


def _discounted(reward: Tensor, discount: float) -> Tensor:
    """``R_t = r_t + discount · R_{t+1}``"""
    if discount == 0.0:
        return reward
    returns, total = [], torch.zeros_like(reward[:, 0])
    for time in range(reward.shape[1] - 1, -1, -1):
        total = reward[:, time] + discount * total
        returns.append(total)
    return torch.stack(returns[::-1], 1)
