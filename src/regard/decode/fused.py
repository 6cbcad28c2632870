"""A Transformer laid out for writing one token at a time on a CPU. `EncoderDecoder` is its written-out twin.

A step of a small model is many small operations, and most of their price is not arithmetic. Here a layer asks for
queries, keys and values in one product, weights lie as the product reads them, the keys and values of all layers of
a source are one tensor, and a step writes into memory that is there already. The numbers are the same up to
rounding: `tests/parity/test_fused.py` binds the two.

Unlike other states, one of these is spent by the step or the selection that follows it: search never looks back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.encoder_decoder import EncoderDecoder
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn import masks
from regard.nn.attention import Attention
from regard.nn.feed_forward import FeedForward, GatedFeedForward
from regard.nn.norms import LayerNorm
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.scores import InnerScore
from regard.nn.state import State
from regard.nn.transformer import DecoderLayer, EncoderLayer, Residual
from regard.nn.words import WordEmbedding

Map = Callable[[Tensor], Tensor]
ROOM = 32  # positions to make room for at first


@dataclass(frozen=True)
class Source:
    """What all layers remember of the sources."""

    joint: Tensor  # (B, S, L, 2, D) keys and values
    mask: Tensor | None  # (B, 1, 1, S): 0 on real tokens, -inf on padding; None where there is none


class Room:
    """Keys and values written so far, a tensor (R, capacity, 2, D) for each layer, and a spare to move rows into."""

    def __init__(self, layers: list[Tensor], spare: list[Tensor] | None = None, length: int = 0) -> None:
        self.layers = layers
        self.spare = spare
        self.length = length

    def select_rows(self, rows: Tensor) -> Room:
        """These rows, moved into the spare; what is here becomes the next spare."""
        count, taken = len(rows), self.length
        if not taken:
            return Room([layer.new_empty(count, *layer.shape[1:]) for layer in self.layers])
        spare = self.spare
        if spare is None or spare[0].shape[1] < self.layers[0].shape[1] or len(spare[0]) < count:
            spare = [layer.new_empty(count, *layer.shape[1:]) for layer in self.layers]
        moved = [each[:count] for each in spare]
        for old, new in zip(self.layers, moved, strict=True):
            torch.index_select(old[:, :taken], 0, rows, out=new[:, :taken])
        return Room(moved, self.layers, taken)

    def grown(self) -> Room:
        """With room for at least one position more."""
        if self.length < self.layers[0].shape[1]:
            return self
        wider = []
        for layer in self.layers:
            new = layer.new_empty(len(layer), 2 * layer.shape[1], *layer.shape[2:])
            new[:, : self.length] = layer[:, : self.length]
            wider.append(new)
        return Room(wider, None, self.length)


class Fused:
    """Starts and steps as its model does; see `fits`."""

    def __init__(self, model: EncoderDecoder) -> None:
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.model = model
        self.decoder = decoder
        self.encoder = _Encoder(model.encoder) if _Encoder.fits(model.encoder) else None
        self.norm = None if decoder.norm is None else _norm(decoder.norm)
        self.layers = [_Layer(layer) for layer in decoder.layers]
        crosses = [layer.cross for layer in decoder.layers]
        self.remember = _joined(*(part for cross in crosses for part in _keys_and_values(cross)))
        self.output = _map(decoder.output.weight, decoder.output.bias)

    @staticmethod
    def fits(model: nn.Module) -> TypeGuard[EncoderDecoder]:
        """Whether it is a Transformer on a CPU, all of whose decoder torch's attention kernel computes."""
        if not isinstance(model, EncoderDecoder) or not isinstance(model.decoder, TransformerDecoder):
            return False
        attentions = [each for layer in model.decoder.layers for each in (layer.attention, layer.cross)]
        on_cpu = model.decoder.output.weight.device.type == "cpu"
        return on_cpu and all(each is not None and each.plain for each in attentions)

    @torch.no_grad()
    def start(self, source: Tensor) -> tuple[Tensor, State[Source, Room]]:
        """As `EncoderDecoder.start`."""
        rows, size = source.shape
        real = masks.check(masks.padding(source, self.model.pad), source)
        states, mask = self._encode(source, real)
        joint = self.remember(states).view(rows, size, len(self.layers), 2, -1)
        room = [joint.new_empty(rows, ROOM, 2, joint.shape[-1]) for _ in self.layers]
        return source.new_full((rows,), self.model.first), State(Source(joint, mask), Room(room), 0)

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

    @torch.no_grad()
    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """One token a row (B · W,): logits (B · W, V)."""
        assert not observer.active, "nothing inside can be seen here; ask the model itself"
        source, room, place = state.source, state.target.grown(), state.length
        embedding = self.decoder.embedding
        x = F.embedding(tokens[:, None], embedding.weight) * embedding.scale
        x = self.decoder.positions(x, place)[:, 0]  # (R, D)
        for level, layer in enumerate(self.layers):
            x = layer(x, room.layers[level], place, source, level)
        x = x if self.norm is None else self.norm(x)
        return self.output(x), State(source, Room(room.layers, room.spare, place + 1), place + 1)


