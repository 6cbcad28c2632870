"""A step of a walkthrough: one intermediate value as idea, formula, numbers and code; and the board that steps are
written on, which knows the model's weights and what a replay of the sentence recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from pydantic import Field, PlainSerializer
from torch import Tensor, nn

from regard.errors import DataError, did_you_mean
from regard.explain.answer import ANYTHING, OfSentence
from regard.explain.replay import Model, Spelling
from regard.explain.trace import Side, Task, Trace
from regard.explain.walkthrough.prose import prose_of
from regard.nn.embeddings import OutputLayer

FORMAT = 1
FEATURES = 6  # shown of a vector
DIGITS = 6  # significant, in the shown view


@dataclass(frozen=True)
class AxisLabels:
    """What one axis of an output runs over, and which of its places are shown."""

    name: str  # source, target, feature, word
    size: int
    shown: tuple[int, ...]
    labels: tuple[str, ...]  # of the shown places


@dataclass(frozen=True)
class Step:
    """One intermediate. ``snippet`` makes ``result``, which is ``output``, of ``inputs`` with nothing but torch.

    ``origins`` say where each input comes from: ``step NAME`` an earlier step, ``trace NAME`` what a replay records,
    ``parameter NAME`` the model, or ``zeros``; an index may follow. ``recorded`` is where a replay has the output
    itself; it is empty where the model does not show the value, and then a later recorded step is made of it.
    """

    name: str  # encoder.0.self.queries, as in a trace where the trace has it
    part: str  # encoder, context, decoder, cross, output
    kind: str  # of its text: queries, softmax, forget_gate
    title: str
    idea: str
    formula: str
    tex: str
    inputs: Mapping[str, Tensor]
    origins: Mapping[str, str]
    output: Tensor
    axes: tuple[AxisLabels, ...]
    snippet: str
    recorded: str = ""
    row: int | None = None  # of the output, that of the piece walked with

    @property
    def shown(self) -> Tensor:
        """What people look at: all positions, the first few features, the most probable words."""
        value = self.output
        for number, axis in enumerate(self.axes):
            value = value.index_select(number, torch.tensor(axis.shown, dtype=torch.long))
        return value

    def run(self) -> Tensor:
        """The snippet's result, from the step's inputs, in a namespace with nothing else in it."""
        return run_snippet(self.snippet, self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """Plain data. Numbers are those shown, rounded; whole tensors are there by shape and name only.

        A hidden score is minus infinity, which JSON does not have: it is null.
        """
        inputs = {
            name: {"from": self.origins[name], "shape": list(tensor.shape)} for name, tensor in self.inputs.items()
        }
        axes = [
            {"name": axis.name, "size": axis.size, "shown": list(axis.shown), "labels": list(axis.labels)}
            for axis in self.axes
        ]
        said = ("name", "part", "kind", "title", "idea", "formula", "tex", "snippet")
        texts = {name: getattr(self, name) for name in said}
        numbers = {"shape": list(self.output.shape), "axes": axes, "row": self.row, "shown": _rounded(self.shown)}
        return {**texts, "inputs": inputs, "recorded": self.recorded, **numbers}


def run_snippet(snippet: str, inputs: Mapping[str, Tensor]) -> Tensor:
    """What a snippet assigns to ``result``."""
    namespace: dict[str, Any] = dict(inputs)
    exec("import torch\n" + snippet, namespace)
    result: Tensor = namespace["result"]
    return result


def _rounded(value: Tensor) -> Any:
    if value.dim():
        return [_rounded(row) for row in value]
    number = value.item()
    if isinstance(number, int):
        return number
    return float(f"{number:.{DIGITS}g}") if abs(number) < float("inf") else None


def _plain(side: Side) -> dict[str, Any]:
    return {"pieces": list(side.pieces), "words": list(side.words), "word_of": list(side.word_of)}


def _each(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [step.to_dict() for step in steps]


PlainSide = Annotated[Side, ANYTHING, PlainSerializer(_plain, return_type=dict[str, Any])]


@dataclass(frozen=True)
class Walkthrough(OfSentence):
    """The mathematics of a sentence, step by step."""  # in the order of the model; everything counts from 0

    task: Annotated[Task, PlainSerializer(str, return_type=str)]
    layer: int
    head: int
    position: int  # of the piece walked with: on the target, or on the source where only that is walked
    source_position: int  # of the source piece whose rows are marked
    source: PlainSide
    target: PlainSide
    steps: Annotated[
        tuple[Step, ...],
        ANYTHING,
        PlainSerializer(_each, return_type=list[dict[str, Any]]),
        Field(description="Each: name, title, idea, formula, snippet, axes, shown, …"),
    ] = field(repr=False)
    format: int = FORMAT

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, name: str) -> Step:
        for step in self.steps:
            if step.name == name:
                return step
        names = [step.name for step in self.steps]
        raise DataError(f"step = {name}: this walkthrough has no such step; {did_you_mean(name, names)}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a page or a file: what people are shown, and the names of what is exact."""
        told = self.plain(without=OfSentence)
        return {"format": told.pop("format"), **told}


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
        return Value(self.trace.tensors[name].detach().cpu(), f"trace {name}")

    def weight(self, tensor: Tensor) -> Value:
        """A parameter or buffer of the model."""
        return Value(tensor.detach().cpu(), f"parameter {self._names[id(tensor)]}")

    def linear(self, layer: nn.Linear | OutputLayer) -> dict[str, Value]:
        """The inputs ``w`` and ``b`` of a linear layer."""
        return {"w": self.weight(layer.weight), "b": self.weight(layer.bias)}

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
