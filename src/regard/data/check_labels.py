"""What is wrong with a corpus for tagging, classification or language modelling. Reads as a stream; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from regard.data.blocks import in_blocks
from regard.data.check import CheckReport, FaultyLine, Findings, Kind
from regard.data.lines import ignore
from regard.data.readers import Corpus
from regard.data.seen import Seen

Fault = Callable[[Sequence[str]], str]  # what is wrong with a row that has all its columns; empty if nothing is


def check_labels(
    corpus: Corpus,
    columns: Sequence[str],
    fault: Fault,
    *,
    held_out: Corpus | None = None,
    shown: int = 5,
    progress: Callable[[int, int | None], None] | None = None,
) -> CheckReport:
    """Read a corpus and report empty and repeated rows, one text with two labels, leaks, and what else its task calls a
    fault of a row."""
    found, judge, count = Findings(shown), _Judge(columns, fault, _texts_of(held_out, columns)), 0
    for block in in_blocks(corpus.rows(columns, found.complain)):
        for (line, row), faults in zip(block, judge.faults([row for _, row in block]), strict=True):
            for kind, note in faults:
                found.add(kind, FaultyLine(line, note, row[0], row[1] if len(row) > 1 else ""))
        count += len(block)
        if progress is not None:
            progress(count, None)
    return CheckReport(corpus.paths, count, None, found.all())


def _texts_of(corpus: Corpus | None, columns: Sequence[str]) -> Seen:
    seen = Seen()
    if corpus is not None:
        for block in in_blocks(corpus.rows(columns, ignore)):
            seen.add(row[0] for _, row in block)
    return seen


class _Judge:
    """Says what is wrong with rows, one block at a time, remembering those it has judged."""

    def __init__(self, columns: Sequence[str], fault: Fault, held_out: Seen) -> None:
        self._columns, self._fault, self._held_out = columns, fault, held_out
        self._rows, self._texts = Seen(), Seen()

    def faults(self, rows: list[tuple[str, ...]]) -> Iterator[list[tuple[Kind, str]]]:
        new_rows = self._rows.add(rows)
        new_texts = self._texts.add(row[0] for row in rows)
        leaks = self._held_out.has(row[0] for row in rows)
        for row, is_new, text_is_new, leaked in zip(rows, new_rows, new_texts, leaks, strict=True):
            faults = list(self._faults_of(row))
            if faults and faults[0][0] == "empty":
                yield faults
                continue
            if not is_new:
                faults.append(("duplicate", "the same row stands further up"))
            elif not text_is_new:
                faults.append(("conflict", "the same text stands further up with another label"))
            if leaked:
                faults.append(("leak", "the held-out set has this text"))
            yield faults

    def _faults_of(self, row: tuple[str, ...]) -> Iterator[tuple[Kind, str]]:
        for name, cell in zip(self._columns, row, strict=True):
            if not cell.strip():
                yield "empty", f"no {name}"
                return
        if problem := self._fault(row):
            yield "count", problem
