"""The Transformer laid out for a CPU writes what its twin writes, number for number."""

from __future__ import annotations

import pytest
import torch

import tiny
from regard.decode.fused import Fused
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.text.vocabulary import START

VARIANTS = {
    "as it comes": (),
    "norm after": ("model.norm_place=after",),
    "rms, swiglu": ("model.norm=rms", "model.activation=swiglu"),
    "batch norm, gelu": ("model.norm=batch", "model.activation=gelu"),
    "silu, learned": ("model.activation=silu", "model.positions=learned"),
    "rotary": ("model.positions=rotary", "model.width=18"),
    "no positions, dot": (
        "model.positions=none",
        "model.decoder_attention.score=dot",
        "model.cross_attention.score=dot",
    ),
    "another encoder": ("model.encoder_attention.score=additive",),
    "all tied": ("model.tie=all",),
    "zero start, embedding norm": ("model.start=zero", "model.embedding_norm=true"),
    "no final norm": ("model.final_norm=no", "model.tie=none"),
    "fairseq": ("model.interleaved=false", "model.frequencies=marian", "model.first_position=2"),
    "no scale, epsilon": ("model.embedding_scale=false", "model.norm_epsilon=0.01"),
    "ssru": ("model.autoregression=ssru",),
    "ssru, norm after, all tied": (
        *("model.autoregression=ssru", "model.norm_place=after", "model.tie=all", "model.start=zero"),
    ),
}


@pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("lengths", [[7], [7, 3, 5], [5, 5]], ids=str)
def test_every_step_has_the_logits_of_the_model(overrides: tuple[str, ...], lengths: list[int]) -> None:
    model = tiny.translator("transformer-small", *overrides)
    source = tiny.rows(lengths, tiny.SOURCE_SIZE, 1)
    target = tiny.rows([37] * len(lengths), tiny.TARGET_SIZE, 2, first=START)  # more than there is room for at first
    expected = model(source, target)
    fused = Fused(model)
    first, state = fused.start(source)
    assert first.tolist() == [START] * len(lengths)
    for place in range(target.shape[1]):
        logits, state = fused.step(target[:, place], state)
        torch.testing.assert_close(logits, expected[:, place])


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("model.norm_place=after", "model.positions=rotary", "model.width=18"),
        ("model.autoregression=ssru", "model.start=zero"),
    ],
)
def test_search_finds_the_same_outputs(beam: int, overrides: tuple[str, ...]) -> None:
    model = tiny.translator("transformer-small", *overrides)
    source, limits = tiny.rows([7, 3, 5, 11, 2, 13], tiny.SOURCE_SIZE, 3), torch.tensor([17, 3, 23, 5, 41, 19])
    found = [search(each, *each.start(source), limits, rule=Beam(beam, best=beam)) for each in (model, Fused(model))]
    for ours, theirs in zip(*found, strict=True):
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs])


@pytest.mark.parametrize(
    "overrides",
    [
        ("model.decoder_attention.score=cosine",),
        ("model.cross_attention.normaliser=relu",),
        ("model.cross_attention.selection=hard",),
        ("model.cross_attention.window.kind=monotonic",),
    ],
    ids=str,
)
def test_what_the_kernel_does_not_compute_is_left_to_the_model(overrides: tuple[str, ...]) -> None:
    assert not Fused.fits(tiny.translator("transformer-small", *overrides))


def test_a_recurrent_model_is_left_to_itself() -> None:
    assert not Fused.fits(tiny.translator("bahdanau"))
    assert Fused.fits(tiny.translator("transformer-small"))
