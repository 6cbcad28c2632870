"""Writing what was found: as a page or as the numbers alone, whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import SettingsError
from regard.files import new_file

SUFFIXES = (".html", ".json")


def save(path: Path, numbers: Mapping[str, Any], page: Callable[[], str]) -> None:
    """A page (``.html``), or the numbers alone (``.json``)."""
    if check_suffix(path) == ".json":
        written = json.dumps(numbers, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    else:
        written = page()
    with new_file(path) as file:
        file.write(written.encode("utf-8", "replace"))


def check_suffix(path: Path) -> str:
    """The kind of file that is asked for by its name."""
    if path.suffix.lower() not in SUFFIXES:
        raise SettingsError(f"out = {path}: written as a page or as numbers; end it in .html or .json")
    return path.suffix.lower()


def plain(value: Any) -> Any:
    """Tuples as lists, as JSON gives them back; infinity and its like as null."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case tuple() | list():
            return [plain(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
