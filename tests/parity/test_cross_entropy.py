"""The output layer with its loss in one against the two written one after the other."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.fast import output_loss as room
from regard.nn.fast.output_loss import cross_entropy, linear_cross_entropy

SIZE, WIDTH, ROWS = 31, 7, 53


def given(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(ROWS, WIDTH), torch.randn(SIZE, WIDTH), torch.randn(SIZE)
    targets = torch.randint(1, SIZE, (ROWS,))
    targets[[2, 11, 52]] = 0
    return *(each.to(dtype).requires_grad_() for each in (x, weight, bias)), targets  # type: ignore[return-value]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("elements", [1, 5 * SIZE, 1 << 22])
def test_loss_and_gradients_are_those_of_the_two_steps(
    smoothing: float, elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(room._ELEMENTS, "cpu", elements)
    *parameters, targets = given()
    x, weight, bias = parameters
    expected = F.cross_entropy(
        F.linear(x, weight, bias), targets, ignore_index=0, reduction="sum", label_smoothing=smoothing
    )
    slopes = torch.autograd.grad(expected / 3, parameters)
    found = linear_cross_entropy(x, weight, bias, targets, smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    for one, other in zip(torch.autograd.grad(found / 3, parameters), slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


def test_a_layer_that_does_not_learn_passes_the_same_gradient_on() -> None:
    x, weight, bias, targets = given()
    expected = torch.autograd.grad(linear_cross_entropy(x, weight, bias, targets, 0.1), x)[0]
    before = weight.detach().clone()
    found = torch.autograd.grad(linear_cross_entropy(x, weight.detach(), bias.detach(), targets, 0.1), x)[0]
    assert torch.equal(found, expected)
    assert torch.equal(weight, before)


def test_without_a_gradient_it_is_the_written_out_twin() -> None:
    x, weight, bias, targets = given()
    with torch.no_grad():
        found = linear_cross_entropy(x, weight, bias, targets, 0.1)
    torch.testing.assert_close(found, cross_entropy(F.linear(x, weight, bias), targets, 0.1))


def test_logits_of_any_size_have_a_finite_loss() -> None:
    x, weight, bias, targets = given(torch.float32)
    scaled = (1000 * weight).detach().requires_grad_()
    expected = cross_entropy(F.linear(x, scaled, bias), targets)
    assert expected.isfinite()
    torch.testing.assert_close(linear_cross_entropy(x, scaled, bias, targets), expected)


def test_under_autocast_products_are_narrow_and_sums_are_not() -> None:
    x, weight, bias, targets = given(torch.float32)
    expected = linear_cross_entropy(x, weight, bias, targets, 0.1)
    slopes = torch.autograd.grad(expected, (x, weight, bias))
    with torch.autocast("cpu", torch.bfloat16):
        found = linear_cross_entropy(x, weight, bias, targets, 0.1)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=0)
    for one, other in zip(torch.autograd.grad(found, (x, weight, bias)), slopes, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=5e-2, atol=5e-2)
