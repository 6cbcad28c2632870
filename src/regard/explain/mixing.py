"""How a Transformer mixes its tokens, block by block: norms of what is looked at, ALTI+ and value zeroing.

A residual block with attention is a sum, given its weights and the scale of its norm:

    output_t = Σ_s parts_ts + stream_t + rest_t,   parts_ts = Σ_h α_hts · (v_hs W_o^h), through a norm that follows

with stream what the residual connection carried and rest the biases. The norm of a part says how much was taken from
that token (Kobayashi et al., 2020). How near a part is to the output, by L1 distance, is its contribution, and
contributions are followed down through all layers (ALTI+; Ferrando et al., 2022). Value zeroing (Mohebbi et al., 2023)
sets the value of one token to zero and measures how far the layer's output rotates. Rollout (Abnar and Zuidema, 2020)
takes the weights themselves, and one half for each residual connection.

A layer's mixing is a matrix with rows that sum to one, so a product of layers has them too. The SSRU of a decoder is
linear in its candidates, given its gates: they are its parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.cancel import check_cancelled
from regard.explain.passes import Both, Changed
from regard.explain.replay import Model
from regard.models.generator import AttentionPool, Labeller, LanguageModel, MaxPool
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import Attention, Memory
from regard.nn.layers import BatchNorm, LayerNorm, RMSNorm
from regard.nn.observe import Observer
from regard.nn.transformer import SSRU, DecoderLayer, EncoderLayer, Norm, Residual

Tensors = Mapping[str, Tensor]  # a trace's, with the detail "blocks"
Layer = tuple[Tensor, Tensor | None]  # of a decoder: to what was read so far (T, T), to the source (T, S)
_TINY = 1e-30


@dataclass(frozen=True)
class Decomposition:
    """A block as a sum: ``output = Σ_s parts + stream + rest``."""

    parts: Tensor  # (T, S, D), of each token that was looked at
    stream: Tensor  # (T, D), of what the residual connection carried
    rest: Tensor  # (T, D), of biases and the norm's shift
    output: Tensor  # (T, D), as recorded

    @property
    def error(self) -> float:
        """How far the sum is from the output, as a share of its largest number."""
        found = self.parts.sum(1) + self.stream + self.rest
        return float((found - self.output).abs().max() / self.output.abs().max().clamp(min=_TINY))


# Blocks


def weighted(attention: Attention, weights: Tensor, values: Tensor) -> Tensor:
    """``Σ_h α_hts v_hs W_o^h``: weights (H, T, S) and values (H, S, K) → (T, S, D)."""
    heads, _, width = values.shape
    if attention.projections is None:
        across = torch.eye(heads * width, dtype=values.dtype, device=values.device)
    else:
        across = attention.projections.output.weight.T.to(values)  # (H · K, D)
    carried = values @ across.reshape(heads, width, -1)  # (H, S, D)
    return torch.bmm(weights.permute(2, 1, 0), carried.transpose(0, 1)).transpose(0, 1)  # over s: (T, H) @ (H, D)


def recurrent_parts(tensors: Tensors, place: str) -> Tensor:
    """``q_tu = f_t ⊙ … ⊙ f_{u+1} ⊙ (1 − f_u) ⊙ W x_u``, whose sum over u is the cell, where ReLU lets it through."""
    forget, candidate = tensors[f"{place}.forget"], tensors[f"{place}.candidate"]  # (T, D)
    length, width = forget.shape
    rows, now = [], forget.new_zeros(length, width)
    for time in range(length):
        now = now * forget[time]
        now[time] = (1 - forget[time]) * candidate[time]
        rows.append(now)
    return torch.stack(rows) * (tensors[f"{place}.cell"] > 0)[:, None]


def _block(residual: Residual, entered: Tensor, parts: Tensor, bias: Tensor, output: Tensor) -> Decomposition:
    """The sum ``entered + Σ parts + bias``, through the norm where that comes after."""
    if residual.before:
        return Decomposition(parts, entered, bias.expand_as(entered), output)
    norm, total = residual.norm, entered + parts.sum(1) + bias
    shift = norm.shift.expand_as(total) if not isinstance(norm, RMSNorm) else torch.zeros_like(total)
    if isinstance(norm, BatchNorm):
        shift = shift - _linear(norm, total, norm.running_mean.expand_as(total))
    rest = _linear(norm, total, bias.expand_as(total)) + shift
    return Decomposition(_linear(norm, total, parts), _linear(norm, total, entered), rest, output)


def _linear(norm: Norm, total: Tensor, part: Tensor) -> Tensor:
    """The norm of ``total``, applied to one of its summands, (T, D) or (T, S, D)."""
    if isinstance(norm, BatchNorm):
        return norm.gain * part / torch.sqrt(norm.running_variance + norm.epsilon)
    scale = total.square().mean(-1) if isinstance(norm, RMSNorm) else total.var(-1, correction=0)
    scale = torch.sqrt(scale + norm.epsilon).reshape(-1, *[1] * (part.dim() - 1))
    centred = part - part.mean(-1, keepdim=True) if isinstance(norm, LayerNorm) else part
    return norm.gain * centred / scale


def _entered(tensors: Tensors, half: str, level: int) -> Tensor:
    """What a layer was given."""
    if level:
        return tensors[f"{half}.{level - 1}.states"]
    return tensors.get(f"{half}.normed", tensors[f"{half}.placed"])


def _bias(attention: Attention, like: Tensor) -> Tensor:
    bias = None if attention.projections is None else attention.projections.output.bias
    return like.new_zeros(like.shape[-1]) if bias is None else bias.detach().to(like)


def attention_block(
    attention: Attention, residual: Residual, tensors: Tensors, place: str, entered: Tensor
) -> Decomposition:
    """One attention with its residual connection; ``place`` is its name in a trace, as *decoder.1.cross*."""
    parts = weighted(attention, tensors[f"{place}.weights"], tensors[f"{place}.values"])
    layer, kind = place.rsplit(".", 1)
    output = tensors[f"{layer}.{'crossed' if kind == 'cross' else 'attended'}"]
    return _block(residual, entered, parts, _bias(attention, entered), output)


def own_block(layer: EncoderLayer | DecoderLayer, tensors: Tensors, half: str, level: int) -> Decomposition:
    """A layer's look at its own side: self-attention, or the recurrence in its place."""
    entered, place = _entered(tensors, half, level), f"{half}.{level}"
    if layer.attention is not None:
        return attention_block(layer.attention, layer.residuals[0], tensors, f"{place}.self", entered)
    parts, bias = recurrent_parts(tensors, f"{place}.cell"), entered.new_zeros(entered.shape[-1])
    return _block(layer.residuals[0], entered, parts, bias, tensors[f"{place}.attended"])