class _Encoder:
    """A Transformer encoder that computes nothing for padding, but for the attention itself."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        self.encoder = encoder
        self.layers = [_EncoderLayer(layer) for layer in encoder.layers]
        self.norm = None if encoder.norm is None else _norm(encoder.norm)

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
        for layer in self.layers:
            x = layer(x, shape, real, added)
        return _spread(x if self.norm is None else self.norm(x), shape[0] * shape[1], real)


class _EncoderLayer:
    def __init__(self, layer: EncoderLayer) -> None:
        own = layer.attention.projections
        assert own is not None
        self.heads, self.scale, self.rotary = layer.attention.heads, _scale(layer.attention), layer.attention.rotary
        self.ask, self.answer = _joined(own.query, own.key, own.value), _linear(own.output)
        self.think = _feed_forward(layer.feed_forward)
        self.first, self.second = (_residual(each) for each in layer.residuals)

    def __call__(self, x: Tensor, shape: torch.Size, real: Tensor | None, added: Tensor | None) -> Tensor:
        """``x`` (N, D), the real tokens of ``shape`` (B, S, D)."""
        return self.second(self.first(x, lambda x: self._attend(x, shape, real, added)), self.think)

    def _attend(self, x: Tensor, shape: torch.Size, real: Tensor | None, added: Tensor | None) -> Tensor:
        rows, size, _ = shape
        asked = _spread(self.ask(x), rows * size, real).view(rows, size, 3, self.heads, -1)
        query, keys, values = asked.permute(2, 0, 3, 1, 4)  # (B, H, S, K)
        if self.rotary is not None:
            query, keys = self.rotary(query), self.rotary(keys)
        contexts = F.scaled_dot_product_attention(query, keys, values, attn_mask=added, scale=self.scale)
        contexts = contexts.transpose(1, 2).reshape(rows * size, -1)
        return self.answer(contexts if real is None else contexts[real])


def _spread(x: Tensor, count: int, real: Tensor | None) -> Tensor:
    """The rows of ``x`` at the places ``real`` of ``count``, and zeros at the others."""
    return x if real is None else x.new_zeros(count, x.shape[1]).index_copy_(0, real, x)


class _Layer:
    """One decoder layer, for one token a row."""

    def __init__(self, layer: DecoderLayer) -> None:
        cross = layer.cross
        assert cross is not None
        assert cross.projections is not None
        own = layer.attention.projections
        assert own is not None
        self.heads, self.rotary = layer.attention.heads, layer.attention.rotary
        self.scale, self.source_scale = _scale(layer.attention), _scale(cross)
        self.ask = _joined(own.query, own.key, own.value)
        self.answer = _linear(own.output)
        self.ask_source = _linear(cross.projections.query)
        self.source_answer = _linear(cross.projections.output)
        self.think = _feed_forward(layer.feed_forward)
        self.first, self.second, self.third = (_residual(each) for each in layer.residuals)

    def __call__(self, x: Tensor, room: Tensor, place: int, source: Source, level: int) -> Tensor:
        x = self.first(x, lambda x: self._own(x, room, place))
        x = self.second(x, lambda x: self._source(x, source, level))
        return self.third(x, self.think)

    def _own(self, x: Tensor, room: Tensor, place: int) -> Tensor:
        rows, width = x.shape
        asked = self.ask(x).view(rows, 3, self.heads, -1)  # (R, 3, H, K)
        query = asked[:, 0, :, None]  # (R, H, 1, K)
        if self.rotary is not None:
            query = self.rotary(query, place)
            asked[:, 1] = self.rotary(asked[:, 1, :, None], place)[:, :, 0]
        room[:, place] = asked[:, 1:].view(rows, 2, width)
        keys, values = _heads(room[:, : place + 1], self.heads)
        contexts = F.scaled_dot_product_attention(query, keys, values, scale=self.scale)
        return self.answer(contexts.reshape(rows, width))

    def _source(self, x: Tensor, source: Source, level: int) -> Tensor:
        rows, width = x.shape
        query = self.ask_source(x).view(source.joint.shape[0], -1, self.heads, width // self.heads)
        keys, values = _heads(source.joint[:, :, level], self.heads)
        contexts = F.scaled_dot_product_attention(
            query.transpose(1, 2),  # (B, H, W, K)
            keys,
            values,
            attn_mask=source.mask,
            scale=self.source_scale,
        )
        return self.source_answer(contexts.transpose(1, 2).reshape(rows, width))


def _heads(joint: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """(R, T, 2, D) → keys and values (R, H, T, K), without a copy."""
    rows, length, _, width = joint.shape
    keys, values = joint.view(rows, length, 2, heads, width // heads).permute(2, 0, 3, 1, 4)
    return keys, values


def _scale(attention: Attention) -> float:
    assert isinstance(attention.score, InnerScore)
    return attention.score.scale


def _keys_and_values(cross: Attention | None) -> tuple[nn.Linear, nn.Linear]:
    assert cross is not None
    assert cross.projections is not None
    return cross.projections.key, cross.projections.value


def _map(weight: Tensor, bias: Tensor | None) -> Map:
    """``W x + b``, with W as the product reads it: for few rows that is up to twice as fast."""
    turned = weight.detach().T.contiguous()
    if bias is None:
        return lambda x: torch.mm(x, turned)
    shift = bias.detach()
    return lambda x: torch.addmm(shift, x, turned)


def _linear(linear: nn.Linear) -> Map:
    return _map(linear.weight, linear.bias)


def _joined(*linears: nn.Linear) -> Map:
    """Several maps of the same input, side by side."""
    return _map(torch.cat([each.weight for each in linears]), torch.cat([each.bias for each in linears]))


def _feed_forward(ours: FeedForward | GatedFeedForward) -> Map:
    expand, contract = _linear(ours.expand), _linear(ours.contract)
    if isinstance(ours, GatedFeedForward):
        gate = _linear(ours.gate)
        return lambda x: contract(F.silu(gate(x)).mul_(expand(x)))
    if ours.activation is F.relu:
        return lambda x: contract(expand(x).relu_())
    activation = ours.activation
    return lambda x: contract(activation(expand(x)))


def _norm(norm: nn.Module) -> Map:
    if not isinstance(norm, LayerNorm):
        return norm
    shape, gain, shift, epsilon = norm.gain.shape, norm.gain.detach(), norm.shift.detach(), norm.epsilon
    return lambda x: torch.layer_norm(x, shape, gain, shift, epsilon, False)  # noqa: FBT003


def _residual(residual: Residual) -> Callable[[Tensor, Map], Tensor]:
    norm = _norm(residual.norm)
    if residual.before:
        return lambda x, sublayer: sublayer(norm(x)).add_(x)
    return lambda x, sublayer: norm(sublayer(x).add_(x))
