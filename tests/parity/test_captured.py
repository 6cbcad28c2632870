"""The search in fixed memory writes what the written-out search writes; captured, where there is a GPU, too."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache

import pytest
import torch

import regard
import tiny
from regard.decode.cancel import Cancelled, cancellable
from regard.decode.constraints import Constraint, Forbidden, Minimum, NoRepeat, Prefix, Terms
from regard.decode.engines.captured import Captured, Choosing, fitting, on_menu
from regard.decode.engines.fixed import RecurrentSteps, mapped
from regard.decode.engines.pooled import StepShape
from regard.decode.engines.slots import read_back
from regard.decode.options import Options
from regard.decode.rules import Beam, Rule, Sample
from regard.decode.search import Ensemble, Hypothesis, search
from regard.models.generator import EncoderDecoder
from regard.nn.state import State
from regard.text.vocabulary import END

# Float64 on a CPU. Float32 on a GPU, by kernels that depend on the number of rows: these scores in float32 are those in
# float64 to 6e-7 (conditional; 2e-7 and less for all others). With weights rounded to TF32 they are so to 1.5e-5
# (lstm-deep) to 3.6e-4 (transformer-small), 6.2e-5 for rnn: a tolerance of 1e-4 would not notice TF32, which cuDNN uses
# unless told otherwise, as below.
PRECISION = 1e-5 if torch.cuda.is_available() else 1e-6
LENGTHS = [7, 3, 5, 11, 2, 13, 1, 5, 37, 3, 8]
LIMITS = [17, 3, 23, 5, 41, 19, 1, 2, 71, 12, 20]
RULES = [
    Beam(1),
    Beam(4, best=4),
    Beam(5, length_penalty=0.6, best=2),
    Beam(3, length_penalty=-0.5, best=3),
    Beam(5, early=False, unknown=True),
]
SAMPLES = [
    Sample(),
    Sample(3, temperature=1.5, seed=7),
    Sample(4, top_k=5, unknown=True),
    Sample(5, nucleus=0.8, temperature=0.7),
    Sample(2, epsilon=0.03),
]
CONSTRAINED: dict[str, list[Constraint]] = {
    "least lengths": [Minimum([3, 2, 9, 4, 11, 5, 7, 1, 13, 0, 6])],
    "no repeat": [NoRepeat(2)],
    "no token twice": [NoRepeat(1)],
    "forbidden": [Forbidden([[7], [18, 18], [23, 23, 23], [23, 18], [9, 9, 9], [13, 4]])],
    "prefix": [Prefix([[5, 6, 7], [8], [], [4, 4, 4, 4], [9], [10, 5], [], [6], [7, 8, 9, 10, 11], [12], [4, 5]])],
    "given": [Prefix([[5, 6], [5], [5, 7], [5], [5, 8, 9], [5], [], [5], [5, 4], [5], [5]], given=1)],
    "terms": [
        Terms([[[5, 6], [7]], [[8]], [[6, 6]], [], [[5], [5, 9]], [[10, 11, 12]], [], [], [[4, 5]] * 2, [], [[9]]])
    ],
    "all at once": [
        *(Minimum([4] * 11), NoRepeat(3), Forbidden([[7], [11, 5]])),
        Terms([[[5, 6]], [], [[8, 6]], [], [[9]], [[10, 11]], [], [], [[4, 5], [6]], [], [[13]]]),
        Prefix([[5], [6], [7], [8], [9], [10], [], [], [11], [12], [13]]),
    ],
}
RECURRENT = {
    "rnn": (),
    "gru": (),
    "lstm-deep": (),
    "lstm-reversed": (),
    "bahdanau": (),
    "luong-dot": ("model.decoder.feeding=false",),
    "luong-general": (),
    "luong-concat": (),
    "luong-hard": (),
    "luong-local": (),
    "conditional": (),
}
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


def sharp(*overrides: str, preset: str = "transformer-small") -> EncoderDecoder:
    """Sure of itself, as a trained model is, and willing to end: so beams end at many lengths."""
    model = copy.deepcopy(tiny.translator(preset, *overrides))
    model.decoder.output.bias.data[END] = 1.0
    return model


def written_out(
    model: EncoderDecoder | Ensemble, sources: list[list[int]], limits: list[int], rule: Rule
) -> list[list[Hypothesis]]:
    found = []
    for number, (source, limit) in enumerate(zip(sources, limits, strict=True)):
        row = torch.tensor([source], device=next(model.parameters()).device)
        start, most = model.start(row), torch.tensor([limit], device=row.device)
        found += search(model, *start, most, rule=rule, numbers=[number])
    return found


def together(
    model: EncoderDecoder | Ensemble, limits: list[int], rule: Rule, constraints: list[Constraint]
) -> list[list[Hypothesis]]:
    """All sources as one batch, because a constraint knows a sentence by its place there."""
    rows = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in sources()], batch_first=True)
    rows = rows.to(next(model.parameters()).device)
    most = torch.tensor(limits, device=rows.device)
    return search(model, *model.start(rows), most, rule=rule, constraints=constraints)


def sources() -> list[list[int]]:
    rows = tiny.rows(LENGTHS, tiny.SOURCE_SIZE, 5).tolist()
    return [[*row[: length - 1], END] for row, length in zip(rows, LENGTHS, strict=True)]


def assert_alike(ours: list[list[Hypothesis] | None], theirs: list[list[Hypothesis]]) -> None:
    assert [[each.tokens for each in found or ()] for found in ours] == [[each.tokens for each in t] for t in theirs]
    for found, expected in zip(ours, theirs, strict=True):
        for one, other in zip(found or (), expected, strict=True):
            near = pytest.approx((other.score, other.log_probability), rel=PRECISION)
            assert (one.score, one.log_probability) == near


def test_a_model_without_numbers_finds_nothing_and_comes_to_an_end() -> None:
    model = sharp()
    model.decoder.output.bias.data[5] = torch.nan
    engine = Captured([model], torch.float64, menu=(2,), look_every=3)
    steps, step = iter(range(4 * sum(LIMITS))), engine.step
    engine.step = lambda *given: next(steps) >= 0 and step(*given)  # type: ignore[method-assign, func-returns-value]
    assert engine.search(sources(), LIMITS, Beam(3), 0) == [[] for _ in LIMITS]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_sentences_that_take_each_others_places_find_what_they_find_alone(rule: Beam) -> None:
    model = sharp()
    engine = Captured([model], torch.float64, menu=(1, 2, 5), look_every=3)
    expected = written_out(model, sources(), LIMITS, rule)
    assert_alike(engine.search(sources(), LIMITS, rule, 0), expected)
    assert_alike(engine.search(sources()[:3], LIMITS[:3], rule, 0), expected[:3])  # in memory that was used before
    assert all(engine.search(sources()[:2], LIMITS[:2], Sample(2), 0))  # shorter, in memory of its own
    assert_alike(engine.search(sources(), LIMITS, rule, 0), expected)
    assert len(engine.memories) == 2


@pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)
def test_every_kind_of_transformer_writes_the_same(overrides: tuple[str, ...]) -> None:
    model, rule = sharp(*overrides), Beam(4, best=4)
    engine, some = Captured([model], torch.float64, menu=(3,)), sources()[:6]
    assert_alike(engine.search(some, LIMITS[:6], rule, 0), written_out(model, some, LIMITS[:6], rule))


def test_a_search_that_is_cancelled_leaves_memory_that_serves_the_next() -> None:
    model = sharp()
    engine = Captured([model], torch.float64, menu=(2,), look_every=3)
    looks = iter(range(3))

    def check() -> None:
        if next(looks, None) is None:
            raise Cancelled

    with cancellable(check), pytest.raises(Cancelled):
        engine.search(sources(), LIMITS, Beam(3), 0)
    assert_alike(engine.search(sources(), LIMITS, Beam(3), 0), written_out(model, sources(), LIMITS, Beam(3)))


@pytest.mark.parametrize("rule", SAMPLES, ids=str)
def test_samples_are_those_that_a_sentence_draws_alone(rule: Sample) -> None:
    model = sharp()
    engine = Captured([model], torch.float64, menu=(1, 2, 5), look_every=3)
    expected = written_out(model, sources(), LIMITS, rule)
    assert_alike(engine.search(sources(), LIMITS, rule, 0), expected)
    some = [8, 2, 5]  # a sentence keeps its number, and memory that was used before is used again
    rows, limits = [sources()[row] for row in some], [LIMITS[row] for row in some]
    assert_alike(engine.search(rows, limits, rule, 0, numbers=some), [expected[row] for row in some])


@pytest.mark.parametrize("constraints", CONSTRAINED.values(), ids=CONSTRAINED)
@pytest.mark.parametrize("rule", [Beam(4, best=4), Beam(1), Beam(3, unknown=True, early=False), Sample(3)], ids=str)
def test_constraints_hold_alike_where_sentences_have_lengths_of_their_own(
    rule: Beam | Sample, constraints: list[Constraint]
) -> None:
    model, limits = sharp(), [max(limit, 9) for limit in LIMITS]
    engine = Captured([model], torch.float64, menu=(1, 2, 5), look_every=3)
    expected = together(model, limits, rule, constraints)
    assert_alike(engine.search(sources(), limits, rule, 0, constraints=constraints), expected)
    if rule.rows > 1:  # greedy, this model seldom ends
        assert expected != unconstrained(rule)  # they matter
    assert_alike(engine.search(sources(), limits, rule, 0), unconstrained(rule))  # and are forgotten


@cache
def unconstrained(rule: Beam | Sample) -> list[list[Hypothesis]]:
    return together(sharp(), [max(limit, 9) for limit in LIMITS], rule, [])


@pytest.mark.parametrize("rule", [Beam(4, best=4), Sample(3)], ids=str)
@pytest.mark.parametrize("preset", RECURRENT)
def test_every_kind_of_recurrent_decoder_writes_the_same(preset: str, rule: Beam | Sample) -> None:
    model = sharp(*RECURRENT[preset], preset=preset)
    engine = Captured([model], torch.float64, menu=(1, 2, 5), look_every=3)
    assert_alike(engine.search(sources(), LIMITS, rule, 0), written_out(model, sources(), LIMITS, rule))


@pytest.mark.parametrize("rule", [Beam(4, best=4), Beam(1), Sample(3)], ids=str)
def test_models_of_several_kinds_that_vote_write_the_same(rule: Beam | Sample) -> None:
    models = [sharp(), sharp(preset="bahdanau"), sharp("model.positions=rotary", "model.width=18")]
    engine = Captured(models, torch.float64, menu=(1, 2, 5), look_every=3)
    expected = written_out(Ensemble(models), sources(), LIMITS, rule)
    assert_alike(engine.search(sources(), LIMITS, rule, 0), expected)


def test_a_source_of_vectors_is_read_by_both_kinds_of_model() -> None:
    for preset in ("transformer-small", "bahdanau"):
        name = f"{preset}{tiny.VECTORS}"
        model = tiny.translator(name)
        rows = [tiny.read(name, torch.tensor(row)) for row in sources()]
        engine = Captured([model], torch.float64, menu=(2, 5))
        found = engine.search([row.tolist() for row in rows], LIMITS, Beam(3), 0)
        expected = [
            search(model, *model.start(row[None]), torch.tensor([most]), rule=Beam(3))[0]
            for row, most in zip(rows, LIMITS, strict=True)
        ]
        assert_alike(found, expected)


STEPS: dict[str, tuple[list[str], Rule, list[Constraint]]] = {
    "a beam": (["transformer-small"], Beam(3), []),
    "samples": (["transformer-small"], Sample(3, nucleus=0.9, top_k=5, epsilon=0.01), []),
    "constraints": (["transformer-small"], Beam(3), CONSTRAINED["all at once"]),
    "given tokens": (["transformer-small"], Sample(3), CONSTRAINED["given"]),
    "a recurrent model": (["bahdanau"], Beam(3), []),
    "models that vote": (["transformer-small", "luong-general"], Beam(3), []),
}


@pytest.mark.parametrize("kind", STEPS)
def test_no_operation_of_a_step_depends_on_a_value(kind: str) -> None:
    """On torch's device without values such an operation fails, as it would while a step is captured."""
    presets, rule, constraints = STEPS[kind]
    models = [sharp(preset=preset).float() for preset in presets]
    steps = [RecurrentSteps(model) for model in models if RecurrentSteps.fits(model)]
    examples = [(each._example().source, each._example().target) for each in steps]  # encoding reads lengths
    engine = Captured([model.to("meta") for model in models], menu=(2, 5))
    assert engine.graphs is None
    for model in getattr(engine.model, "models", [engine.model]):
        if isinstance(model, RecurrentSteps):
            model.one = State(*mapped(examples.pop(0), lambda each: each.to("meta")), 0)
    with torch.inference_mode():
        choosing = Choosing.of(rule, range(11), torch.tensor(LIMITS), constraints)
        if isinstance(rule, Sample):  # its random numbers are on the device of the limits
            choosing = replace(choosing, choose=lambda *given: rule._choose(*given, given[0].totals.double()))
        memory = engine._memory_for(choosing, 5, 11, 41)
        engine.step(memory, choosing, StepShape(2, 32, 32))
        engine.step(memory, choosing, memory.shape)


