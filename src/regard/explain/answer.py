"""What every answer has in common: a frozen dataclass that is the Python result, the JSON of the service and what pages
draw.

Fields that only Python wants are left out of the JSON by ``Field(exclude=True)``. Tensors become JSON the one way there
is: little-endian float32 in base64, exact and a third larger than its bytes.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from typing import Annotated, Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, TypeAdapter
from torch import Tensor

from regard.text.reading import Unknown


class Packed(BaseModel):
    """Numbers of any shape."""

    model_config = ConfigDict(frozen=True)

    shape: tuple[int, ...] = Field(description="Size of each axis; the last runs fastest.", examples=[(1, 2)])
    data: str = Field(description="Little-endian float32 in base64.", examples=["AAAAPwAAgD4="])


def pack(values: Tensor) -> Packed:
    """A tensor on its way to a client."""
    numbers = values.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4", copy=False)
    return Packed(shape=tuple(values.shape), data=base64.b64encode(numbers.tobytes()).decode("ascii"))


PackedTensor = Annotated[Tensor, PlainSerializer(pack)]


def _described(schema: dict[str, Any], answer: type) -> None:
    """The schema of an answer has its docstring; whether a field was computed or given is nothing to clients."""
    schema["description"] = cleandoc(answer.__doc__ or "")
    for each in schema["properties"].values():
        each.pop("readOnly", None)
        each.pop("default", None)


@dataclass(frozen=True)
class Answer:
    """What was asked for."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        arbitrary_types_allowed=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra=_described,
    )

    def to_json(self) -> bytes:
        """As the service sends it."""
        return _adapter(type(self)).dump_json(self)


@cache
def _adapter(answer: type[Answer]) -> TypeAdapter[Any]:
    return TypeAdapter(answer)


@dataclass(frozen=True)
class Sentence(Answer):
    """A sentence of a text, and where it is."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class OfSentence(Answer):
    """Which sentence of a text an answer is about; without a text around it, none of this is said."""

    sentences: Annotated[
        tuple[Sentence, ...],
        Field(description="The text, cut as for translation; what does not translate reads it whole."),
    ] = ()
    sentence: Annotated[int, Field(description="Which of them this is about.")] = 0
    unknown: Annotated[
        tuple[Unknown, ...],
        Field(description="Words of the sentence that the run has never seen, and where they are in it."),
    ] = ()
    warning: Annotated[str, Field(description="What the reader should know; empty if all is as usual.")] = ""
