"""Transformer layers: attention and feed-forward, each inside a residual connection with a norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.nn.attention import Attention, Memory
from regard.nn.fast.dropout import Dropout
from regard.nn.fast.scan import scan
from regard.nn.layers import BatchNorm, Chain, FeedForward, GatedFeedForward, LayerNorm, RMSNorm, linear
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import Cache


class SSRU(nn.Module):
    """The simpler simple recurrent unit: the target so far as one vector (Kim et al., 2019).

        f_t = σ(W_f x_t + b_f)
        c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ W x_t
        h_t = ReLU(c_t)

    Only c depends on the step before, and no product with a matrix depends on c: a step has the same cost at every
    length, and a whole sequence is one scan. With an observer the steps are written out. The state (B, D) begins with
    zeros.
    """

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


Norm = LayerNorm | RMSNorm | BatchNorm
Past = Cache | Tensor  # what a decoder layer keeps of earlier tokens: their keys and values, or an SSRU's (B, D)


class Residual(nn.Module):
    """``norm(x + f(x))`` (after, as in the paper) or ``x + f(norm(x))`` (before: deep models train more easily)."""

    def __init__(self, norm: Norm, *, before: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.before = before
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], mask: Tensor | None = None) -> Tensor:
        if self.before:
            return x + self.dropout(sublayer(self.norm(x, mask)))
        return self.norm(x + self.dropout(sublayer(x)), mask)


class EncoderLayer(nn.Module):
    """Self-attention over the sentence, then the feed-forward network at each position."""

    def __init__(
        self, attention: Attention, feed_forward: FeedForward | GatedFeedForward, residuals: list[Residual]
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.residuals = Chain[Residual](residuals)

    def forward(self, x: Tensor, mask: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        watch = observer.at("self")

        def attend(x: Tensor) -> Tensor:
            memory = self.attention.remember(x, mask, asks=True, observer=watch)
            return self.attention(x, memory, observer=watch)

        x = observer.see("attended", self.residuals[0](x, attend, mask))
        return observer.see("states", self.residuals[1](x, self.feed_forward, mask))


class DecoderLayer(nn.Module):
    """Masked self-attention or a recurrence, cross-attention (if there is a source), then the feed-forward network."""

    def __init__(
        self,
        own: Attention | SSRU,
        cross: Attention | None,
        feed_forward: FeedForward | GatedFeedForward,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.attention = own if isinstance(own, Attention) else None
        self.recurrence = own if isinstance(own, SSRU) else None
        self.cross = cross
        self.feed_forward = feed_forward
        self.residuals = Chain[Residual](residuals)

    def start(self, rows: int, like: Tensor) -> Past:
        """Before the first token."""
        return Cache() if self.recurrence is None else like.new_zeros(rows, self.recurrence.forget.in_features)

    def forward(  # noqa: PLR0917
        self,
        x: Tensor,
        past: Past,
        source: Memory | None,
        first: int,
        mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, Past]:
        """``x`` (B, T, D) has the T positions from ``first``, after those of ``past``; also returns the longer past."""
        longer = past

        def look_back(x: Tensor) -> Tensor:
            nonlocal longer
            contexts, longer = self._look_back(x, past, first, observer)
            return contexts

        x = observer.see("attended", self.residuals[0](x, look_back, mask))
        if self.cross is not None and source is not None:
            x = observer.see("crossed", self.residuals[1](x, self._ask(source, first, observer), mask))
        return observer.see("states", self.residuals[-1](x, self.feed_forward, mask)), longer

    def _look_back(self, x: Tensor, past: Past, first: int, observer: Observer) -> tuple[Tensor, Past]:
        if self.recurrence is not None:
            assert isinstance(past, Tensor)
            return self.recurrence(x, past, observer.at("cell"))
        assert self.attention is not None
        assert isinstance(past, Cache)
        watch = observer.at("self")
        new = self.attention.remember(x, first=first, asks=True, observer=watch)
        longer = past.append(new.keys, new.values)
        memory = Memory(*longer.view(), asked=new.asked)
        if torch.compiler.is_compiling():  # for training, where nothing follows: else zeros are made as its gradient
            longer = Cache().append(*(part.detach() for part in longer.view()))
        return self.attention(x, memory, first=first, causal=True, observer=watch), longer

    def _ask(self, source: Memory, first: int, observer: Observer) -> Callable[[Tensor], Tensor]:
        cross, watch = self.cross, observer.at("cross")
        assert cross is not None
        return lambda x: cross(x, source, first=first, observer=watch)
