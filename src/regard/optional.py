"""Packages that only some formats need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from regard.errors import ResourceError


def optional(package: str, where: str) -> Any:
    """Import a package, or say how to install it."""
    try:
        return import_module(package)
    except ImportError as problem:
        name = package.partition(".")[0]
        raise ResourceError(f"{where}: needs the package {name}; pip install {name}") from problem
