"""The simpler simple recurrent unit (SSRU): what a decoder has written, in one vector (Kim et al., 2019).

    f_t = σ(W_f x_t + b_f)
    c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ W x_t
    h_t = ReLU(c_t)

Nothing but c goes from step to step, and no product with a matrix waits for it: a step costs the same however much is
written, and a whole sequence is one scan. Under an observer the steps are written out, one by one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.nn.fast.scan import scan
from regard.nn.linear import linear
from regard.nn.observe import UNOBSERVED, Observer


class SSRU(nn.Module):
    """One recurrence; its state (B, D) begins with zeros."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.candidate = linear(width, width, bias=False)
        self.forget = linear(width, width)

    def forward(self, x: Tensor, state: Tensor, observer: Observer = UNOBSERVED) -> tuple[Tensor, Tensor]:
        """``x`` (B, T, D) after ``state``: what each step makes of it (B, T, D), and the state after the last."""
        forget = observer.see("forget", torch.sigmoid(self.forget(x)))
        candidate = observer.see("candidate", self.candidate(x))
        if not observer.active:
            cells = scan(forget, (1 - forget) * candidate, state)
            return cells.relu(), cells[:, -1]
        hidden = []
        for time in range(x.shape[1]):
            now = forget[:, time]
            state = now * state + (1 - now) * candidate[:, time]
            state = observer.see("cell", state[:, None])[:, 0]
            hidden.append(observer.see("hidden", state[:, None].relu()))
        return torch.cat(hidden, 1), state
