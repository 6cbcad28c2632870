"""Transformer encoder and decoder (Vaswani et al., 2017), used together or alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.generator import Encoded
from regard.nn.attention import Memory
from regard.nn.embeddings import Learned, OutputLayer, Sinusoidal, TargetEmbedding, Unplaced
from regard.nn.fast.dropout import Dropout
from regard.nn.layers import Chain, together
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State
from regard.nn.transformer import DecoderLayer, EncoderLayer, Norm, Past
from regard.nn.words import SourceEmbedding

Positions = Sinusoidal | Learned | Unplaced
Sources = tuple[Memory, ...]  # one for each layer; empty without a source
Pasts = tuple[Past, ...]  # one for each layer


def narrowed(x: Tensor) -> Tensor:
    """Under autocast, the features between the layers in the half type: every product rounds to it anyway, and the
    operations between products are limited by memory bandwidth."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


class _Layers(nn.Module):
    """Embeddings with positions, and layers."""

    def __init__(
        self,
        embedding: SourceEmbedding,
        positions: Positions,
        layers: Sequence[EncoderLayer | DecoderLayer],
        output: OutputLayer | None = None,
        *,
        embedding_norm: Norm | None = None,
        norm: Norm | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.layers: Chain[Any] = Chain(layers)
        if output is not None:
            self.output = output
        self.embedding_norm = embedding_norm
        self.norm = norm
        self.dropout = Dropout(dropout)

    def _enter(self, ids: Tensor, first: int, mask: Tensor | None, observer: Observer) -> Tensor:
        x = observer.see("embedded", self.embedding(ids))
        x = observer.see("placed", self.positions(x, first))
        x = x if self.embedding_norm is None else observer.see("normed", self.embedding_norm(x, mask))
        return self.dropout(narrowed(x))


class TransformerEncoder(_Layers):
    """Layers of self-attention."""

    layers: Chain[EncoderLayer]

    @property
    def width(self) -> int:
        return self.embedding.width

    def forward(self, source: Tensor, mask: Tensor, observer: Observer = UNOBSERVED) -> Encoded:
        x = self._enter(source, 0, mask, observer)
        for level, layer in enumerate(self.layers):
            x = layer(x, mask, observer.at(level))
        x = x if self.norm is None else self.norm(x, mask)
        return Encoded(observer.see("states", x), mask)


class TransformerDecoder(_Layers):
    """Layers of masked self-attention and cross-attention."""

    embedding: TargetEmbedding
    layers: Chain[DecoderLayer]

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[Sources, Pasts]:
        made = iter(together(encoded.states, *self.keys_and_values()))
        sources = []
        for level, layer in enumerate(self.layers):
            assert layer.cross is not None
            watch = observer.at(level).at("cross")
            sources.append(layer.cross.prepare(next(made), next(made), encoded.mask, observer=watch))
        return State(tuple(sources), self._pasts(len(encoded.states)), 0)

    def keys_and_values(self) -> list[nn.Linear]:
        """The maps that make keys and values of a source, for each layer in turn."""
        maps = [layer.cross.projections for layer in self.layers if layer.cross and layer.cross.projections]
        return [part for each in maps for part in (each.key, each.value)]

    def start_free(self, rows: int) -> State[Sources, Pasts]:
        return State((), self._pasts(rows), 0)

    def _pasts(self, rows: int) -> Pasts:
        return tuple(layer.start(rows, self.output.bias) for layer in self.layers)

    def advance(
        self, tokens: Tensor, state: State[Sources, Pasts], mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Sources, Pasts]]:
        x, pasts = self._enter(tokens, state.length, mask, observer), []
        for level, layer in enumerate(self.layers):
            source = state.source[level] if state.source else None
            x, past = layer(x, state.target[level], source, state.length, mask, observer.at(level))
            pasts.append(past)
        x = x if self.norm is None else self.norm(x, mask)
        return observer.see("features", x), State(state.source, tuple(pasts), state.length + tokens.shape[1])
