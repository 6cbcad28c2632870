"""The feed-forward network in one, as it trains on a CPU, against its parts one after the other."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.layers import FeedForward, in_one_product, linear, together

WIDTH, HIDDEN = 5, 23


def parts(network: FeedForward, x: Tensor) -> Tensor:
    return network.contract(network.dropout(F.relu(network.expand(x))))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(7, 3), (11,)])
def test_values_and_gradients_are_those_of_the_parts(dropout: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    network = FeedForward(WIDTH, HIDDEN, dropout=dropout).double()
    for bias in (network.expand.bias, network.contract.bias):
        torch.nn.init.normal_(bias)
    x = torch.randn(*shape, WIDTH, dtype=torch.float64, requires_grad=True)
    wanted = torch.randn(*shape, WIDTH, dtype=torch.float64)
    results = []
    for compute in (network, lambda x: parts(network, x)):
        torch.manual_seed(7)
        out = compute(x)
        results.append((out, *torch.autograd.grad((out * wanted).sum(), (x, *network.parameters()))))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["expand", "contract"])
def test_frozen_weights_have_no_gradient_and_the_others_theirs(name: str) -> None:
    torch.manual_seed(0)
    network, x = FeedForward(WIDTH, HIDDEN).double(), torch.randn(11, WIDTH, dtype=torch.float64)
    network.get_submodule(name).requires_grad_(requires_grad=False)
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    ours, theirs = (
        torch.autograd.grad(compute(x).pow(2).sum(), learning) for compute in (network, lambda x: parts(network, x))
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_it_is_one_operation_in_training_alone() -> None:
    network, x = FeedForward(WIDTH, HIDDEN, dropout=0.3), torch.randn(3, WIDTH, requires_grad=True)
    assert type(network(x).grad_fn).__name__ == "_RectifiedBackward"
    assert type(network.eval()(x).grad_fn).__name__ == "AddmmBackward0"
    gelu = FeedForward(WIDTH, HIDDEN, F.gelu)
    assert type(gelu(x).grad_fn).__name__ == "AddmmBackward0"


def test_under_autocast_the_parts_are_narrow() -> None:
    network, x = FeedForward(WIDTH, HIDDEN), torch.randn(3, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        assert network(x).dtype == torch.bfloat16


@pytest.mark.parametrize("bias", [True, False])
def test_several_maps_in_one_product_give_values_and_gradients_of_each(bias: bool) -> None:
    torch.manual_seed(0)
    maps = [linear(WIDTH, outputs, bias=bias).double() for outputs in (3, 7, 2)]
    for each in maps:
        if bias:
            torch.nn.init.normal_(each.bias)
    x = torch.randn(2, 11, WIDTH, dtype=torch.float64, requires_grad=True)
    learned = [x, *(parameter for each in maps for parameter in each.parameters())]
    results = []
    for compute in (together, in_one_product):  # on a CPU the first takes one map after another
        made = compute(x, *maps)
        results.append((*made, *torch.autograd.grad(sum((each**2).sum() for each in made), learned)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
