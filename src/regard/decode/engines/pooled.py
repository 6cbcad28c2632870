"""A Transformer's step over fixed memory. `EncoderDecoder` is its written-out twin.

The W hypotheses of a sentence share one pool of keys and values, (T, W) of them, which are never moved. Of each earlier
position a hypothesis sees the one entry that its own past has written. When a hypothesis continues another, only the
mask that says so, (W, T · W), is copied. Attention reads every entry of the pool once for all W queries, as many as
without a pool, and the whole cache is not copied at each step as in other beams. Hypotheses that never continue each
other, as samples, have a pool each, and share only the source.

Each sentence has a length of its own, which is a value on the device. `tests/parity/test_captured.py` binds the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.fused import maps_of
from regard.decode.rules import Rule, Sample
from regard.models.generator import EncoderDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn.attention import Attention
from regard.nn.embeddings import Learned
from regard.nn.layers import side_by_side
from regard.nn.transformer import DecoderLayer


@dataclass(frozen=True)
class StepShape:
    """The part of the memory that a step reads."""

    sentences: int  # B
    source: int  # S
    target: int  # T


@dataclass(frozen=True)
class Pool:
    """The memory of B sentences, each with G pools of P hypotheses: one pool of all W, or W pools of one.

    It is written in place. Zeros at first: what is masked must still be a number.
    """

    layers: tuple[Tensor, ...]  # (B · G, T, P, 2, D) keys and values that the hypotheses have written, for each layer
    seen: Tensor  # (B · G, P, T · P): 0 on what a hypothesis sees of them, -inf on the rest
    joint: Tensor  # (B, S, L, 2, D) of the sources
    mask: Tensor  # (B, S): 0 on real tokens, -inf on padding
    places: tuple[Tensor, ...]  # what is added to an embedding at each position (T, D); if rotary, cosine and sine

    @property
    def each(self) -> int:
        """Pools of a sentence, G."""
        return len(self.seen) // len(self.mask)

    def fill(self, slots: Tensor, encoded: tuple[Tensor, Tensor]) -> None:
        """New sentences, as `Pooled.encode` gives them, into these slots (n,)."""
        joint, mask = encoded
        size = mask.shape[1]
        self.seen.index_fill_(0, rows_of(slots, self.each), -torch.inf)
        self.mask.index_fill_(0, slots, -torch.inf)
        self.mask[:, :size].index_copy_(0, slots, mask)
        self.joint[:, :size].index_copy_(0, slots, joint)

    def move(self, old: Tensor, new: Tensor) -> None:
        """Copy slots (n,) to others."""
        from_pools, to_pools = rows_of(old, self.each), rows_of(new, self.each)
        for column in (*self.layers, self.seen):
            column.index_copy_(0, to_pools, column.index_select(0, from_pools))
        for column in (self.joint, self.mask):
            column.index_copy_(0, new, column.index_select(0, old))

    def follow(self, parents: Tensor, shape: StepShape) -> None:
        """Each hypothesis sees the past of its parent (B, W)."""
        seen = self.seen[: shape.sentences, :, : shape.target * parents.shape[1]]
        seen.copy_(seen.gather(1, parents[:, :, None].expand_as(seen)))


def rows_of(slots: Tensor, each: int) -> Tensor:
    """The rows of these slots (n,) in a tensor that has ``each`` of a sentence: (n · each,)."""
    return (slots[:, None] * each + torch.arange(each, device=slots.device)).flatten()


class Pooled:
    """Encodes and steps as its model does, if it `fits`."""

    def __init__(self, model: EncoderDecoder) -> None:
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.model, self.decoder = model, decoder
        self.layers = [_PooledLayer(layer) for layer in decoder.layers]
        self.remembering = side_by_side(*decoder.keys_and_values())
        self.first = model.first

    @staticmethod
    def fits(model: EncoderDecoder) -> bool:
        """Whether its decoder is a Transformer whose attention torch's kernel computes."""
        if not isinstance(model.decoder, TransformerDecoder):
            return False
        attentions = [each for layer in model.decoder.layers for each in (layer.attention, layer.cross)]
        return all(each is not None and each.plain for each in attentions)

    @property
    def weight(self) -> Tensor:
        """Of the output layer, which has the model's device and dtype."""
        return self.decoder.output.weight

    def memory(self, rule: Rule, shape: StepShape) -> Pool:
        """Room for so many sentences."""
        size, depth, zeros = self.decoder.embedding.width, len(self.layers), self.weight.new_zeros
        each = rule.rows if isinstance(rule, Sample) else 1
        pools, width = shape.sentences * each, rule.rows // each
        return Pool(
            tuple(zeros(pools, shape.target, width, 2, size) for _ in self.layers),
            zeros(pools, width, shape.target * width),
            zeros(shape.sentences, shape.source, depth, 2, size),
            zeros(shape.sentences, shape.source),
            self._places(shape.target),
        )

    def bytes(self, width: int, source: int, target: int) -> int:
        """Of the `memory` of one sentence with ``width`` hypotheses."""
        each = 2 * self.decoder.embedding.width * len(self.layers)
        entries = each * (target * width + source) + width * target * width
        return entries * self.weight.element_size()

    def _places(self, longest: int) -> tuple[Tensor, ...]:
        """The tables of the positions there are."""
        positions = self.decoder.positions
        count = min(longest, len(positions.weight)) if isinstance(positions, Learned) else longest
        table = positions(self.weight.new_zeros(1, count, self.decoder.embedding.width))[0]
        own = self.decoder.layers[0].attention
        rotary = None if own is None else own.rotary
        return (table,) if rotary is None else (table, *rotary.tables(0, longest))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (n, S, L, 2, D) of ``source`` (n, S), padded on the right, and its mask for a `Pool`."""
        encoded = self.model.encode(source)
        joint = F.linear(encoded.states, *self.remembering).view(*encoded.mask.shape, len(self.layers), 2, -1)
        mask = torch.zeros(encoded.mask.shape, dtype=joint.dtype, device=joint.device)
        return joint, mask.masked_fill_(~encoded.mask, -torch.inf)

    def step(self, tokens: Tensor, written: Tensor, pool: Pool, shape: StepShape) -> Tensor:
        """Read a token for each hypothesis (B, W), which stands at its sentence's position (B,): logits (B, W, V)."""
        table, *angles = (each.index_select(0, written)[:, None] for each in pool.places)
        width, written = pool.seen.shape[1], written[:, None].expand(-1, pool.each).flatten()  # P, (B · G,)
        own = written[:, None] * width + torch.arange(width, device=written.device)  # (B · G, P)
        seen = pool.seen[: len(written)].scatter_(2, own[:, :, None], 0.0)
        seen = seen[:, None, :, : shape.target * width]  # (B · G, 1, P, T · P)
        mask = pool.mask[: shape.sentences, None, None, : shape.source]  # (B, 1, 1, S)
        rows = torch.arange(len(written), device=written.device) * pool.layers[0].shape[1] + written
        turns = tuple(angle[:, :, None, None] for angle in angles)
        x, norm = self.decoder.embedding(tokens) + table, self.decoder.embedding_norm  # (B, W, D)
        x = x if norm is None else norm(x)
        for level, (layer, entries) in enumerate(zip(self.layers, pool.layers, strict=True)):
            joint = pool.joint[: len(x), : shape.source, level]
            x = layer(x, entries, rows, seen, turns, joint=joint, mask=mask)
        return self.decoder.output(x if self.decoder.norm is None else self.decoder.norm(x))


