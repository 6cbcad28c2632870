"""The one reader of untrusted settings. Pydantic finds what is wrong; here its error becomes one line in our grammar,
with the names that users know and the nearest name that exists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from regard.errors import SettingsError, did_you_mean

# Counts, sizes of models and shares, with limits that exclude what fits into no machine.

Count = Annotated[int, Field(ge=1, le=1 << 40)]
Size = Annotated[int, Field(ge=1, le=1 << 20)]
Depth = Annotated[int, Field(ge=1, le=1000)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class Frozen(BaseModel):
    """The base of all settings: frozen, and strict about names and types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    def only(self, known: Collection[str], what: str) -> Self:
        """These settings, if all that are set are among those that ``what`` knows."""
        if other := sorted(self.model_fields_set - set(known)):
            section = type(self).__name__.removesuffix("Settings").lower()
            raise SettingsError(f"{section}.{other[0]}: not for {what}; there are: {', '.join(known)}")
        return self


Model = TypeVar("Model", bound=Frozen)


def read(kind: type[Model], values: Mapping[str, Any], origin: str) -> Model:
    """Read untrusted settings: TOML, overrides and JSON bodies."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise SettingsError(f"{origin}: {_line(kind, error.errors()[0])}") from None
    except SettingsError as error:
        raise SettingsError(f"{origin}: {error}", hint=error.hint) from None


def _line(kind: type[Frozen], error: ErrorDetails) -> str:
    """Pydantic's first error in our grammar."""
    names, model, variants = _locate(kind, error["loc"])
    where, value, context = ".".join(names), error["input"], error.get("ctx", {})
    if any("admin" in name or name.endswith("token") for name in names):
        value = "…"  # a secret, also where its name is mistyped
    match error["type"]:
        case "extra_forbidden":
            fields = [*model.model_fields, *["depth"] * ("encoder_depth" in model.model_fields)]  # it sets both depths
            inside = _inside(kind, where)
            return f"{where} = {value}: no such setting; {inside or did_you_mean(names[-1], fields)}"
        case "missing":
            return f"{where}: missing; it has no default"
        case "union_tag_not_found":
            return f"{where}.kind: missing; known: {', '.join(map(_tag, variants))}"
        case "union_tag_invalid":
            return f"{where}.kind = {context['tag']}: no such kind; {did_you_mean(context['tag'], map(_tag, variants))}"
        case "literal_error":
            known = map(str, get_args(model.model_fields[names[-1]].annotation))
            return f"{where} = {value}: not known; {did_you_mean(str(value), known)}"
        case _:
            return f"{where} = {value!r}: {_otherwise(where, value, variants or (model,), error)}"


def _inside(kind: type[Frozen], name: str) -> str:
    """The table that has a setting, where it was given without one."""
    tables = (
        table
        for table, field in kind.model_fields.items()
        for each in classes(field.annotation)
        if name in each.model_fields
    )
    table = next(tables, "")
    return table and f"did you mean '{table}.{name}'?"


def _otherwise(where: str, value: object, models: Sequence[type[Frozen]], error: ErrorDetails) -> str:
    """What is wrong with a value, where it is neither a mistyped name nor a missing one."""
    if error["type"] not in ("model_type", "model_attributes_type"):
        return f"not valid; {error['msg'].removeprefix('Input ')}"
    fields = [each.model_fields["kind"] for each in models if "kind" in each.model_fields]
    kinds = [kind for field in fields for kind in get_args(field.annotation)]
    inside = "kind" if kinds else next(iter(models[0].model_fields))
    return f"has settings of its own; write {where}.{inside}={value if value in kinds else '…'}"


def _locate(
    kind: type[Frozen], location: Sequence[str | int]
) -> tuple[list[str], type[Frozen], tuple[type[Frozen], ...]]:
    """An error's dotted names, the settings class it is in, and the variants that are possible there.

    Pydantic lists the variant of a union as one more level, which users do not write.
    """
    names: list[str] = []
    model = kind
    variants: tuple[type[Frozen], ...] = ()
    for part in map(str, location):
        tagged = [variant for variant in variants if _tag(variant) == part]
        if tagged:
            model, variants = tagged[0], ()
            continue
        names.append(part)
        field = model.model_fields.get(part)
        inside = () if field is None else classes(field.annotation)
        variants = inside if len(inside) > 1 else ()
        model = inside[0] if len(inside) == 1 else model
    return names, model, variants


def _tag(variant: type[Frozen]) -> str:
    return str(get_args(variant.model_fields["kind"].annotation)[0])


def classes(annotation: Any) -> tuple[type[Frozen], ...]:
    """The settings classes that an annotation names: none, one, or the variants of a union."""
    candidates = (annotation, *get_args(annotation))
    return tuple(item for item in candidates if isinstance(item, type) and issubclass(item, Frozen))
