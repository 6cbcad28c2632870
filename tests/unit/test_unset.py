"""Weights that are about to be read are not drawn first."""

from __future__ import annotations

import pytest
import torch

import regard
import tiny
from regard.nn.unset import Unset


@pytest.mark.parametrize("preset", ["transformer-small", "bahdanau"])
def test_a_model_is_built_without_a_random_number(preset: str) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with Unset():
        model = regard.encoder_decoder(tiny.settings(preset).model, tiny.SOURCE_SIZE, tiny.TARGET_SIZE)
    assert torch.equal(torch.get_rng_state(), before)
    shapes = {name: tensor.shape for name, tensor in tiny.translator(preset).state_dict().items()}
    assert {name: tensor.shape for name, tensor in model.state_dict().items()} == shapes


def test_outside_of_it_weights_are_drawn() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    regard.encoder_decoder(tiny.settings("bahdanau").model, tiny.SOURCE_SIZE, tiny.TARGET_SIZE)
    assert not torch.equal(torch.get_rng_state(), before)
