"""Marian translation models of the `transformers` library (the OPUS-MT family) as `EncoderDecoder`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.errors import ModelError
from regard.models import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import Attention
from regard.nn.chain import Chain
from regard.nn.embeddings import Embedding
from regard.nn.feed_forward import FeedForward
from regard.nn.norms import LayerNorm
from regard.nn.transformer import Residual
from regard.settings import TransformerModel
from regard.settings.reading import read
from regard.text.special import PAD, START

if TYPE_CHECKING:
    from transformers import MarianConfig, MarianMTModel

_NEVER = -1e9  # a logit: no probability is left of it, and it is finite
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}


@dataclass(frozen=True)
class MarianIds:
    """Which of Marian's tokens each of ours is. Special tokens come first here; there they stand anywhere (OPUS-MT ends
    with 0, and pads and starts with its last id), and the one that starts may be the one that pads."""

    theirs: Tensor  # (V,) by our id

    @staticmethod
    def of(config: MarianConfig, size: int, unknown: int | None = None) -> MarianIds:
        """Of a vocabulary of ``size`` tokens. A configuration does not name ``<unk>``: OPUS-MT's is 1, where that is no
        other special token."""
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        pad, end = int(config.pad_token_id or 0), int(ends[0] or 0)
        start = pad if config.decoder_start_token_id is None else int(config.decoder_start_token_id)
        if unknown is None:
            unknown = next(number for number in (1, 3, 4, 5) if number not in (pad, start, end))
        special = (pad, start, end, unknown)  # in the order of `regard.text.special`
        if len({pad, end, unknown}) < 3 or start in (end, unknown) or not all(0 <= each < size for each in special):
            raise ModelError(
                f"pad, start, end, unknown = {', '.join(map(str, special))}: must be ids of {size:,} tokens, and "
                "different ones, but for pad and start"
            )
        return MarianIds(torch.tensor([*special, *(number for number in range(size) if number not in special)]))

    @property
    def doubled(self) -> bool:
        """Whether ``<start>`` is ``<pad>`` there: here it has an id of its own, and is never written."""
        return bool(self.theirs[START] == self.theirs[PAD])

    def ours(self, ids: Tensor) -> Tensor:
        """Marian's ids as ours. What pads and starts becomes ``<pad>``, for it is met in padded rows."""
        table = torch.empty(int(self.theirs.max()) + 1, dtype=torch.long)
        table[self.theirs] = torch.arange(len(self.theirs))
        table[self.theirs[PAD]] = PAD
        return table[ids]


@torch.no_grad()
def from_marian(marian: MarianMTModel, unknown: int | None = None) -> EncoderDecoder:
    """The same function with our parts: equal logits for equal tokens. It reads and writes our ids, so that search
    knows what ends an output; `MarianIds` translates them. ``unknown`` is Marian's id of ``<unk>``."""
    config = marian.config
    sizes = config.vocab_size, config.decoder_vocab_size or config.vocab_size
    source, target = (MarianIds.of(config, size, unknown) for size in sizes)
    model = build.encoder_decoder(_settings(marian), len(source.theirs), len(target.theirs))
    model = model.to(next(marian.parameters()).dtype)  # before weights are copied: float64 is not rounded on the way
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    assert isinstance(encoder.embedding, Embedding)
    weights = _Weights(marian.state_dict(), config.d_model)
    weights.embedding(encoder.embedding.weight, "model.encoder.embed_tokens", source)
    weights.embedding(decoder.embedding.weight, "model.decoder.embed_tokens", target)
    if not config.scale_embedding:
        encoder.embedding.scale = decoder.embedding.scale = 1.0
    decoder.output.bias.copy_(marian.final_logits_bias[0, target.theirs])
    if target.doubled:
        decoder.output.bias[START] = _NEVER
    for level, reader in enumerate(encoder.layers):
        place = f"model.encoder.layers.{level}"
        weights.attention(reader.attention, f"{place}.self_attn")
        weights.rest(reader.feed_forward, reader.residuals, place)
    for level, writer in enumerate(decoder.layers):
        place = f"model.decoder.layers.{level}"
        assert writer.attention is not None
        assert writer.cross is not None
        weights.attention(writer.attention, f"{place}.self_attn")
        weights.attention(writer.cross, f"{place}.encoder_attn")
        weights.rest(writer.feed_forward, writer.residuals, place)
    return model.eval()


