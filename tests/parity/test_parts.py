"""A batch on several threads gives the gradient of the whole, and the same one whenever it is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

import corpora_for_tests as small
from regard.data.batches import Batches
from regard.nn.fast import random as chance
from regard.runs.folder import Run
from regard.tasks.task import Task, Tensors
from regard.trainer import steps
from regard.trainer.optimizer import make_optimizer
from regard.trainer.start import open_task
from regard.trainer.steps import EagerStep

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And every batch worth dividing."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr(steps, "FEATURES", 0)
    yield
    torch.set_num_threads(before)


def opened(folder: Path, preset: str, *overrides: str) -> Task:
    torch.manual_seed(1)
    return open_task(Run.create(folder, small.settings(preset, *overrides)), small.Notes().tell).train()


def step_of(task: Task) -> EagerStep:
    optimizer = make_optimizer("sgd", task, weight_decay=0.0, momentum=0.0, second_moment=0.9)
    return EagerStep(task, optimizer)


def one_batch(task: Task) -> Tensors:
    return Tensors.of(next(iter(Batches(task.train_examples, 400).epoch(0))), CPU)


def gradients_of(task: Task, step: EagerStep, batch: Tensors) -> tuple[float, dict[str, Tensor]]:
    task.zero_grad()
    torch.manual_seed(7)
    loss = step._backward(batch, 101.0, last=True)
    return loss, {name: parameter.grad for name, parameter in task.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("model.norm=rms", "model.positions=rotary", "model.activation=swiglu"),
        ("model.autoregression=ssru", "model.start=zero", "model.embedding_norm=true"),
        ("task=language",),
        ("task=tag", "model.letters=9"),
        ("task=classify",),
    ],
)
def test_the_gradient_is_that_of_the_whole(overrides: tuple[str, ...], tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "transformer-tiny", "model.dropout=0.0", *overrides).double()
    batch, step = one_batch(task), step_of(task)
    assert step.parts is not None
    assert step.parts.count == 3
    assert step.parts.divides(batch)
    loss, found = gradients_of(task, step, batch)
    step.parts = None
    whole, expected = gradients_of(task, step, batch)
    assert loss == pytest.approx(whole, rel=1e-12)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-12)


def test_with_dropout_it_depends_on_the_seed_alone(tmp_path: Path) -> None:
    overrides = ("model.dropout=0.3", "model.attention_dropout=0.2", "train.word_dropout=0.1")
    task = opened(tmp_path / "run", "transformer-tiny", *overrides)
    batch, step = one_batch(task), step_of(task)
    assert step.parts is not None
    first, again = gradients_of(task, step, batch), gradients_of(task, step, batch)
    assert first[0] == again[0]
    assert all(torch.equal(gradient, again[1][name]) for name, gradient in first[1].items())
    torch.manual_seed(8)
    assert step._backward(batch, 101.0, last=True) != first[0]


@pytest.mark.parametrize(
    ("preset", "override"),
    [("transformer-tiny", "model.norm=batch"), ("bahdanau", "about=''"), ("conditional", "model.decoder.second=layer")],
)
def test_what_needs_the_whole_batch_or_loops_is_not_divided(preset: str, override: str, tmp_path: Path) -> None:
    assert step_of(opened(tmp_path / "run", preset, override)).parts is None


def test_one_thread_divides_nothing(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "transformer-tiny")
    assert step_of(task).parts is not None
    torch.set_num_threads(1)
    assert step_of(task).parts is None


def test_threads_of_parts_have_no_more_threads_of_their_own(tmp_path: Path) -> None:
    step = step_of(opened(tmp_path / "run", "transformer-tiny"))
    assert step.parts is not None
    assert {step.parts.pool.submit(torch.get_num_threads).result() for _ in range(23)} == {1}
    assert torch.get_num_threads() == 3


def test_little_stays_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = opened(tmp_path / "run", "transformer-tiny")
    step, batch = step_of(task), one_batch(task)
    assert step.parts is not None
    features = 16 * max(batch.source.numel(), batch.target_in.numel())
    monkeypatch.setattr(steps, "FEATURES", features // 3)
    assert step.parts.divides(batch)
    monkeypatch.setattr(steps, "FEATURES", features // 3 + 1)
    assert not step.parts.divides(batch)
    monkeypatch.setattr(steps, "FEATURES", 0)
    assert not step.parts.divides(Tensors(*(column[:2] for column in batch.columns())))


def test_a_seed_decides_what_a_thread_draws() -> None:
    def draw(seed: int) -> Tensor:
        with chance.seeded(seed):
            return chance.uniform(torch.Size([5]), CPU)

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))
    assert chance.generator() is None


def test_parts_one_after_another_give_the_same_bits_as_side_by_side(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "transformer-tiny", "model.dropout=0.3")
    batch, step = one_batch(task), step_of(task)
    assert step.parts is not None
    assert step.parts.concurrency.parallel
    together = gradients_of(task, step, batch)
    step.parts.concurrency.parallel_is_faster = False
    one_by_one = gradients_of(task, step, batch)
    assert together[0] == one_by_one[0]
    assert all(torch.equal(gradient, one_by_one[1][name]) for name, gradient in together[1].items())


def test_what_is_done_for_all_parts_is_done_by_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = opened(tmp_path / "run", "transformer-tiny")
    step, batch, seen = step_of(task), one_batch(task), []
    monkeypatch.setattr(step.optimizer, "step", lambda: seen.append(torch.get_num_threads()))
    step([batch], 101.0, 0.1, 1)
    assert seen == [1]
    assert torch.get_num_threads() == 3


def test_other_processes_are_noticed_and_their_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("regard.trainer.steps.time", SimpleNamespace(monotonic=lambda: now))  # not that of threads
    concurrency, modes = steps.Concurrency(), []

    def train(together: float, alone: float, steps: int = 40) -> None:
        nonlocal now
        for _ in range(steps):
            modes.append(concurrency.parallel)
            cost = together if concurrency.parallel else alone
            now += 1.0
            concurrency.measured(cost)

    train(1.0, 1.6)  # undisturbed: the other way is tried now and then, and left again
    assert concurrency.parallel_is_faster
    assert 0 < modes.count(False) <= 12
    train(5.0, 1.7)  # somebody needs a core
    assert not concurrency.parallel_is_faster
    train(1.0, 1.6)  # and has gone
    assert concurrency.parallel_is_faster
