"""Room in the beam for hypotheses that have terms the others lack: dynamic beam allocation (Post and Vilar, 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.decode.constraints import Terms
from regard.decode.front import Front
from regard.text.special import PAD


def added(terms: Terms, front: Front, log_probabilities: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Besides each hypothesis' best ``tokens`` (B, W, k), those that continue a term, (B, W, K), and their scores."""
    following = terms.progress(front.written, front.sentences).following
    known = torch.cat((tokens, following), 2)
    place = torch.arange(known.shape[2], device=known.device)
    earlier = place < place[tokens.shape[2] :, None]  # (K, k + K)
    twice = ((following[..., None] == known[:, :, None]) & earlier).any(3)
    return following, log_probabilities.gather(2, following).masked_fill(twice | (following == PAD), -torch.inf)


def allocate(banks: Tensor, totals: Tensor, width: int) -> Tensor:
    """Which ``width`` of N candidates go on, (B, width), when ``banks`` (B, N) count the term tokens each has.

    First the best of each bank, then the second of each, and so on; within a round by log-probability, except
    that the fullest bank comes first, so that some hypothesis always has all terms as soon as can be. A beam
    of one has no room for that: it goes by log-probability alone, and writes terms when they are forced.
    """
    better = (totals[:, None] > totals[:, :, None]) & (banks[:, None] == banks[:, :, None])  # (B, N, N)
    place = torch.arange(totals.shape[1], device=totals.device)
    equal = (totals[:, None] == totals[:, :, None]) & (banks[:, None] == banks[:, :, None]) & (place < place[:, None])
    rounds = (better | equal).sum(2)
    possible = totals.isfinite()
    if width == 1:
        return totals.argmax(1, keepdim=True)
    fullest = torch.where(possible, banks, -1).amax(1, keepdim=True)
    rounds = torch.where((rounds == 0) & (banks == fullest), -1, rounds)
    rounds = torch.where(possible, rounds, totals.shape[1])
    by_score = totals.argsort(dim=1, descending=True, stable=True)
    by_round = rounds.gather(1, by_score).argsort(dim=1, stable=True)
    return by_score.gather(1, by_round)[:, :width]
