"""A Transformer laid out for writing one token at a time on a CPU. `EncoderDecoder` is its written-out twin.

A step of a small model is many small operations, whose overhead costs more than their arithmetic. Here a layer computes
queries, keys and values in one product, weights are stored transposed, the keys and values of all layers of a source
are one tensor, and a step writes into memory that is allocated already. The numbers are the same up to rounding:
`tests/parity/test_fused.py` binds the two.

Unlike other states, a state is overwritten by the step or the selection that follows it: search never goes back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.generator import EncoderDecoder
from regard.models.transformer import Positions, TransformerDecoder, TransformerEncoder
from regard.nn import masks
from regard.nn.attention import Attention, InnerScore, Memory, Projections
from regard.nn.embeddings import Embedding, Learned, Sinusoidal
from regard.nn.layers import FeedForward, GatedFeedForward, LayerNorm, side_by_side
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State
from regard.nn.transformer import SSRU, DecoderLayer, EncoderLayer, Residual
from regard.nn.words import WordEmbedding

Map = Callable[[Tensor], Tensor]
ROOM = 32  # positions to make room for at first


@dataclass(frozen=True)
class Source:
    """What all layers remember of the sources."""

    joint: Tensor  # (B, S, L, 2, D) keys and values
    mask: Tensor | None  # (B, 1, 1, S): 0 on real tokens, -inf on padding; None where there is none
    heads: int

    @cached_property
    def layers(self) -> list[Memory]:
        """The same for each layer, keys and values (B, H, S, K), without a copy."""
        rows, size, depth, _, width = self.joint.shape
        apart = self.joint.view(rows, size, depth, 2, self.heads, width // self.heads).permute(2, 3, 0, 4, 1, 5)
        return [Memory(keys, values, self.mask) for keys, values in apart]

    def select_rows(self, rows: Tensor) -> Source:
        mask = None if self.mask is None else self.mask.index_select(0, rows)
        return Source(self.joint.index_select(0, rows), mask, self.heads)


class LayerCache:
    """The past of one layer, (R, capacity, 3 · D): queries, keys and values side by side, written by one product.

    Queries of the past are never read.
    """

    def __init__(self, flat: Tensor, heads: int) -> None:
        rows, capacity, width = flat.shape
        self.flat = flat
        apart = flat.view(rows, capacity, 3, heads, width // (3 * heads))
        self.queries, self.keys, self.values = apart.permute(2, 0, 3, 1, 4)  # (R, H, capacity, K)

    def first(self, count: int, heads: int) -> LayerCache:
        return self if len(self.flat) == count else LayerCache(self.flat[:count], heads)


class DecoderCache:
    """The cache of each layer, and a spare of each to copy rows into."""

    def __init__(
        self, pages: list[LayerCache], heads: int, spare: list[LayerCache] | None = None, length: int = 0
    ) -> None:
        self.pages = pages
        self.heads = heads
        self.spare = spare
        self.length = length

    @staticmethod
    def of(like: Tensor, shape: tuple[int, int, int], depth: int, heads: int) -> DecoderCache:
        """Empty, for (R, capacity, 3 · D)."""
        return DecoderCache([LayerCache(like.new_empty(shape), heads) for _ in range(depth)], heads)

    def select_rows(self, rows: Tensor) -> DecoderCache:
        """These rows, copied into the spare; the present pages become the next spare."""
        count, taken, flat = len(rows), self.length, self.pages[0].flat
        shape = (count, flat.shape[1], flat.shape[2])
        if not taken:
            return DecoderCache.of(flat, shape, len(self.pages), self.heads)
        spare = self.spare
        if spare is None or spare[0].flat.shape[1] < shape[1] or len(spare[0].flat) < count:
            spare = DecoderCache.of(flat, shape, len(self.pages), self.heads).pages
        moved = [each.first(count, self.heads) for each in spare]
        used = slice(shape[2] // 3, None)  # not the queries
        for old, new in zip(self.pages, moved, strict=True):
            torch.index_select(old.flat[:, :taken, used], 0, rows, out=new.flat[:, :taken, used])
        return DecoderCache(moved, self.heads, self.pages, taken)

    def grown(self) -> DecoderCache:
        """With capacity for at least one position more."""
        rows, capacity, width = self.pages[0].flat.shape
        if self.length < capacity:
            return self
        wider = DecoderCache.of(self.pages[0].flat, (rows, 2 * capacity, width), len(self.pages), self.heads)
        for old, new in zip(self.pages, wider.pages, strict=True):
            new.flat[:, :capacity] = old.flat
        return DecoderCache(wider.pages, self.heads, None, self.length)


class Fused:
    """Starts and steps as its model does, if it `fits`."""

    def __init__(self, model: EncoderDecoder) -> None:
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.model = model
        self.decoder = decoder
        self.encoder = _Encoder(model.encoder) if _Encoder.fits(model.encoder) else None
        self.norm = _norm(decoder.norm)
        self.embedding_norm = _norm(decoder.embedding_norm)
        self.layers = [_Layer(layer) for layer in decoder.layers]
        self.remember = _joined(*decoder.keys_and_values())
        assert isinstance(decoder.embedding, Embedding)  # a search writes words
        self.words, self.scale = _words(decoder.embedding), decoder.embedding.scale
        self.places = _places(decoder.positions)
        self.output = _transposed(decoder.output.weight, decoder.output.bias)

    @staticmethod
    def fits(model: EncoderDecoder) -> bool:
        """Whether its decoder is a Transformer on a CPU whose attention torch's kernel computes; layers may have a
        recurrence in place of self-attention."""
        decoder = model.decoder
        if not isinstance(decoder, TransformerDecoder) or decoder.output.weight.device.type != "cpu":
            return False
        attentions = [layer.cross for layer in decoder.layers]
        attentions += [layer.attention for layer in decoder.layers if layer.recurrence is None]
        return all(each is not None and each.plain for each in attentions)

    @torch.no_grad()
    def start(self, source: Tensor) -> tuple[Tensor, State[Source, Any]]:
        """As `EncoderDecoder.start`."""
        rows, size = source.shape[:2]
        real = masks.check(masks.padding(source), source)
        states, mask = self._encode(source, real)
        joint = self.remember(states).view(rows, size, len(self.layers), 2, -1)
        heads, width = self.layers[0].heads, joint.shape[-1]
        past: DecoderCache | tuple[Tensor, ...] = tuple(joint.new_zeros(rows, width) for _ in self.layers)
        if self.layers[0].recurrence is None:
            past = DecoderCache.of(joint, (rows, ROOM, 3 * width), len(self.layers), heads)
        return torch.full((rows,), self.model.first), State(Source(joint, mask, heads), past, 0)

    def _encode(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """States (B · S, D) and what to add to scores (B, 1, 1, S); None where nothing is padding."""
        width = self.decoder.embedding.width
        added = None
        if not bool(mask.all()):
            added = torch.zeros(mask.shape, dtype=self.decoder.output.weight.dtype)
            added = added.masked_fill_(~mask, -torch.inf)[:, None, None]
        if self.encoder is None:
            return self.model.encode(source, mask).states.reshape(-1, width), added
        return self.encoder(source, mask, added), added

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """One token a row (B · W,): logits (B · W, V)."""
        assert not observer.active, "nothing inside can be seen here; ask the model itself"
        if not torch.is_grad_enabled():  # as in a search; entering another mode at each step takes time
            return self._step(tokens, state)
        with torch.no_grad():
            return self._step(tokens, state)

    def _step(self, tokens: Tensor, state: State[Any, Any]) -> tuple[Tensor, State[Any, Any]]:
        source, past, place = state.source, state.target, state.length
        x = self._placed(tokens, place)
        if isinstance(past, DecoderCache):
            past = past.grown()
            for layer, page, memory in zip(self.layers, past.pages, source.layers, strict=True):
                x = layer(x, layer.attend, page, place, memory)
            past = DecoderCache(past.pages, past.heads, past.spare, place + 1)
        else:
            for layer, cell, memory in zip(self.layers, past, source.layers, strict=True):
                x = layer(x, layer.recur, cell, place, memory)
        x = x if self.norm is None else self.norm(x)
        weight, bias = self.output
        return torch.addmm(bias, x, weight), State(source, past, place + 1)

    def _placed(self, tokens: Tensor, place: int) -> Tensor:
        """``scale · E[token] + position`` (R, D), a fresh tensor: layers write into it."""
        rows, scale = torch.embedding(self.words, tokens), self.scale
        if place < len(self.places):
            x = torch.add(self.places[place], rows, alpha=scale)
        else:
            x = self.decoder.positions(rows.mul_(scale)[:, None], place)[:, 0]
        return x if self.embedding_norm is None else self.embedding_norm(x)


class _Encoder:
    """A Transformer encoder that computes nothing for padding, except in attention."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        self.encoder = encoder
        self.layers = [_EncoderLayer(layer) for layer in encoder.layers]
        self.norm = _norm(encoder.norm)
        self.embedding_norm = _norm(encoder.embedding_norm)

    @staticmethod
    def fits(encoder: object) -> TypeGuard[TransformerEncoder]:
        if not isinstance(encoder, TransformerEncoder) or isinstance(encoder.embedding, WordEmbedding):
            return False
        return all(layer.attention.plain for layer in encoder.layers)

    def __call__(self, source: Tensor, mask: Tensor, added: Tensor | None) -> Tensor:
        """(B, S) → (B · S, D), zero on padding."""
        x = self.encoder.positions(self.encoder.embedding(source))
        shape, x = x.shape, x.reshape(-1, x.shape[2])
        real = None if added is None else mask.flatten().nonzero().squeeze(1)  # (N,)
        x = x if real is None else x[real]
        x = x if self.embedding_norm is None else self.embedding_norm(x)
        for layer in self.layers:
            x = layer(x, shape, real, added)
        return _spread(x if self.norm is None else self.norm(x), shape[0] * shape[1], real)


