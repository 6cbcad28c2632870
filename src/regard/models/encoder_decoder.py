"""Sequence to sequence: an encoder reads the source, a decoder writes the target."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor

from regard.models.generator import Decoder, Encoded, Encoder, Generator
from regard.nn import masks
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State
from regard.text.special import PAD, START


class EncoderDecoder(Generator):
    """``p(target | source) = Π p(y_t | y_<t, source)``, recurrent or Transformer alike."""

    task: ClassVar[Literal["translate"]] = "translate"

    def __init__(self, encoder: Encoder, decoder: Decoder, *, first: int = START, pad: int = PAD) -> None:
        super().__init__(decoder, first, pad)
        self.encoder = encoder

    def encode(self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED) -> Encoded:
        """Read ``source`` (B, S), padded on the right; without a mask, ``<pad>`` says what is padding."""
        mask = masks.check(masks.padding(source, self.pad) if mask is None else mask, source)
        return self.encoder(source, mask, observer.at("encoder"))

    def start(
        self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Encode; return each row's first token (B,) and the state before it is read."""
        encoded = self.encode(source, mask, observer)
        first = source.new_full((len(source),), self.first)
        return first, self.decoder.start(encoded, observer.at("decoder"))

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
    ) -> Tensor:
        """Teacher forcing: logits (B, T, V) after each token of ``target`` (B, T), which begins with ``<start>``."""
        _, state = self.start(source, source_mask, observer)
        features, _ = self.advance(target, state, masks.padding(target, self.pad), observer)
        return self.project(features, observer)
