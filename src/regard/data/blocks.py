"""Rows in blocks: enough of them at a time for numpy to be fast, few enough to fit anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

_CHARACTERS = 1 << 24  # in a block, and what the last row has beyond them
Numbered = TypeVar("Numbered", bound=tuple[Any, ...])


def in_blocks(rows: Iterable[Numbered], size: int = 8192) -> Iterator[list[Numbered]]:
    """Lists of `size` rows each, a number and its texts; fewer where they are very long. The last may be shorter."""
    block: list[Numbered] = []
    characters = 0
    for row in rows:
        block.append(row)
        characters += sum(map(len, row[1]))
        if len(block) == size or characters > _CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block
