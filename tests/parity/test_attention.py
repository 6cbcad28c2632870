"""Multi-head attention, norms and whole Transformer stacks against torch's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import Attention, InnerScore, Projections
from regard.nn.layers import BatchNorm, FeedForward, LayerNorm, RMSNorm, layer_norm, rms_norm
from regard.nn.masks import from_lengths
from regard.nn.observe import UNOBSERVED, Recorder

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
dtypes = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=TOLERANCE[actual.dtype], rtol=TOLERANCE[actual.dtype])


@torch.no_grad()
def copy_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    assert ours.projections is not None
    parts = (ours.projections.query, ours.projections.key, ours.projections.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.projections.output.state_dict())


def random_biases(module: nn.Module) -> None:
    """Biases begin at zero and gains at one; give them values, or a wrong one would not show."""
    for parameter in module.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter)


@dtypes
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_multi_head_attention_gives_torchs_values_and_weights(dtype: torch.dtype, causal: bool, padded: bool) -> None:
    heads, width, size = 3, 21, 6
    ours = Attention(InnerScore((width // heads) ** -0.5), heads=heads, projections=Projections(width, width, width))
    random_biases(ours)
    ours.to(dtype)
    theirs = nn.MultiheadAttention(width, heads, batch_first=True, dtype=dtype)
    copy_attention(ours, theirs)
    query = torch.randn(2, size, width, dtype=dtype)
    source = query if causal else torch.randn(2, 5, width, dtype=dtype)
    mask = from_lengths(torch.tensor([source.shape[1], 4]), source.shape[1]) if padded else None
    ahead = torch.ones(size, size, dtype=torch.bool).triu(1) if causal else None
    values, weights = theirs(
        query,
        source,
        source,
        key_padding_mask=None if mask is None else ~mask,
        attn_mask=ahead,
        average_attn_weights=False,
    )
    watch = Recorder()
    memory = ours.remember(source, mask)
    close(ours(query, memory, causal=causal, observer=watch), values)
    close(watch["weights"], weights)
    close(ours(query, memory, causal=causal), values)


@dtypes
def test_layer_norm_is_torchs(dtype: torch.dtype) -> None:
    ours, theirs = LayerNorm(7).to(dtype), nn.LayerNorm(7, dtype=dtype)
    random_biases(ours)
    theirs.load_state_dict({"weight": ours.gain, "bias": ours.shift})
    x = torch.randn(2, 3, 7, dtype=dtype)
    close(ours(x), theirs(x))
    close(layer_norm(x, ours.gain, ours.shift, ours.epsilon), theirs(x))


@dtypes
def test_rms_norm_is_torchs(dtype: torch.dtype) -> None:
    ours, theirs = RMSNorm(7).to(dtype), nn.RMSNorm(7, eps=1e-6, dtype=dtype)
    random_biases(ours)
    theirs.load_state_dict({"weight": ours.gain})
    x = torch.randn(2, 3, 7, dtype=dtype)
    close(ours(x), theirs(x))
    close(rms_norm(x, ours.gain, ours.epsilon), theirs(x))


@dtypes
def test_batch_norm_is_torchs_over_the_real_tokens(dtype: torch.dtype) -> None:
    ours, theirs = BatchNorm(7).to(dtype), nn.BatchNorm1d(7, dtype=dtype)
    random_biases(ours)
    theirs.load_state_dict(
        {
            "weight": ours.gain,
            "bias": ours.shift,
            "running_mean": ours.running_mean,
            "running_var": ours.running_variance,
        },
        strict=False,
    )
    x, mask = torch.randn(3, 5, 7, dtype=dtype) * 3 + 1, from_lengths(torch.tensor([5, 2, 4]), 5)
    for _ in range(3):
        close(ours(x, mask)[mask], theirs(x[mask]))
        x = x + 1
    close(ours.running_mean, theirs.running_mean)
    close(ours.running_variance, theirs.running_var)
    close(ours.eval()(x, mask)[mask], theirs.eval()(x[mask]))
    full = torch.randn(3, 5, 7, dtype=dtype)
    close(ours.train()(full).flatten(0, 1), theirs.train()(full.flatten(0, 1)))


def test_batch_norm_counts_rightly_in_half_precision() -> None:
    """Over 3001 tokens of mean 1 and variance 9: neither number is one that bfloat16 could add up to."""
    x, mask = torch.randn(1, 3100, 7) * 3 + 1, from_lengths(torch.tensor([3001]), 3100)
    wide, narrow = BatchNorm(7), BatchNorm(7)
    with torch.autocast("cpu", torch.bfloat16):
        halved = narrow(x.bfloat16(), mask)
    assert halved.dtype == torch.bfloat16
    wide(x.bfloat16().float(), mask)
    close(narrow.running_mean, wide.running_mean)
    close(narrow.running_variance, wide.running_variance)


# Whole stacks


def stacks(dtype: torch.dtype, place: str, activation: str) -> tuple[TransformerEncoder, TransformerDecoder]:
    settings = regard.load_settings(
        "transformer-tiny",
        *("model.width=21", "model.heads=3", "model.hidden=19"),
        *(f"model.norm_place={place}", f"model.activation={activation}"),
    )
    model = regard.encoder_decoder(settings.model, 23, 29)
    random_biases(model)
    model.to(dtype).eval()
    assert isinstance(model.encoder, TransformerEncoder)
    assert isinstance(model.decoder, TransformerDecoder)
    return model.encoder, model.decoder


def torch_layer(kind: type, dtype: torch.dtype, place: str, activation: str) -> nn.Module:
    return kind(
        *(21, 3, 19),
        activation=getattr(F, activation),
        norm_first=place == "before",
        batch_first=True,
        dtype=dtype,
    )


@torch.no_grad()
def copy_norm(ours: nn.Module | None, theirs: nn.Module | None) -> None:
    if ours is not None:
        assert isinstance(ours, LayerNorm)
        assert isinstance(theirs, nn.LayerNorm)
        theirs.load_state_dict({"weight": ours.gain, "bias": ours.shift})


def copy_feed_forward(ours: nn.Module, theirs: nn.Module) -> None:
    assert isinstance(ours, FeedForward)
    theirs.linear1.load_state_dict(ours.expand.state_dict())
    theirs.linear2.load_state_dict(ours.contract.state_dict())


blocks = pytest.mark.parametrize(
    ("place", "activation"), [("before", "relu"), ("before", "gelu"), ("after", "relu"), ("after", "gelu")]
)
watching = pytest.mark.parametrize("watched", [True, False], ids=["written-out", "fused"])


@dtypes
@blocks
@watching
def test_the_encoder_is_torchs(dtype: torch.dtype, place: str, activation: str, watched: bool) -> None:
    ours, _ = stacks(dtype, place, activation)
    layer = torch_layer(nn.TransformerEncoderLayer, dtype, place, activation)
    norm = nn.LayerNorm(21, dtype=dtype) if place == "before" else None
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False).eval()
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_attention(mine.attention, other.self_attn)
        copy_feed_forward(mine.feed_forward, other)
        for residual, name in zip(mine.residuals, ("norm1", "norm2"), strict=True):
            copy_norm(residual.norm, getattr(other, name))
    copy_norm(ours.norm, theirs.norm)
    source, mask = torch.randint(4, 23, (2, 6)), from_lengths(torch.tensor([6, 4]), 6)
    encoded = ours(source, mask, Recorder() if watched else UNOBSERVED)
    expected = theirs(ours.positions(ours.embedding(source)), src_key_padding_mask=~mask)
    close(encoded.states[mask], expected[mask])


@dtypes
@blocks
@watching
def test_the_decoder_is_torchs(dtype: torch.dtype, place: str, activation: str, watched: bool) -> None:
    encoder, ours = stacks(dtype, place, activation)
    layer = torch_layer(nn.TransformerDecoderLayer, dtype, place, activation)
    norm = nn.LayerNorm(21, dtype=dtype) if place == "before" else None
    theirs = nn.TransformerDecoder(layer, 2, norm).eval()
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        assert mine.cross is not None
        copy_attention(mine.attention, other.self_attn)
        copy_attention(mine.cross, other.multihead_attn)
        copy_feed_forward(mine.feed_forward, other)
        for residual, name in zip(mine.residuals, ("norm1", "norm2", "norm3"), strict=True):
            copy_norm(residual.norm, getattr(other, name))
    copy_norm(ours.norm, theirs.norm)
    source, mask = torch.randint(4, 23, (2, 6)), from_lengths(torch.tensor([6, 4]), 6)
    target = torch.randint(4, 29, (2, 5))
    observer = Recorder() if watched else UNOBSERVED
    encoded = encoder(source, mask)
    features, _ = ours.advance(target, ours.start(encoded, observer), observer=observer)
    expected = theirs(
        ours.positions(ours.embedding(target)),
        encoded.states,
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        memory_key_padding_mask=~mask,
    )
    close(features, expected)
