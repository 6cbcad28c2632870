"""Mend what can be mended, drop what cannot, and write down what was dropped and why."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import numpy as np

from regard.data.check import SIDES, Judge, Kind, texts_of, usual_ratio
from regard.data.lines import PACKED, CorpusProblem, Progress, in_blocks, refuse
from regard.data.readers import Corpus, format_of
from regard.data.tables import Row
from regard.errors import SettingsError
from regard.files import new_file

_SPACE = re.compile(r"\s+")
# C0 and C1 controls that are no whitespace, the soft hyphen, the zero-width space and the byte-order mark.
# The joiners and direction marks stay: Indic, Persian, Arabic and Hebrew spelling need them.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\ufeff]")


@dataclass(frozen=True)
class CleanReport:
    """What became of a corpus."""

    read: int
    kept: int
    mended: int  # pairs kept with at least one side changed
    dropped: dict[str, int]  # by reason
    files: tuple[str, ...]  # the source, the target, and what was dropped


def mend(text: str) -> str:
    """One text in NFC, without invisible control characters, and with single spaces."""
    return _SPACE.sub(" ", _INVISIBLE.sub("", unicodedata.normalize("NFC", text))).strip()


def clean(
    corpus: Corpus,
    source: str | Path,
    target: str | Path,
    dropped: str | Path,
    *,
    held_out: Corpus | None = None,
    ratio: float = 4.0,
    keep: tuple[Kind, ...] = (),
    progress: Progress | None = None,
) -> CleanReport:
    """Write a clean copy as two parallel files, and a TSV of line, reason, source and target dropped.

    A pair is dropped for what `check` would find in it after mending, unless `keep` names the reason. Files
    of different length cannot be mended: which lines belong together is not for a program to decide.
    """
    paths = tuple(Path(path) for path in (source, target, dropped))
    if clash := {path.resolve() for path in paths} & {Path(path).resolve() for path in corpus.paths}:
        raise SettingsError(f"file = {clash.pop()}: is read and written; write to another name")
    reading = _Reading(corpus)
    judge = Judge(usual_ratio(corpus), ratio, texts_of(held_out, change=mend))
    counts: Counter[str] = Counter()
    with new_file(paths[0]) as sources, new_file(paths[1]) as targets, new_file(paths[2]) as left:
        left.write(b"line\treason\tsource\ttarget\n")
        for block in in_blocks(reading):
            mended = [(mend(first), mend(second)) for _, (first, second), _ in block]
            for (line, row, damage), pair, faults in zip(block, mended, judge.faults(list(mended)), strict=True):
                reasons = damage + [kind for kind, _ in faults if kind not in keep]
                if reasons:
                    _write_dropped(left, line, reasons[0], row)
                else:
                    _write(sources, pair[0])
                    _write(targets, pair[1])
                    counts["mended"] += pair != row
                counts[reasons[0] if reasons else "kept"] += 1
            if progress is not None:
                progress(reading.count, None)
    kept, changed = counts.pop("kept", 0), counts.pop("mended", 0)
    return CleanReport(reading.count, kept, changed, dict(counts), tuple(map(str, paths)))


class _Reading:
    """Rows with what the reader complained of while it read them. A row that cannot be read is empty."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._problems: list[CorpusProblem] = []
        self.count = 0

    def __iter__(self) -> Iterator[tuple[int, tuple[str, ...], list[Kind]]]:
        for line, row in self._rows():
            mine: list[Kind] = [problem.kind for problem in self._problems if problem.line == line]
            others = [problem for problem in self._problems if problem.line != line]
            self._problems.clear()
            for problem in others:
                yield problem.line, ("", ""), [problem.kind]
            yield line, row, mine
            self.count += 1 + len(others)
        for problem in self._problems:
            yield problem.line, ("", ""), [problem.kind]
            self.count += 1

    def _rows(self) -> Iterator[Row]:
        return self._corpus.rows(SIDES, self._complain)

    def _complain(self, problem: CorpusProblem) -> None:
        if problem.kind == "mismatch":
            refuse(problem)
        self._problems.append(problem)


def _write(file: BinaryIO, text: str) -> None:
    file.write(f"{text}\n".encode("utf-8", "replace"))


def _write_dropped(file: BinaryIO, line: int, reason: str, row: tuple[str, ...]) -> None:
    cells = (_SPACE.sub(" ", cell) for cell in row)
    _write(file, "\t".join((str(line), reason, *cells)))


# Cut a corpus into training, validation and test sets that share no source sentence.

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
