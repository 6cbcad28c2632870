"""What a trace shows is what the live, step-by-step decode used, for every preset and every number."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import tiny
from regard.explain.replay import replay
from regard.explain.trace import Trace
from regard.models.generator import EncoderDecoder, Generator
from regard.nn.observe import Recorder
from regard.text.vocabulary import END

every_preset = pytest.mark.parametrize("preset", tiny.READERS)
alone = pytest.mark.parametrize("preset", [name for name in tiny.PRESETS if tiny.writes_alone(name)])
sources = st.lists(st.integers(4, tiny.SOURCE_SIZE - 1), min_size=1, max_size=9)
targets = st.lists(st.integers(4, tiny.TARGET_SIZE - 1), min_size=1, max_size=9)
BEFORE_THE_MASK = ("products", "scores")  # of what a step cannot see yet there is a number only in the parallel pass


def live(model: Generator, source: list[int] | None, target: list[int]) -> tuple[Recorder, Tensor]:
    """One token at a time, watched; and the logits of the same steps with nobody watching."""
    watch, unwatched = Recorder(), []
    if isinstance(model, EncoderDecoder):
        ids = torch.tensor([source])
        (first, state), (_, plain) = model.start(ids, observer=watch), model.start(ids)
    else:
        (first, state), (_, plain) = model.start(1), model.start(1)
    for token in [int(first), *target[:-1]]:
        read = torch.tensor([token])
        _, state = model.step(read, state, watch)
        logits, plain = model.step(read, plain)
        unwatched.append(logits)
    return watch, torch.cat(unwatched)


def turned(preset: str, name: str) -> bool:
    """What is recorded from the last word to the first."""
    if preset.startswith(("lstm-reversed", "lstm-deep")) and name.startswith("encoder.") and name != "encoder.states":
        return True
    return ".backward." in name


def agree(preset: str, trace: Trace, watch: Recorder, logits: Tensor, tolerance: float) -> None:
    assert set(trace.tensors) == set(watch.names())
    for name, shown in trace.tensors.items():
        used = watch[name][0].reshape(shown.shape)
        used = used.flip(-2) if turned(preset, name) else used
        if name.startswith("decoder") and ".self." in name and name.endswith(BEFORE_THE_MASK):
            shown, used = shown.tril(), used.tril()  # noqa: PLW2901
        largest = max(1.0, float(used.abs().max()))
        assert float((shown - used).abs().max()) <= tolerance * largest, name
    odds = logits.log_softmax(-1)
    own = odds.gather(1, torch.tensor(trace.target.ids)[:, None])
    torch.testing.assert_close(trace.log_probability, own[:, 0], atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(trace.top_log_probability, odds.topk(5).values, atol=tolerance, rtol=tolerance)
    assert torch.equal(trace.rank, (odds > own).sum(1))


@every_preset
@settings(max_examples=8)
@given(source=sources, target=targets, finished=st.booleans())
def test_a_trace_is_what_the_live_steps_used(preset: str, source: list[int], target: list[int], finished: bool) -> None:
    model, target = tiny.translator(preset), target + [END] * finished
    source = tiny.read(preset, torch.tensor([*source, END])).tolist()
    with torch.no_grad():
        watch, logits = live(model, source, target)
    agree(preset, replay(model, source, target, detail="all", logits=True), watch, logits, 1e-9)


@every_preset
def test_a_trace_in_single_precision_is_within_a_millionth(preset: str) -> None:
    model = copy.deepcopy(tiny.translator(preset)).float()
    source, target = tiny.read(preset, torch.tensor([5, 9, 7, 11, 13, 6, END])).tolist(), [8, 21, 5, 8, 17, END]
    with torch.no_grad():
        watch, logits = live(model, source, target)
    agree(preset, replay(model, source, target, detail="all", logits=True), watch, logits, 1e-6)


@alone
@settings(max_examples=8)
@given(target=targets)
def test_a_language_model_is_replayed_like_its_live_steps(preset: str, target: list[int]) -> None:
    model = tiny.writer(preset)
    with torch.no_grad():
        watch, logits = live(model, None, [*target, END])
    agree(preset, replay(model, target_ids=[*target, END], detail="all", logits=True), watch, logits, 1e-9)


@every_preset
@settings(max_examples=8)
@given(source=sources, target=targets)
def test_rows_are_distributions_and_the_future_weighs_nothing(
    preset: str, source: list[int], target: list[int]
) -> None:
    read = tiny.read(preset, torch.tensor([*source, END])).tolist()
    trace = replay(tiny.translator(preset), read, [*target, END])
    for name, weights in trace.tensors.items():
        if not name.endswith(".weights"):
            continue
        total = weights.sum(-1)
        if preset.startswith("luong-local"):  # the paper's Gaussian is not normalised again
            assert (total <= 1 + 1e-9).all()
        else:
            torch.testing.assert_close(total, torch.ones_like(total))
        if name.startswith("decoder") and ".self." in name:
            assert weights.triu(1).eq(0).all()


@pytest.mark.parametrize("pool", [None, "mean", "attention"])
@pytest.mark.parametrize(
    "preset", [f"{name}{kind}" for name in ("bahdanau", "transformer-tiny") for kind in ("", tiny.VECTORS)]
)
def test_a_labeller_is_replayed(preset: str, pool: str | None) -> None:
    model, source = tiny.tagger(preset, pool), tiny.read(preset, torch.tensor([5, 6, 7])).tolist()
    with torch.no_grad():
        odds = model(torch.tensor([source])).reshape(-1, tiny.LABELS).log_softmax(-1)
    trace = replay(model, source)
    assert trace.task == "label"
    assert trace.target.ids == tuple(odds.argmax(-1).tolist())
    torch.testing.assert_close(trace.log_probability, odds.amax(-1))
    assert trace.rank.eq(0).all()
    given = replay(model, source, [1] * len(odds))
    torch.testing.assert_close(given.log_probability, odds[:, 1])
    assert ("pool.weights" in trace.tensors) == (pool == "attention")
