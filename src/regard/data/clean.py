"""Clean a corpus: repair texts, drop bad pairs and list them with the reason; and split it into sets."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from regard.data.check import SIDES, Judge, Kind, pair_faults, texts_of, usual_ratio, vector_faults
from regard.data.lines import PACKED, CorpusProblem, Progress, in_blocks, refuse
from regard.data.readers import Corpus, format_of
from regard.errors import SettingsError
from regard.files import new_file
from regard.text.vectors import is_vectors

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


NAME = 1000  # characters of a name of a file at the most


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

    A pair is dropped for what `check` finds in it after mending, unless `keep` names the reason. Files of different
    length cannot be mended, because nothing says which lines belong together.
    """
    paths = tuple(Path(path) for path in (source, target, dropped))
    if clash := {path.resolve() for path in paths} & {Path(path).resolve() for path in corpus.paths}:
        raise SettingsError(f"file = {clash.pop()}: is read and written; write to another name")
    judge = Judge(pair_faults(usual_ratio(corpus), ratio, vector_faults(corpus)), texts_of(held_out, change=mend))
    read, kept, changed, reasons = 0, 0, 0, Counter[str]()
    with new_file(paths[0]) as sources, new_file(paths[1]) as targets, new_file(paths[2]) as left:
        left.write(b"line\treason\tsource\ttarget\n")
        for block in in_blocks(_rows(corpus)):
            pairs = [(mend(first), mend(second)) for _, (first, second), _ in block]
            for (line, row, damage), pair, faults in zip(block, pairs, judge.faults(list(pairs)), strict=True):
                if bad := damage + [kind for kind, _ in faults if kind not in keep]:
                    left.write(_line("\t".join((str(line), bad[0], *(_SPACE.sub(" ", cell) for cell in row)))))
                    reasons[bad[0]] += 1
                else:
                    sources.write(_line(moved(pair[0], corpus, paths[0].parent)))
                    targets.write(_line(pair[1]))
                    kept += 1
                    changed += pair != row
            read += len(block)
            if progress is not None:
                progress(read, None)
    return CleanReport(read, kept, changed, dict(reasons), tuple(map(str, paths)))


def _rows(corpus: Corpus) -> Iterator[tuple[int, tuple[str, ...], list[Kind]]]:
    """Rows with the problems that the reader had with them. A row that cannot be read is empty."""
    problems: list[CorpusProblem] = []

    def note(problem: CorpusProblem) -> None:
        if problem.kind == "mismatch":
            refuse(problem)
        problems.append(problem)

    for line, row in corpus.rows(SIDES, note):
        for problem in problems:
            if problem.line != line:
                yield problem.line, ("", ""), [problem.kind]
        yield line, row, [problem.kind for problem in problems if problem.line == line]
        problems.clear()
    for problem in problems:
        yield problem.line, ("", ""), [problem.kind]


def moved(text: str, corpus: Corpus, folder: Path) -> str:
    """The name of a file of vectors, which is beside the corpus, as another folder has it; else the text."""
    named = Path(corpus.paths[0]).parent / text.strip()
    return os.path.relpath(named, folder) if is_vectors(text) and len(text) < NAME and named.is_file() else text


def _line(text: str) -> bytes:
    return f"{text}\n".encode("utf-8", "replace")


# Splitting: training, validation and test sets that share no source sentence.

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

    The hash of its source and the seed says where a pair goes, so that pairs with the same source stay together: the
    sets share no source, and may be a little larger than asked for. The order of lines is kept, and the corpus is read
    twice rather than held in memory.
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
            for side, text in enumerate((moved(row[0], corpus, Path(folder)), *row[1:])):
                files[2 * part + side].write(_line(text.replace("\n", " ")))
    return SplitReport(first, second - first, len(hashes) - second, tuple(map(str, paths)))


def suffixes(corpus: Corpus) -> tuple[str, str]:
    """What to call the sides: as the files are called (train.de, train.en), or else source and target."""
    paths = [PurePath(path) for path in corpus.paths]
    names = [PurePath(path.stem) if path.suffix.lower() in PACKED else path for path in paths]
    match [name.suffix.removeprefix(".") for name in names]:
        case [str(first), str(second)] if first and second and first != second and format_of(str(paths[0])) == "text":
            return first, second
    return "source", "target"


def _edge(hashes: np.ndarray[Any, np.dtype[np.uint64]], count: int) -> int:
    """The smallest number of hashes that is at least `count` and does not separate equal ones."""
    return int(np.searchsorted(hashes, hashes[count - 1], side="right")) if count else 0


def _hash(text: str, seed: int) -> int:
    digest = hashlib.blake2b(" ".join(text.split()).encode("utf-8", "replace"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest(), "little")
