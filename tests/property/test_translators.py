"""What must hold for every preset, whatever the batch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import tiny
from regard.nn import masks
from regard.nn.observe import Recorder
from regard.text.vocabulary import PAD

every_preset = pytest.mark.parametrize("preset", tiny.READERS)
Batch = tuple[Tensor, Tensor]


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-9, rtol=1e-9)


def given_to(preset: str, batch: Batch) -> Batch:
    return tiny.read(preset, batch[0]), batch[1]


@every_preset
@given(batch=tiny.batches())
def test_a_step_is_the_forward_pass_one_token_at_a_time(preset: str, batch: Batch) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    with torch.no_grad():
        expected = model(source, target)
        first, state = model.start(source)
        assert torch.equal(first, target[:, 0])
        steps = []
        for time in range(target.shape[1]):
            logits, state = model.step(target[:, time], state)
            steps.append(logits)
    close(torch.stack(steps, 1), expected)
    assert state.length == target.shape[1]


@every_preset
@given(batch=tiny.batches(), cut=st.integers(0, 9))
def test_a_prefix_may_be_read_at_once_and_then_continued(preset: str, batch: Batch, cut: int) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    cut = min(cut, target.shape[1] - 1)
    with torch.no_grad():
        _, state = model.start(source)
        parts = []
        for part in (target[:, :cut], target[:, cut:]):
            if part.shape[1]:
                features, state = model.advance(part, state)
                parts.append(model.project(features))
        close(torch.cat(parts, 1), model(source, target))


@every_preset
@given(batch=tiny.batches(), more=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_padding_changes_nothing(preset: str, batch: Batch, more: tuple[int, int]) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    wider = [torch.nn.functional.pad(side, (0, extra), value=PAD) for side, extra in zip(batch, more, strict=True)]
    wider[0] = tiny.read(preset, wider[0])
    with torch.no_grad():
        close(model(*wider)[:, : target.shape[1]], model(source, target))


@every_preset
@given(batch=tiny.batches())
def test_batch_mates_change_nothing(preset: str, batch: Batch) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    with torch.no_grad():
        together = model(source, target)
        for row in range(len(source)):
            real, written = masks.padding(source)[row], target[row] != PAD
            own_source, own_target = source[row][real][None], target[row][written][None]
            close(model(own_source, own_target), together[row : row + 1, : own_target.shape[1]])


@every_preset
@given(batch=tiny.batches(), cut=st.integers(1, 9))
def test_the_future_changes_nothing(preset: str, batch: Batch, cut: int) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    changed = target.clone()
    changed[:, cut:] = 4 + (changed[:, cut:] + 1) % (tiny.TARGET_SIZE - 4)
    with torch.no_grad():
        close(model(source, changed)[:, :cut], model(source, target)[:, :cut])


@every_preset
@given(batch=tiny.batches())
def test_fused_is_written_out(preset: str, batch: Batch) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    with torch.no_grad():
        close(model(source, target, observer=Recorder()), model(source, target))


@every_preset
@given(batch=tiny.batches())
def test_a_masked_position_has_exactly_zero_weight(preset: str, batch: Batch) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    watch = Recorder()
    with torch.no_grad():
        model(source, target, observer=watch)
    hidden = ~masks.over_keys(masks.padding(source))
    positions = torch.arange(target.shape[1])
    ahead = ~masks.causal(positions, positions)
    for name in watch.names():
        if name.endswith(".weights"):
            weights = watch[name]
            forbidden = ahead if name.startswith("decoder") and ".self." in name else hidden
            assert weights.masked_select(forbidden.expand_as(weights)).eq(0).all(), name


@every_preset
@given(batch=tiny.batches())
def test_weights_are_a_distribution(preset: str, batch: Batch) -> None:
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    watch = Recorder()
    with torch.no_grad():
        model(source, target, observer=watch)
    for name in watch.names():
        if name.endswith(".weights"):
            total = watch[name].sum(-1)
            if preset.startswith("luong-local"):  # the Gaussian takes its share, as in the paper
                assert (total <= 1 + 1e-9).all()
            else:
                close(total, torch.ones_like(total))


@every_preset
@given(batch=tiny.batches(), seed=st.integers(0, 1000))
def test_select_then_step_is_step_then_select(preset: str, batch: Batch, seed: int) -> None:
    """On a beam: every sentence expands to three rows, which then change places and parents."""
    model, (source, target) = tiny.translator(preset), given_to(preset, batch)
    sentences, beam = len(source), 3
    generator = torch.Generator().manual_seed(seed)
    offsets = torch.arange(sentences)[:, None]
    with torch.no_grad():
        _, state = model.start(source)
        _, state = model.step(target[:, 0], state)
        state = state.select(offsets.expand(-1, beam))
        tokens = torch.randint(4, tiny.TARGET_SIZE, (sentences * beam,), generator=generator)
        _, state = model.step(tokens, state)
        parents = offsets * beam + torch.randint(0, beam, (sentences, beam), generator=generator)
        tokens = torch.randint(4, tiny.TARGET_SIZE, (sentences * beam,), generator=generator)
        before, _ = model.step(tokens[parents.flatten()], state.select(parents))
        after, _ = model.step(tokens, state)
    close(before, after[parents.flatten()])


@every_preset
@given(batch=tiny.batches(), seed=st.integers(0, 1000))
def test_finished_sentences_may_leave_the_batch(preset: str, batch: Batch, seed: int) -> None:
    model, (source, _) = tiny.translator(preset), given_to(preset, batch)
    generator = torch.Generator().manual_seed(seed)
    kept = torch.randperm(len(source), generator=generator)[: 1 + seed % len(source)]
    with torch.no_grad():
        first, state = model.start(source)
        _, state = model.step(first, state)
        tokens = torch.randint(4, tiny.TARGET_SIZE, (len(source),), generator=generator)
        expected, _ = model.step(tokens, state)
        actual, _ = model.step(tokens[kept], state.select(kept[:, None], sentences=kept))
    close(actual, expected[kept])


@every_preset
@given(batch=tiny.batches())
def test_hypotheses_share_their_source_without_a_copy(preset: str, batch: Batch) -> None:
    model, (source, _) = tiny.translator(preset), given_to(preset, batch)
    with torch.no_grad():
        first, state = model.start(source)
        _, state = model.step(first, state)
        beam = state.select(torch.arange(len(source))[:, None].expand(-1, 4))
        assert beam.source is state.source
        tokens = torch.arange(4, 8).repeat(len(source))
        shared, _ = model.step(tokens, beam)
        repeated = source.repeat_interleave(4, 0)
        copied = model(repeated, torch.stack((first.repeat_interleave(4), tokens), 1))[:, 1]
    close(shared, copied)


@every_preset
@given(batch=tiny.batches())
def test_a_state_may_be_continued_in_two_ways(preset: str, batch: Batch) -> None:
    """State is data: what one continuation writes, the other does not see."""
    model, (source, _) = tiny.translator(preset), given_to(preset, batch)
    four, five = (torch.full((len(source),), token) for token in (4, 5))
    with torch.no_grad():
        first, state = model.start(source)
        for token in (first, four, four):
            _, state = model.step(token, state)
        _, here = model.step(four, state)
        _, there = model.step(five, state)
        left, _ = model.step(four, here)
        right, _ = model.step(four, there)
        prefix = torch.stack((first, four, four), 1)
        for token, last in ((four, left), (five, right)):
            whole = torch.cat((prefix, token[:, None], four[:, None]), 1)
            close(last, model(source, whole)[:, -1])


@every_preset
@given(batch=tiny.batches())
def test_gradients_are_finite_and_reach_every_parameter(preset: str, batch: Batch) -> None:
    source, target = given_to(preset, batch)
    model = tiny.translator(preset, "model.dropout=0.2").train()
    model.zero_grad()
    model(source, target).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        if preset.startswith("luong-hard") and "score" in name:  # no gradient passes a choice: REINFORCE's part
            assert parameter.grad is None or parameter.grad.eq(0).all()
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@every_preset
def test_gradients_pass_through_steps_too(preset: str) -> None:
    model = tiny.translator(preset)
    source, target = tiny.rows([5, 3], tiny.SOURCE_SIZE, 1), tiny.rows([4, 4], tiny.TARGET_SIZE, 2, first=1)
    source = tiny.read(preset, source)
    _, state = model.start(source)
    total = torch.zeros((), dtype=torch.float64)
    for time in range(4):
        logits, state = model.step(target[:, time], state)
        total = total + logits.square().sum()
    parameters = list(model.parameters())
    stepped = torch.autograd.grad(total, parameters, allow_unused=True, materialize_grads=True)
    whole = torch.autograd.grad(
        model(source, target).square().sum(), parameters, allow_unused=True, materialize_grads=True
    )
    for actual, expected in zip(stepped, whole, strict=True):
        close(actual, expected)


def test_a_transformer_compiles_without_a_break() -> None:
    """The forward pass and the step with its growing cache, each as one graph (traced only: no code is made)."""
    model = tiny.translator("transformer-tiny")
    source, target = tiny.rows([5, 3], tiny.SOURCE_SIZE, 1), tiny.rows([6, 6], tiny.TARGET_SIZE, 2, first=1)
    forward, step = (torch.compile(call, backend="eager", fullgraph=True) for call in (model.forward, model.step))
    with torch.no_grad():
        expected = model(source, target)
        close(forward(source, target), expected)
        _, state = model.start(source)
        for time in range(target.shape[1]):
            logits, state = step(target[:, time], state)
            close(logits, expected[:, time])
