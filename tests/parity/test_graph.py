"""The captured step against the eager one, where there is a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import regard
from regard import training
from regard.trainer.log import Moment, Validation

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


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


def train(folder: Path, preset: str, *overrides: str) -> Curve:
    settings = regard.load_settings(
        preset,
        *("data.corpus='fable:fr'", "data.pairs=4000", "text.tokenizer=word", "text.joint=false"),
        *("train.batch=512", "train.steps=60", "train.validate_every=20", "train.shapes=6", "model.dropout=0.0"),
        *overrides,
    )
    curve = Curve()
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
    """In float32 and without dropout, on the same batches."""
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    menu = "train.precision=float32"
    graph = train(tmp_path / "graph", preset, f"train.step={step}", menu)
    eager = train(tmp_path / "eager", preset, "train.step=eager", menu)
    assert len(graph.losses) == len(eager.losses) == 60
    torch.testing.assert_close(torch.tensor(graph.valid), torch.tensor(eager.valid), atol=1e-3, rtol=1e-3)