def pool_block(model: Labeller, tensors: Tensors) -> Decomposition:
    """A pool as a block of one row, (1, S, D): attention's parts, a share of each state, or each feature's largest."""
    states, pool = tensors["encoder.states"], model.pool
    rest = states.new_zeros(1, states.shape[-1])
    if isinstance(pool, AttentionPool):
        parts = weighted(pool.attention, tensors["pool.weights"], tensors["pool.values"])
        rest = _bias(pool.attention, rest)[None]
    elif isinstance(pool, MaxPool):
        largest = torch.zeros_like(states).scatter(0, states.argmax(0, keepdim=True), 1.0)
        parts = (states * largest)[None]
    else:
        parts = states[None] / len(states)
    return Decomposition(parts, torch.zeros_like(rest), rest, parts.sum(1) + rest)


def _blocks(
    model: Model, tensors: Tensors
) -> tuple[list[Decomposition], list[tuple[Decomposition, Decomposition | None]]]:
    """Those of the encoder, and of each layer of the decoder the two."""
    below, above = list[Decomposition](), list[tuple[Decomposition, Decomposition | None]]()
    if not isinstance(model, LanguageModel):
        assert isinstance(model.encoder, TransformerEncoder)
        below = [own_block(layer, tensors, "encoder", level) for level, layer in enumerate(model.encoder.layers)]
    if not isinstance(model, Labeller):
        assert isinstance(model.decoder, TransformerDecoder)
        for level, layer in enumerate(model.decoder.layers):
            cross, entered = None, tensors[f"decoder.{level}.attended"]
            if layer.cross is not None:
                cross = attention_block(layer.cross, layer.residuals[1], tensors, f"decoder.{level}.cross", entered)
            above.append((own_block(layer, tensors, "decoder", level), cross))
    return below, above


# The share of each token in a block


def nearness(block: Decomposition, *, own: bool) -> Tensor:
    """``max(0, ‖output‖₁ − ‖output − part‖₁)`` of each part, as shares of the row: (T, S), or (T, S + 1) where the
    residual connection is not one of the tokens looked at (``own``) but a part by itself, the last."""
    parts = block.parts
    if own:
        parts = parts + torch.diag_embed(block.stream.T).permute(1, 2, 0)
    else:
        parts = torch.cat((parts, block.stream[:, None]), 1)
    length = block.output.abs().sum(-1, keepdim=True)  # (T, 1)
    near = (length - (block.output[:, None] - parts).abs().sum(-1)).clamp(min=0)
    return shared(near, own=own)


