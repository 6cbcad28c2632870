"""What a forecast hangs on: attention over the moments that were read or, where there is none, gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from regard.data.series import Window, mean, naive
from regard.errors import DataError, ModelError, did_you_mean
from regard.explain.answer import Answer
from regard.explain.heatmap import HeatMap, reaching
from regard.explain.replay import Keeper, resting
from regard.explain.trace import layer_names
from regard.metrics.forecast import MEDIAN
from regard.tasks.forecast import Forecast, Forecaster

METHODS = ("attention", "gradient")
ORIGINS = ("cross-attention, mean of all layers and heads", "gradient of the median, absolute, summed over numbers")


@dataclass(frozen=True)
class Forecasted(Answer):
    """How a series goes on, and how much each moment ahead hangs on each moment that was read."""

    run: Annotated[str, Field(examples=["visitors"])]
    context: Annotated[
        list[list[float | None]], Field(description="What was read: (moments, channels); null: missing.")
    ]
    first: Annotated[int, Field(description="Which moment of the series was the first that was read, from 1.")]
    forecast: Annotated[list[list[float]], Field(description="The medians: (moments ahead, channels).")]
    levels: Annotated[list[float], Field(description="Which quantiles there are.")]
    quantiles: Annotated[list[list[list[float]]], Field(description="(moments ahead, channels, levels)")]
    naive: Annotated[list[list[float]], Field(description="The last season once more, or the last value.")]
    method: Annotated[str, Field(description="Where the weights come from.", examples=["attention"])]
    methods: Annotated[list[str], Field(description="What else this run could be asked for.")]
    weights: Annotated[list[list[float]], Field(description="(moments ahead, moments that were read)")]

    def picture(self) -> HeatMap:
        """The weights, drawn on the curve."""
        context = np.array(self.context, np.float64)
        curve = np.where(np.isnan(context), mean(context, 0), context)
        attended = self.method == "attention"
        return reaching(
            HeatMap(
                title="What each moment ahead looked at",
                rows=tuple(f"+{moment + 1}" for moment in range(len(self.weights))),
                columns=tuple(str(self.first + place) for place in range(len(context))),
                values=tuple(map(tuple, self.weights)),
                origin=ORIGINS[0 if attended else 1],
                column_name="moment",
                unit="weight" if attended else "gradient",
                curve=tuple(map(tuple, curve.T.tolist())),
            )
        )


def over_time(forecaster: Forecaster, text: str, method: str = "", run: str = "") -> Forecasted:
    """A forecast and, by attention or, where there is none, by gradients, what it hangs on. Its own medians are what
    the decoder reads, in one recorded pass."""
    if not text.strip():
        raise DataError("text = '': an empty series has nothing to look into; give it a number")
    if method not in ("", *METHODS):
        raise DataError(f"by = {method}: not for a forecast; {did_you_mean(method, METHODS)}")
    whole = forecaster.series([text])[0]
    context = whole[-forecaster.cut.context :]
    found = forecaster.forecast([context])[0]
    way = Window.of(context, forecaster.vectors, forecaster.cut)
    source, given = forecaster.batch([way], [context]), None
    if forecaster.cut.head == "autoregressive":
        given = torch.tensor(way.written(found[..., MEDIAN])[None], dtype=torch.float32, device=forecaster.device)
    attended = _attention(forecaster, source, given)
    if attended is None and method == "attention":
        raise ModelError("by = attention: this run attends to nothing; gradient would be right")
    weights = _gradients(forecaster, source, given) if attended is None or method == "gradient" else attended
    return Forecasted(
        run=run,
        context=[[None if np.isnan(one) else one for one in row] for row in context.tolist()],
        first=len(whole) - len(context) + 1,
        **Forecast(text, found).to_dict(),
        naive=naive(context, len(found), forecaster.cut.season).tolist(),
        method="attention" if weights is attended else "gradient",
        methods=list(METHODS if attended is not None else METHODS[1:]),
        weights=weights.tolist(),
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
