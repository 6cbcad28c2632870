"""Cut a corpus into training, validation and test sets that share no source sentence."""

from __future__ import annotations

import hashlib
from array import array
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from regard.data.check import SIDES
from regard.data.lines import PACKED
from regard.data.readers import Corpus, format_of
from regard.errors import SettingsError
from regard.files import new_file

SETS = ("test", "valid", "train")


@dataclass(frozen=True)
class SplitReport:
    """How many pairs went where."""

    test: int
    valid: int
    train: int
    files: tuple[str, ...]


def split(corpus: Corpus, folder: str | Path, *, valid: int, test: int, seed: int = 0) -> SplitReport:
    """Write `train`, `valid` and `test` as parallel files, with at least `valid` and `test` pairs.

    A pair goes where the hash of its source and the seed says, so that pairs with the same source stay
    together: the sets share no source, and may be larger than asked for by a few repetitions. The order of
    lines is kept, and the corpus is read twice rather than held in memory.
    """
    hashes = np.sort(np.frombuffer(array("Q", (_hash(row[0], seed) for _, row in corpus.rows(SIDES))), np.uint64))
    if min(valid, test) < 0 or valid + test >= len(hashes):
        raise SettingsError(f"valid, test = {valid:,}, {test:,}: leave no training pair of {len(hashes):,}")
    first = _edge(hashes, test)
    second = _edge(hashes, first + valid if valid else first)
    edges = [int(hashes[count - 1]) if count else -1 for count in (first, second)]
    names = suffixes(corpus)
    paths = [Path(folder) / f"{part}.{name}" for part in SETS for name in names]
    with ExitStack() as stack:
        files = [stack.enter_context(new_file(path)) for path in paths]
        for _, row in corpus.rows(SIDES):
            part = sum(_hash(row[0], seed) > edge for edge in edges)
            for place, text in enumerate(row):
                files[2 * part + place].write(f"{' '.join(text.split(chr(10)))}\n".encode("utf-8", "replace"))
    return SplitReport(first, second - first, len(hashes) - second, tuple(map(str, paths)))


def suffixes(corpus: Corpus) -> tuple[str, str]:
    """What to call the sides: as the files are called (train.de, train.en), or just source and target."""
    found = []
    for path in map(PurePath, corpus.paths):
        name = PurePath(path.stem) if path.suffix.lower() in PACKED else path
        found.append(name.suffix.removeprefix("."))
    parallel = len(found) == 2 and all(found) and found[0] != found[1]
    return (found[0], found[1]) if parallel and format_of(corpus.paths[0]) == "text" else ("source", "target")


def _edge(hashes: np.ndarray[Any, np.dtype[np.uint64]], count: int) -> int:
    """The smallest number of hashes that is at least `count` and tears no equal ones apart."""
    return int(np.searchsorted(hashes, hashes[count - 1], side="right")) if count else 0


def _hash(text: str, seed: int) -> int:
    digest = hashlib.blake2b(" ".join(text.split()).encode("utf-8", "replace"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest(), "little")