class _EncoderLayer:
    def __init__(self, layer: EncoderLayer) -> None:
        own = maps_of(layer.attention)
        self.heads, self.scale, self.rotary = layer.attention.heads, _scale(layer.attention), layer.attention.rotary
        self.ask, self.feed_forward = _joined(own.query, own.key, own.value), _feed_forward(layer.feed_forward)
        first, second = layer.residuals
        self.first, self.second = _Block(first, own.output), _Block(second, layer.feed_forward.contract)

    def __call__(self, x: Tensor, shape: torch.Size, real: Tensor | None, added: Tensor | None) -> Tensor:
        """``x`` (N, D), the real tokens of ``shape`` (B, S, D); written into."""
        x = self.first.add(x, self._attend(self.first.read(x), shape, real, added))
        return self.second.add(x, self.feed_forward(self.second.read(x)))

    def _attend(self, x: Tensor, shape: torch.Size, real: Tensor | None, added: Tensor | None) -> Tensor:
        rows, size, _ = shape
        asked = _spread(self.ask(x), rows * size, real).view(rows, size, 3, self.heads, -1)
        query, keys, values = asked.permute(2, 0, 3, 1, 4)  # (B, H, S, K)
        if self.rotary is not None:
            query, keys = self.rotary(query), self.rotary(keys)
        contexts = F.scaled_dot_product_attention(query, keys, values, attn_mask=added, scale=self.scale)
        contexts = contexts.transpose(1, 2).reshape(rows * size, -1)
        return contexts if real is None else contexts[real]


