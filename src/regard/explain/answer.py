"""Answers: frozen dataclasses that are the Python result, the JSON of the service and what pages draw.

Fields that only Python needs are `Hidden` from the JSON. A tensor becomes little-endian float32 in base64, exact and a
third larger than its bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, PlainSerializer, TypeAdapter, computed_field
from pydantic_core.core_schema import any_schema
from torch import Tensor

from regard.errors import ModelError
from regard.files import new_file
from regard.text.reading import Unknown


class Packed(BaseModel):
    """Numbers of any shape."""

    model_config = ConfigDict(frozen=True)

    shape: tuple[int, ...] = Field(description="Size of each axis; the last runs fastest.", examples=[(1, 2)])
    data: str = Field(description="Little-endian float32 in base64.", examples=["AAAAPwAAgD4="])


def pack(values: Tensor) -> Packed:
    """A tensor as JSON has it."""
    numbers = values.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4", copy=False)
    return Packed(shape=tuple(values.shape), data=base64.b64encode(numbers.tobytes()).decode("ascii"))


PackedTensor = Annotated[Tensor, PlainSerializer(pack, return_type=Packed)]
Value = TypeVar("Value")
ANYTHING = GetPydanticSchema(lambda *_: any_schema())  # for a type that is not an answer
Hidden = Annotated[Value, ANYTHING, Field(exclude=True)]  # not in the JSON


if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    computed = cached_property
else:

    def computed(function: Callable[[Any], Any]) -> Any:
        """A field of an answer, computed when it is first read; its docstring describes it in the schema."""
        return computed_field(cached_property(function))


def _described(schema: dict[str, Any]) -> None:
    """The schema says nothing of how a field came about: computed, given or a default."""
    for each in schema["properties"].values():
        each.pop("readOnly", None)
        each.pop("default", None)


@dataclass(frozen=True)
class Answer:
    """The answer to a question."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        arbitrary_types_allowed=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra=_described,
    )

    def to_json(self) -> bytes:
        """As the service sends it."""
        return _adapter(type(self)).dump_json(self)

    def plain(self, *, without: type[Answer] | None = None) -> dict[str, Any]:
        """The same as Python values, without the fields of a base class."""
        apart = set() if without is None else {each.name for each in fields(without)}
        found: dict[str, Any] = _adapter(type(self)).dump_python(self, exclude=apart)
        return found


Kept = TypeVar("Kept", bound="DataclassInstance")


def load_kept(kind: type[Kept], path: Path, what: str, check: Callable[[Kept], bool] = lambda _: True) -> Kept | None:
    """The dataclass that a file of a run keeps as JSON; None where there is no such file."""
    if not path.is_file():
        return None
    try:
        found: Kept = _adapter(kind).validate_json(path.read_bytes())
        if check(found):
            return found
    except (ValueError, RecursionError):  # pydantic's complaints are ValueErrors
        pass
    names = ", ".join(field.name for field in fields(kind))
    raise ModelError(f"{path}: is not {what}; remove it, or give it {names}")


def save_kept(kept: DataclassInstance, path: Path) -> None:
    """Write a dataclass as JSON, for `load_kept`."""
    with new_file(path) as file:
        file.write(_adapter(type(kept)).dump_json(kept, indent=2) + b"\n")


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}  # building one takes longer than using it


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
    """Which sentence of a text an answer is about; the defaults where the text was one sentence."""

    sentences: Annotated[
        tuple[Sentence, ...],
        Field(description="The text, cut as for translation; what does not translate reads it whole."),
    ] = ()
    sentence: Annotated[int, Field(description="Which of them this is about.")] = 0
    unknown: Annotated[
        tuple[Unknown, ...],
        Field(description="Words of the sentence that the run has never seen, and where they are in it."),
    ] = ()
    warning: Annotated[str, Field(description="What the reader should know; else empty.")] = ""