def test_what_compares_texts_or_looks_at_attention_is_left_to_the_loop() -> None:
    engine = Captured([sharp()], torch.float64)
    for options in (Options(Beam(5, best=3, unknown=True)), Options(Sample(3)), Options(no_repeat=3, prefix="le")):
        assert not engine.refuses(options)
    for options in (Options(Beam(4, groups=2)), Options(Beam(4, coverage_penalty=0.2))):
        assert engine.refuses(options)
    assert engine.search([], [], Beam(1), 0) == []


def test_models_that_do_not_fit_are_left_to_the_loop() -> None:
    small = tiny.translator("transformer-small")
    assert Captured.fits([small, tiny.translator("bahdanau"), tiny.translator("gru")])
    window = ("model.decoder.attention.window.kind=monotonic", "model.decoder.attention.window.reach=2")
    for model in (
        tiny.translator("transformer-small", "model.autoregression=ssru"),
        tiny.translator("transformer-small", "model.cross_attention.normaliser=relu"),
        tiny.translator("luong-general", *window),
    ):
        assert not Captured.fits([model])
        assert not Captured.fits([small, model])
    others = regard.encoder_decoder(tiny.settings("transformer-small").model, 23, 31)
    assert not Captured.fits([small, others])  # the loop says what is wrong


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


