"""What ``--shard`` and ``--on`` do: a file in blocks, finished one by one, merged when all are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from regard.cli.streams import LineCounter, named, say, without_garbage_collection
from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.data.blocks import Block, Done, Work
    from regard.settings.call import BulkSettings

FIRST: Final = 1024  # lines by which an engine is chosen: those that one process would translate first
SHARD: Final = "Work on the third of 16 parts: 3/16. Repeat to go on; the last one merges."
ON: Final = "Work on a Ray cluster: ray on this machine, or ray:ADDRESS."

Make = Callable[[Sequence[tuple[str, ...]]], "Work"]  # given the first lines of the file


def located(run: Path) -> Path:
    """A run by a name that holds in other processes too."""
    from regard.runs.folder import Run

    found = Run.open(run)
    return Path(found.place) if found.is_packaged else found.folder.absolute()


def fingerprint(run: Path) -> dict[str, str]:
    """Which weights are at work."""
    from regard.runs.folder import Run, best_checkpoint, manifest

    return {name: digest for name, digest in manifest(best_checkpoint(Run.open(run))).items() if "safetensors" in name}


def bulk(
    rows: Iterable[Sequence[str]],
    out: Path | None,
    work: Mapping[str, Any],
    make: Make,
    *,
    shard: str,
    on: str,
    how: BulkSettings,
    device: str,
) -> Iterator[dict[str, Any]] | None:
    """Do the blocks of a shard that are missing, here or on a cluster; merge, if none is left, and give the notes on
    all blocks; None if some are left. ``work`` says what is done to the lines, and ``make`` loads what does it."""
    from regard.data.blocks import BlockFolder, Shard, blocks
    from regard.data.cluster import address_of

    if (out := named(out)) is None:
        raise SettingsError("--shard, --on: the blocks are kept beside the output; add --out FILE")
    mine, address = Shard.read(shard or "1/1"), address_of(on) if on else ""
    rows = iter(rows)
    first = list(islice(rows, 1))  # a file that is not there leaves no folder
    finished = BlockFolder(out, {**work, "lines": how.lines, "device": device})
    names, opening = list[str](), list[tuple[str, ...]]()

    def missing() -> Iterator[Block]:
        for block in blocks(chain(first, rows), how.lines):
            names.append(block.name)
            if not block.number:
                opening.extend(block.rows[:FIRST])
            if mine.has(block) and not finished.has(block):
                yield block

    waiting = missing()
    found = _there(make, opening, waiting, address, how, device) if on else _here(make, opening, waiting)
    told, lines = LineCounter("done"), 0
    for block, done in found:
        finished.write(block, done)
        told(lines := lines + len(block.rows))
    left = finished.merge(names)
    several = "block" if len(names) == 1 else "blocks"
    say(f"{out}: {len(names):,} {several} merged" if not left else f"{out}: {left:,} of {len(names):,} blocks missing")
    return None if left else finished.notes(names)


def _loaded(make: Make, opening: Sequence[tuple[str, ...]]) -> Work:
    """What does the work, in a process whose memory does not grow with the number of blocks."""
    with without_garbage_collection():
        from regard.nn.fast.allocator import remember_few_shapes

        remember_few_shapes()
        return make(opening)


def _here(make: Make, opening: list[tuple[str, ...]], waiting: Iterator[Block]) -> Iterator[tuple[Block, Done]]:
    work: Work | None = None
    for block in waiting:
        work = work or _loaded(make, opening)
        yield block, work(block)


def _there(
    make: Make, opening: list[tuple[str, ...]], waiting: Iterator[Block], address: str, how: BulkSettings, device: str
) -> Iterator[tuple[Block, Done]]:
    from regard.data.cluster import spread

    first = next(waiting, None)
    if first is not None:
        yield from spread(partial(_loaded, make, opening), chain((first,), waiting), address, how.workers, device)
