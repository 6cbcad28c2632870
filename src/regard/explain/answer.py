"""What every answer has in common: a frozen dataclass that is the Python result, the JSON of the service and what pages
draw.

Fields that only Python wants are `Hidden` from the JSON. Tensors become JSON the one way there
is: little-endian float32 in base64, exact and a third larger than its bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, PlainSerializer, TypeAdapter, computed_field
from pydantic_core.core_schema import any_schema
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


PackedTensor = Annotated[Tensor, PlainSerializer(pack, return_type=Packed)]
Value = TypeVar("Value")
ANYTHING = GetPydanticSchema(lambda *_: any_schema())  # for what is not itself an answer
Hidden = Annotated[Value, ANYTHING, Field(exclude=True)]  # of Python alone


if TYPE_CHECKING:
    computed = cached_property
else:

    def computed(function: Callable[[Any], Any]) -> Any:
        """A field of an answer that is computed when it is first wanted; its docstring describes it to clients."""
        return computed_field(cached_property(function))


def _described(schema: dict[str, Any]) -> None:
    """Whether a field of an answer was computed, given or left at its default is nothing to clients."""
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

    def plain(self, *, without: type[Answer] | None = None) -> dict[str, Any]:
        """The same as Python values, but for the fields of another answer that this one is made of."""
        apart = set() if without is None else {each.name for each in fields(without)}
        found: dict[str, Any] = _adapter(type(self)).dump_python(self, exclude=apart)
        return found


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}  # to build one takes longer than to use it


def _adapter(answer: type) -> TypeAdapter[Any]:
    if answer not in _ADAPTERS:
        _ADAPTERS[answer] = TypeAdapter(answer)
    return _ADAPTERS[answer]


@dataclass(frozen=True)
class Sentence(Answer):
    """A sentence of a text, and where it is."""

    start: Annotated[int, Field(description="Its first character.")]
    end: Annotated[int, Field(description="The one behind its last.")]
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
