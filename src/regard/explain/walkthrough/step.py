"""A step of a walkthrough: one intermediate value as idea, formula, numbers and code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from pydantic import Field, PlainSerializer
from torch import Tensor

from regard.errors import DataError, did_you_mean
from regard.explain.answer import ANYTHING, OfSentence
from regard.explain.trace import Side, Task

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
