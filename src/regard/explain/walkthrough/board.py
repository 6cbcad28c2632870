"""The board that steps are written on: it knows the model's weights and what a replay of the sentence recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.explain.replay import Model, Spelling
from regard.explain.trace import Trace
from regard.explain.walkthrough.prose import prose_of
from regard.explain.walkthrough.step import FEATURES, AxisLabels, Step, run_snippet


@dataclass(frozen=True)
class Value:
    """A tensor, and where it comes from."""

    tensor: Tensor
    origin: str

    def at(self, place: int) -> Value:
        return Value(self.tensor[place], f"{self.origin}[{place}]")

    def part(self, begin: int, end: int) -> Value:
        return Value(self.tensor[begin:end], f"{self.origin}[{begin}:{end}]")

    def as_row(self) -> Value:
        """(D,) → (1, D)"""
        return Value(self.tensor[None], f"{self.origin}[None]")

    def only_row(self) -> Value:
        """(1, D) → (D,)"""
        return self.at(0)


class Board:
    """Steps in the making."""

    def __init__(self, model: Model, trace: Trace, spelling: Spelling) -> None:
        self.model = model
        self.trace = trace
        self.spelling = spelling
        self.steps: list[Step] = []
        named = [*model.named_parameters(), *model.named_buffers()]
        self._names = {id(tensor): name for name, tensor in reversed(named)}  # of tied weights, the first name

    # What there is to begin from

    def seen(self, name: str) -> Value:
        """What the replay recorded."""
        return Value(_plain(self.trace.tensors[name]), f"trace {name}")

    def weight(self, tensor: Tensor) -> Value:
        """A parameter or buffer of the model."""
        return Value(_plain(tensor), f"parameter {self._names[id(tensor)]}")

    def zeros(self, size: int) -> Value:
        like = next(self.model.parameters())
        return Value(torch.zeros(size, dtype=like.dtype), "zeros")

    # Axes

    @property
    def source(self) -> AxisLabels:
        return positions("source", self.trace.source.pieces)

    @property
    def read(self) -> AxisLabels:
        """What the decoder read at each step."""
        return positions("target", self.trace.inputs)

    @property
    def predicted(self) -> AxisLabels:
        """What each step of the decoder led to."""
        return positions("predicted", self.trace.target.pieces)

    def words(self, scores: Tensor, also: int, count: int = 5) -> AxisLabels:
        """The outputs with the highest scores (V,), best first, and one that must be among them."""
        best: list[int] = scores.topk(min(count, len(scores))).indices.tolist()
        shown = best if also in best else [*best, also]
        return AxisLabels(
            "word", len(scores), tuple(shown), tuple(self.spelling.name(self.model, number) for number in shown)
        )

    # Writing

    def write(
        self,
        kind: str,
        name: str,
        part: str,
        inputs: Mapping[str, Value],
        snippet: str | Sequence[str],
        *,
        axes: Sequence[AxisLabels] = (),
        recorded: Value | None = None,
        row: int | None = None,
    ) -> Value:
        """Add a step. Its output is the model's own where the replay has it, else what the snippet makes of the inputs.

        Features, the one axis without names, need not be given.
        """
        code = snippet if isinstance(snippet, str) else "\n".join(snippet)
        tensors = {name: value.tensor for name, value in inputs.items()}
        output = run_snippet(code, tensors) if recorded is None else recorded.tensor
        title, idea, formula, tex = prose_of(kind, self.trace.task)
        step = Step(
            name=name,
            part=part,
            kind=kind,
            title=title,
            idea=idea,
            formula=formula,
            tex=tex,
            inputs=tensors,
            origins={name: value.origin for name, value in inputs.items()},
            output=output,
            axes=(*axes, *(features(size) for size in output.shape[len(axes) :])),
            snippet=code,
            recorded="" if recorded is None else recorded.origin.removeprefix("trace "),
            row=row,
        )
        self.steps.append(step)
        return Value(output, f"step {name}")


@dataclass(frozen=True)
class Spot:
    """Where in a stack of layers the walk goes."""

    board: Board
    side: str  # encoder, decoder
    level: int
    head: int
    axis: AxisLabels  # the positions of this side
    row: int  # of the piece walked with

    @property
    def place(self) -> str:
        return f"{self.side}.{self.level}"

    def seen(self, name: str) -> Value:
        """What the replay recorded at this layer."""
        return self.board.seen(f"{self.place}.{name}")

    def write(
        self,
        kind: str,
        name: str,
        part: str,
        inputs: Mapping[str, Value],
        snippet: str | Sequence[str],
        *,
        recorded: Value | None = None,
    ) -> Value:
        """A step with a row for each position."""
        return self.board.write(kind, name, part, inputs, snippet, axes=(self.axis,), recorded=recorded, row=self.row)


def positions(name: str, pieces: Sequence[str]) -> AxisLabels:
    return AxisLabels(name, len(pieces), tuple(range(len(pieces))), tuple(pieces))


def features(size: int) -> AxisLabels:
    shown = tuple(range(min(size, FEATURES)))
    return AxisLabels("feature", size, shown, tuple(map(str, shown)))


def linear(bias: Tensor | None) -> str:
    """A linear map of rows, as code."""
    return "result = x @ w.T" if bias is None else "result = x @ w.T + b"


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu()
