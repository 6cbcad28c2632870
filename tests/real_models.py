"""Real models, where they are: packages of the Python index that carry weights, unpacked in a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PLACE = Path(os.environ.get("REGARD_MODELS", str(Path(__file__).parents[1] / ".models")))


def real(name: str, package: str) -> Path:
    """A file or folder of those packages; the test is passed over, and says what it needs, where it is not there."""
    path = PLACE / name
    if not path.exists():
        pytest.skip(f"needs {name} of {package} in {PLACE}: make models")
    return path
