"""Views of recurrent models: gates over time, how the context vector fills, and how far a gradient reaches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from regard.errors import ModelError
from regard.explain.answer import Answer, PackedTensor
from regard.explain.passes import PREFIX, SOURCE, Subject, Under, alone
from regard.explain.passes import saliency as saliencies
from regard.explain.replay import Model
from regard.explain.trace import Rows, Trace
from regard.nn.recurrent import Stack

GATES = ("input", "forget", "output", "reset", "update")
_STATE = re.compile(r"(?:encoder|decoder)\.\d+\.cell(?:\.forward|\.backward)?\.(?:hidden|cell)")
OPEN = 0.9  # a gate above this lets through, one below 1 − this does not


@dataclass(frozen=True)
class GateView(Answer):
    """One gate of one layer."""

    name: Annotated[str, Field(examples=["encoder.0.cell.forget"])]
    rows: Annotated[tuple[str, ...], Field(description="Pieces: those read, and for a decoder those each step wrote.")]
    values: Annotated[PackedTensor, Field(description="(pieces, units), 0 closed, 1 open.")]
    mean: PackedTensor  # (T,)
    opened: Annotated[PackedTensor, Field(description="Share of units above 0.9.")]
    closed: Annotated[PackedTensor, Field(description="Share of units below 0.1.")]


@dataclass(frozen=True)
class StateView(Answer):
    """The state of one layer after each piece."""

    name: Annotated[str, Field(examples=["encoder.0.cell.hidden"])]
    rows: tuple[str, ...]
    values: Annotated[PackedTensor, Field(description="(pieces, units).")]


def gates(trace: Trace) -> list[GateView]:
    """Every gate of every recurrent layer, in the order of the text: LSTM input, forget, output; GRU reset, update."""
    found = [name for name in trace.tensors if ".cell." in name and name.rpartition(".")[2] in GATES]
    if not found:
        cells = any(".cell." in name for name in trace.tensors)
        reason = "a plain RNN has no gates" if cells else "this model has no recurrent cells"
        raise ModelError(f"trace: holds no gates; {reason}")
    return [_view(name, trace) for name in found]


def states(trace: Trace) -> list[StateView]:
    """What every recurrent layer remembered after each piece; none without such layers."""
    found = ((name, value) for name, value in trace.tensors.items() if _STATE.fullmatch(name))
    return [StateView(name, _pieces(trace, name), value) for name, value in found]


def _pieces(trace: Trace, name: str) -> tuple[str, ...]:
    """What a cell read or, in a decoder, what its step wrote."""
    return trace.source.pieces if name.startswith("encoder.") else trace.target.pieces


def _view(name: str, trace: Trace) -> GateView:
    values = trace.tensors[name]
    opened, closed = (values > OPEN).to(values).mean(-1), (values < 1 - OPEN).to(values).mean(-1)
    return GateView(name, _pieces(trace, name), values, values.mean(-1), opened, closed)


@dataclass(frozen=True)
class Filling(Answer):
    """How one encoder layer's state becomes the context vector."""

    name: str  # encoder.0.cell, or encoder.0.cell.backward
    rows: tuple[str, ...]
    likeness: Annotated[PackedTensor, Field(description="Cosine of the state after each piece with the last state.")]
    change: Annotated[
        PackedTensor, Field(description="How far each piece moved the state, as a share of all movement.")
    ]
    length: Annotated[PackedTensor, Field(description="Norm of the state.")]


def filling(trace: Trace) -> list[Filling]:
    """For each recurrent encoder layer and direction, what reading each token did to the state.

    Given in the order of the text. A backward direction, or a reversed encoder, has its last state at the first
    word; which end is the last is seen from the names and from ``trace.backwards``.
    """
    pattern = re.compile(r"(encoder\.\d+\.cell(?:\.forward|\.backward)?)\.hidden")
    found = [(match[1], trace.tensors[name]) for name in trace.tensors if (match := pattern.fullmatch(name))]
    if not found:
        raise ModelError("trace: holds no states of a recurrent encoder; this model has none")
    return [_filling(name, trace, values, trace.backwards != name.endswith("backward")) for name, values in found]


def _filling(name: str, trace: Trace, states: Tensor, backwards: bool) -> Filling:
    states = states.flip(0) if backwards else states
    likeness = torch.cosine_similarity(states, states[-1:], -1)
    steps = torch.diff(states, dim=0, prepend=torch.zeros_like(states[:1])).norm(dim=-1)
    views = likeness, steps / steps.sum(), states.norm(dim=-1)
    return Filling(name, trace.source.pieces, *(view.flip(0) if backwards else view for view in views))


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


def saliency(model: Model, source_ids: Rows, target_ids: Sequence[int], *, under: Under = alone) -> Tensor:
    """``‖∂ log-odds(y_t) / ∂ x_s‖`` (T, S): where there is no attention, what each step's choice hangs on."""
    subject = Subject(model, source_ids, tuple(target_ids), "log-odds", under=under)
    return saliencies(subject)[PREFIX if model.task == "language" else SOURCE]
