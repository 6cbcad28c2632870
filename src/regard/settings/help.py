"""What each setting means, taken from the settings themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from regard.errors import SettingsError, did_you_mean
from regard.settings import Settings
from regard.settings.call import CallSettings
from regard.settings.reading import Frozen, classes


def explain(name: str) -> list[str]:
    """The meaning, type and default of a setting by its dotted name; one entry for each variant that has it.
    Of a table, all settings in it."""
    every = [*all_fields(Settings), *all_fields(CallSettings)]
    lines = [_line(path, field) for path, field in every if f"{path}.".startswith(f"{name}.")]
    if not lines:
        paths = {path for path, _ in every}
        inside = sorted(path for path in paths if path.endswith(f".{name}"))
        known = f"did you mean {', '.join(inside)}?" if inside else did_you_mean(name, paths)
        raise SettingsError(f"{name}: no such setting; {known}")
    return list(dict.fromkeys(lines))


def _line(path: str, field: FieldInfo) -> str:
    about, takes = " ".join((field.description or "").split()), _takes(field.annotation)
    if classes(field.annotation):
        return f"{path}: {about} ({takes})" if about else f"{path}: {takes}"
    default = "required" if field.is_required() else f"default {field.default!r}"
    return f"{path}: {about or 'no further explanation'} ({takes}; {default})"


def all_fields(model: type[Frozen], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its dotted name; several variants may have the same name."""
    for name, field in model.model_fields.items():
        yield prefix + name, field
        for inside in classes(field.annotation):
            yield from all_fields(inside, f"{prefix}{name}.")


def _takes(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(map(str, get_args(annotation)))
    if classes(annotation) or get_origin(annotation) is dict:
        return "a table"
    if get_origin(annotation) is tuple:
        return f"{'whole numbers' if int in get_args(annotation) else 'texts'} with commas"
    if annotation == (bool | None):
        return "true or false, or not set"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[annotation]
