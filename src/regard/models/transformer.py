"""Transformer encoder and decoder (Vaswani et al., 2017), to be joined or used alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.models.generator import Encoded
from regard.nn.attention import Memory
from regard.nn.cache import Cache
from regard.nn.chain import Chain
from regard.nn.embeddings import Embedding, OutputLayer
from regard.nn.fast.dropout import Dropout
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.positions import Learned, Sinusoidal, Unplaced
from regard.nn.state import State
from regard.nn.transformer import DecoderLayer, EncoderLayer, Norm
from regard.nn.words import WordEmbedding

Positions = Sinusoidal | Learned | Unplaced
Sources = tuple[Memory, ...]  # one a layer; empty without a source
Caches = tuple[Cache, ...]  # one a layer


def narrowed(x: Tensor) -> Tensor:
    """Under autocast, the stream between the layers in the half type: every product rounds to it anyway, and what
    stands between two products is bound by how much memory moves."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x


class TransformerEncoder(nn.Module):
    """Embeddings with positions, through layers of self-attention."""

    def __init__(
        self,
        embedding: Embedding | WordEmbedding,
        positions: Positions,
        layers: list[EncoderLayer],
        *,
        norm: Norm | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.layers = Chain[EncoderLayer](layers)
        self.norm = norm
        self.dropout = Dropout(dropout)

    @property
    def width(self) -> int:
        return self.embedding.width

    def forward(self, source: Tensor, mask: Tensor, observer: Observer = UNOBSERVED) -> Encoded:
        x = observer.see("embedded", self.embedding(source))
        x = self.dropout(narrowed(observer.see("placed", self.positions(x))))
        for level, layer in enumerate(self.layers):
            x = layer(x, mask, observer.at(level))
        x = x if self.norm is None else self.norm(x, mask)
        return Encoded(observer.see("states", x), mask)


class TransformerDecoder(nn.Module):
    """Embeddings with positions, through layers of masked self-attention and cross-attention."""

    def __init__(
        self,
        embedding: Embedding,
        positions: Positions,
        layers: list[DecoderLayer],
        output: OutputLayer,
        *,
        norm: Norm | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.layers = Chain[DecoderLayer](layers)
        self.output = output
        self.norm = norm
        self.dropout = Dropout(dropout)

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[Sources, Caches]:
        sources = []
        for level, layer in enumerate(self.layers):
            assert layer.cross is not None
            watch = observer.at(level).at("cross")
            sources.append(layer.cross.remember(encoded.states, encoded.mask, observer=watch))
        return State(tuple(sources), tuple(Cache() for _ in self.layers), 0)

    def start_free(self, rows: int) -> State[Sources, Caches]:  # noqa: ARG002
        return State((), tuple(Cache() for _ in self.layers), 0)

    def advance(
        self,
        tokens: Tensor,
        state: State[Sources, Caches],
        mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, State[Sources, Caches]]:
        x = observer.see("embedded", self.embedding(tokens))
        x = self.dropout(narrowed(observer.see("placed", self.positions(x, state.length))))
        caches = []
        for level, layer in enumerate(self.layers):
            source = state.source[level] if state.source else None
            x, cache = layer(x, state.target[level], source, mask, observer.at(level))
            caches.append(cache)
        x = x if self.norm is None else self.norm(x, mask)
        return observer.see("features", x), State(state.source, tuple(caches), state.length + tokens.shape[1])

    def project(self, features: Tensor) -> Tensor:
        return self.output(features)
