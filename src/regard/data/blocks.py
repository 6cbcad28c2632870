"""A long file in blocks of lines, which any number of processes work on, and what is finished of it.

    OUT.blocks/work.json          what is done to the lines: all processes must agree
    OUT.blocks/000017-3f2a…       the output for block 17, named after its lines too: changed input is done again
    OUT.blocks/000017-3f2a….json  what is to be said of it when all are merged: remarks, sums; not of every block
    OUT                           all blocks in order, when they are there; packed if its name ends in .gz or .zst

Blocks are cut by counting lines, so every process finds the same ones. Shard i of n has the blocks i, i + n, i + 2 n, …
A block is written whole or not at all. What is there is not done again: a process that was killed is started once more.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.lines import in_blocks, packing
from regard.errors import SettingsError
from regard.files import leftovers, new_file, read_object, sweep, write_first, write_object

WORK = "work.json"


class Shard(NamedTuple):
    """Which of the blocks a process has."""

    number: int  # from 1
    total: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """``3/16``."""
        number, slash, count = text.partition("/")
        if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
            return cls(int(number), int(count))
        raise SettingsError(f"--shard = {text}: not a shard; 3/16 is the third of sixteen")

    def has(self, block: Block) -> bool:
        return block.number % self.total == self.number - 1


@dataclass(frozen=True)
class Block:
    """Neighbouring lines of a file, or of several that pair line by line."""

    number: int  # from 0
    first: int  # the number of its first line, from 0
    rows: list[tuple[str, ...]]

    @cached_property
    def name(self) -> str:
        """Its number, and a digest of its lines."""
        text = "\n".join("\t".join(row) for row in self.rows)
        return f"{self.number:06d}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


class Done(NamedTuple):
    """What was made of a block."""

    output: bytes
    note: dict[str, Any]  # what is to be said of it, as JSON


Work = Callable[[Block], Done]


def blocks(rows: Iterable[Sequence[str]], lines: int) -> Iterator[Block]:
    """Blocks of so many lines; of fewer where lines are very long. One block is in memory at a time."""
    first = 0
    numbered = ((place, tuple(row)) for place, row in enumerate(rows))
    for number, some in enumerate(in_blocks(numbered, lines)):
        yield Block(number, first, [row for _, row in some])
        first += len(some)


class BlockFolder:
    """The folder with the blocks that are done."""

    def __init__(self, out: Path, work: Mapping[str, Any]) -> None:
        self._out, self._folder = out, out.with_name(f"{out.name}.blocks")
        wanted = json.loads(json.dumps(work))
        for left in leftovers(self._folder):  # of processes that were killed
            sweep(left)
        if (kept := read_object(self._folder / WORK)) is None:
            write_first(self._folder / WORK, wanted)
            kept = read_object(self._folder / WORK) or wanted
        if other := next((name for name in {**wanted, **kept} if kept.get(name) != wanted.get(name)), None):
            was, now = kept.get(other), wanted.get(other)
            long = isinstance(was, list | dict) or isinstance(now, list | dict)  # such as the digests of all weights
            how = f"other {other}" if long else f"{other} = {was}, here {now}"
            raise SettingsError(
                f"--out = {out}: {self._folder} has blocks of other work, with {how}; go on as before, or remove that "
                "folder"
            )

    def has(self, block: Block) -> bool:
        return (self._folder / block.name).is_file()

    def write(self, block: Block, done: Done) -> None:
        if done.note:  # first: where the output is, its note is too
            write_object(self._note(block.name), done.note)
        with new_file(self._folder / block.name) as file:
            file.write(done.output)

    def notes(self, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The notes on blocks, in order."""
        return (note for name in names if (note := read_object(self._note(name))))

    def _note(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def merge(self, names: Sequence[str]) -> int:
        """Join the blocks in order, if all are there; returns how many are missing."""
        if missing := sum(not (self._folder / name).is_file() for name in names):
            return missing
        with new_file(self._out) as whole, packing(whole, self._out) as file:
            for name in names:
                with (self._folder / name).open("rb") as block:
                    shutil.copyfileobj(block, file, 1 << 20)
        return 0
