"""The question `attribute`: which words made a run write what it wrote, and why not another word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, cast

import torch
from pydantic import Field
from torch import Tensor

from regard.errors import DataError, did_you_mean
from regard.explain.answer import Hidden, OfSentence, PackedTensor
from regard.explain.attribution import LOOKING, POINTS, Asked, Half, Method, check_method, rows_of
from regard.explain.faithful import method_and_head
from regard.explain.heatmap import HeatMap, reaching
from regard.explain.look import Looked, look
from regard.explain.passes import Of, Subject
from regard.explain.replay import Model, forward, resting
from regard.explain.trace import Trace, check_number
from regard.explain.views import View, labelled, numbers
from regard.nn.observe import UNOBSERVED
from regard.tasks.load import Trained
from regard.text.vocabulary import END


@dataclass(frozen=True)
class Attribution(OfSentence):
    """The importance of each word read for each word written: words of the source, and of the prefix."""

    run: str
    output: str
    method: Method
    of: Annotated[str, Field(description="What is explained of each step.", examples=["log-probability"])]
    against: Annotated[str, Field(description="What might have been written instead; empty without a contrast.")]
    step: Annotated[int | None, Field(description="Of a contrast: which piece of the output it is about, from 0.")]
    origin: Annotated[str, Field(description="What the numbers are, in words.")]
    unit: Annotated[str, Field(examples=["nats"])]
    rows: Annotated[tuple[str, ...], Field(description="Words written or, on request, pieces.")]
    columns: Annotated[tuple[str, ...], Field(description="Of the source; none for a language model.")]
    read: Annotated[tuple[str, ...], Field(description="Of the prefix; none for a labeller.")]
    source: Annotated[PackedTensor | None, Field(description="(rows, columns); null where the method has none.")]
    prefix: Annotated[PackedTensor | None, Field(description="(rows, read); null where the method has none.")]
    source_layers: Annotated[
        PackedTensor | None, Field(description="(layers, rows, columns), where the method has layers.")
    ]
    prefix_layers: Annotated[PackedTensor | None, Field(description="(layers, rows, read).")]
    values: Annotated[PackedTensor, Field(description="The number explained, of each row.")]
    source_share: Annotated[
        PackedTensor | None,
        Field(description="The source's share of each row's absolute values; null where only one side has parts."),
    ]
    completeness_error: Annotated[
        float | None,
        Field(
            description="Relative error of the sum that the method promises; null where it promises none. Of "
            "integrated gradients it says nothing, because weights are fitted to that sum: see `quadrature_error`."
        ),
    ]
    quadrature_error: Annotated[
        float | None,
        Field(
            description="Of integrated gradients, the error of that sum before the weights of the points were fitted: "
            "it says how exact the parts are, and more `points` make it smaller; else null."
        ),
    ]
    trace: Hidden[Trace]

    @property
    def main(self) -> tuple[Tensor, tuple[str, ...]]:
        """The source's part, else the prefix': what a picture shows first."""
        if self.source is not None:
            return self.source, self.columns
        assert self.prefix is not None
        return self.prefix, self.read

    def picture(self, *, prefix: bool = False) -> HeatMap:
        """One part as a heat map."""
        values, columns = self.main
        if prefix and self.prefix is not None:
            values, columns = self.prefix, self.read
        share = self.unit == "share"
        error = "" if self.completeness_error is None else f"; completeness error {self.completeness_error:.1e}"
        if self.quadrature_error is not None:  # the other is zero by construction
            error = f"; quadrature error {self.quadrature_error:.1%}, then weights were fitted to the sum"
        found = HeatMap(
            title=self.method,
            rows=labelled(self.trace, self.rows),
            columns=columns,
            values=numbers(values),
            origin=self.origin + error,
            column_name="read so far" if columns is self.read and columns is not self.columns else "source",
            scale="sequential" if share or self.method == "saliency" else "diverging",
            sums=share,
            unit=self.unit,
        )
        return found if share else reaching(found)


def attribute(
    run: Trained,
    text: str | Looked,
    method: str = "masking",
    of: str = "log-probability",
    against: str = "",
    *,
    step: int | None = None,
    target: str | None = None,
    layer: int | None = None,
    head: str = "best",
    words: bool = True,
    special: bool = False,
    points: int = POINTS,
) -> Attribution:
    """The importance of each word read for each word written, by one method.

    ``text`` may have been looked into already. ``of``: what is explained of each step, its *log-probability*,
    *probability*, *log-odds* or *entropy*. ``against`` asks why a word was written and not this one: at piece ``step``,
    or where it came nearest. Several words are another translation, and the question is about the first step at which
    the two differ. ``layer`` and ``head`` count from 1 (see `View`). ``points`` are those of
    integrated gradients.
    """
    looked = text if isinstance(text, Looked) else look(run, text, target)
    check_method(method, of, against)
    trace = looked.trace
    place = None if not against else _contrast(run, trace, against, step)
    read = () if trace.task == "language" else trace.source.rows
    subject = Subject(looked.model, read, trace.target.ids, cast("Of", of), place, looked.under)
    if method in ("gradient", "saliency", "integrated-gradients") and place is None:
        looked.check_gradients()
    view = View("cross", layer, head, words, special)
    asked = Asked(subject, trace.source, trace.target, method, view, looked.reader, points)
    source, prefix, error, missed = asked.halves()
    groups, rows = asked.rows
    values = rows_of(subject.values()[:, None], groups, sums=asked.sums)[:, 0]
    return Attribution(
        run=looked.run,
        output=looked.output,
        method=cast("Method", method),
        of="contrast" if place else of,
        against=against,
        step=None if place is None else place[0],
        origin=asked.origin(against),
        unit=asked.unit,
        rows=rows,
        columns=source[1] if source else (),
        read=prefix[1] if prefix else (),
        source=source[0] if source else None,
        prefix=prefix[0] if prefix else None,
        source_layers=source[2] if source else None,
        prefix_layers=prefix[2] if prefix else None,
        values=values,
        source_share=_share(source, prefix) if method not in LOOKING else None,
        completeness_error=error,
        quadrature_error=missed,
        trace=trace,
    )


def most_faithful(run: Trained, looked: Looked, view: View) -> Attribution | None:
    """By the method that was measured to be the most faithful for the run; None where nothing was measured, or the text
    is too long for that method."""
    if looked.measured is None:
        return None
    method, head = method_and_head(looked.measured.best)
    try:
        return attribute(run, looked, method, head=head, words=view.words, special=view.special)
    except DataError:
        return None


def most_faithful_picture(run: Trained, looked: Looked) -> HeatMap | None:
    """The same as a heat map between words that says why it is shown."""
    found = most_faithful(run, looked, View())
    if found is None or looked.measured is None:
        return None
    picture = found.picture()
    title = f"{looked.measured.best}, {looked.measured.told}"
    return replace(picture, title=title, origin=f"{title} ({picture.origin})")


def _share(source: Half, prefix: Half) -> Tensor | None:
    if source is None or prefix is None:
        return None
    ours, theirs = source[0].abs().sum(-1), prefix[0].abs().sum(-1)
    return ours / (ours + theirs).clamp(min=1e-30)


# Contrasts


def _contrast(run: Trained, trace: Trace, against: str, step: int | None) -> tuple[int, int]:
    """The step that a contrast is about, and the piece that might have stood there."""
    written = trace.target.ids
    if step is not None:
        check_number("step", step, len(written), "the output")
        if against in trace.top_pieces[step]:
            return _other(step, int(trace.top_ids[step][trace.top_pieces[step].index(against)]), written, against)
    if run.task in ("tag", "classify"):
        labels = run.labels.tokens
        if against not in labels:
            raise DataError(f"against = {against}: is no label of this run; {did_you_mean(against, labels)}")
        other = labels.index(against)
        if step is None:
            step = trace.steps[_nearest(run.model, trace, [other] * len(trace.steps), trace.steps)]
        return _other(step, other, written, against)
    if run.task == "translate":
        pieces = run.tokenizers.written(against)
    else:
        assert run.task == "language"
        pieces = run.tokenizer.encode(against)
    if not pieces:
        raise DataError("against = '': has no piece to compare with; give a word or another translation")
    if step is not None:
        return _other(*_parting(written, step, pieces), written, against)
    if len(against.split()) > 1:
        return _other(*_parting(written, 0, [*pieces, END]), written, against)
    starts = [_parting(written, first, pieces) for first in range(len(written))]
    steps, others = zip(*starts, strict=True)
    return _other(*starts[_nearest(run.model, trace, others, steps)], written, against)


def _parting(written: Sequence[int], first: int, pieces: Sequence[int]) -> tuple[int, int]:
    """Where pieces written from ``first`` on would have parted from the output, and the piece that does."""
    for at, other in enumerate(pieces[: len(written) - first]):
        if written[first + at] != other:
            return first + at, other
    return first, pieces[0]


def _other(step: int, other: int, written: Sequence[int], against: str) -> tuple[int, int]:
    if written[step] == other:
        raise DataError(f"against = {against}: is what was written; give another word or another translation")
    return step, other


def _nearest(model: Model, trace: Trace, others: Sequence[int], steps: Sequence[int]) -> int:
    """Which of the pieces came nearest to being written at its step: its number."""
    source = () if trace.task == "language" else trace.source.rows
    with torch.no_grad(), resting(model):
        scores = forward(model, source, trace.target.ids, UNOBSERVED).log_softmax(-1)  # (T, V)
    written = torch.tensor(trace.target.ids, device=scores.device)
    at, other = torch.tensor(steps), torch.tensor(others, device=scores.device)
    behind = scores[at, written[at]] - scores[at, other]
    return int(behind.masked_fill(written[at] == other, torch.inf).argmin())
