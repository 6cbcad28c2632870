"""Marian translation models of the `transformers` library (the OPUS-MT family) as `EncoderDecoder`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard import build
from regard.errors import ModelError
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import Attention
from regard.nn.chain import Chain
from regard.nn.embeddings import Embedding
from regard.nn.feed_forward import FeedForward
from regard.nn.norms import LayerNorm
from regard.nn.transformer import Residual
from regard.reader import read
from regard.settings import TransformerModel

if TYPE_CHECKING:
    from transformers import MarianMTModel

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}


@torch.no_grad()
def from_marian(marian: MarianMTModel) -> EncoderDecoder:
    """The same function with our parts: equal logits for equal ids."""
    config = marian.config
    model = build.encoder_decoder(_settings(marian), config.vocab_size, config.decoder_vocab_size or config.vocab_size)
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    assert isinstance(encoder.embedding, Embedding)
    model.first, model.pad = int(config.decoder_start_token_id or 0), int(config.pad_token_id or 0)
    weights = _Weights(marian.state_dict(), config.d_model)
    weights.embedding(encoder.embedding.weight, "model.encoder.embed_tokens")
    weights.embedding(decoder.embedding.weight, "model.decoder.embed_tokens")
    if not config.scale_embedding:
        encoder.embedding.scale = decoder.embedding.scale = 1.0
    decoder.output.bias.copy_(marian.final_logits_bias[0])
    for level, reader in enumerate(encoder.layers):
        place = f"model.encoder.layers.{level}"
        weights.attention(reader.attention, f"{place}.self_attn")
        weights.rest(reader.feed_forward, reader.residuals, place)
    for level, writer in enumerate(decoder.layers):
        place = f"model.decoder.layers.{level}"
        assert writer.cross is not None
        weights.attention(writer.attention, f"{place}.self_attn")
        weights.attention(writer.cross, f"{place}.encoder_attn")
        weights.rest(writer.feed_forward, writer.residuals, place)
    return model.to(next(marian.parameters()).dtype).eval()


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

    def embedding(self, weight: Tensor, name: str) -> None:
        weight.copy_(self.named[f"{name}.weight"][:, self.order])

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
