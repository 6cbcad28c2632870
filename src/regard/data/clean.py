"""Mend what can be mended, drop what cannot, and write down what was dropped and why."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from regard.data.blocks import in_blocks
from regard.data.check import SIDES, Judge, Kind, sources_of, usual_ratio
from regard.data.lines import CorpusProblem, refuse
from regard.data.readers import Corpus
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
    progress: Callable[[int, int | None], None] | None = None,
) -> CleanReport:
    """Write a clean copy as two parallel files, and a TSV of line, reason, source and target dropped.

    A pair is dropped for what `check` would find in it after mending, unless `keep` names the reason. Files
    of different length cannot be mended: which lines belong together is not for a program to decide.
    """
    paths = tuple(Path(path) for path in (source, target, dropped))
    if clash := {path.resolve() for path in paths} & {Path(path).resolve() for path in corpus.paths}:
        raise SettingsError(f"file = {clash.pop()}: is read and written; write to another name")
    reading = _Reading(corpus)
    judge = Judge(usual_ratio(corpus), ratio, sources_of(held_out, mend))
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
