"""The runs that most tests of the service ask, and a client that asks them; a file may have its own instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import serving


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return serving.runs(tmp_path_factory)


@pytest.fixture(scope="module")
def client(runs: Path) -> Iterator[TestClient]:
    with serving.client(runs) as found:
        yield found
