"""Local attention (Luong et al., 2015, §3.2): a query looks only at keys near a centre.

Both windows keep at least one real key in sight, so that there is always something to attend to.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.nn import masks
from regard.nn.linear import linear
from regard.nn.observe import UNOBSERVED, Observer


@dataclass(frozen=True)
class Window:
    """What a window decides for each query."""

    mask: Tensor  # (B, 1, T, S)
    focus: Tensor | None = None  # (B, 1, T, S), multiplies the weights


class MonotonicWindow(nn.Module):
    """local-m: the centre is the query's own position, and past the end of the source its last token."""

    def __init__(self, reach: int) -> None:
        super().__init__()
        self.reach = reach

    def forward(
        self,
        query: Tensor,  # noqa: ARG002
        positions: Tensor,
        lengths: Tensor,
        size: int,
        observer: Observer = UNOBSERVED,
    ) -> Window:
        """From the queries' positions (T,) and the sources' lengths (B,)."""
        centre = torch.minimum(positions, lengths[:, None] - 1)[:, None]  # (B, 1, T)
        centre = observer.see("centre", centre.unsqueeze(-1)).squeeze(-1)
        return Window(masks.window(centre, self.reach, size))


class PredictedWindow(nn.Module):
    """local-p: the centre is ``p = length · sigmoid(vᵀ tanh(W q))``.

    The weights are multiplied by ``exp(−(s − p)² / 2σ²)`` with ``σ = reach / 2``, which is what carries the
    gradient to ``p``. As in the paper they are not normalised again, so a row sums to less than one.
    """

    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.hidden = linear(width, width, bias=False)
        self.centre = linear(width, 1, bias=False)

    def forward(
        self,
        query: Tensor,
        positions: Tensor,  # noqa: ARG002
        lengths: Tensor,
        size: int,
        observer: Observer = UNOBSERVED,
    ) -> Window:
        share = torch.sigmoid(self.centre(torch.tanh(self.hidden(query))))  # (B, T, 1)
        share = share.to(torch.promote_types(share.dtype, torch.float32))  # half precision cannot count past 256
        centre = (share.squeeze(-1) * lengths[:, None])[:, None]  # (B, 1, T)
        centre = observer.see("centre", centre.unsqueeze(-1)).squeeze(-1)
        distance = torch.arange(size, device=query.device) - centre[..., None]  # (B, 1, T, S)
        focus = torch.exp(-distance.square() / (2 * (self.reach / 2) ** 2))
        return Window(masks.window(centre.detach(), self.reach, size), focus.to(query.dtype))
