"""Muon for all matrices of a shape at once changes them as torch's Muon, one after another, does."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.trainer.optimizer import BatchedMuon

SHAPES = [(7, 23), (23, 7), (11, 11), (7, 23), (23, 7), (5, 3)]  # wide, high, square; some twice
HOW = {"momentum": 0.95, "weight_decay": 0.1, "adjust_lr_fn": "match_rms_adamw"}


def matrices() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape)) for shape in SHAPES]


@pytest.mark.parametrize("rate", [0.01, torch.tensor(0.01)], ids=["host", "device"])
def test_all_of_a_shape_at_once_change_as_one_by_one(rate: float | torch.Tensor) -> None:
    written, batched = matrices(), matrices()
    pair = (written, torch.optim.Muon(written, lr=0.01, **HOW)), (batched, BatchedMuon(batched, lr=rate, **HOW))
    for step in range(5):
        for parameters, optimizer in pair:
            torch.manual_seed(step)
            for number, each in enumerate(parameters):
                gradient = torch.randn_like(each)
                each.grad = None if number == step else gradient  # some have none now and then
            optimizer.step()
    for expected, found, before in zip(written, batched, matrices(), strict=True):
        assert not torch.equal(expected, before)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_without_gradients_nothing_changes() -> None:
    parameters = matrices()
    BatchedMuon(parameters, lr=0.01, **HOW).step()
    for before, now in zip(matrices(), parameters, strict=True):
        assert torch.equal(before, now)
