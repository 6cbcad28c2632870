"""The captured step against the eager one, where there is a GPU."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import regard
from regard.runs.folder import steps
from regard.runs.log import Moment, Validation
from regard.trainer import feed
from regard.trainer import start as training
from regard.trainer.steps import GraphStep
from regard.trainer.workers import Exchange

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def _the_same_batches_for_every_kind_of_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled steps have lengths of eights, and so other batches; here all kinds have those."""
    monkeypatch.setattr("regard.trainer.feed.menu_for", partial(_in_eights, feed.menu_for))


def _in_eights(menu_for: Callable[..., object], *given: object, **named: object) -> object:
    return menu_for(*given, **named | {"multiple": 8})


class Curve:
    """Keeps the losses of a training."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.valid: list[float] = []

    def moment(self, moment: Moment) -> None:
        self.losses.append(moment.loss)

    def validation(self, validation: Validation) -> None:
        self.valid.append(validation.loss)

    def watch(self, step: int, watched: object) -> None: ...

    def tell(self, line: str) -> None: ...


def train(folder: Path, preset: str, *overrides: str, listener: Curve | None = None) -> Curve:
    settings = regard.load_settings(
        preset,
        *("data.corpus='fable:fr'", "data.pairs=4000", "text.tokenizer=word", "text.joint=false"),
        *("train.batch=512", "train.steps=60", "train.validate_every=20", "train.shapes=6", "model.dropout=0.0"),
        *overrides,
    )
    curve = listener or Curve()
    training.start(folder, settings, curve, device="cuda")
    return curve


@pytest.mark.parametrize(
    ("preset", "step"),
    [(preset, "graph") for preset in ("transformer-tiny", "luong-general", "bahdanau", "lstm")]
    + [("transformer-tiny", "compiled-graph")],
)
def test_a_captured_step_is_the_eager_step(
    preset: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float32 and without dropout, on the same batches.

    Sums in another order change these losses by 1e-6 of their size within 60 steps (measured on a CPU with one thread
    and two); what a GPU adds to that by adding gradients in no fixed order was not measured.
    """
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    menu = "train.precision=float32"
    graph = train(tmp_path / "graph", preset, f"train.step={step}", menu)
    eager = train(tmp_path / "eager", preset, "train.step=eager", menu)
    assert len(graph.losses) == len(eager.losses) == 60
    torch.testing.assert_close(torch.tensor(graph.valid), torch.tensor(eager.valid), atol=1e-3, rtol=1e-3)


class Stops(Curve):
    """Interrupts its own process after a step."""

    def moment(self, moment: Moment) -> None:
        super().moment(moment)
        if moment.step == 25:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("preset", ["transformer-tiny", "luong-hard"])
def test_a_captured_training_with_dropout_goes_on_as_if_never_stopped(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that is captured again draws the numbers that each step would have drawn."""
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    chosen = ("train.step=graph", "train.precision=float32", "model.dropout=0.2", "train.seed=3")
    whole = train(tmp_path / "whole", preset, *chosen)
    first = train(tmp_path / "parts", preset, *chosen, listener=Stops())
    rest = Curve()
    training.resume(tmp_path / "parts", rest, device="cuda")
    assert len(first.losses) < len(whole.losses) == len(first.losses) + len(rest.losses)
    torch.testing.assert_close(
        torch.tensor(first.losses + rest.losses), torch.tensor(whole.losses), atol=1e-3, rtol=1e-3
    )


def test_a_captured_step_draws_other_numbers_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch, no learning: what differs between steps is which values are dropped."""
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    still = ("train.rate=1e-12", "data.pairs=20", "data.words=6", "train.steps=12", "train.batch=4096")
    curve = train(tmp_path / "run", "transformer-tiny", "train.step=graph", "model.dropout=0.3", *still)
    assert len({round(loss, 5) for loss in curve.losses}) == 12


@pytest.mark.parametrize("step", ["graph", "compiled-graph"])
def test_a_captured_step_with_adapters_is_the_eager_step(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Low-rank additions are merged and frozen weights stay in both."""
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    train(tmp_path / "base", "transformer-tiny", "train.precision=float32", "train.steps=20")
    found = []
    for kind in (step, "eager"):
        limits = ("train.batch=512", "train.steps=40", "train.validate_every=20", "train.shapes=6", "train.rate=0.003")
        data = ("data.corpus='fable:fr'", "data.pairs=4000", "model.dropout=0.0", "train.precision=float32")
        given = (f"train.base={tmp_path / 'base'}", *data, *limits, "train.adapt.kind=lora", f"train.step={kind}")
        curve = Curve()
        training.start(tmp_path / kind, training.fitted("", *given, device="cuda")[0], curve, device="cuda")
        found.append(curve.valid)
    assert found[0][-1] < found[0][0] - 0.01
    assert found[0] == pytest.approx(found[1], abs=2e-3)


class Joined(GraphStep):
    """A captured step that adds up gradients in a process group, as several processes do."""

    def _set_up(self, *, compiled: bool) -> None:
        super()._set_up(compiled=compiled)
        self.exchange = Exchange(self.task.parameters(), bucket=50_000)


@pytest.mark.skipif(not dist.is_nccl_available(), reason="needs NCCL")
@pytest.mark.parametrize("step", ["graph", "compiled-graph"])
def test_a_captured_step_that_adds_up_gradients_with_nobody_is_the_step_alone(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout, in a process group of one: bit for bit."""
    chosen = (f"train.step={step}", "model.dropout=0.2", "train.average={kind='moving'}")
    train(tmp_path / "alone", "transformer-tiny", *chosen)
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        monkeypatch.setattr("regard.trainer.loop.GraphStep", Joined)
        train(tmp_path / "joined", "transformer-tiny", *chosen)
    finally:
        dist.destroy_process_group()
    alone, joined = (steps(tmp_path / name / "checkpoints")[-1] for name in ("alone", "joined"))
    for name in ("weights", "average", "optimizer"):
        assert (alone / f"{name}.safetensors").read_bytes() == (joined / f"{name}.safetensors").read_bytes()
