"""Our stacks against torch's own recurrent modules: written out, and fused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.nn.masks import from_lengths
from regard.nn.observe import UNOBSERVED, Recorder
from regard.nn.recurrent import ELMAN, GRU, LSTM, Cell, Stack

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
CELLS = {"elman": ELMAN, "lstm": LSTM, "gru": GRU}


def twins(cell: Cell, depth: int, dtype: torch.dtype, *, bidirectional: bool) -> tuple[Stack, nn.RNNBase]:
    """Our stack and torch's module of several layers, with equal weights."""
    ours = Stack(cell, 5, 7, depth, bidirectional=bidirectional).to(dtype)
    theirs = cell.fused(5, 7, num_layers=depth, bidirectional=bidirectional, batch_first=True).to(dtype)
    with torch.no_grad():
        for level, layer in enumerate(ours.layers):
            for name, parameter in layer.kernel.named_parameters():
                getattr(theirs, name.replace("_l0", f"_l{level}")).copy_(parameter)
    return ours, theirs


def run_torch(module: nn.RNNBase, x: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    outputs, final = module(packed)
    padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
    return padded, list(final) if isinstance(final, tuple) else [final]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("watched", [True, False], ids=["written-out", "fused"])
@pytest.mark.parametrize("lengths", [[6, 6, 6], [6, 3, 1]], ids=["full", "padded"])
def test_a_stack_is_torchs_module(
    cell: str, depth: int, bidirectional: bool, dtype: torch.dtype, watched: bool, lengths: list[int]
) -> None:
    ours, theirs = twins(CELLS[cell], depth, dtype, bidirectional=bidirectional)
    x, sizes = torch.randn(3, 6, 5, dtype=dtype), torch.tensor(lengths)
    expected, expected_final = run_torch(theirs, x, sizes)
    observer = Recorder() if watched else UNOBSERVED
    outputs, final = ours(x, mask=from_lengths(sizes, 6), observer=observer)
    torch.testing.assert_close(outputs, expected, atol=TOLERANCE[dtype], rtol=0)
    directions = 2 if bidirectional else 1
    for level, state in enumerate(final):
        for part, whole in zip((state.hidden, state.cell), expected_final, strict=False):
            torchs = whole[level * directions : (level + 1) * directions].transpose(0, 1).flatten(1)
            assert part is not None
            torch.testing.assert_close(part, torchs, atol=TOLERANCE[dtype], rtol=0)


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_through_the_loop_are_those_of_the_kernel(cell: str) -> None:
    ours, _ = twins(CELLS[cell], 2, torch.float64, bidirectional=True)
    x, mask = torch.randn(3, 6, 5, dtype=torch.float64), from_lengths(torch.tensor([6, 3, 1]), 6)
    gradients = []
    for observer in (UNOBSERVED, Recorder()):
        outputs, final = ours(x, mask=mask, observer=observer)
        loss = outputs.square().sum() + final[0].hidden.sum()
        gradients.append(torch.autograd.grad(loss, list(ours.parameters())))
    for fused, written in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, written, atol=1e-10, rtol=0)


@pytest.mark.parametrize("cell", CELLS)
def test_a_layer_begins_where_its_state_says(cell: str) -> None:
    """Two halves, the state carried over, are the whole."""
    stack, _ = twins(CELLS[cell], 2, torch.float64, bidirectional=False)
    x = torch.randn(3, 6, 5, dtype=torch.float64)
    whole, _ = stack(x)
    first, states = stack(x[:, :4])
    second, _ = stack(x[:, 4:], states)
    torch.testing.assert_close(torch.cat((first, second), 1), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize("cell", CELLS)
def test_single_steps_are_torchs_cell(cell: str) -> None:
    stack = Stack(CELLS[cell], 5, 7)
    layer = stack.layers[0]
    kind = {"elman": nn.RNNCell, "lstm": nn.LSTMCell, "gru": nn.GRUCell}[cell]
    theirs = kind(5, 7)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.copy_(getattr(layer.kernel, f"{name}_l0"))
    x, hidden, memory = torch.randn(3, 5), torch.randn(3, 7), torch.randn(3, 7)
    state = type(stack.zero_state(3, x)[0])(hidden, memory if cell == "lstm" else None)
    expected = theirs(x, (hidden, memory))[0] if cell == "lstm" else theirs(x, hidden)
    torch.testing.assert_close(layer.step(layer.project(x), state).hidden, expected, atol=1e-6, rtol=0)
