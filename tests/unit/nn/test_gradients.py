"""Gradients of every written-out equation against finite differences, and REINFORCE against the expectation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.nn.attention import (
    AdditiveScore,
    Attention,
    CosineScore,
    GeneralScore,
    InnerScore,
    PredictedWindow,
    relu,
    softmax,
)
from regard.nn.embeddings import Rotary
from regard.nn.layers import BatchNorm, layer_norm, rms_norm
from regard.nn.masks import from_lengths
from regard.nn.observe import UNOBSERVED, Recorder
from regard.nn.recurrent import CellState, elman_step, gru_step, lstm_step


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def module_check(module: nn.Module, call: Callable[..., Tensor], *inputs: Tensor) -> bool:
    """gradcheck with respect to the inputs and every parameter."""
    names = [name for name, _ in module.named_parameters()]
    parameters = [parameter for _, parameter in module.named_parameters()]

    def function(*values: Tensor) -> Tensor:
        given = dict(zip(names, values[len(inputs) :], strict=True))
        return torch.func.functional_call(
            _Call(module, call), {f"module.{k}": v for k, v in given.items()}, values[: len(inputs)]
        )

    return torch.autograd.gradcheck(function, (*inputs, *parameters))


class _Call(nn.Module):
    def __init__(self, module: nn.Module, call: Callable[..., Tensor]) -> None:
        super().__init__()
        self.module = module
        self.call = call

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.call(*inputs)


def test_elman_cell() -> None:
    def step(*values: Tensor) -> Tensor:
        return elman_step(values[0], CellState(values[1]), values[2], values[3], UNOBSERVED).hidden

    assert torch.autograd.gradcheck(step, (random(2, 3), random(2, 3), random(3, 3), random(3)))


def test_lstm_cell() -> None:
    def step(*values: Tensor) -> tuple[Tensor, Tensor]:
        state = lstm_step(values[0], CellState(values[1], values[2]), values[3], values[4], UNOBSERVED)
        assert state.cell is not None
        return state.hidden, state.cell

    assert torch.autograd.gradcheck(step, (random(2, 12), random(2, 3), random(2, 3), random(12, 3), random(12)))


def test_gru_cell() -> None:
    def step(*values: Tensor) -> Tensor:
        return gru_step(values[0], CellState(values[1]), values[2], values[3], UNOBSERVED).hidden

    assert torch.autograd.gradcheck(step, (random(2, 9), random(2, 3), random(9, 3), random(9)))


SCORES = {
    "dot": InnerScore(),
    "scaled dot": InnerScore(3**-0.5),
    "general": GeneralScore(2, 3, 3),
    "additive": AdditiveScore(2, 3, 3, 5),
    "concat": AdditiveScore(2, 3, 3, 5, bias=False),
    "cosine": CosineScore(2, 3),
}


@pytest.mark.parametrize("name", SCORES)
def test_score(name: str) -> None:
    score = SCORES[name].double()
    assert module_check(
        score, lambda query, keys: score(query, score.prepare(keys)), random(2, 2, 4, 3), random(2, 2, 5, 3)
    )


@pytest.mark.parametrize("normaliser", [softmax, relu])
def test_normaliser_under_a_mask(normaliser: Callable[[Tensor, Tensor], Tensor]) -> None:
    mask = from_lengths(torch.tensor([5, 2]), 5)[:, None]
    assert torch.autograd.gradcheck(lambda scores: normaliser(scores, mask), (random(2, 3, 5),))


def test_predicted_window_passes_a_gradient_to_its_centre() -> None:
    attention = Attention(InnerScore(), window=PredictedWindow(3, 9)).double()
    mask = from_lengths(torch.tensor([5, 2]), 5)

    def attend(query: Tensor, source: Tensor) -> Tensor:
        return attention(query, attention.remember(source, mask), observer=Recorder())

    assert module_check(attention, attend, random(2, 4, 3), random(2, 5, 3))


def test_norms() -> None:
    assert torch.autograd.gradcheck(lambda *v: layer_norm(*v, 1e-5), (random(2, 5), random(5), random(5)))
    assert torch.autograd.gradcheck(lambda *v: rms_norm(*v, 1e-6), (random(2, 5), random(5)))
    norm, mask = BatchNorm(3).double(), from_lengths(torch.tensor([4, 2]), 4)
    assert module_check(norm, lambda x: norm(x, mask), random(2, 4, 3))


def test_rotary_positions() -> None:
    assert torch.autograd.gradcheck(lambda x: Rotary(4)(x, 3), (random(2, 2, 3, 4),))


def test_reinforce_agrees_with_the_gradient_of_the_expectation() -> None:
    """Three positions, a reward for each: ∇ E[r] = Σ_s ∇α_s r_s, and REINFORCE estimates it as mean(r ∇ log α)."""
    draws = 40_000
    attention = Attention(InnerScore(), hard=True).double().train()
    keys = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]], dtype=torch.float64)
    reward = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    query = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)

    weights = softmax(keys[0] @ query)
    exact = torch.autograd.grad(weights @ reward, query)[0]

    watch = Recorder()
    asked = query.expand(draws, 1, 2)
    attention(asked, attention.remember(keys.expand(draws, 3, 2)), observer=watch)
    chosen = watch["weights"][:, 0, 0]  # (draws, 3), one-hot
    assert chosen.sum(-1).eq(1).all()
    frequency = chosen.mean(0)
    torch.testing.assert_close(frequency, weights.detach(), atol=5 * (0.25 / draws) ** 0.5, rtol=0)

    earned = chosen @ reward
    per_draw = torch.autograd.grad(watch["log_probability"][:, 0, 0, 0] @ earned, asked)[0][:, 0]  # (draws, 2)
    error = per_draw.std(0) / draws**0.5
    assert ((per_draw.mean(0) - exact).abs() < 4 * error).all()
    assert (error < exact.abs() / 10).all()  # the estimate is sharp enough for the comparison to mean something
