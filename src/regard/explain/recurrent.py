"""Views of recurrent models: gates over time, how the context vector fills, and how far a gradient reaches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import ModelError
from regard.explain.importance import Under, alone, slopes
from regard.explain.replay import Model
from regard.explain.side import Rows
from regard.explain.trace import Trace
from regard.nn.recurrent import Stack

GATES = ("input", "forget", "output", "reset", "update")
OPEN = 0.9  # a gate above this lets through, one below 1 − this does not


@dataclass(frozen=True)
class GateView:
    """One gate of one layer over the text."""

    name: str  # decoder.0.cell.forget
    values: Tensor  # (T, D) in 0 … 1
    mean: Tensor  # (T,)
    opened: Tensor  # (T,) the share of units above 0.9
    closed: Tensor  # (T,) the share below 0.1


def gates(trace: Trace) -> list[GateView]:
    """Every gate of every recurrent layer, in the order of the text: LSTM input, forget, output; GRU reset, update."""
    found = [name for name in trace.tensors if ".cell." in name and name.rpartition(".")[2] in GATES]
    if not found:
        cells = any(".cell." in name for name in trace.tensors)
        reason = "a plain RNN has no gates" if cells else "this model has no recurrent cells"
        raise ModelError(f"trace: holds no gates; {reason}")
    return [_view(name, trace.tensors[name]) for name in found]


def _view(name: str, values: Tensor) -> GateView:
    opened, closed = (values > OPEN).to(values).mean(-1), (values < 1 - OPEN).to(values).mean(-1)
    return GateView(name, values, values.mean(-1), opened, closed)


@dataclass(frozen=True)
class Filling:
    """How one encoder layer's state becomes the context vector, word by word, in the order of reading."""

    name: str  # encoder.0.cell, or encoder.0.cell.backward
    likeness: Tensor  # (S,) cosine of the state after each token with the last state
    change: Tensor  # (S,) how far each token moved the state, as a share of all movement
    length: Tensor  # (S,) the norm of the state


def filling(trace: Trace) -> list[Filling]:
    """For each recurrent encoder layer and direction, what reading each token did to the state.

    Given in the order of the text. A backward direction, or a reversed encoder, has its last state at the first
    word; which end is the last is seen from the names and from ``trace.backwards``.
    """
    pattern = re.compile(r"(encoder\.\d+\.cell(?:\.forward|\.backward)?)\.hidden")
    found = [(match[1], trace.tensors[name]) for name in trace.tensors if (match := pattern.fullmatch(name))]
    if not found:
        raise ModelError("trace: holds no states of a recurrent encoder; this model has none")
    return [_filling(name, states, trace.backwards != name.endswith("backward")) for name, states in found]


def _filling(name: str, states: Tensor, backwards: bool) -> Filling:
    states = states.flip(0) if backwards else states
    likeness = torch.cosine_similarity(states, states[-1:], -1)
    steps = torch.diff(states, dim=0, prepend=torch.zeros_like(states[:1])).norm(dim=-1)
    views = likeness, steps / steps.sum(), states.norm(dim=-1)
    return Filling(name, *(view.flip(0) if backwards else view for view in views))


def reach(stack: Stack, inputs: Tensor) -> Tensor:
    """How far a gradient reaches back: ``‖∂ h_T / ∂ x_{T−k}‖`` for k = 0 … T−1, averaged over rows.

    ``inputs`` (B, T, D). The norm is that of the gradient of a fixed random direction of the last state, which in
    expectation is the Frobenius norm of the Jacobian over √D. In a plain RNN every step back is a product with the
    same matrix, so it shrinks like a power; an LSTM's cell adds, and its forget gates alone decide.
    """
    leaf = inputs.detach().clone().requires_grad_()
    with torch.enable_grad():
        outputs, _ = stack(leaf)
        direction = torch.randn(outputs.shape[-1], generator=torch.Generator().manual_seed(0)).to(outputs)
        (outputs[:, -1] @ direction).sum().backward(inputs=[leaf])
    assert leaf.grad is not None
    return leaf.grad.norm(dim=-1).mean(0).flip(0)  # (T,), nearest first


def saliency(
    model: Model, source_ids: Rows, target_ids: Sequence[int] | None = None, *, under: Under = alone
) -> Tensor:
    """``‖∂ log-odds(y_t) / ∂ x_s‖`` (T, S): where there is no attention, what each step's choice hangs on."""
    found, _ = slopes(model, source_ids, target_ids, under=under)
    return found.norm(dim=-1)
