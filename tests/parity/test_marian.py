"""A tiny random Marian model of `transformers`, read into our parts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from regard.convert.marian import MarianIds, from_marian
from regard.errors import ModelError
from regard.text.special import END, PAD, START, UNK


def marian(**changes: Any) -> MarianMTModel:
    values: dict[str, Any] = {
        "vocab_size": 29,
        "d_model": 20,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 5,
        "decoder_attention_heads": 5,
        "encoder_ffn_dim": 19,
        "decoder_ffn_dim": 19,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 0,
        "scale_embedding": True,
        "init_std": 0.3,
    }
    model = MarianMTModel(MarianConfig(**{**values, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.normal_()
        model.final_logits_bias.normal_()
    return model


@pytest.mark.parametrize("activation", ["swish", "gelu", "relu"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("pad", [0, 28])
def test_equal_logits(activation: str, scale: bool, pad: int) -> None:
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 2 if pad == 0 else 0}
    theirs = marian(activation_function=activation, scale_embedding=scale, **special)
    ours, ids = from_marian(theirs), MarianIds.of(theirs.config, 29)
    source, target = torch.randint(3, 28, (3, 7)), torch.randint(3, 28, (3, 5))
    source[1, 4:] = pad
    target[:, 0] = pad
    with torch.no_grad():
        expected = theirs(
            input_ids=source, attention_mask=(source != pad).int(), decoder_input_ids=target, use_cache=False
        ).logits
        written = ids.ours(target).where(target != pad, torch.tensor(START))
        found = ours(ids.ours(source), written)
        close(found, expected, ids)
        first, state = ours.start(ids.ours(source))
        assert first.eq(START).all()
        for time in range(5):
            logits, state = ours.step(written[:, time], state)
            close(logits, expected[:, time], ids)
        torch.testing.assert_close(found.logsumexp(-1), expected.logsumexp(-1))  # no token counts twice


def close(found: Tensor, expected: Tensor, ids: MarianIds) -> None:
    kept = torch.arange(len(ids.theirs)) != START
    torch.testing.assert_close(found[..., kept], expected[..., ids.theirs][..., kept], atol=1e-5, rtol=1e-5)


def test_equal_logits_with_two_vocabularies() -> None:
    theirs = marian(decoder_vocab_size=31, share_encoder_decoder_embeddings=False)
    read, written = (MarianIds.of(theirs.config, size) for size in (29, 31))
    source, target = torch.randint(3, 29, (2, 7)), torch.randint(3, 31, (2, 5))
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        close(from_marian(theirs)(read.ours(source), written.ours(target)), expected, written)


def test_weights_of_float64_are_not_rounded() -> None:
    theirs = marian().double()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 1e-9)
        source, target = torch.randint(3, 29, (2, 7)), torch.randint(3, 29, (2, 5))
        expected = theirs(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        ids = MarianIds.of(theirs.config, 29)
        found = from_marian(theirs)(ids.ours(source), ids.ours(target))
    torch.testing.assert_close(found[..., 4:], expected[..., ids.theirs[4:]], atol=1e-12, rtol=0)


def test_special_tokens_have_our_ids_wherever_theirs_are() -> None:
    opus = MarianIds.of(marian(pad_token_id=28, decoder_start_token_id=28, eos_token_id=0).config, 29)
    assert opus.theirs.tolist() == [28, 28, 0, 1, *range(2, 28)]
    assert opus.ours(torch.tensor([28, 0, 1, 2, 27])).tolist() == [PAD, END, UNK, 4, 29]
    own = MarianIds.of(marian(pad_token_id=PAD, decoder_start_token_id=START, eos_token_id=END).config, 29)
    assert own.theirs.tolist() == list(range(29))
    assert own.ours(torch.arange(29)).tolist() == list(range(29))


@pytest.mark.parametrize(("special", "unknown"), [({"eos_token_id": 0}, None), ({}, 2), ({}, 29)])
def test_special_tokens_that_are_none_or_the_same_are_refused(special: dict[str, int], unknown: int | None) -> None:
    with pytest.raises(ModelError, match=r"pad, start, end, unknown = 0, 0, \d, \d+: must be ids of 29 tokens"):
        MarianIds.of(marian(**special).config, 29, unknown)


def test_unequal_halves_are_refused() -> None:
    with pytest.raises(ModelError, match="decoder_ffn_dim = 23: the encoder has 19"):
        from_marian(marian(decoder_ffn_dim=23))


def test_an_output_layer_of_its_own_is_refused() -> None:
    with pytest.raises(ModelError, match="tie_word_embeddings = False: the output layer has a matrix of its own"):
        from_marian(marian(tie_word_embeddings=False))


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ModelError, match="activation_function = tanh: not among those"):
        from_marian(marian(activation_function="tanh"))
