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
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.encoder_decoder import EncoderDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn.attention import Attention, softmax
from regard.nn.feed_forward import FeedForward, GatedFeedForward
from regard.nn.norms import LayerNorm
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.scores import InnerScore
from regard.nn.state import State
from regard.nn.transformer import DecoderLayer, Residual

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
        self.layers = [_Layer(layer) for layer in decoder.layers]
        crosses = [layer.cross for layer in decoder.layers]
        self.remember = _joined(*(part for cross in crosses for part in _keys_and_values(cross)))
        self.output = _map(decoder.output.weight, decoder.output.bias)

    @staticmethod
    def fits(model: nn.Module) -> bool:
        """Whether it is a Transformer on a CPU, all of whose decoder torch's attention kernel computes."""
        if not isinstance(model, EncoderDecoder) or not isinstance(model.decoder, TransformerDecoder):
            return False
        attentions = [each for layer in model.decoder.layers for each in (layer.attention, layer.cross)]
        on_cpu = model.decoder.output.weight.device.type == "cpu"
        return on_cpu and all(each is not None and _plain(each) for each in attentions)

    @torch.no_grad()
    def start(self, source: Tensor) -> tuple[Tensor, State[Source, Room]]:
        encoded = self.model.encode(source)
        rows, size, width = encoded.states.shape
        joint = self.remember(encoded.states.reshape(-1, width)).view(rows, size, len(self.layers), 2, -1)
        mask = None
        if not bool(encoded.mask.all()):
            mask = torch.zeros(rows, 1, 1, size, dtype=joint.dtype).masked_fill_(~encoded.mask[:, None, None], -torch.inf)
        room = [joint.new_empty(rows, ROOM, 2, joint.shape[-1]) for _ in self.layers]
        return source.new_full((rows,), self.model.first), State(Source(joint, mask), Room(room), 0)

    @torch.no_grad()
    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """One token a row (B · W,): logits (B · W, V)."""
        assert not observer.active, "nothing inside can be seen here; ask the model itself"
        source, room, place = state.source, state.target.grown(), state.length
        x = self.decoder.embedding(tokens[:, None])
        x = self.decoder.positions(x, place)[:, 0]  # (R, D)
        for level, layer in enumerate(self.layers):
            x = layer(x, room.layers[level], place, source, level)
        if self.decoder.norm is not None:
            x = _norm(self.decoder.norm)(x)
        return self.output(x), State(source, Room(room.layers, room.spare, place + 1), place + 1)


class _Layer:
    """One decoder layer, for one token a row."""

    def __init__(self, layer: DecoderLayer) -> None:
        cross = layer.cross
        assert cross is not None
        assert cross.projections is not None
        self.attention, self.cross = layer.attention, cross
        own = layer.attention.projections
        assert own is not None
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
        heads = self.attention.heads
        asked = self.ask(x).view(len(x), 3, heads, -1)  # (R, 3, H, K)
        query = asked[:, 0, :, None]  # (R, H, 1, K)
        if self.attention.rotary is not None:
            query = self.attention.rotary(query, place)
            asked[:, 1] = self.attention.rotary(asked[:, 1, :, None], place)[:, :, 0]
        room[:, place] = asked[:, 1:].flatten(2)
        keys, values = _heads(room[:, : place + 1], heads)
        contexts = F.scaled_dot_product_attention(query, keys, values, scale=_scale(self.attention))
        return self.answer(contexts.reshape(len(x), -1))

    def _source(self, x: Tensor, source: Source, level: int) -> Tensor:
        heads, sentences = self.cross.heads, len(source.joint)
        query = self.ask_source(x).view(sentences, -1, heads, x.shape[1] // heads).transpose(1, 2)  # (B, H, W, K)
        keys, values = _heads(source.joint[:, :, level], heads)
        contexts = F.scaled_dot_product_attention(query, keys, values, attn_mask=source.mask, scale=_scale(self.cross))
        return self.source_answer(contexts.transpose(1, 2).reshape(len(x), -1))


def _heads(joint: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """(R, T, 2, D) → keys and values (R, H, T, K), without a copy."""
    apart = joint.unflatten(3, (heads, -1)).permute(2, 0, 3, 1, 4)  # (2, R, H, T, K)
    return apart[0], apart[1]


def _plain(attention: Attention) -> bool:
    inner = type(attention.score) is InnerScore and attention.normaliser is softmax
    return inner and not attention.hard and attention.window is None and attention.projections is not None


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
