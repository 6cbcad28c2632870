"""Scripts of bench/ and docs/, imported as they import each other."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def scripts(*names: str) -> list[ModuleType]:
    """bench/NAME.py or docs/NAME.py, each."""
    added = [str(ROOT / "bench"), str(ROOT / "docs")]
    sys.path.extend(added)
    found = [importlib.import_module(name) for name in names]
    for path in added:
        sys.path.remove(path)
    return found
