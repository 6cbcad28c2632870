"""Recurrent models from inside: gates and states over the text, how the context vector fills, saliency."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field
from torch import Tensor

from regard.errors import ModelError
from regard.explain.answer import Answer, OfSentence, PackedTensor
from regard.explain.passes import PREFIX, SOURCE, Subject, Under, alone
from regard.explain.passes import saliency as saliencies
from regard.explain.replay import Model
from regard.explain.trace import Rows, Trace

if TYPE_CHECKING:
    from regard.explain.look import Looked

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
    found = _gates(trace)
    if not found:
        cells = any(".cell." in name for name in trace.tensors)
        reason = "a plain RNN has no gates" if cells else "this model has no recurrent cells"
        raise ModelError(f"trace: holds no gates; {reason}")
    return [_view(name, trace) for name in found]


def _gates(trace: Trace) -> list[str]:
    """Their names."""
    return [name for name in trace.tensors if ".cell." in name and name.rpartition(".")[2] in GATES]


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


def saliency(model: Model, source_ids: Rows, target_ids: Sequence[int], *, under: Under = alone) -> Tensor:
    """``‖∂ log-odds(y_t) / ∂ x_s‖`` (T, S): the importance of each piece read, without attention."""
    subject = Subject(model, source_ids, tuple(target_ids), "log-odds", under=under)
    return saliencies(subject)[PREFIX if model.task == "language" else SOURCE]


@dataclass(frozen=True)
class Cells(OfSentence):
    """A recurrent model from inside."""

    run: str
    output: str
    rows: Annotated[tuple[str, ...], Field(description="Pieces written: the rows of saliency.")]
    columns: Annotated[tuple[str, ...], Field(description="Pieces read: the columns of saliency.")]
    gates: tuple[GateView, ...]  # none in a plain RNN
    states: tuple[StateView, ...]
    saliency: Annotated[
        PackedTensor | None, Field(description="Norm of the gradient of each step's log-odds at each embedding.")
    ]
    filling: tuple[Filling, ...]  # none without a recurrent encoder


def cells(looked: Looked) -> Cells:
    """What the cells did for one output, under the edits it was written with."""
    trace = looked.trace
    found = tuple(states(trace))
    if not found:
        raise ModelError("gates: this run has no recurrent cells; look at its attention")
    looked.check_gradients()
    encoder = any(one.name.startswith("encoder.") for one in found)
    return Cells(
        run=looked.run,
        output=looked.output,
        rows=trace.target.pieces,
        columns=looked.read.pieces,
        gates=tuple(_view(name, trace) for name in _gates(trace)),
        states=found,
        saliency=looked.saliency,
        filling=tuple(filling(trace)) if encoder else (),
    )
