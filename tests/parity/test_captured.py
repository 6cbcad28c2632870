"""The search in fixed memory writes what the written-out search writes; captured, where there is a GPU, too."""

from __future__ import annotations

import copy

import pytest
import torch

import tiny
from regard.decode.engines.captured import Captured, fitting, on_menu
from regard.decode.engines.pooled import StepShape
from regard.decode.engines.slots import read_back
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.decode.search import Hypothesis, search
from regard.models.generator import EncoderDecoder
from regard.text.vocabulary import END

LENGTHS = [7, 3, 5, 11, 2, 13, 1, 5, 37, 3, 8]
LIMITS = [17, 3, 23, 5, 41, 19, 1, 2, 71, 12, 20]
RULES = [
    Beam(1),
    Beam(4, best=4),
    Beam(5, length_penalty=0.6, best=2),
    Beam(3, length_penalty=-0.5, best=3),
    Beam(5, early=False, unknown=True),
]
VARIANTS = {
    "norm before": (),
    "norm after, all tied": ("model.norm_place=after", "model.tie=all"),
    "rotary, rms, swiglu": (
        "model.positions=rotary",
        "model.width=18",
        "model.norm=rms",
        "model.activation=swiglu",
    ),
    "learned, batch norm, gelu": ("model.positions=learned", "model.norm=batch", "model.activation=gelu"),
    "no positions, dot": ("model.positions=none", "model.decoder_attention.score=dot"),
    "zero start, embedding norm": ("model.start=zero", "model.embedding_norm=true"),
    "no final norm": ("model.final_norm=no", "model.tie=none"),
    "fairseq": ("model.interleaved=false", "model.frequencies=marian", "model.first_position=2"),
    "no scale, epsilon": ("model.embedding_scale=false", "model.norm_epsilon=0.01"),
}


def sharp(*overrides: str) -> EncoderDecoder:
    """Sure of itself, as a trained model is, and willing to end: so beams end at many lengths."""
    model = copy.deepcopy(tiny.translator("transformer-small", *overrides))
    model.decoder.output.bias.data[END] = 1.0
    return model


def written_out(
    model: EncoderDecoder, sources: list[list[int]], limits: list[int], rule: Beam
) -> list[list[Hypothesis]]:
    found = []
    for source, limit in zip(sources, limits, strict=True):
        row = torch.tensor([source], device=model.decoder.output.weight.device)
        found += search(model, *model.start(row), torch.tensor([limit], device=row.device), rule=rule)
    return found


def sources() -> list[list[int]]:
    rows = tiny.rows(LENGTHS, tiny.SOURCE_SIZE, 5).tolist()
    return [[*row[: length - 1], END] for row, length in zip(rows, LENGTHS, strict=True)]


def assert_alike(ours: list[list[Hypothesis] | None], theirs: list[list[Hypothesis]]) -> None:
    assert [[each.tokens for each in found or ()] for found in ours] == [[each.tokens for each in t] for t in theirs]
    for found, expected in zip(ours, theirs, strict=True):
        for one, other in zip(found or (), expected, strict=True):
            assert (one.score, one.log_probability) == pytest.approx((other.score, other.log_probability))


def test_a_model_without_numbers_finds_nothing_and_comes_to_an_end() -> None:
    model = sharp()
    model.decoder.output.bias.data[5] = torch.nan
    engine = Captured(model, torch.float64, menu=(2,), look_every=3)
    steps, step = iter(range(4 * sum(LIMITS))), engine.step
    engine.step = lambda *given: next(steps) >= 0 and step(*given)  # type: ignore[method-assign, func-returns-value]
    assert engine.search(sources(), LIMITS, Beam(3), 0) == [[] for _ in LIMITS]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_sentences_that_take_each_others_places_find_what_they_find_alone(rule: Beam) -> None:
    model = sharp()
    engine = Captured(model, torch.float64, menu=(1, 2, 5), look_every=3)
    expected = written_out(model, sources(), LIMITS, rule)
    assert_alike(engine.search(sources(), LIMITS, rule, 0), expected)
    assert_alike(engine.search(sources()[:3], LIMITS[:3], rule, 0), expected[:3])  # in memory that was used before


@pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)
def test_every_kind_of_transformer_writes_the_same(overrides: tuple[str, ...]) -> None:
    model, rule = sharp(*overrides), Beam(4, best=4)
    engine, some = Captured(model, torch.float64, menu=(3,)), sources()[:6]
    assert_alike(engine.search(some, LIMITS[:6], rule, 0), written_out(model, some, LIMITS[:6], rule))


def test_no_operation_of_a_step_depends_on_a_value() -> None:
    """On torch's device without values such an operation fails, as it would while a step is captured."""
    engine = Captured(sharp().float().to("meta"), menu=(2, 5))
    assert engine.graphs is None
    with torch.inference_mode():
        memory = engine._memory_for(Beam(3), 5, 11, 41)
        engine.step(memory, StepShape(2, 32, 32))
        engine.step(memory, memory.shape)


def test_a_plain_beam_is_searched_and_the_rest_is_left_to_the_loop() -> None:
    engine = Captured(sharp(), torch.float64)
    assert not engine.refuses(Options(Beam(5, best=3, unknown=True), longest=1.5, copy_unknown=True))
    for options in (
        Options(Sample(3)),
        Options(Beam(4, groups=2)),
        Options(Beam(4, coverage_penalty=0.2)),
        Options(no_repeat=3),
        Options(prefix="le"),
    ):
        assert engine.refuses(options)
    assert engine.search([], [], Beam(1), 0) == []


def test_attention_that_the_kernel_does_not_compute_is_left_to_the_model() -> None:
    assert Captured.fits(tiny.translator("transformer-small"))
    assert not Captured.fits(tiny.translator("bahdanau"))
    assert not Captured.fits(tiny.translator("transformer-small", "model.autoregression=ssru"))
    assert not Captured.fits(tiny.translator("transformer-small", "model.cross_attention.normaliser=relu"))


def test_there_are_as_many_slots_as_memory_allows() -> None:
    menu = (8, 32, 128)
    assert [on_menu(menu, count) for count in (1, 8, 9, 128, 1000)] == [8, 8, 32, 128, 128]
    assert [fitting(menu, 128, 3, free) for free in (1000, 300, 96, 5)] == [128, 32, 32, 8]
    assert fitting(menu, 32, 3, 1000) == 32


def test_a_place_without_an_output_is_never_looked_at() -> None:
    scores = torch.tensor([[-0.5, -torch.inf]])
    stale = torch.tensor([[2 * 1 + 1, 2 * 99]])  # the second is left from a longer sentence
    history = torch.tensor([[[[7, 8], [0, 0]]]], dtype=torch.int32)
    (found,) = read_back(scores, scores, stale, history)
    assert [each.tokens for each in found] == [[8]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_captured_steps_write_what_is_written_step_by_step(rule: Beam) -> None:
    model = sharp("model.width=32", "model.heads=2", "model.hidden=64").float().cuda()
    engine = Captured(model, menu=(2, 5), look_every=3)
    expected = written_out(model, sources(), LIMITS, rule)
    for _ in range(3):  # eager, captured, replayed
        assert_alike(engine.search(sources(), LIMITS, rule, 0), expected)
    assert engine.graphs is not None
    assert engine.graphs.graphs
    half = Captured(model, torch.bfloat16, menu=(2, 5))
    assert all(half.search(sources(), LIMITS, rule, 0))