CAPTURED: dict[str, tuple[list[str], Beam | Sample, list[Constraint]]] = {
    **{str(rule): (["transformer-small"], rule, []) for rule in (*RULES, *SAMPLES)},
    **{name: (["transformer-small"], Beam(4, best=4), constraints) for name, constraints in CONSTRAINED.items()},
    **{f"samples, {name}": (["transformer-small"], Sample(3), CONSTRAINED[name]) for name in ("terms", "given")},
    **{preset: ([preset], Beam(4, best=4), []) for preset in RECURRENT},
    "recurrent, samples": (["bahdanau"], Sample(3), []),
    "models that vote": (["transformer-small", "bahdanau", "luong-dot"], Beam(4, best=4), []),
    "models that vote, samples": (["transformer-small", "gru"], Sample(3), []),
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", CAPTURED)
def test_captured_steps_write_what_is_written_step_by_step(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    presets, rule, constraints = CAPTURED[kind]
    sizes = ("model.width=32", "model.heads=2", "model.hidden=64")
    models = [sharp(*(sizes if "former" in preset else ()), preset=preset).float().cuda() for preset in presets]
    limits = [max(limit, 9) for limit in LIMITS]
    engine = Captured(models, menu=(2, 5), look_every=3)
    expected = together(models[0] if len(models) == 1 else Ensemble(models), limits, rule, constraints)
    for _ in range(3):  # eager, captured, replayed
        assert_alike(engine.search(sources(), limits, rule, 0, constraints=constraints), expected)
    assert engine.graphs is not None
    assert engine.graphs.graphs
    other = Sample(2) if isinstance(rule, Beam) and not constraints else Beam(2)
    for _ in range(2):  # with another memory, neither writes over the other
        assert all(engine.search(sources()[:4], LIMITS[:4], other, 0))
        assert_alike(engine.search(sources(), limits, rule, 0, constraints=constraints), expected)
    if presets == ["transformer-small"]:
        half = Captured(models, torch.bfloat16, menu=(2, 5))
        assert all(half.search(sources(), limits, rule, 0, constraints=constraints))
