"""What generates: the few calls that search, training and looking inside know of a model.

    first, state = model.start(source)          # encode; the token that begins every output
    logits, state = model.step(first, state)    # one token further, for every row
    logits = model(source, target)              # all steps at once, the target given (teacher forcing)

A step *is* the parallel pass with T = 1: both are `Decoder.advance`, so that they cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from regard.nn.embeddings import OutputLayer
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.recurrent import CellState
from regard.nn.state import State


@dataclass(frozen=True)
class Encoded:
    """A source after the encoder."""

    states: Tensor  # (B, S, D), one a token, in the order of the source
    mask: Tensor  # (B, S)
    final: tuple[CellState, ...] | None = None  # a recurrent encoder's last states, one a layer


class Encoder(Protocol):
    """Ids to states."""

    @property
    def width(self) -> int:
        """Of the states."""

    def __call__(self, source: Tensor, mask: Tensor, observer: Observer = UNOBSERVED) -> Encoded: ...


class Decoder(Protocol):
    """Reads target tokens, given a source, and says what it makes of each."""

    output: OutputLayer

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[Any, Any]:
        """The state before the first token."""

    def advance(
        self,
        tokens: Tensor,
        state: State[Any, Any],
        mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, State[Any, Any]]:
        """Read ``tokens`` (B, T), any number at once: features (B, T, D) and the state after the last."""

    def project(self, features: Tensor) -> Tensor:
        """Features to logits over the vocabulary; separate, because most of the cost is here."""


class FreeDecoder(Decoder, Protocol):
    """A decoder that can also go without a source: the whole of a language model."""

    def start_free(self, rows: int) -> State[Any, Any]:
        """The state of ``rows`` empty sequences."""


class Generator(nn.Module):
    """A model that writes one token after another: the part all of them share."""

    def __init__(self, decoder: Decoder, first: int, pad: int) -> None:
        super().__init__()
        self.decoder = decoder
        self.first = first  # the token every output begins with, before it is written
        self.pad = pad

    def advance(
        self,
        tokens: Tensor,
        state: State[Any, Any],
        mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, State[Any, Any]]:
        """Read ``tokens`` (B, T): features (B, T, D), and the state to go on from."""
        return self.decoder.advance(tokens, state, mask, observer.at("decoder"))

    def project(self, features: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        """Features (…, D) to logits (…, V)."""
        return observer.see("logits", self.decoder.project(features))

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Read one token a row, (B,): logits (B, V) for the next, and the state to go on from."""
        features, state = self.advance(tokens[:, None], state, observer=observer)
        return self.project(features, observer)[:, 0], state