def _settings(marian: MarianMTModel) -> TransformerModel:
    config = marian.config
    for name in ("attention_heads", "ffn_dim"):
        here, there = getattr(config, f"encoder_{name}"), getattr(config, f"decoder_{name}")
        if here != there:
            raise ModelError(f"decoder_{name} = {there}: the encoder has {here}; only models with equal ones are read")
    if config.activation_function not in _ACTIVATIONS:
        raise ModelError(
            f"activation_function = {config.activation_function}: not among those that are read; "
            f"known: {', '.join(_ACTIVATIONS)}"
        )
    if not config.tie_word_embeddings:
        raise ModelError(
            "tie_word_embeddings = False: the output layer has a matrix of its own; "
            "only models whose output is their target embedding are read"
        )
    values = {
        "kind": "transformer",
        "width": config.d_model,
        "heads": config.encoder_attention_heads,
        "hidden": config.encoder_ffn_dim,
        "encoder_depth": config.encoder_layers,
        "decoder_depth": config.decoder_layers,
        "activation": _ACTIVATIONS[config.activation_function],
        "norm_place": "after",
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "tie": "all" if config.share_encoder_decoder_embeddings else "target",
    }
    return read(TransformerModel, values, "config.json")


class _Weights:
    """Copies named weights, with the features of the residual stream in our order.

    Marian's positions are the sinusoids with all sines first and then all cosines; ours alternate. They are
    the same numbers, so reordering the features everywhere they are written or read makes the models equal.
    """

    def __init__(self, named: dict[str, Tensor], width: int) -> None:
        self.named = named
        self.order = torch.arange(width).reshape(2, -1).T.flatten()  # 0, half, 1, half + 1, …

    def embedding(self, weight: Tensor, name: str, ids: MarianIds) -> None:
        weight.copy_(self.named[f"{name}.weight"][ids.theirs][:, self.order])

    def attention(self, attention: Attention, name: str) -> None:
        ours = attention.projections
        assert ours is not None
        for linear, part in ((ours.query, "q_proj"), (ours.key, "k_proj"), (ours.value, "v_proj")):
            self._reading(linear, f"{name}.{part}")
        self._writing(ours.output, f"{name}.out_proj")

    def rest(self, feed_forward: nn.Module, residuals: Chain[Residual], place: str) -> None:
        """A layer's feed-forward network and its norms, in the order of its residual connections."""
        assert isinstance(feed_forward, FeedForward)
        self._reading(feed_forward.expand, f"{place}.fc1")
        self._writing(feed_forward.contract, f"{place}.fc2")
        names = ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
        for residual, name in zip(residuals, names if len(residuals) == 3 else names[::2], strict=True):
            assert isinstance(residual.norm, LayerNorm)
            residual.norm.gain.copy_(self.named[f"{place}.{name}.weight"][self.order])
            residual.norm.shift.copy_(self.named[f"{place}.{name}.bias"][self.order])

    def _reading(self, linear: nn.Linear, name: str) -> None:
        """A map from the residual stream: its input features are reordered."""
        linear.weight.copy_(self.named[f"{name}.weight"][:, self.order])
        linear.bias.copy_(self.named[f"{name}.bias"])

    def _writing(self, linear: nn.Linear, name: str) -> None:
        """A map into the residual stream: its output features are reordered."""
        linear.weight.copy_(self.named[f"{name}.weight"][self.order])
        linear.bias.copy_(self.named[f"{name}.bias"][self.order])
