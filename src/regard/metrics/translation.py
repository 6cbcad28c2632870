"""Translation quality: sacreBLEU's numbers, with its signature and its bootstrap interval beside them.

The numbers are those that the command ``sacrebleu REFERENCE -i OUTPUT -m bleu chrf ter --confidence`` prints.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import numpy as np
from sacrebleu.metrics.base import Metric, Score
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF, CHRFScore
from sacrebleu.metrics.ter import TER, TERScore

from regard.errors import DataError, ResourceError, SettingsError, did_you_mean
from regard.settings.call import MeasureSettings

METRICS = ("bleu", "chrf", "chrf++", "ter", "exact", "edits")
TOKENIZERS = ("13a", "intl", "char", "zh", "none")  # BLEU's own that need no other package and no download
USUAL = MeasureSettings()
BLEU_ALONE = MeasureSettings(metrics=("bleu",), resamples=0)
MOST_MEMORY = 4 << 30  # bytes that a bootstrap may take
_NUMBER_BYTES, _STATISTICS = 4, 20  # sacreBLEU keeps up to twenty numbers for every sentence of every resample


@dataclass(frozen=True)
class Quality:
    """A corpus score and how it was computed; from ``low`` to ``high`` lie 95 % of the resamples."""

    name: str
    score: float
    signature: str
    low: float | None = None
    high: float | None = None

    @property
    def mean(self) -> float | None:
        """The mean of the resamples, the μ that sacreBLEU prints."""
        return None if self.low is None or self.high is None else (self.low + self.high) / 2

    @property
    def margin(self) -> float | None:
        """What sacreBLEU prints after ±: half of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def __str__(self) -> str:
        margin = "" if self.margin is None else f" ±{self.margin:.1f}"
        return f"{self.score:.1f}{margin} ({self.name}|{self.signature})"


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Quality:
    """Corpus BLEU of detokenised text, without an interval."""
    return measure(hypotheses, references, BLEU_ALONE)[0]


def measure(
    hypotheses: Sequence[str],
    references: Sequence[str],
    how: MeasureSettings = USUAL,
) -> list[Quality]:
    """Corpus scores of detokenised text. Fewer than two resamples mean no interval."""
    computers = metrics_named(how.metrics, how.tokenize)
    _check(hypotheses, references, how.resamples)
    return [_quality(metric, hypotheses, references, how.resamples, how.seed) for metric in computers]


def metrics_named(names: Sequence[str], tokenize: str = "13a") -> list[Metric]:
    """SacreBLEU's metrics by name; refuses a wrong name."""
    if not names:
        raise SettingsError(f"metrics = none: nothing to measure; known: {', '.join(METRICS)}")
    return [_metric(name, tokenize) for name in names]


class _Chrf(CHRF):
    """SacreBLEU's resamples are numpy's numbers, or Python's where nothing matches; it cannot take the mean of both."""

    def _compute_score_from_stats(self, statistics: list[int]) -> CHRFScore:
        result = super()._compute_score_from_stats(statistics)
        result.score = _like(result.score, statistics)
        return result


class _Ter(TER):
    """The same for TER, where a resample may have empty references alone."""

    def _compute_score_from_stats(self, statistics: list[float]) -> TERScore:
        result = super()._compute_score_from_stats(statistics)
        result.score = _like(result.score, statistics)
        return result


class _Exact(Metric):
    """Outputs that are the reference, in percent."""

    name = "exact"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def _preprocess_segment(self, sent: str) -> str:
        return " ".join(sent.split())

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, list[str]]:
        return {"references": list(refs)}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, list[str]]) -> list[int]:
        return [int(hypothesis in ref_kwargs["references"]), 1]

    def _aggregate_and_compute(self, stats: list[list[int]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: list[int]) -> Score:
        return Score(self.name, _like(100 * float(stats[0]) / max(1.0, float(stats[1])), stats))


class _Edits(_Exact):
    """Characters to insert, delete or replace (Levenshtein) for every hundred of the reference."""

    name = "edits"

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, list[str]]) -> list[int]:
        return list(min((edit_distance(hypothesis, each), len(each)) for each in ref_kwargs["references"]))


def edit_distance(first: str, second: str) -> int:
    """The fewest characters to insert, delete or replace that make the one text of the other."""
    row = list(range(len(second) + 1))
    for above, character in enumerate(first, start=1):
        before, row[0] = row[0], above
        for place, other in enumerate(second, start=1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (character != other))
    return row[-1]


def _like(score: float, statistics: object) -> float:
    """A score as the kind of number that a resample's statistics are."""
    resample = isinstance(statistics, np.ndarray) and statistics.dtype.kind == "f"
    return cast("float", np.float32(score)) if resample else score


def _metric(name: str, tokenize: str) -> Metric:
    if tokenize not in TOKENIZERS:
        raise SettingsError(f"tokenize = {tokenize}: no such tokenizer of BLEU's; {did_you_mean(tokenize, TOKENIZERS)}")
    match name.lower():
        case "bleu":
            return BLEU(tokenize=tokenize, force=True)  # the caller warns of tokenised text
        case "chrf":
            return _Chrf()
        case "chrf++":
            return _Chrf(word_order=2)
        case "ter":
            return _Ter()
        case "exact":
            return _Exact()
        case "edits":
            return _Edits()
        case _:
            raise SettingsError(f"metrics = {name}: no such metric; {did_you_mean(name, METRICS)}")


def check_lines(
    *, references: Sequence[str], hypotheses: Sequence[str], sources: Sequence[object] | None = None
) -> None:
    """Refuse texts that are not as many as each other."""
    texts = {"sources": sources, "hypotheses": hypotheses, "references": references}
    counts = {name: len(lines) for name, lines in texts.items() if lines is not None}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        raise DataError(f"lines = {shown}: they must be as many as each other")


def _check(hypotheses: Sequence[str], references: Sequence[str], resamples: int) -> None:
    check_lines(hypotheses=hypotheses, references=references)
    if not hypotheses:
        raise DataError("hypotheses = 0 lines: nothing to measure; give at least one sentence")
    if (needed := resamples * len(hypotheses) * _NUMBER_BYTES * _STATISTICS) > MOST_MEMORY:
        raise ResourceError(
            f"resamples = {resamples:,}: would take about {needed / 2**30:.0f} GiB for {len(hypotheses):,} sentences; "
            f"at most {MOST_MEMORY // (needed // resamples):,} would fit, and 0 means no interval"
        )


def _quality(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], resamples: int, seed: int
) -> Quality:
    with seeded(seed):
        result = metric.corpus_score(
            [text.rstrip() for text in hypotheses], [[text.rstrip() for text in references]], n_bootstrap=resamples
        )
    signature = str(metric.get_signature())
    if resamples < 2:
        return Quality(result.name, float(result.score), signature)
    mean, margin = float(result._mean), float(result._ci)
    return Quality(result.name, float(result.score), signature, mean - margin, mean + margin)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """SacreBLEU takes the seed of its bootstrap from the environment, and only from there."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before


# Sentences by themselves: a rough score for each, to know where to look.


def sentence_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """The chrF2 of each sentence alone: steadier than BLEU on so little text, and no corpus score."""
    check_lines(hypotheses=hypotheses, references=references)
    metric = CHRF()
    return [
        float(metric.sentence_score(output, [reference]).score)
        for output, reference in zip(hypotheses, references, strict=True)
    ]
