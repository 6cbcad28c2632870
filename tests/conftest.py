"""Settings that all tests share."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

settings.register_profile("house", deadline=None, max_examples=12, derandomize=True)
settings.load_profile("house")

pytest_plugins = ["raises"]

torch.set_num_threads(1)  # the models are tiny: a second thread only waits


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test draws the same numbers, whatever ran before it."""
    torch.manual_seed(0)