def shared(values: Tensor, *, own: bool = False) -> Tensor:
    """Each row as shares of its sum. A row of zeros becomes 1 at its own place (``own``) or in the last column."""
    total = values.sum(-1, keepdim=True)
    rows, columns = values.shape[-2:]
    instead = torch.eye(rows, columns).to(values) if own else torch.zeros(rows, columns).to(values)
    if not own and columns:
        instead[:, -1] = 1
    return torch.where(total > 0, values / total.clamp(min=_TINY), instead)


def alti(model: Model, tensors: Tensors) -> tuple[list[Tensor], list[Layer], float]:
    """Contributions of each layer's tokens, rows of which sum to one, and the largest error of a block's sum."""
    below, above = _blocks(model, tensors)
    every = [*below, *(block for pair in above for block in pair if block is not None)]
    encoder = [nearness(block, own=True) for block in below]
    decoder = list[Layer]()
    for own, cross in above:
        read = nearness(own, own=True)
        if cross is None:
            decoder.append((read, None))
            continue
        look = nearness(cross, own=False)  # (T, S + 1)
        decoder.append((look[:, -1:] * read, look[:, :-1]))
    return encoder, decoder, max(block.error for block in every)


def norms(model: Model, tensors: Tensors) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """``‖Σ_h α_hts v_hs W_o^h‖₂`` of every layer as shares of each row: of the encoder (L, S, S), of what was read
    so far (L, T, T), of the source (L, T, S)."""

    def stack(side: str, attentions: Sequence[tuple[Attention | SSRU | None, str]]) -> Tensor | None:
        found = []
        for module, place in attentions:
            if isinstance(module, SSRU):
                parts = recurrent_parts(tensors, f"{place}.cell")
            elif module is not None:
                parts = weighted(module, tensors[f"{place}.{side}.weights"], tensors[f"{place}.{side}.values"])
            else:
                continue
            found.append(shared(parts.norm(dim=-1)))
        return torch.stack(found) if found else None

    encoder = None if isinstance(model, LanguageModel) else model.encoder
    decoder = None if isinstance(model, Labeller) else model.decoder
    below = encoder.layers if isinstance(encoder, TransformerEncoder) else ()
    above = decoder.layers if isinstance(decoder, TransformerDecoder) else ()
    look = getattr(decoder, "attention", None)  # a recurrent decoder's one
    crossed = [(layer.cross, f"decoder.{level}") for level, layer in enumerate(above)]
    return (
        stack("self", [(layer.attention, f"encoder.{level}") for level, layer in enumerate(below)]),
        stack("self", [(layer.attention or layer.recurrence, f"decoder.{level}") for level, layer in enumerate(above)]),
        stack("cross", crossed or [(look, "decoder")]),
    )


def halves(
    encoder: Sequence[Tensor], own: Sequence[Tensor], cross: Sequence[Tensor]
) -> tuple[list[Tensor], list[Layer]]:
    """Attention for `roll`, as in rollout: one half for the residual connection, one half for attention;
    encoder and own (S, S) and (T, T), cross (T, S), each the mean of a layer's heads."""

    def half(weights: Tensor) -> Tensor:
        return (weights + torch.eye(len(weights), dtype=weights.dtype, device=weights.device)) / 2

    looks: list[Tensor | None] = [look / 2 for look in cross] or [None] * len(own)
    share = 0.5 if cross else 1.0
    return [half(each) for each in encoder], [(share * half(each), look) for each, look in zip(own, looks, strict=True)]


# Products of layers


