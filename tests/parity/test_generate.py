"""Search against `generate` of `transformers`: the same tokens from the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, MarianConfig, MarianMTModel

from regard.decode.rules import Beam
from regard.decode.search import search
from regard.interop.huggingface import from_marian
from regard.text.special import END, PAD, START, UNK

SENTENCES, LONGEST = 200, 23


class EndAtLimit(LogitsProcessor):
    """At the limit we end an output, at the model's price for that; `generate` would cut it without an end."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.shape[1] < LONGEST:
            return scores
        allowed = torch.full_like(scores, -torch.inf)
        allowed[:, END] = scores[:, END]
        return allowed


def marian() -> MarianMTModel:
    torch.manual_seed(5)
    config = MarianConfig(
        vocab_size=131,
        d_model=20,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=5,
        decoder_attention_heads=5,
        encoder_ffn_dim=19,
        decoder_ffn_dim=19,
        max_position_embeddings=64,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
        scale_embedding=True,
        init_std=0.3,
    )
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, END] += 2.0  # so that outputs end at various lengths
    return model


def sentences() -> Tensor:
    source = torch.randint(4, 131, (SENTENCES, 17))
    for row in range(SENTENCES):
        length = row % 16
        source[row, length], source[row, length + 1 :] = END, PAD
    return source


def theirs(model: MarianMTModel, source: Tensor, beam: int, penalty: float) -> list[list[int]]:
    """A sentence is done when as many outputs have ended as the beam is wide: that is ``early_stopping=True``."""
    config = GenerationConfig(
        num_beams=beam,
        length_penalty=penalty,
        early_stopping=beam > 1,
        do_sample=False,
        max_length=LONGEST + 1,  # with the first token
        suppress_tokens=[PAD, START, UNK],
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
    )
    with torch.no_grad():
        outputs = model.generate(
            input_ids=source,
            attention_mask=(source != PAD).int(),
            generation_config=config,
            logits_processor=LogitsProcessorList([EndAtLimit()]),
        )
    return [[token for token in row if token not in (PAD, END)] for row in outputs.tolist()]


def ours(model: MarianMTModel, source: Tensor, beam: int, penalty: float) -> list[list[int]]:
    converted = from_marian(model)
    first, state = converted.start(source)
    limits = torch.full((len(source),), LONGEST)
    found = search(converted, first, state, limits, rule=Beam(beam, penalty))
    return [best.tokens for (best,) in found]


@pytest.mark.parametrize(("beam", "penalty"), [(1, 1.0), (5, 0.0), (5, 0.6), (5, 1.0), (2, 2.0)])
def test_search_writes_what_generate_writes(beam: int, penalty: float) -> None:
    model, source = marian(), sentences()
    found = ours(model, source, beam, penalty)
    assert len({tuple(tokens) for tokens in found}) > 25  # worth comparing
    assert found == theirs(model, source, beam, penalty)
