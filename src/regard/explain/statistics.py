"""What each head does, in a few numbers: entropy, coverage, distance, diagonality, and where most of its weight goes.

With α the weights (T, S) of a head, whose rows are distributions:

- entropy = mean_t −Σ_s α_ts ln α_ts, in nats; its exponential is how many tokens a row looks at;
- coverage = mean_s min(1, Σ_t α_ts): how much of the source was attended to (as in Wu et al., 2016);
- distance = mean_t Σ_s α_ts |s − t (S − 1) / (T − 1)|: tokens away from the diagonal;
- diagonality = the correlation of t and s when pairs are drawn with weight α_ts: 1 straight, −1 reversed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast

import torch
from pydantic import Field
from torch import Tensor

from regard.explain.answer import Answer, computed
from regard.explain.trace import SideName, Trace
from regard.text.vocabulary import END, SILENT, START

MOST = 0.5  # a head is called after what gets at least this share of its weight


@dataclass(frozen=True)
class HeadStatistics(Answer):
    """One head in a few numbers; shares are of its whole weight."""

    layer: int
    head: int
    side: SideName
    entropy: Annotated[float, Field(description="In nats, the mean over rows.")]
    coverage: Annotated[float, Field(description="How much of what can be looked at was looked at.")]
    distance: Annotated[float, Field(description="Tokens away from the diagonal.")]
    diagonality: Annotated[float, Field(description="1 straight, -1 reversed.")]
    end: Annotated[float, Field(description="Share on <end>.")]
    itself: Annotated[float, Field(description="Share on its own place.")]
    previous: Annotated[float, Field(description="Share on the place before.")]
    following: Annotated[float, Field(description="Share on the place after.")]
    same: Annotated[float, Field(description="Share on the same token elsewhere.")]

    @computed
    def role(self) -> str:
        """What it does most of the time, if there is such a thing."""
        shares = {
            "looks at <end>": self.end,
            "copies its own place": self.itself,
            "shifts by one: looks at the token before": self.previous,
            "shifts by one: looks at the token after": self.following,
            "copies: looks at the same token elsewhere": self.same,
        }
        name, share = max(shares.items(), key=lambda item: item[1])
        return name if share >= MOST else ""


def statistics(traces: Trace | list[Trace], side: str = "cross") -> list[HeadStatistics]:
    """Every head's numbers, the mean over traces. Sides: ``cross``, ``encoder``, ``decoder``."""
    many = traces if isinstance(traces, list) else [traces]
    found = torch.stack([_numbers(trace, side) for trace in many]).mean(0)  # (L, H, numbers)
    return [
        HeadStatistics(layer, head, cast("SideName", side), *found[layer, head].tolist())
        for layer in range(found.shape[0])
        for head in range(found.shape[1])
    ]


def _numbers(trace: Trace, side: str) -> Tensor:
    """(L, H, 9), in the order of `HeadStatistics`."""
    weights = trace.weights(side)
    written, read = trace.axes(side)
    looked_at = [-1 if number == START else number for number in read.ids]  # <start> is the same as no other token
    asked = looked_at if side != "cross" else list(written.ids)  # self-attention asks with what it reads
    rows, columns = weights.shape[-2:]
    places = torch.arange(columns, dtype=weights.dtype, device=weights.device)
    times = torch.arange(rows, dtype=weights.dtype, device=weights.device)
    straight = times * (columns - 1) / max(1, rows - 1)
    away = (places - straight[:, None]).abs()
    ids, queries = torch.tensor(looked_at, device=weights.device), torch.tensor(asked, device=weights.device)
    same = (queries[:, None] == ids).to(weights)
    square = side != "cross"
    own = torch.eye(rows, columns, dtype=weights.dtype, device=weights.device) if square else torch.zeros_like(same)
    shifted = [_share(weights, torch.roll(own, step, 1) * _beside(own, step)) for step in (-1, 1)]
    return torch.stack(
        [
            torch.special.entr(weights).sum(-1).mean(-1),
            weights.sum(-2).clamp(max=1)[..., _spoken(looked_at)].mean(-1),
            (weights * away).sum(-1).mean(-1),
            _correlation(weights, times, places),
            _share(weights, (ids == END).to(weights)),
            _share(weights, own),
            *shifted,
            _share(weights, same * (1 - own)),
        ],
        -1,
    )


def _spoken(ids: Sequence[int]) -> list[int]:
    """The places that are words; all, where none is."""
    return [place for place, number in enumerate(ids) if number not in SILENT] or list(range(len(ids)))


def _share(weights: Tensor, where: Tensor) -> Tensor:
    """The share of the weight that lies there: (L, H, T, S) → (L, H)."""
    return (weights * where).sum((-1, -2)) / weights.shape[-2]


def _beside(own: Tensor, step: int) -> Tensor:
    """All but the column that a roll brings back in at the other side."""
    inside = torch.ones_like(own)
    inside[:, -1 if step < 0 else 0] = 0
    return inside


def _correlation(weights: Tensor, times: Tensor, places: Tensor) -> Tensor:
    """Of row and column when (t, s) is drawn with probability proportional to its weight; 0 where one is constant."""
    total = weights.sum((-1, -2), keepdim=True)
    joint = weights / torch.where(total > 0, total, 1.0)
    row, column = joint.sum(-1), joint.sum(-2)  # (L, H, T), (L, H, S)
    t, s = times - (row @ times)[..., None], places - (column @ places)[..., None]
    covariance = torch.einsum("lhts,lht,lhs->lh", joint, t, s)
    spread = ((row * t.square()).sum(-1) * (column * s.square()).sum(-1)).sqrt()
    return torch.where(spread > 1e-12, covariance / spread.clamp(min=1e-12), torch.zeros_like(spread))
