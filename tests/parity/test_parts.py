"""A batch on several threads gives the gradient of the whole, and the same one whenever it is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

import corpora_for_tests as small
from regard.data.batches import Batches
from regard.nn import chance
from regard.run import Run
from regard.tasks.task import Task, Tensors
from regard.trainer.optimizer import make_optimizer
from regard.trainer.parts import ROWS, ROWS_OF_LOOPS
from regard.trainer.steps import EagerStep, Recipe
from regard.training import open_task

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def opened(folder: Path, preset: str, *overrides: str) -> Task:
    torch.manual_seed(1)
    return open_task(Run.create(folder, small.settings(preset, *overrides)), small.Notes().tell).train()


def step_of(task: Task) -> EagerStep:
    optimizer = make_optimizer("sgd", task, weight_decay=0.0, momentum=0.0, second_moment=0.9)
    return EagerStep(Recipe(task, optimizer, None, 1.0, autocast=False, device=CPU))


def one_batch(task: Task) -> Tensors:
    return Tensors.of(next(iter(Batches(task.train_examples, 3 * ROWS * 16).epoch(0))), CPU)


def gradients_of(task: Task, step: EagerStep, batch: Tensors) -> tuple[float, dict[str, Tensor]]:
    task.zero_grad()
    torch.manual_seed(7)
    loss = step._backward(batch, 101.0, last=True)
    return loss, {name: parameter.grad for name, parameter in task.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau", "luong-general"])
def test_the_gradient_is_that_of_the_whole(preset: str, tmp_path: Path) -> None:
    task = opened(tmp_path / "run", preset, "model.dropout=0.0").double()
    batch, step = one_batch(task), step_of(task)
    assert step.parts is not None
    assert (step.parts.count, step.parts.rows) == (3, ROWS if preset == "transformer-tiny" else ROWS_OF_LOOPS)
    step.parts.rows = ROWS
    assert step.parts.divides(batch)
    loss, found = gradients_of(task, step, batch)
    step.parts = None
    whole, expected = gradients_of(task, step, batch)
    assert loss == pytest.approx(whole, rel=1e-12)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("preset", ["transformer-tiny", "luong-hard", "lstm-deep"])
def test_with_dropout_it_depends_on_the_seed_alone(preset: str, tmp_path: Path) -> None:
    overrides = ["model.dropout=0.3", "train.word_dropout=0.1"]
    overrides += ["model.attention_dropout=0.2"] if preset == "transformer-tiny" else []
    task = opened(tmp_path / "run", preset, *overrides)
    batch, step = one_batch(task), step_of(task)
    assert step.parts is not None
    step.parts.rows = ROWS
    first, again = gradients_of(task, step, batch), gradients_of(task, step, batch)
    assert first[0] == again[0]
    assert all(torch.equal(gradient, again[1][name]) for name, gradient in first[1].items())
    torch.manual_seed(8)
    assert step._backward(batch, 101.0, last=True) != first[0]


def test_what_needs_the_whole_batch_is_not_divided(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "transformer-tiny", "model.norm=batch")
    assert step_of(task).parts is None
    plain = opened(tmp_path / "plain", "transformer-tiny")
    assert step_of(plain).parts is not None
    torch.set_num_threads(1)
    assert step_of(plain).parts is None


def test_few_rows_stay_together(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "transformer-tiny")
    step, batch = step_of(task), one_batch(task)
    assert step.parts is not None
    few = Tensors(*(column[: 3 * ROWS - 1] for column in batch.columns()))
    assert not step.parts.divides(few)


def test_a_seed_decides_what_a_thread_draws() -> None:
    def draw(seed: int) -> Tensor:
        with chance.seeded(seed):
            return chance.uniform(torch.Size([5]), CPU)

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))
    assert chance.generator() is None
