"""What is wrong with a corpus, with counts, examples and line numbers. The corpus is streamed and not changed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import CorpusProblem, ProblemKind, Progress, ignore, in_blocks
from regard.data.readers import Corpus
from regard.data.series import read_series
from regard.errors import DataError
from regard.settings.schema import SourceSettings
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import inlined, is_vectors, parse
from regard.text.vocabulary import SPECIAL_TOKENS, UNK, Tokenizer
from regard.text.words import ByteTokenizer


class Seen:
    """A set of 64-bit hashes, for blocks of items: eight bytes an item, a tenth of what a Python set needs.

    It consists of sorted runs. Two runs of about the same length are merged into one, so that there are few runs to
    search and each hash is moved only a few times.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def has(self, items: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Which of these have been added before."""
        return self._known(_hashes(items))

    def add(self, items: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Add these, and say which of them are new."""
        hashes = _hashes(items)
        values, first = np.unique(hashes, return_index=True)
        unknown = ~self._known(values)
        new = np.zeros(len(hashes), bool)
        new[first[unknown]] = True
        self._runs.append(values[unknown])
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._runs[-2:] = [np.sort(np.concatenate(self._runs[-2:]))]
        return new

    def _known(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        known = np.zeros(len(hashes), bool)
        for run in self._runs:
            if len(run):
                nearest = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
                known |= run[nearest] == hashes
        return known


def _hashes(items: Iterable[Hashable]) -> NDArray[np.int64]:
    """Python's hashes, which differ from process to process; they are compared within one process only."""
    return np.fromiter(map(hash, items), np.int64)


Kind = ProblemKind | Literal["empty", "ratio", "identical", "duplicate", "leak", "count", "conflict"]
Fault = tuple[Kind, str]  # and a note for people
RowFaults = Callable[[tuple[str, ...]], list[Fault]]  # what is wrong with one row by itself
SIDES = ("source", "target")
_SAMPLE = 100_000  # rows from which the usual ratio of lengths is computed
_SOFTENING = 5  # characters, added to both lengths: the ratios of short lines vary much
USUAL = SourceSettings()  # how pictures and sounds are cut where no run says
_SHOWN = 20  # how many characters outside the vocabulary are listed


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
    """All findings. `typical_ratio` is the usual length of a source divided by that of its target, if there is one."""

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
    usual, sides = usual_ratio(corpus), list[_UnknownCounter]()
    if tokenizers is not None:
        sides = [_UnknownCounter("source", tokenizers.source), _UnknownCounter("target", tokenizers.target)]
    judge = Judge(pair_faults(usual, ratio, vector_faults(corpus)), texts_of(held_out))
    pairs, findings = _judged(corpus, SIDES, judge, shown, progress, sides)
    return CheckReport(corpus.paths, pairs, math.exp(usual), findings, tuple(side.report() for side in sides))


def check_labels(
    corpus: Corpus,
    columns: Sequence[str],
    fault: Callable[[Sequence[str]], str],
    *,
    held_out: Corpus | None = None,
    tokenizers: Tokenizers | None = None,
    shown: int = 5,
    progress: Progress | None = None,
) -> CheckReport:
    """The same for tagging, classification and language modelling: empty and repeated rows, one text with two labels,
    leaks, and what `fault` says is wrong with a row, if anything. The first column is text, the other has labels."""

    vectors = vector_faults(corpus, columns)

    def faults(row: tuple[str, ...]) -> list[Fault]:
        for name, cell in zip(columns, row, strict=True):
            if not cell.strip():
                return [("empty", f"no {name}")]
        if vectors is not None:
            return vectors(row[0])
        return [("count", problem)] if (problem := fault(row)) else []

    judge = Judge(faults, texts_of(held_out, columns), labelled=True)
    sides = [] if tokenizers is None else [_UnknownCounter(columns[0], tokenizers.source)]
    rows, findings = _judged(corpus, columns, judge, shown, progress, sides)
    return CheckReport(corpus.paths, rows, None, findings, tuple(side.report() for side in sides))


def _judged(  # noqa: PLR0917
    corpus: Corpus,
    columns: Sequence[str],
    judge: Judge,
    shown: int,
    progress: Progress | None,
    sides: Sequence[_UnknownCounter] = (),
) -> tuple[int, tuple[Finding, ...]]:
    """The number of rows, and what is wrong with them: how often, with the first few examples of each kind."""
    counts, examples, rows = Counter[Kind](), defaultdict[Kind, list[FaultyLine]](list), 0

    def add(kind: Kind, example: FaultyLine) -> None:
        counts[kind] += 1
        examples[kind] += [example] if len(examples[kind]) < shown else []

    def complain(problem: CorpusProblem) -> None:
        place = "" if len(corpus.paths) == 1 else f"{problem.path}: "  # the line is there already
        note = problem.message.replace(f"{problem.path} line {problem.line}: ", place, 1)
        add(problem.kind, FaultyLine(problem.line, note))

    for block in in_blocks(corpus.rows(columns, complain)):
        for (line, row), faults in zip(block, judge.faults([row for _, row in block]), strict=True):
            for kind, note in faults:
                add(kind, FaultyLine(line, note, *row[:2]))
        for column, side in enumerate(sides):
            side.add([row[column] for _, row in block])
        rows += len(block)
        if progress is not None:
            progress(rows, None)
    return rows, tuple(Finding(kind, count, tuple(examples[kind])) for kind, count in counts.items())


class Judge:
    """Finds the faults of rows, block by block, and remembers the rows: with labels, one text has one label."""

    def __init__(self, row_faults: RowFaults, held_out: Seen, *, labelled: bool = False) -> None:
        self._row_faults, self._held_out, self._labelled = row_faults, held_out, labelled
        self._rows, self._texts = Seen(), Seen()

    def faults(self, rows: list[tuple[str, ...]]) -> Iterator[list[Fault]]:
        new_rows = self._rows.add(rows)
        new_texts = self._texts.add(row[0] for row in rows) if self._labelled else np.ones(len(rows), bool)
        leaks = self._held_out.has(row[0] for row in rows)
        for row, is_new, text_is_new, leaked in zip(rows, new_rows, new_texts, leaks, strict=True):
            faults = self._row_faults(row)
            if self._labelled and any(kind == "empty" for kind, _ in faults):
                yield faults
                continue
            if not is_new:
                faults.append(("duplicate", "an earlier row is the same"))
            elif not text_is_new:
                faults.append(("conflict", "an earlier row has the same text with another label"))
            if leaked:
                faults.append(("leak", "the held-out set has this text"))
            yield faults


def check_series(corpus: Corpus) -> CheckReport:
    """Of series: channels without a number, and channels that never change. Each has a line, or is a file."""
    found, moments = defaultdict[Kind, list[FaultyLine]](list), 0
    for path in corpus.paths:
        file = f"{path}: " if len(corpus.paths) > 1 else ""
        for line, (text,) in read_series(path, corpus.columns):
            values = parse(text, USUAL.patch, USUAL.bands)[0]
            moments += len(values)
            for channel, numbers in enumerate(values.T, start=1):
                known = numbers[~np.isnan(numbers)]
                if not len(known):
                    found["empty"].append(FaultyLine(line, f"{file}channel {channel} has no number"))
                elif known.min() == known.max():
                    found["identical"].append(FaultyLine(line, f"{file}channel {channel} is always {known[0]:g}"))
    findings = (Finding(kind, len(lines), tuple(lines[:5])) for kind, lines in found.items())
    return CheckReport(corpus.paths, moments, None, tuple(findings))


def vector_faults(corpus: Corpus, columns: Sequence[str] = SIDES) -> Callable[[str], list[Fault]] | None:
    """What is wrong with a source that is vectors: not to be read, or of another width than the first. None where the
    corpus begins with a text."""
    first = next((row[0] for _, row in corpus.rows(columns, ignore) if row[0].strip()), "")
    if not is_vectors(first):
        return None
    folder, widths = Path(corpus.paths[0]).parent, list[int]()

    def faults(text: str) -> list[Fault]:
        try:
            width = parse(inlined(text, folder), USUAL.patch, USUAL.bands)[0].shape[1]
        except DataError as problem:
            return [("format", str(problem))]
        widths.extend([] if widths else [width])
        return [] if [width] == widths else [("format", f"{width} numbers a vector; the first has {widths[0]}")]

    return faults


def pair_faults(usual: float, ratio: float, vectors: Callable[[str], list[Fault]] | None = None) -> RowFaults:
    """What is wrong with a pair by itself, given the usual ratio of lengths; or with its source, if that is vectors."""

    def faults(row: tuple[str, ...]) -> list[Fault]:
        source, target = row
        if not source.strip() or not target.strip():
            return [("empty", "the source is empty" if not source.strip() else "the target is empty")]
        if vectors is not None:
            return vectors(source)
        faulty: list[Fault] = [("identical", "source and target are the same")] if source == target else []
        if abs(_log_ratio(source, target) - usual) > math.log(ratio):
            faulty.append(("ratio", f"{len(source)} characters against {len(target)}"))
        return faulty

    return faults


def _log_ratio(source: str, target: str) -> float:
    return math.log((len(source) + _SOFTENING) / (len(target) + _SOFTENING))


def usual_ratio(corpus: Corpus) -> float:
    """The logarithm of the usual ratio of lengths, source to target: the median of the first rows."""
    rows = islice(corpus.rows(SIDES, ignore), _SAMPLE)
    ratios = [_log_ratio(source, target) for _, (source, target) in rows if source and target]
    return float(np.median(ratios)) if ratios else 0.0


def texts_of(corpus: Corpus | None, columns: Sequence[str] = SIDES, change: Callable[[str], str] = str) -> Seen:
    """The first column of a held-out corpus, each text changed by `change`."""
    seen = Seen()
    if corpus is not None:
        for block in in_blocks(corpus.rows(columns, ignore)):
            seen.add(change(row[0]) for _, row in block)
    return seen


class _UnknownCounter:
    """Counts the tokens of one side, and those that its tokenizer does not know."""

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
    """The characters that occur in tokens, and spaces; None if the tokenizer can write every character."""
    if isinstance(tokenizer, ByteTokenizer):
        return None
    tokens = (tokenizer.token(number) for number in range(len(SPECIAL_TOKENS), tokenizer.size))
    held = frozenset(character for token in tokens if not token.startswith("<0x") for character in token)
    return held | frozenset(" \t\n\r\u00a0\u3000") if tokenizer.kind != "character" else held
