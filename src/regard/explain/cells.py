"""A recurrent model from inside: its gates and states over the text, how the context fills, what each step hangs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from regard.errors import ModelError
from regard.explain.answer import OfSentence, PackedTensor
from regard.explain.looked import Looked
from regard.explain.recurrent import GATES, Filling, GateView, StateView, filling, gates, saliency, states


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
    trace, shown = looked.trace, looked.explanation
    found = tuple(states(trace))
    if not found:
        raise ModelError("gates: this run has no recurrent cells; its attention is what there is to see")
    looked.check_gradients()
    gated = any(".cell." in name and name.rpartition(".")[2] in GATES for name in trace.tensors)
    encoder = any(one.name.startswith("encoder.") for one in found)
    sources = () if trace.task == "language" else trace.source.rows
    return Cells(
        run=looked.run,
        output=looked.output,
        rows=trace.target.pieces,
        columns=shown.read.pieces,
        gates=tuple(gates(trace)) if gated else (),
        states=found,
        saliency=saliency(shown.model, sources, trace.target.ids, under=looked.under),
        filling=tuple(filling(trace)) if encoder else (),
    )
