"""Datasets by name, `hf://name[:config][/split]`, through the optional package `datasets`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from regard.errors import ResourceError, SettingsError, optional

# A name may itself hold a slash (owner/name), so a lone last part is a split only if it is called like one.
_NAME = re.compile(
    r"hf://(?P<name>[\w.-]+(?:/(?!(?:train|validation|valid|dev|test)(?:\[|$))[\w.-]+)?)"
    r"(?::(?P<config>[\w.-]+))?(?:/(?P<split>[\w.\[\]:%-]+))?"
)


def read_hub(location: str) -> Iterator[tuple[int, Any]]:
    """The records of a dataset, streamed rather than downloaded whole; the split is `train` unless named."""
    found = _NAME.fullmatch(location)
    if found is None:
        raise SettingsError(f"name = {location}: not understood; write hf://owner/name:config/split")
    if os.environ.get("REGARD_OFFLINE") == "1":
        raise ResourceError(f"{location}: REGARD_OFFLINE=1 forbids downloads; unset it, or use a local file")
    datasets = optional("datasets", location)
    split = found["split"] or "train"
    with _asking(location):
        records = datasets.load_dataset(found["name"], found["config"], split=split, streaming=True)
    return _streamed(records, location)


def _streamed(records: Iterable[Any], location: str) -> Iterator[tuple[int, Any]]:
    """Each with its number. Most of them come over the network only now."""
    with _asking(location):
        yield from enumerate(records, start=1)


@contextmanager
def _asking(location: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        raise ResourceError(f"{location}: cannot be loaded; the hub says: {problem}") from problem
