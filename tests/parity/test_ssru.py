"""A scan of all steps at once gives what the steps give, and so do its gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.nn.fast.scan import scan
from regard.nn.observe import Recorder
from regard.nn.transformer import SSRU


def one_by_one(keep: Tensor, new: Tensor, state: Tensor) -> Tensor:
    states = []
    for time in range(keep.shape[1]):
        state = keep[:, time] * state + new[:, time]
        states.append(state)
    return torch.stack(states, 1)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 13])
def test_a_scan_is_its_loop(steps: int) -> None:
    torch.manual_seed(1)
    leaves = [torch.rand(3, steps, 5), torch.randn(3, steps, 5), torch.randn(3, 5)]
    found = []
    for function in (scan, one_by_one):
        inputs = [leaf.double().requires_grad_() for leaf in leaves]
        states = function(*inputs)
        found.append([states, *torch.autograd.grad(states.square().sum(), inputs)])
    for fast, slow in zip(*found, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-12, rtol=1e-12)


def test_a_long_sequence_whose_gates_are_shut_or_open_stays_finite() -> None:
    keep = torch.tensor([0.0, 1.0, 1e-38]).repeat(1, 400, 1)
    states = scan(keep, torch.ones(1, 400, 3), torch.zeros(1, 3))
    torch.testing.assert_close(states[0, -1], torch.tensor([1.0, 400.0, 1.0]))


def test_the_equation() -> None:
    """f = σ(W_f x + b_f), c = f c' + (1 − f) W x, h = ReLU(c), from any state, watched or not."""
    torch.manual_seed(2)
    ssru = SSRU(7).double()
    torch.nn.init.normal_(ssru.forget.bias)
    x, state = torch.randn(2, 5, 7, dtype=torch.float64), torch.randn(2, 7, dtype=torch.float64)
    watch, cell, hidden = Recorder(), state, []
    with torch.no_grad():
        for time in range(5):
            forget = torch.sigmoid(x[:, time] @ ssru.forget.weight.T + ssru.forget.bias)
            cell = forget * cell + (1 - forget) * (x[:, time] @ ssru.candidate.weight.T)
            hidden.append(cell.clamp(min=0))
        for observer in ((), (watch,)):
            found, last = ssru(x, state, *observer)
            torch.testing.assert_close(found, torch.stack(hidden, 1))
            torch.testing.assert_close(last, cell)
    assert watch.names() == ["forget", "candidate", "cell", "hidden"]
    torch.testing.assert_close(watch["hidden"], found)
