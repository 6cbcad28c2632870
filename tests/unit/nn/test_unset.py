"""Weights that are about to be read are not drawn first."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import corpora_for_tests as small
import regard
import tiny
from regard.nn.fast.allocator import Unset
from regard.runs.folder import Run, best_checkpoint, used_weights
from regard.tasks.load import load_predictor
from regard.trainer.start import start


@pytest.mark.parametrize("preset", ["transformer-small", "bahdanau"])
def test_a_model_is_built_without_a_random_number(preset: str) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with Unset():
        model = regard.encoder_decoder(tiny.settings(preset).model, tiny.SOURCE_SIZE, tiny.TARGET_SIZE)
    assert torch.equal(torch.get_rng_state(), before)
    shapes = {name: tensor.shape for name, tensor in tiny.translator(preset).state_dict().items()}
    assert {name: tensor.shape for name, tensor in model.state_dict().items()} == shapes


@pytest.mark.parametrize(
    ("task", "preset", "override"),
    [("tag", "lstm", "model.letters=4"), ("classify", "transformer-tiny", "pool=attention"), ("language", "gru", "")],
)
def test_a_run_of_any_task_is_loaded_without_a_random_number(
    task: str, preset: str, override: str, tmp_path: Path
) -> None:
    limits = ("train.steps=1", "train.validate_every=1", f"task={task}", *([override] if override else []))
    start(tmp_path / "run", small.settings(preset, *limits), small.Notes(), device="cpu")
    before = torch.get_rng_state()
    loaded = load_predictor(tmp_path / "run").model.state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    written = load_file(used_weights(best_checkpoint(Run.open(tmp_path / "run"))))
    for name, tensor in loaded.items():
        assert torch.equal(tensor, written[f"model.{name}"])


def test_outside_of_it_weights_are_drawn() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    regard.encoder_decoder(tiny.settings("bahdanau").model, tiny.SOURCE_SIZE, tiny.TARGET_SIZE)
    assert not torch.equal(torch.get_rng_state(), before)
