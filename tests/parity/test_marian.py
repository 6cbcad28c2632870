"""A tiny random Marian model of `transformers`, read into our parts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import MarianConfig, MarianMTModel

from regard.errors import ModelError
from regard.interop.huggingface import from_marian


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
    theirs = marian(activation_function=activation, scale_embedding=scale, pad_token_id=pad, decoder_start_token_id=pad)
    ours = from_marian(theirs)
    source, target = torch.randint(3, 28, (3, 7)), torch.randint(3, 28, (3, 5))
    source[1, 4:] = pad
    with torch.no_grad():
        expected = theirs(
            input_ids=source, attention_mask=(source != pad).int(), decoder_input_ids=target, use_cache=False
        ).logits
        torch.testing.assert_close(ours(source, target), expected, atol=1e-5, rtol=1e-5)
        first, state = ours.start(source)
        assert first.eq(pad).all()
        for time in range(5):
            logits, state = ours.step(target[:, time], state)
            torch.testing.assert_close(logits, expected[:, time], atol=1e-5, rtol=1e-5)


def test_equal_logits_with_two_vocabularies() -> None:
    theirs = marian(decoder_vocab_size=31, share_encoder_decoder_embeddings=False)
    source, target = torch.randint(3, 29, (2, 7)), torch.randint(3, 31, (2, 5))
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        torch.testing.assert_close(from_marian(theirs)(source, target), expected, atol=1e-5, rtol=1e-5)


def test_unequal_halves_are_refused() -> None:
    with pytest.raises(ModelError, match="decoder_ffn_dim = 23: the encoder has 19"):
        from_marian(marian(decoder_ffn_dim=23))


def test_an_output_layer_of_its_own_is_refused() -> None:
    with pytest.raises(ModelError, match="tie_word_embeddings = False: the output layer has a matrix of its own"):
        from_marian(marian(tie_word_embeddings=False))


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ModelError, match="activation_function = tanh: not among those"):
        from_marian(marian(activation_function="tanh"))
