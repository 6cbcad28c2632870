"""What must hold for every preset that writes vectors, whatever the batch."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import tiny
from regard.models.build import forecaster
from regard.models.generator import EncoderDecoder
from regard.nn import masks
from regard.text.vectors import VECTOR
from regard.text.vocabulary import START

every_preset = pytest.mark.parametrize("preset", tiny.PRESETS)
READ, WRITTEN, OUTPUTS = 3, 2, 7  # numbers of a vector that is read and of one that is written, and what describes it
Batch = tuple[Tensor, Tensor]


@cache
def model_of(preset: str) -> EncoderDecoder:
    torch.manual_seed(0)
    made = forecaster(tiny.settings(preset).model, READ, WRITTEN, OUTPUTS).double().eval()
    assert not made.decoder.output.weight.any()  # before it has learned it says nothing
    torch.nn.init.normal_(made.decoder.output.weight)
    return made


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Contexts of different lengths, and as many moments of each, after ``<start>``."""
    lengths, moments = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)), draw(st.integers(1, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    source = torch.randn((len(lengths), max(lengths), 1 + READ), generator=generator, dtype=torch.float64)
    source[..., 0] = VECTOR
    source[~masks.from_lengths(torch.tensor(lengths), max(lengths))] = 0
    target = torch.randn((len(lengths), moments, 1 + WRITTEN), generator=generator, dtype=torch.float64)
    target[..., 0], target[:, 0] = VECTOR, 0
    target[:, 0, 0] = START
    return source, target


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-9, rtol=1e-9)


@every_preset
@given(batch=batches())
def test_a_step_is_the_forward_pass_one_moment_at_a_time(preset: str, batch: Batch) -> None:
    model, (source, target) = model_of(preset), batch
    with torch.no_grad():
        first, state = model.start(source)
        close(first.double(), target[:, 0])
        steps = []
        for time in range(target.shape[1]):
            found, state = model.step(target[:, time], state)
            steps.append(found)
        close(torch.stack(steps, 1), model(source, target))


@every_preset
@given(batch=batches(), more=st.integers(1, 5))
def test_padding_and_batch_mates_change_nothing(preset: str, batch: Batch, more: int) -> None:
    model, (source, target) = model_of(preset), batch
    with torch.no_grad():
        together = model(source, target)
        close(model(torch.nn.functional.pad(source, (0, 0, 0, more)), target), together)
        for row, real in enumerate(masks.padding(source)):
            close(model(source[row][real][None], target[row][None])[0], together[row])


@every_preset
@given(batch=batches(), cut=st.integers(1, 5))
def test_the_future_and_what_is_hidden_change_nothing(preset: str, batch: Batch, cut: int) -> None:
    model, (source, target) = model_of(preset), batch
    later, hidden = target.clone(), target.clone()
    later[:, cut:, 1:] += 1
    hidden[:, 1:, 0] = START  # an id below those of vectors: its numbers are not read
    other = hidden.clone()
    other[:, :, 1:] += 1
    with torch.no_grad():
        close(model(source, later)[:, :cut], model(source, target)[:, :cut])
        close(model(source, other), model(source, hidden))


@every_preset
@given(batch=batches())
def test_paths_share_their_source(preset: str, batch: Batch) -> None:
    model, (source, target) = model_of(preset), batch
    rows, paths = len(source), 3
    with torch.no_grad():
        vector, state = model.start(source)
        every = torch.arange(rows)[:, None].expand(rows, paths)
        found, _ = model.step(vector[every.flatten()].double(), state.select(every))
        close(found.reshape(rows, paths, -1), model(source, target)[:, :1].expand(rows, paths, -1))
