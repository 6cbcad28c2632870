"""Search against `generate` of `transformers`: the same tokens from the same weights."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import Tensor

from regard.convert.huggingface import from_transformers
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.text.vocabulary import END, PAD, START, UNK

SENTENCES, LONGEST = 200, 23


SPECIAL = {"regard": (PAD, START, END, UNK), "one for two": (PAD, PAD, END, 1), "opus": (130, 130, 0, 1)}


class EndAtLimit:
    """At the limit we end an output, at the model's price for that; `generate` would cut it without an end."""

    def __init__(self, end: int) -> None:
        self.end = end

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.shape[1] < LONGEST:
            return scores
        allowed = torch.full_like(scores, -torch.inf)
        allowed[:, self.end] = scores[:, self.end]
        return allowed


def marian(kind: str) -> transformers.MarianMTModel:
    pad, start, end, _ = SPECIAL[kind]
    torch.manual_seed(5)
    config = transformers.MarianConfig(
        vocab_size=131,
        d_model=20,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=5,
        decoder_attention_heads=5,
        encoder_ffn_dim=19,
        decoder_ffn_dim=19,
        max_position_embeddings=64,
        pad_token_id=pad,
        eos_token_id=end,
        decoder_start_token_id=start,
        forced_eos_token_id=None,
        scale_embedding=True,
        init_std=0.3,
    )
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, end] += 2.0  # so that outputs end at various lengths
    return model


def sentences(kind: str) -> Tensor:
    pad, _, end, _ = SPECIAL[kind]
    source = torch.randint(4, 130, (SENTENCES, 17))
    for row in range(SENTENCES):
        length = row % 16
        source[row, length], source[row, length + 1 :] = end, pad
    return source


def theirs(model: transformers.MarianMTModel, source: Tensor, kind: str, beam: int, penalty: float) -> list[list[int]]:
    """A sentence is done when as many outputs have ended as the beam is wide: that is ``early_stopping=True``."""
    pad, start, end, unknown = SPECIAL[kind]
    config = transformers.GenerationConfig(
        num_beams=beam,
        length_penalty=penalty,
        early_stopping=beam > 1,
        do_sample=False,
        max_length=LONGEST + 1,  # with the first token
        suppress_tokens=[pad, start, unknown],
        pad_token_id=pad,
        eos_token_id=end,
        decoder_start_token_id=start,
    )
    with torch.no_grad():
        outputs = model.generate(
            input_ids=source,
            attention_mask=(source != pad).int(),
            generation_config=config,
            logits_processor=transformers.LogitsProcessorList([EndAtLimit(end)]),
        )
    return [[token for token in row if token not in (pad, start, end)] for row in outputs.tolist()]


def ours(model: transformers.MarianMTModel, source: Tensor, beam: int, penalty: float) -> list[list[int]]:
    converted, _, ids = from_transformers(model)
    first, state = converted.start(ids.ours(source))
    limits = torch.full((len(source),), LONGEST)
    found = search(converted, first, state, limits, rule=Beam(beam, penalty))
    return [ids.theirs[best.tokens].tolist() for (best,) in found]


@pytest.mark.parametrize(
    ("kind", "beam", "penalty"),
    [
        *(("one for two", 1, 1.0), ("one for two", 5, 0.0), ("one for two", 5, 0.6), ("one for two", 2, 2.0)),
        *(("opus", 1, 1.0), ("opus", 5, 1.0), ("regard", 5, 1.0)),
    ],
)
def test_search_writes_what_generate_writes(kind: str, beam: int, penalty: float) -> None:
    model, source = marian(kind), sentences(kind)
    found = ours(model, source, beam, penalty)
    assert len({tuple(tokens) for tokens in found}) > 25  # worth comparing
    assert found == theirs(model, source, kind, beam, penalty)


def test_a_model_of_opus_that_wants_to_stop_at_once_stops() -> None:
    model, source = marian("opus"), sentences("opus")[:3]
    with torch.no_grad():
        model.final_logits_bias[0, 0] += 1000.0
    for beam in (1, 4):
        assert ours(model, source, beam, 1.0) == theirs(model, source, "opus", beam, 1.0) == [[], [], []]
