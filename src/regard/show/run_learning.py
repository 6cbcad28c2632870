"""How a run learned, as a part of its page: the curves of its log."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from regard.evaluate.run_report import RunReport
from regard.show import charts
from regard.show.charts import Axis, Point, Series
from regard.show.markup import Html
from regard.show.page import figure, more, paragraph


def learning_part(report: RunReport) -> list[Html]:
    learned = report.learning
    if not learned.moments and not learned.validations:
        return []
    losses = [
        ("training", [(one.step, one.loss) for one in learned.moments]),
        ("validation", [(one.step, one.loss) for one in learned.validations]),
    ]
    shown = [_curves([curve for curve in losses if curve[1]], "loss per prediction, in nats", "Loss by training step.")]
    shown.append(paragraph("note", _smoothing(report)))
    if len(learned.validations) > 1:
        scored = [(one.step, one.score) for one in learned.validations]
        name = learned.score or "score"
        shown.append(_curves([(name, scored)], name, f"{name} of the validation text, as the training measured it."))
    pace = [
        _curves([(name, values)], name, caption)
        for name, values, caption in (
            (
                "gradient norm",
                [(one.step, one.norm) for one in learned.moments],
                "Gradient norm before clipping.",
            ),
            ("rate", [(one.step, one.rate) for one in learned.moments], "Learning rate."),
        )
        if values
    ]
    return [*shown, more("Gradient norm and learning rate", *pace)] if pace else shown


def _smoothing(report: RunReport) -> str:
    return (
        "The training loss is the one that was minimised, with label smoothing and dropout where there are any; the "
        f"validation loss has neither. At most {len(report.learning.moments)} points, each a mean over the steps since "
        "the one before."
    )


def _curves(curves: Sequence[tuple[str, Sequence[tuple[int, float]]]], label: str, caption: str) -> Html:
    """Lines over steps; on a scale of powers of ten where values spread over more than one of them."""
    values = [value for _, points in curves for _, value in points if math.isfinite(value)]
    steep = bool(values) and min(values) > 0 and max(values) / min(values) > 10
    y = charts.logarithmic(label, values) if steep else charts.linear(label, values)
    heights = {name: [Point(step, _height(value, steep=steep)) for step, value in points] for name, points in curves}
    series = [Series(name, points) for name, points in heights.items()]
    steps = [step for _, points in curves for step, _ in points]
    last = ", ".join(f"{name} {points[-1][1]:.3g} at step {points[-1][0]:,}" for name, points in curves)
    draw = _line(series, charts.linear("step", steps, zero=True), y, f"{caption} At the end: {last}.")
    return figure(draw, f"{caption} At the end: {last}.")


def _height(value: float, *, steep: bool) -> float | None:
    if not math.isfinite(value):
        return None
    return math.log10(value) if steep else value


def _line(series: Sequence[Series], x: Axis, y: Axis, spoken: str) -> Callable[[int], Html]:
    return lambda width: charts.line_chart(series, x, y, title=spoken, width=width)