def _spread(x: Tensor, count: int, real: Tensor | None) -> Tensor:
    """The rows of ``x`` at the places ``real`` of ``count``, and zeros at the others."""
    return x if real is None else x.new_zeros(count, x.shape[1]).index_copy_(0, real, x)


class _Layer:
    """One decoder layer, for one token a row."""

    def __init__(self, layer: DecoderLayer) -> None:
        cross = layer.cross
        assert cross is not None
        self.heads, self.source_scale = cross.heads, _scale(cross)
        self.recurrence = layer.recurrence
        output: nn.Linear | None = None
        if layer.recurrence is not None:
            self.ask = _gate_and_candidate(layer.recurrence)
        else:
            assert layer.attention is not None
            own = maps_of(layer.attention)
            self.rotary, self.scale, output = layer.attention.rotary, _scale(layer.attention), own.output
            self.ask = _transposed(*side_by_side(own.query, own.key, own.value))
        self.ask_source = _linear(maps_of(cross).query)
        self.feed_forward = _feed_forward(layer.feed_forward)
        last = output, maps_of(cross).output, layer.feed_forward.contract
        self.first, self.second, self.third = map(_Block, layer.residuals, last)

    def __call__(self, x: Tensor, own: Callable[..., Tensor], past: Any, place: int, source: Memory) -> Tensor:
        """``x`` (R, D) is written into. ``own`` is `attend` or `recur`, and ``past`` what that goes on from."""
        x = self.first.add(x, own(self.first.read(x), past, place))
        x = self.second.add(x, self._source(self.second.read(x), source))
        return self.third.add(x, self.feed_forward(self.third.read(x)))

    def recur(self, x: Tensor, cell: Tensor, place: int) -> Tensor:  # noqa: ARG002
        """The output of an SSRU for ``x``; its state, ``cell`` (R, D), is overwritten."""
        weight, bias = self.ask
        forget, candidate = torch.addmm(bias, x, weight).chunk(2, -1)
        return torch.lerp(candidate, cell, forget.sigmoid_(), out=cell).relu()

    def attend(self, x: Tensor, page: LayerCache, place: int) -> Tensor:
        weight, bias = self.ask
        torch.addmm(bias, x, weight, out=page.flat.select(1, place))
        query = page.queries.narrow(2, place, 1)  # (R, H, 1, K)
        if self.rotary is not None:
            query = self.rotary(query, place)
            new = page.keys.narrow(2, place, 1)
            new.copy_(self.rotary(new, place))
        keys, values = page.keys.narrow(2, 0, place + 1), page.values.narrow(2, 0, place + 1)
        return F.scaled_dot_product_attention(query, keys, values, scale=self.scale).reshape(x.shape)

    def _source(self, x: Tensor, source: Memory) -> Tensor:
        keys, values = source.keys, source.values
        query = self.ask_source(x).view(keys.shape[0], -1, self.heads, keys.shape[3]).transpose(1, 2)  # (B, H, W, K)
        contexts = F.scaled_dot_product_attention(query, keys, values, attn_mask=source.mask, scale=self.source_scale)
        return contexts.transpose(1, 2).reshape(x.shape)


