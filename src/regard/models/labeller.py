"""Labels: one for each token (tagging, N → N) or one for the whole sequence (classification, N → 1)."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.models.generator import Encoded, Encoder
from regard.nn import masks
from regard.nn.attention import Attention
from regard.nn.fast.dropout import Dropout
from regard.nn.linear import linear
from regard.nn.observe import UNOBSERVED, Observer
from regard.text.special import PAD


class MeanPool(nn.Module):
    """The average state of the real tokens."""

    def forward(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> Tensor:  # noqa: ARG002
        real = encoded.mask.unsqueeze(-1).to(encoded.states.dtype)
        return (encoded.states * real).sum(1) / real.sum(1)


class MaxPool(nn.Module):
    """Each feature's largest value over the real tokens."""

    def forward(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> Tensor:  # noqa: ARG002
        return encoded.states.masked_fill(~encoded.mask.unsqueeze(-1), -float("inf")).amax(1)


class FinalPool(nn.Module):
    """A recurrent encoder's last state: all it has kept of the sequence."""

    def forward(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> Tensor:  # noqa: ARG002
        assert encoded.final is not None
        return encoded.final[-1].hidden


class AttentionPool(nn.Module):
    """A learned question asked of the states; its weights show which words decided."""

    def __init__(self, attention: Attention, width: int) -> None:
        super().__init__()
        self.attention = attention
        self.question = nn.Parameter(torch.empty(width))
        nn.init.normal_(self.question, std=width**-0.5)

    def forward(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> Tensor:
        watch = observer.at("pool")
        memory = self.attention.remember(encoded.states, encoded.mask, observer=watch)
        question = self.question.expand(len(encoded.states), 1, -1)  # (B, 1, D)
        return self.attention(question, memory, observer=watch)[:, 0]


Pool = MeanPool | MaxPool | FinalPool | AttentionPool


class Labeller(nn.Module):
    """An encoder and a linear head, over each state or, with a pool, over all of them at once."""

    task: ClassVar[Literal["label"]] = "label"

    def __init__(
        self, encoder: Encoder, labels: int, *, pool: Pool | None = None, dropout: float = 0.0, pad: int = PAD
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = pool
        self.dropout = Dropout(dropout)
        self.head = linear(encoder.width, labels)
        self.pad = pad

    def forward(self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED) -> Tensor:
        """``source`` (B, S) → logits over the labels, (B, S, C) or, pooled, (B, C).

        Each id may be followed by the letters it is written in, (B, S, 1 + L), for encoders that read them.
        """
        ids = source if source.dim() == 2 else source[..., 0]
        mask = masks.check(masks.padding(ids, self.pad) if mask is None else mask, ids)
        encoded = self.encoder(source, mask, observer.at("encoder"))
        features = encoded.states if self.pool is None else self.pool(encoded, observer)
        return observer.see("logits", self.head(self.dropout(features)))
