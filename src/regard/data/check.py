"""What is wrong with a corpus, with counts, examples and line numbers. Reads as a stream; changes nothing."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import CorpusProblem, ProblemKind, Progress, ignore, in_blocks
from regard.data.readers import Corpus
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import SPECIAL_TOKENS, UNK, Tokenizer
from regard.text.words import ByteTokenizer

# Remembering what has been seen in a corpus of any size, at eight bytes for each different thing.


class Seen:
    """A set of 64-bit hashes, asked in blocks.

    A Python set would need ten times the memory. Sorted runs are kept instead, and two runs of about the
    same length are merged into one, so there are few to search and each hash is moved a few times only.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def has(self, things: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Which of these have been added before."""
        return self._known(_hashes(things))

    def add(self, things: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Add these, and say which of them are new."""
        hashes = _hashes(things)
        values, places = np.unique(hashes, return_index=True)
        unknown = ~self._known(values)
        new = np.zeros(len(hashes), bool)
        new[places[unknown]] = True
        self._runs.append(values[unknown])
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._runs[-2:] = [np.sort(np.concatenate(self._runs[-2:]))]
        return new

    def _known(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        known = np.zeros(len(hashes), bool)
        for run in self._runs:
            if len(run):
                places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
                known |= run[places] == hashes
        return known


def _hashes(things: Iterable[Hashable]) -> NDArray[np.int64]:
    """Python's own hashes: another seed in every process, but only ever compared within one."""
    return np.fromiter(map(hash, things), np.int64)


Kind = ProblemKind | Literal["empty", "ratio", "identical", "duplicate", "leak", "count", "conflict"]
Fault = tuple[Kind, str]  # and a note for people
SIDES = ("source", "target")
_SAMPLE = 100_000  # rows that tell what ratio of lengths is usual
_SOFTENING = 5  # characters: short lines vary much in ratio
_SHOWN = 20  # characters outside the vocabulary that are named


@dataclass(frozen=True)
class FaultyLine:
    """One line with something wrong."""

    line: int
    note: str
    source: str = ""
    target: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, how often, and where first."""

    kind: Kind
    count: int
    examples: tuple[FaultyLine, ...]


@dataclass(frozen=True)
class SideCheck:
    """How well a tokenizer knows one side of the corpus."""

    side: str
    tokens: int
    unknown: int  # tokens that became <unk>
    outside: dict[str, int]  # the most frequent characters that no token holds, with their counts

    @property
    def unknown_share(self) -> float:
        return self.unknown / self.tokens if self.tokens else 0.0


@dataclass(frozen=True)
class CheckReport:
    """All that was found. `typical_ratio` is the usual length of a source over that of its target, if it has one."""

    files: tuple[str, ...]
    pairs: int
    typical_ratio: float | None
    findings: tuple[Finding, ...]
    sides: tuple[SideCheck, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing at all was found."""
        return not self.findings


def check(
    corpus: Corpus,
    *,
    held_out: Corpus | None = None,
    tokenizers: Tokenizers | None = None,
    ratio: float = 4.0,
    shown: int = 5,
    progress: Progress | None = None,
) -> CheckReport:
    """Read a parallel corpus and report what is wrong with it.

    `held_out` is the test set, whose sources must not be in the corpus. A pair is a ratio outlier if its
    lengths are `ratio` times further apart than is usual for the corpus.
    """
    usual = usual_ratio(corpus)
    sides = [_UnknownCounter(name, tokenizer) for name, tokenizer in _named(tokenizers)]
    judge = Judge(usual, ratio, texts_of(held_out))
    pairs, found = judged(corpus, SIDES, judge.faults, shown, progress, sides)
    return CheckReport(corpus.paths, pairs, math.exp(usual), found, tuple(side.report() for side in sides))


def judged(  # noqa: PLR0917
    corpus: Corpus,
    columns: Sequence[str],
    judge: Callable[[list[tuple[str, ...]]], Iterable[list[Fault]]],
    shown: int,
    progress: Progress | None,
    sides: Sequence[_UnknownCounter] = (),
) -> tuple[int, tuple[Finding, ...]]:
    """How many rows there are, and what is wrong with them: how often, with the first few examples of each kind."""
    counts, examples, rows = Counter[Kind](), defaultdict[Kind, list[FaultyLine]](list), 0

    def add(kind: Kind, example: FaultyLine) -> None:
        counts[kind] += 1
        examples[kind] += [example] if len(examples[kind]) < shown else []

    def complain(problem: CorpusProblem) -> None:
        add(problem.kind, FaultyLine(problem.line, problem.message))

    for block in in_blocks(corpus.rows(columns, complain)):
        for (line, row), faults in zip(block, judge([row for _, row in block]), strict=True):
            for kind, note in faults:
                add(kind, FaultyLine(line, note, *row[:2]))
        for place, side in enumerate(sides):
            side.add([row[place] for _, row in block])
        rows += len(block)
        if progress is not None:
            progress(rows, None)
    return rows, tuple(Finding(kind, count, tuple(examples[kind])) for kind, count in counts.items())


class Judge:
    """Says what is wrong with pairs, one block at a time, remembering those it has judged."""

    def __init__(self, usual: float, ratio: float, held_out: Seen) -> None:
        self._usual, self._ratio, self._held_out, self._seen = usual, ratio, held_out, Seen()

    def faults(self, pairs: list[tuple[str, ...]]) -> Iterator[list[Fault]]:
        new = self._seen.add(pairs)
        leaks = self._held_out.has(source for source, _ in pairs)
        for (source, target), is_new, leaked in zip(pairs, new, leaks, strict=True):
            faults = list(self._faults_of(source, target))
            if not is_new:
                faults.append(("duplicate", "the same pair stands further up"))
            if leaked:
                faults.append(("leak", "the held-out set has this source"))
            yield faults

    def _faults_of(self, source: str, target: str) -> Iterator[Fault]:
        if not source.strip() or not target.strip():
            yield "empty", "the source is empty" if not source.strip() else "the target is empty"
            return
        if source == target:
            yield "identical", "the source is its own target"
        if abs(log_ratio(source, target) - self._usual) > math.log(self._ratio):
            yield "ratio", f"{len(source)} characters against {len(target)}"


def log_ratio(source: str, target: str) -> float:
    """How much longer the source is than the target, in logarithms; smoothed, because short texts say little."""
    return math.log((len(source) + _SOFTENING) / (len(target) + _SOFTENING))


def usual_ratio(corpus: Corpus) -> float:
    """The median `log_ratio` of the first rows: languages differ, and so do their scripts."""
    rows = islice(corpus.rows(SIDES, ignore), _SAMPLE)
    ratios = [log_ratio(source, target) for _, (source, target) in rows if source and target]
    return float(np.median(ratios)) if ratios else 0.0


def texts_of(corpus: Corpus | None, columns: Sequence[str] = SIDES, change: Callable[[str], str] = str) -> Seen:
    """The first column of a held-out corpus, changed as what will be compared with it."""
    seen = Seen()
    if corpus is not None:
        for block in in_blocks(corpus.rows(columns, ignore)):
            seen.add(change(row[0]) for _, row in block)
    return seen


class _UnknownCounter:
    """Counts what a tokenizer does not know of one side."""

    def __init__(self, name: str, tokenizer: Tokenizer) -> None:
        self._name, self._tokenizer = name, tokenizer
        self._characters: Counter[str] = Counter()
        self._tokens = self._unknown = 0

    def add(self, texts: list[str]) -> None:
        for text in texts:
            self._characters.update(text)
            ids = self._tokenizer.encode(text)
            self._tokens += len(ids)
            self._unknown += ids.count(UNK)

    def report(self) -> SideCheck:
        known = alphabet(self._tokenizer)
        outside = {} if known is None else {c: n for c, n in self._characters.items() if c not in known}
        most = sorted(outside.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]
        return SideCheck(self._name, self._tokens, self._unknown, dict(most))


def alphabet(tokenizer: Tokenizer) -> frozenset[str] | None:
    """The characters that some token holds, and spaces; None where there is nothing that cannot be held."""
    if isinstance(tokenizer, ByteTokenizer):
        return None
    tokens = (tokenizer.token(number) for number in range(len(SPECIAL_TOKENS), tokenizer.size))
    held = frozenset(character for token in tokens if not token.startswith("<0x") for character in token)
    return held | frozenset(" \t\n\r\u00a0\u3000") if tokenizer.kind != "character" else held


def _named(tokenizers: Tokenizers | None) -> list[tuple[str, Tokenizer]]:
    return [] if tokenizers is None else [("source", tokenizers.source), ("target", tokenizers.target)]


# What is wrong with a corpus for tagging, classification or language modelling. Reads as a stream; changes nothing.

RowFault = Callable[[Sequence[str]], str]  # what is wrong with a row that has all its columns; empty if nothing is


def check_labels(
    corpus: Corpus,
    columns: Sequence[str],
    fault: RowFault,
    *,
    held_out: Corpus | None = None,
    shown: int = 5,
    progress: Progress | None = None,
) -> CheckReport:
    """Read a corpus and report empty and repeated rows, one text with two labels, leaks, and what else its task calls a
    fault of a row."""
    judge = _Judge(columns, fault, texts_of(held_out, columns))
    rows, found = judged(corpus, columns, judge.faults, shown, progress)
    return CheckReport(corpus.paths, rows, None, found)


class _Judge:
    """Says what is wrong with rows, one block at a time, remembering those it has judged."""

    def __init__(self, columns: Sequence[str], fault: RowFault, held_out: Seen) -> None:
        self._columns, self._fault, self._held_out = columns, fault, held_out
        self._rows, self._texts = Seen(), Seen()

    def faults(self, rows: list[tuple[str, ...]]) -> Iterator[list[Fault]]:
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

    def _faults_of(self, row: tuple[str, ...]) -> Iterator[Fault]:
        for name, cell in zip(self._columns, row, strict=True):
            if not cell.strip():
                yield "empty", f"no {name}"
                return
        if problem := self._fault(row):
            yield "count", problem
