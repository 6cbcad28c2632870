"""Prediction of the next element: a decoder without a source."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from regard.models.generator import FreeDecoder, Generator
from regard.nn import masks
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State
from regard.text.special import PAD, START


class LanguageModel(Generator):
    """``p(text) = Π p(y_t | y_<t)``, recurrent or decoder-only Transformer."""

    decoder: FreeDecoder
    task: ClassVar[Literal["language"]] = "language"

    def __init__(self, decoder: FreeDecoder, *, first: int = START, pad: int = PAD) -> None:
        super().__init__(decoder, first, pad)

    def start(self, rows: int) -> tuple[Tensor, State[Any, Any]]:
        """``rows`` empty sequences. A prompt is what one then lets `advance` read."""
        device = next(self.parameters()).device
        return torch.full((rows,), self.first, device=device), self.decoder.start_free(rows)

    def forward(self, target: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        """Teacher forcing: logits (B, T, V) after each token of ``target`` (B, T), which begins with ``<start>``."""
        _, state = self.start(len(target))
        features, _ = self.advance(target, state, masks.padding(target, self.pad), observer)
        return self.project(features, observer)
