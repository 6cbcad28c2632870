"""The parts that a captured step compiles against the same as they are written, here without the C++ compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

import corpora_for_tests as small
from regard.data.batches import Batches
from regard.nn.transformer import DecoderLayer
from regard.runs.folder import Run
from regard.tasks.task import Tensors
from regard.trainer.start import open_task

CPU = torch.device("cpu")


@pytest.mark.parametrize("more", [(), ("train.consistency={kind='simcut', cut=0.0}",)])
def test_compiled_parts_give_the_eager_loss_with_one_graph_a_kind_of_part(more: tuple[str], tmp_path: Path) -> None:
    torch._dynamo.reset()
    counters.clear()
    settings = small.settings("transformer-tiny", "model.dropout=0.0", *more)
    task = open_task(Run.create(tmp_path / "run", settings), small.Notes().tell).train()
    batches = [Tensors.of(batch, CPU) for batch in Batches(task.train_examples, 128).epoch(0)]
    batches = [batch for batch in batches if batch.source.shape != batch.target_in.shape][:4]
    expected = [task(batch, static=True).detach() for batch in batches]
    task.compile_parts("eager")
    for batch, loss in zip(batches, expected, strict=True):
        torch.testing.assert_close(task(batch, static=True).detach(), loss, atol=0, rtol=1e-5)
    assert counters["stats"]["unique_graphs"] == 3  # an encoder's layer, a decoder's, the loss
    with torch.compiler.set_stance("force_eager"):
        torch.testing.assert_close(task(batches[0]).detach(), expected[0], atol=0, rtol=1e-5)
    assert counters["stats"]["unique_graphs"] == 3


def test_what_a_compiled_decoder_layer_keeps_of_a_target_has_no_gradient(tmp_path: Path) -> None:
    """Nothing follows it in training; else zeros would be made as its gradient, and added."""
    torch._dynamo.reset()
    task = open_task(Run.create(tmp_path / "run", small.settings("transformer-tiny")), small.Notes().tell).train()
    layer = next(each for each in task.modules() if isinstance(each, DecoderLayer))
    assert layer.cross is not None
    width = layer.residuals[0].norm.gain.shape[0]
    x, memory = torch.randn(3, 5, width), layer.cross.remember(torch.randn(3, 7, width))

    def kept() -> set[bool]:
        past = layer(x, layer.start(3, x), memory, 0)[1]
        return {part.requires_grad for part in past.view()}

    assert kept() == {True}
    task.compile_parts("eager")
    assert kept() == {False}
