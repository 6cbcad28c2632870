"""Is what is shown what was used? Two numbers that a page can put beside its picture.

Rows of weights are distributions, so each sums to one. And a replay is one parallel pass, while the output was
written step by step: so it is written once more, step by step, and all weights are compared. No observer can see
the fused kernels that search takes without an observer; of those, the log-probabilities of the output are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from regard.decode.cancel import check_cancelled
from regard.explain.answer import Answer
from regard.explain.attribution import Under, alone
from regard.explain.replay import Keeper, Model, forward, resting
from regard.explain.trace import Trace
from regard.nn.observe import Observer


@dataclass(frozen=True)
class Checks(Answer):
    """Is what is shown what was used?"""

    largest_row_error: Annotated[float, Field(description="|Σ row − 1|, over every row of all weights.")]
    largest_difference_from_decoding: Annotated[
        float,
        Field(
            description="|shown − live|: the output written again, step by step. Of weights, else of log-probabilities."
        ),
    ]
    largest_difference_in_log_probability: Annotated[
        float, Field(description="Of a piece, shown and as search computes it.")
    ]


def checks(model: Model, trace: Trace, under: Under = alone) -> Checks:
    """Write the trace's output again, step by step, and compare. ``under`` makes the observer of edits."""
    shown = {name: value for name, value in trace.tensors.items() if name.endswith(".weights")}
    sums = [float((value.sum(-1) - 1).abs().max()) for value in shown.values()]
    plain = float((_live(model, trace, under()) - trace.log_probability).abs().max())
    watch = Keeper("weights", under())
    if shown:
        _live(model, trace, watch)
    apart = [float((watch[name][0] - value).abs().max()) for name, value in shown.items()]
    return Checks(max(sums, default=0.0), max(apart, default=plain), plain)


def _live(model: Model, trace: Trace, observer: Observer) -> Tensor:
    """The log-probabilities (T,) of the output, one step after the other; labels are all given in one step."""
    device = next(model.parameters()).device
    targets = torch.tensor(trace.target.ids, device=device)
    with torch.no_grad(), resting(model):
        if model.task == "label":
            scores = forward(model, trace.source.rows, None, observer)  # (T, C)
        else:
            scores = _steps(model, trace, targets, observer)  # (T, V)
    return scores.float().log_softmax(-1).gather(1, targets[:, None]).squeeze(1)


def _steps(model: Model, trace: Trace, targets: Tensor, observer: Observer) -> Tensor:
    assert model.task != "label"
    if model.task == "translate":
        source = torch.tensor([trace.source.ids], device=targets.device)
        token, state = model.start(source, observer=observer)
    else:
        token, state = model.start(1)
    scores = []
    for target in targets:
        check_cancelled()
        logits, state = model.step(token, state, observer)
        scores.append(logits[0])
        token = target[None]
    return torch.stack(scores)
