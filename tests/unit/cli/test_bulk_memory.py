"""What is held of a long file: a block of lines, and a name of every block."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from regard.cli.bulk import bulk
from regard.data.blocks import Block, Done, Work
from regard.settings.call import BulkSettings

LINES, LINE = 64, "x" * 200  # of a block; a line
NAME = 150  # bytes that are held of a block at the most: its name


def answers(opening: Sequence[tuple[str, ...]]) -> Work:
    """Stands in for a model."""
    del opening

    def work(block: Block) -> Done:
        output = "".join(f"{row[0]}\n" for row in block.rows).encode()
        return Done(output, {"first": [[block.first + 1, LINE]], "count": 1})

    return work


def highest(out: Path, blocks: int, shard: str = "1/1") -> int:
    """Bytes that were in use at the most."""
    rows = ((f"{number} {LINE}",) for number in range(blocks * LINES))
    tracemalloc.start()
    how = BulkSettings(lines=LINES)
    notes = bulk(rows, out, {}, answers, shard=shard, on="", how=how, device="cpu")
    assert sum(note["count"] for note in notes or ()) == (0 if notes is None else blocks)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.parametrize("shard", ["1/1", "1/2"])
def test_memory_does_not_grow_with_the_lines(shard: str, tmp_path: Path) -> None:
    highest(tmp_path / "first", 2)  # what is imported on the way is not counted
    few, many = (
        min(highest(tmp_path / f"{blocks}-{time}", blocks, shard) for time in range(3))  # others may be at work beside
        for blocks in (30, 300)
    )
    assert many - few < 270 * NAME  # a block of lines is a hundred times that
    assert (tmp_path / "300-0").exists() == (shard == "1/1")
