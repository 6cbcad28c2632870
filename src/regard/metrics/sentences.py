"""Sentences by themselves: a rough score for each, to know where to look."""

from __future__ import annotations

from collections.abc import Sequence

from sacrebleu.metrics.chrf import CHRF

from regard.errors import DataError


def sentence_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """The chrF2 of each sentence alone: steadier than BLEU on so little text, and no corpus score."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"hypotheses = {len(hypotheses):,} lines: the references have {len(references):,}; one is needed for each"
        )
    metric = CHRF()
    return [
        float(metric.sentence_score(output, [reference]).score)
        for output, reference in zip(hypotheses, references, strict=True)
    ]