def roll(encoder: Sequence[Tensor], decoder: Sequence[Layer], read: int) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The products of the layers' mixing: what of each source token is in each place of the encoder, after every layer
    (L, S, S); what of the source (L, T, S) and of what was read so far (L, T, T) is in each step of the decoder."""
    reached, below = torch.eye(read).to(encoder[0] if encoder else decoder[0][0]), []
    for layer in encoder:
        reached = layer @ reached
        below.append(reached)
    if not decoder:
        return torch.stack(below), None, None
    length = len(decoder[0][0])
    prefix, source = torch.eye(length).to(reached), reached.new_zeros(length, read)
    prefixes, sources = [], []
    for own, cross in decoder:
        prefix, source = own @ prefix, own @ source + (0 if cross is None else cross @ reached)
        prefixes.append(prefix)
        sources.append(source)
    return torch.stack(below) if below else reached[None], torch.stack(sources), torch.stack(prefixes)


# Value zeroing


def zeroed(name: str) -> Changed:
    """An observer that sets, in row u of a batch, the value of token u to zero; ``name`` is where values are seen."""

    def change(value: Tensor) -> Tensor:
        kept = 1 - torch.eye(len(value), dtype=value.dtype, device=value.device)  # (U, U)
        return value * (kept[:, None, :, None] if value.dim() == 4 else kept[:, :, None])

    return Changed({name: change}, active=True)


def cosine_distance(before: Tensor, after: Tensor) -> Tensor:
    """``1 − cos`` between states (T, D) and those of U other runs (U, T, D): (T, U). In double precision, because a
    cosine near one would lose most digits of its distance from one."""
    return (1 - torch.cosine_similarity(before[None].double(), after.double(), -1)).clamp(min=0).T.to(before)


def zeroing(model: Model, tensors: Tensors, under: Observer) -> tuple[list[Tensor], list[tuple[Tensor, Tensor | None]]]:
    """How far each layer's output turns without each token's value: of the encoder's layers (S, S), of the decoder's
    (T, T) and (T, S)."""
    below, above = list[Tensor](), list[tuple[Tensor, Tensor | None]]()
    if not isinstance(model, LanguageModel):
        assert isinstance(model.encoder, TransformerEncoder)
        watch = under.at("encoder")
        below = [
            _without_in_encoder(layer, tensors, level, watch.at(level))
            for level, layer in enumerate(model.encoder.layers)
        ]
    if not isinstance(model, Labeller):
        assert isinstance(model.decoder, TransformerDecoder)
        for level, layer in enumerate(model.decoder.layers):
            watch = under.at("decoder").at(level)
            own = _without_own(layer, tensors, level, watch)
            cross = None if layer.cross is None else _without_cross(layer, tensors, level, watch)
            above.append((own, cross))
    return below, above


def _without_in_encoder(layer: EncoderLayer, tensors: Tensors, level: int, watch: Observer) -> Tensor:
    check_cancelled()
    entered = _entered(tensors, "encoder", level)
    size = len(entered)
    mask = torch.ones(size, size, dtype=torch.bool, device=entered.device)
    after = layer(entered.expand(size, -1, -1), mask, Both(watch, zeroed("self.values")))
    return cosine_distance(tensors[f"encoder.{level}.states"], after)


def _without_own(layer: DecoderLayer, tensors: Tensors, level: int, watch: Observer) -> Tensor:
    check_cancelled()
    entered = _entered(tensors, "decoder", level)
    size, memory = len(entered), None
    if layer.cross is not None:
        memory = layer.cross.remember(tensors["encoder.states"][None], observer=watch.at("cross"))
    name = "cell.candidate" if layer.attention is None else "self.values"
    rows = entered.expand(size, -1, -1)
    after, _ = layer(rows, layer.start(size, rows), memory, 0, None, Both(watch, zeroed(name)))
    return cosine_distance(tensors[f"decoder.{level}.states"], after).tril()  # what comes later takes no part


def _without_cross(layer: DecoderLayer, tensors: Tensors, level: int, watch: Observer) -> Tensor:
    check_cancelled()
    assert layer.cross is not None
    states, attended = tensors["encoder.states"], tensors[f"decoder.{level}.attended"]
    observer = Both(watch.at("cross"), zeroed("values"))
    memory: Memory = layer.cross.remember(states.expand(len(states), -1, -1), observer=observer)
    rows, cross = attended.expand(len(states), -1, -1), layer.cross
    crossed = layer.residuals[1](rows, lambda x: cross(x, memory, observer=observer))
    return cosine_distance(tensors[f"decoder.{level}.states"], layer.residuals[-1](crossed, layer.feed_forward))


def mixed(below: Sequence[Tensor], above: Sequence[tuple[Tensor, Tensor | None]]) -> tuple[list[Tensor], list[Layer]]:
    """Distances as mixing: each row as shares, of source and of what was read so far together."""
    decoder = list[Layer]()
    for own, cross in above:
        if cross is None:
            decoder.append((shared(own, own=True), None))
        else:
            both = shared(torch.cat((own, cross), 1))
            decoder.append((both[:, : len(own)], both[:, len(own) :]))
    return [shared(each, own=True) for each in below], decoder
