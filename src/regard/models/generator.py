"""Models that generate, and labellers: the few calls that search, training and explanations use.

    first, state = model.start(source)          # encode; the token that begins every output
    logits, state = model.step(first, state)    # one token further, for every row
    logits = model(source, target)              # all steps at once, the target given (teacher forcing)

A step is the parallel pass with T = 1: both are `Decoder.advance`, so that they cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from regard.nn import masks
from regard.nn.attention import Attention
from regard.nn.embeddings import OutputLayer, TargetEmbedding
from regard.nn.fast.dropout import Dropout
from regard.nn.layers import linear
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.recurrent import CellState
from regard.nn.state import State
from regard.text.vocabulary import START


@dataclass(frozen=True)
class Encoded:
    """A source after the encoder."""

    states: Tensor  # (B, S, D), one for each token, in the order of the source
    mask: Tensor  # (B, S)
    final: tuple[CellState, ...] | None = None  # a recurrent encoder's last states, one for each layer


class Encoder(Protocol):
    """Ids to states."""

    @property
    def width(self) -> int:
        """Of the states."""

    def __call__(self, source: Tensor, mask: Tensor, observer: Observer = UNOBSERVED) -> Encoded: ...


class Decoder(Protocol):
    """Reads target tokens, given a source, and computes features for each."""

    embedding: TargetEmbedding
    output: OutputLayer  # features to logits; separate, because it is most of the cost

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[Any, Any]:
        """The state before the first token."""

    def advance(
        self, tokens: Tensor, state: State[Any, Any], mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Read ``tokens`` (B, T), any number at once: features (B, T, D) and the state after the last."""


class FreeDecoder(Decoder, Protocol):
    """A decoder that also works without a source, as a language model."""

    def start_free(self, rows: int) -> State[Any, Any]:
        """The state of ``rows`` empty sequences."""


class Generator(nn.Module):
    """A model that writes one token after another: what all of them share."""

    first: ClassVar[int] = START  # the token that is read before the first one is written

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def advance(
        self, tokens: Tensor, state: State[Any, Any], mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Read ``tokens`` (B, T): features (B, T, D), and the state to go on from."""
        return self.decoder.advance(tokens, state, mask, observer.at("decoder"))

    def project(self, features: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        """Features (…, D) to logits (…, V)."""
        return observer.see("logits", self.decoder.output(features))

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Read one token a row, (B,): logits (B, V) for the next, and the state to go on from."""
        features, state = self.advance(tokens[:, None], state, observer=observer)
        return self.project(features, observer)[:, 0], state


# Sequence to sequence: an encoder reads the source, a decoder writes the target.


class EncoderDecoder(Generator):
    """``p(target | source) = Π p(y_t | y_<t, source)``, recurrent or Transformer alike.

    Where the target is of vectors, as in forecasts, its tokens are (B, T, 1 + F) and its logits what describes the
    distribution of the next.
    """

    task: ClassVar[Literal["translate"]] = "translate"

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__(decoder)
        self.encoder = encoder

    def encode(self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED) -> Encoded:
        """Read ``source`` (B, S), padded on the right; without a mask, padding is ``<pad>``.

        A sequence of vectors is (B, S, 1 + F): an id, which may be padding, and the numbers of each.
        """
        mask = masks.check(masks.padding(source) if mask is None else mask, source)
        return self.encoder(source, mask, observer.at("encoder"))

    def start(
        self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Encode; return each row's first token (B,) and the state before it is read."""
        encoded = self.encode(source, mask, observer)
        first = self.decoder.embedding.first(len(source), source.device)
        return first, self.decoder.start(encoded, observer.at("decoder"))

    def forward(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> Tensor:
        """Teacher forcing: logits (B, T, V) after each token of ``target`` (B, T), which begins with ``<start>``."""
        _, state = self.start(source, source_mask, observer)
        features, _ = self.advance(target, state, masks.padding(target), observer)
        return self.project(features, observer)


# Prediction of the next element: a decoder without a source.


class LanguageModel(Generator):
    """``p(text) = Π p(y_t | y_<t)``, recurrent or decoder-only Transformer."""

    decoder: FreeDecoder
    task: ClassVar[Literal["language"]] = "language"

    def start(self, rows: int) -> tuple[Tensor, State[Any, Any]]:
        """``rows`` empty sequences. A prompt is then read by `advance`."""
        device = next(self.parameters()).device
        return torch.full((rows,), self.first, device=device), self.decoder.start_free(rows)

    def forward(self, target: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        """Teacher forcing: logits (B, T, V) after each token of ``target`` (B, T), which begins with ``<start>``."""
        _, state = self.start(len(target))
        features, _ = self.advance(target, state, masks.padding(target), observer)
        return self.project(features, observer)


# Labels: one for each token (tagging, N → N) or one for the whole sequence (classification, N → 1).


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
    """A recurrent encoder's last state."""

    def forward(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> Tensor:  # noqa: ARG002
        assert encoded.final is not None
        return encoded.final[-1].hidden


class AttentionPool(nn.Module):
    """Attention of a learned query to the states; its weights show which words decided."""

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

    def __init__(self, encoder: Encoder, labels: int, *, pool: Pool | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = pool
        self.dropout = Dropout(dropout)
        self.head = linear(encoder.width, labels)

    def forward(self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED) -> Tensor:
        """``source`` (B, S) → logits over the labels, (B, S, C) or, pooled, (B, C).

        Each id may be followed by its letters, (B, S, 1 + L), or by the numbers of a vector.
        """
        mask = masks.check(masks.padding(source) if mask is None else mask, source)
        encoded = self.encoder(source, mask, observer.at("encoder"))
        features = encoded.states if self.pool is None else self.pool(encoded, observer)
        return observer.see("logits", self.head(self.dropout(features)))
