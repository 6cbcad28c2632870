"""What a forecast hangs on: attention over the moments that were read or, where there is none, gradients."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from regard.data.series import Matrix, Window, mean
from regard.errors import DataError, ModelError, did_you_mean
from regard.explain.heatmap import HeatMap, reaching
from regard.explain.replay import Keeper, resting
from regard.explain.trace import layer_names
from regard.metrics.forecast import MEDIAN
from regard.tasks.forecast import Forecaster

Method = Literal["attention", "gradient"]
METHODS: tuple[Method, ...] = ("attention", "gradient")


def over_time(forecaster: Forecaster, text: str, method: str = "") -> tuple[Matrix, HeatMap]:
    """The quantiles (H, F, Q) of a forecast, and how much each of its moments hangs on each that was read, drawn on
    the curve. Its own medians are what the decoder reads, in one recorded pass."""
    if not text.strip():
        raise DataError("text = '': an empty series has nothing to look into; give it a number")
    if method not in ("", *METHODS):
        raise DataError(f"by = {method}: not for a forecast; {did_you_mean(method, METHODS)}")
    context = forecaster.series([text])[0][-forecaster.cut.context :]
    found = forecaster.forecast([context])[0]
    way = Window.of(context, forecaster.vectors, forecaster.cut)
    source, given = forecaster.batch([way], [context]), None
    if forecaster.cut.head == "autoregressive":
        given = torch.tensor(way.written(found[..., MEDIAN])[None], dtype=torch.float32, device=forecaster.device)
    weights = None if method == "gradient" else _attention(forecaster, source, given)
    if weights is None and method == "attention":
        raise ModelError("by = attention: this run attends to nothing; gradient would be right")
    origin = "cross-attention, mean of all layers and heads"
    if weights is None:
        weights, origin = _gradients(forecaster, source, given), "gradient of the median, absolute, summed over numbers"
    first = len(forecaster.series([text])[0]) - len(context) + 1
    curve = np.where(np.isnan(context), mean(context, 0), context)
    return found, reaching(
        HeatMap(
            title="What each moment ahead looked at",
            rows=tuple(f"+{moment + 1}" for moment in range(len(found))),
            columns=tuple(str(first + place) for place in range(len(context))),
            values=tuple(tuple(row) for row in weights.tolist()),
            origin=origin,
            row_name="forecast",
            column_name="moment",
            unit="weight" if "attention" in origin else "gradient",
            curve=tuple(tuple(channel) for channel in curve.T.tolist()),
        )
    )


def _attention(forecaster: Forecaster, source: Tensor, given: Tensor | None) -> Tensor | None:
    """(H, S), or none where nothing is attended to."""
    watch = Keeper("weights")
    with torch.no_grad(), resting(forecaster.model):
        forecaster.quantiles(source, given, watch)
    layers = [watch[name][0].mean(0) for name in layer_names(watch.names(), "decoder", "cross")]
    return torch.stack(layers).mean(0) if layers else None


def _gradients(forecaster: Forecaster, source: Tensor, given: Tensor | None) -> Tensor:
    """(H, S): of each moment's median, all channels together, at each vector that was read."""
    source = source.clone().requires_grad_()
    with torch.enable_grad(), resting(forecaster.model):
        medians = forecaster.quantiles(source, given)[0, ..., MEDIAN].sum(-1)  # (H,)
        rows = [torch.autograd.grad(each, source, retain_graph=True)[0][0, :, 1:] for each in medians]
    return torch.stack(rows).abs().sum(-1)
