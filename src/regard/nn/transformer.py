"""Transformer layers: attention and feed-forward, each inside a residual connection with a norm."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from regard.nn.attention import Attention, Memory
from regard.nn.cache import Cache
from regard.nn.chain import Chain
from regard.nn.fast.dropout import Dropout
from regard.nn.feed_forward import FeedForward, GatedFeedForward
from regard.nn.norms import BatchNorm, LayerNorm, RMSNorm
from regard.nn.observe import UNOBSERVED, Observer

Norm = LayerNorm | RMSNorm | BatchNorm


class Residual(nn.Module):
    """``norm(x + f(x))`` (after, as in the paper) or ``x + f(norm(x))`` (before: easier to train deep)."""

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
            return self.attention(x, self.attention.remember(x, mask, observer=watch), observer=watch)

        x = observer.see("attended", self.residuals[0](x, attend, mask))
        return observer.see("states", self.residuals[1](x, self.feed_forward, mask))


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention (where there is a source), then the feed-forward network."""

    def __init__(
        self,
        attention: Attention,
        cross: Attention | None,
        feed_forward: FeedForward | GatedFeedForward,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.residuals = Chain[Residual](residuals)

    def forward(
        self,
        x: Tensor,
        cache: Cache,
        source: Memory | None,
        mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, Cache]:
        """``x`` (B, T, D) stands at the T positions after those in ``cache``; the cache comes back longer."""
        first, longer = cache.length, cache
        watch = observer.at("self")

        def attend(x: Tensor) -> Tensor:
            nonlocal longer
            new = self.attention.remember(x, first=first, observer=watch)
            longer = cache.append(new.keys, new.values)
            return self.attention(x, Memory(*longer.view()), first=first, causal=True, observer=watch)

        x = observer.see("attended", self.residuals[0](x, attend, mask))
        if self.cross is not None and source is not None:
            x = observer.see("crossed", self.residuals[1](x, self._ask(source, first, observer), mask))
        return observer.see("states", self.residuals[-1](x, self.feed_forward, mask)), longer

    def _ask(self, source: Memory, first: int, observer: Observer) -> Callable[[Tensor], Tensor]:
        cross, watch = self.cross, observer.at("cross")
        assert cross is not None
        return lambda x: cross(x, source, first=first, observer=watch)
