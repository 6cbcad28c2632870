"""Streams in blocks: enough rows at a time for numpy to be fast, few enough to fit anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def in_blocks(items: Iterable[Item], size: int = 8192) -> Iterator[list[Item]]:
    """Lists of `size` items each; the last may be shorter."""
    stream = iter(items)
    return iter(lambda: list(islice(stream, size)), [])