class _PooledLayer:
    """One decoder layer, for one token a hypothesis."""

    def __init__(self, layer: DecoderLayer) -> None:
        assert layer.attention is not None
        own = maps_of(layer.attention)
        self.layer, self.attention = layer, layer.attention
        self.asking = side_by_side(own.query, own.key, own.value)

    def __call__(
        self,
        x: Tensor,  # (B, W, D)
        entries: Tensor,  # (B · G, T, P, 2, D) of this layer's pools
        rows: Tensor,  # (B · G,) where to write, in pools of (B · G · T, P, 2, D)
        seen: Tensor,  # (B · G, 1, P, T · P)
        angles: tuple[Tensor, ...],  # cosine and sine (B, 1, 1, 1, K / 2), where positions are rotary
        *,
        joint: Tensor,  # (B, S, 2, D) of the sources
        mask: Tensor,  # (B, 1, 1, S)
    ) -> Tensor:
        first, second, third = self.layer.residuals
        x = first(x, lambda x: self._own(x, entries, rows, seen, angles))
        x = second(x, lambda x: self._source(x, joint, mask))
        return third(x, self.layer.feed_forward)

    def _own(self, x: Tensor, entries: Tensor, rows: Tensor, seen: Tensor, angles: tuple[Tensor, ...]) -> Tensor:
        attention = self.attention
        count, width, size = x.shape
        asked = F.linear(x, *self.asking).view(count, width, 3, attention.heads, -1)  # (B, W, 3, H, K)
        if attention.rotary is not None:
            asked[:, :, :2] = attention.rotary.turn(asked[:, :, :2], *angles)
        pools, together = len(rows), entries.shape[2]
        asked = asked.reshape(pools, together, *asked.shape[2:])  # (B · G, P, 3, H, K)
        entries.view(-1, together, 2, size).index_copy_(0, rows, asked[:, :, 1:].reshape(pools, together, 2, size))
        pooled = entries[:pools, : seen.shape[3] // together].flatten(1, 2)  # (B · G, T · P, 2, D)
        return _attend(attention, asked[:, :, 0], pooled, seen).view(count, width, -1)

    def _source(self, x: Tensor, joint: Tensor, mask: Tensor) -> Tensor:
        cross = self.layer.cross
        assert cross is not None
        query = maps_of(cross).query(x).view(*x.shape[:2], cross.heads, -1)
        return _attend(cross, query, joint, mask)


def _attend(attention: Attention, query: Tensor, joint: Tensor, mask: Tensor) -> Tensor:
    """Queries (B, W, H, K), keys and values (B, S, 2, D), what to add to scores (B, 1, W or 1, S): (B, W, D)."""
    count, width, heads, _ = query.shape
    keys, values = joint.view(*joint.shape[:3], heads, -1).permute(2, 0, 3, 1, 4)  # (B, H, S, K)
    scale = attention.score.scale
    assert isinstance(scale, float)
    contexts = F.scaled_dot_product_attention(query.transpose(1, 2), keys, values, attn_mask=mask, scale=scale)
    return maps_of(attention).output(contexts.transpose(1, 2).reshape(count, width, -1))