class _Block:
    """A residual block, ``x + W inner + b`` with its norm before or after, that writes into ``x``."""

    def __init__(self, residual: Residual, last: nn.Linear | None) -> None:
        norm = _norm(residual.norm)
        assert norm is not None
        self.norm, self.before = norm, residual.before
        self.weight = None if last is None else last.weight.detach().T.contiguous()
        self.bias = None if last is None or last.bias is None else last.bias.detach()

    def read(self, x: Tensor) -> Tensor:
        """The block's input."""
        return self.norm(x) if self.before else x

    def add(self, x: Tensor, inner: Tensor) -> Tensor:
        """The block's output, from the input of its last linear map, where it has one."""
        x = x if self.bias is None else x.add_(self.bias)
        x = x.add_(inner) if self.weight is None else x.addmm_(inner, self.weight)
        return x if self.before else self.norm(x)


def _scale(attention: Attention) -> float:
    assert isinstance(attention.score, InnerScore)
    return attention.score.scale


def maps_of(attention: Attention | None) -> Projections:
    """The projections of an attention, which every attention in a Transformer has."""
    assert attention is not None
    assert attention.projections is not None
    return attention.projections


def _words(embedding: Embedding) -> Tensor:
    """The table (V, D), with zeros for the id that is read as zeros."""
    table = embedding.weight.detach()
    return table if embedding.zero is None else table.index_fill(0, torch.tensor([embedding.zero]), 0.0)


def _gate_and_candidate(ssru: SSRU) -> tuple[Tensor, Tensor]:
    """W_f and W side by side, and b_f with zeros for W, which has no bias."""
    weight, bias = torch.cat((ssru.forget.weight, ssru.candidate.weight)), ssru.forget.bias.detach()
    return _transposed(weight, torch.cat((bias, torch.zeros_like(bias))))


def _places(positions: Positions) -> Tensor:
    """Positions that are a table to be added; an empty one for all other kinds."""
    if isinstance(positions, Sinusoidal):
        return positions.table
    return positions.weight.detach() if isinstance(positions, Learned) else torch.empty(0)


def _transposed(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """W transposed in memory: for few rows the product is then up to twice as fast."""
    return weight.detach().T.contiguous(), bias.detach()


def _map(weight: Tensor, bias: Tensor | None) -> Map:
    """``W x + b``"""
    if bias is None:
        alone = weight.detach().T.contiguous()
        return lambda x: torch.mm(x, alone)
    transposed, shift = _transposed(weight, bias)
    return lambda x: torch.addmm(shift, x, transposed)


def _linear(linear: nn.Linear) -> Map:
    return _map(linear.weight, linear.bias)


def _joined(*linears: nn.Linear) -> Map:
    return _map(*side_by_side(*linears))


def _feed_forward(ours: FeedForward | GatedFeedForward) -> Map:
    """A feed-forward network up to its last linear map."""
    expand = _linear(ours.expand)
    if isinstance(ours, GatedFeedForward):
        gate = _linear(ours.gate)
        return lambda x: F.silu(gate(x)).mul_(expand(x))
    if ours.activation is F.relu:
        return lambda x: expand(x).relu_()
    activation = ours.activation
    return lambda x: activation(expand(x))


def _norm(norm: nn.Module | None) -> Map | None:
    if not isinstance(norm, LayerNorm):
        return norm
    shape, gain, shift, epsilon = norm.gain.shape, norm.gain.detach(), norm.shift.detach(), norm.epsilon
    return lambda x: torch.layer_norm(x, shape, gain, shift, epsilon, False)  # noqa: FBT003
