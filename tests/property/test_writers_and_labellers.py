"""What must hold for language models and labellers, whatever the batch."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given
from torch import Tensor

import regard
import tiny
from regard.nn.observe import Recorder
from regard.text.vocabulary import PAD

writers = pytest.mark.parametrize("preset", [preset for preset in tiny.PRESETS if tiny.writes_alone(preset)])
every_preset = pytest.mark.parametrize("preset", tiny.PRESETS)
POOLED = [  # every reader with a label for each word; every pool after encoders of each kind: it sees states alone
    *((reader, None) for reader in tiny.READERS),
    *product(("gru", "lstm-deep", "transformer-tiny", f"bahdanau{tiny.VECTORS}"), ("mean", "max", "attention")),
    *product(("rnn", "lstm-deep", f"gru{tiny.VECTORS}"), ["final"]),  # a Transformer has no last state
]
Batch = tuple[Tensor, Tensor]


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-9, rtol=1e-9)


@writers
@given(batch=tiny.batches())
def test_a_language_model_steps_as_it_runs(preset: str, batch: Batch) -> None:
    model, (_, target) = tiny.writer(preset), batch
    with torch.no_grad():
        whole = model(target)
        first, state = model.start(len(target))
        assert torch.equal(first, target[:, 0])
        for time in range(target.shape[1]):
            logits, state = model.step(target[:, time], state)
            close(logits, whole[:, time])
        close(model(target, observer=Recorder()), whole)


@writers
@given(batch=tiny.batches())
def test_a_language_model_follows_the_winners_of_a_beam(preset: str, batch: Batch) -> None:
    model, (_, target) = tiny.writer(preset), batch
    beam = torch.arange(len(target))[:, None].expand(-1, 3)
    with torch.no_grad():
        first, state = model.start(len(target))
        _, state = model.step(first, state)
        tokens = torch.arange(4, 7).repeat(len(target))
        logits, _ = model.step(tokens, state.select(beam))
        whole = model(torch.stack((first.repeat_interleave(3), tokens), 1))
    close(logits, whole[:, 1])


@writers
def test_a_state_that_has_read_nothing_may_be_selected(preset: str) -> None:
    model = tiny.writer(preset)
    with torch.no_grad():
        first, state = model.start(2)
        logits, _ = model.step(first.repeat_interleave(3), state.select(torch.tensor([[0] * 3, [1] * 3])))
        close(logits, model(first.repeat_interleave(3)[:, None])[:, 0])


@writers
def test_a_language_model_learns_from_every_parameter(preset: str) -> None:
    model = regard.language_model(tiny.settings(preset).model, tiny.TARGET_SIZE).train()
    model(tiny.rows([5, 3], tiny.TARGET_SIZE, 0, first=1)).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(("preset", "pool"), POOLED)
@given(batch=tiny.batches())
def test_a_label_does_not_depend_on_padding_or_batch_mates(preset: str, pool: str | None, batch: Batch) -> None:
    model, (ids, _) = tiny.tagger(preset, pool), batch
    source = tiny.read(preset, ids)
    with torch.no_grad():
        together = model(source)
        assert together.shape == (*(ids.shape if pool is None else ids.shape[:1]), tiny.LABELS)
        close(model(source, observer=Recorder()), together)
        for row in range(len(source)):
            own = source[row][ids[row] != PAD][None]
            close(model(own)[0], together[row, : own.shape[1]] if pool is None else together[row])


@every_preset
@pytest.mark.parametrize("pool", ["max", "attention"])
def test_a_labeller_learns_from_every_parameter(preset: str, pool: str) -> None:
    model = regard.labeller(tiny.settings(preset).model, tiny.SOURCE_SIZE, tiny.LABELS, pool).train()
    model(tiny.rows([5, 3], tiny.SOURCE_SIZE, 0)).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_a_final_pool_takes_the_top_layers_last_state() -> None:
    model, source = tiny.tagger("lstm-deep", "final"), tiny.rows([5, 3], tiny.SOURCE_SIZE, 0)
    with torch.no_grad():
        encoded = model.encoder(source, source != PAD)
        # the source is read back to front: the last state stands at the first word
        close(model(source), model.head(encoded.states[:, 0]))


def test_an_attention_pool_shows_which_words_decided() -> None:
    watch = Recorder()
    with torch.no_grad():
        tiny.tagger("gru", "attention")(tiny.rows([5, 3], tiny.SOURCE_SIZE, 0), observer=watch)
    weights = watch["pool.weights"]
    assert weights.shape == (2, 1, 1, 5)
    assert weights[1, 0, 0, 3:].eq(0).all()
