"""What is wrong with a corpus, with counts, examples and line numbers. Reads as a stream; changes nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from regard.data.blocks import in_blocks
from regard.data.lines import CorpusProblem, ProblemKind, ignore
from regard.data.readers import Corpus
from regard.data.seen import Seen
from regard.text.characters import ByteTokenizer
from regard.text.special import SPECIAL_TOKENS, UNK
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizers import Tokenizers

Kind = ProblemKind | Literal["empty", "ratio", "identical", "duplicate", "leak", "count", "conflict"]
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


class Findings:
    """Counts what is found and keeps the first few examples of each kind."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._counts: Counter[Kind] = Counter()
        self._examples: dict[Kind, list[FaultyLine]] = {}

    def add(self, kind: Kind, example: FaultyLine) -> None:
        self._counts[kind] += 1
        kept = self._examples.setdefault(kind, [])
        if len(kept) < self._shown:
            kept.append(example)

    def complain(self, problem: CorpusProblem) -> None:
        self.add(problem.kind, FaultyLine(problem.line, problem.message))

    def all(self) -> tuple[Finding, ...]:
        return tuple(Finding(kind, count, tuple(self._examples[kind])) for kind, count in self._counts.items())


def check(
    corpus: Corpus,
    *,
    held_out: Corpus | None = None,
    tokenizers: Tokenizers | None = None,
    ratio: float = 4.0,
    shown: int = 5,
    progress: Callable[[int, int | None], None] | None = None,
) -> CheckReport:
    """Read a parallel corpus and report what is wrong with it.

    `held_out` is the test set, whose sources must not be in the corpus. A pair is a ratio outlier if its
    lengths are `ratio` times further apart than is usual for the corpus.
    """
    found, judge = Findings(shown), Judge(usual_ratio(corpus), ratio, sources_of(held_out))
    sides = [_UnknownCounter(name, tokenizer) for name, tokenizer in _named(tokenizers)]
    pairs = 0
    for block in in_blocks(corpus.rows(SIDES, found.complain)):
        for (line, (source, target)), faults in zip(block, judge.faults([row for _, row in block]), strict=True):
            for kind, note in faults:
                found.add(kind, FaultyLine(line, note, source, target))
        for place, side in enumerate(sides):
            side.add([row[place] for _, row in block])
        pairs += len(block)
        if progress is not None:
            progress(pairs, None)
    checked = tuple(side.report() for side in sides)
    return CheckReport(corpus.paths, pairs, math.exp(judge.usual), found.all(), checked)


class Judge:
    """Says what is wrong with pairs, one block at a time, remembering those it has judged."""

    def __init__(self, usual: float, ratio: float, held_out: Seen) -> None:
        self.usual = usual
        self._ratio = ratio
        self._held_out = held_out
        self._seen = Seen()

    def faults(self, pairs: list[tuple[str, ...]]) -> Iterator[list[tuple[Kind, str]]]:
        """For each pair, what is wrong with it: the kind and a note for people."""
        new = self._seen.add(pairs)
        leaks = self._held_out.has(source for source, _ in pairs)
        for (source, target), is_new, leaked in zip(pairs, new, leaks, strict=True):
            faults = list(self._faults_of(source, target))
            if not is_new:
                faults.append(("duplicate", "the same pair stands further up"))
            if leaked:
                faults.append(("leak", "the held-out set has this source"))
            yield faults

    def _faults_of(self, source: str, target: str) -> Iterator[tuple[Kind, str]]:
        if not source.strip() or not target.strip():
            yield "empty", "the source is empty" if not source.strip() else "the target is empty"
            return
        if source == target:
            yield "identical", "the source is its own target"
        if abs(log_ratio(source, target) - self.usual) > math.log(self._ratio):
            yield "ratio", f"{len(source)} characters against {len(target)}"


def log_ratio(source: str, target: str) -> float:
    """How much longer the source is than the target, in logarithms; smoothed, because short texts say little."""
    return math.log((len(source) + _SOFTENING) / (len(target) + _SOFTENING))


def usual_ratio(corpus: Corpus) -> float:
    """The median `log_ratio` of the first rows: languages differ, and so do their scripts."""
    rows = islice(corpus.rows(SIDES, ignore), _SAMPLE)
    ratios = [log_ratio(source, target) for _, (source, target) in rows if source and target]
    return float(np.median(ratios)) if ratios else 0.0


def sources_of(corpus: Corpus | None, change: Callable[[str], str] = str) -> Seen:
    """The sources of a held-out corpus, changed as those that will be compared with them."""
    seen = Seen()
    if corpus is not None:
        for block in in_blocks(corpus.rows(SIDES, ignore)):
            seen.add(change(source) for _, (source, _) in block)
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
