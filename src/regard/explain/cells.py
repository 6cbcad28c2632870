"""A recurrent model from inside: its gates and states over the text, how the context fills, what each step hangs on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import Tensor

from regard.errors import ModelError
from regard.explain.look import Looked, affordable
from regard.explain.recurrent import GATES, Filling, GateView, filling, gates, saliency

_STATE = re.compile(r"(?:encoder|decoder)\.\d+\.cell(?:\.forward|\.backward)?\.(?:hidden|cell)")


@dataclass(frozen=True)
class Cells:
    """All in the order of the text."""

    gates: tuple[GateView, ...]  # none in a plain RNN
    states: tuple[tuple[str, Tensor], ...]  # name and values (T, D)
    filling: tuple[Filling, ...]  # none without a recurrent encoder
    saliency: Tensor  # (T, S) norms of the gradient


def cells(looked: Looked) -> Cells:
    """What the cells did for one output, under the edits it was written with."""
    trace, model = looked.trace, looked.explanation.model
    states = tuple((name, value) for name, value in trace.tensors.items() if _STATE.fullmatch(name))
    if not states:
        raise ModelError("gates: this run has no recurrent cells; its attention is what there is to see")
    affordable(looked)
    gated = any(".cell." in name and name.rpartition(".")[2] in GATES for name in trace.tensors)
    encoder = any(name.startswith("encoder.") for name, _ in states)
    sources = () if trace.task == "language" else trace.source.rows
    return Cells(
        tuple(gates(trace)) if gated else (),
        states,
        tuple(filling(trace)) if encoder else (),
        saliency(model, sources, trace.target.ids, under=looked.under),
    )
