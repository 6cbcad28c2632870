"""Translation quality: sacreBLEU's numbers with its signature beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU


@dataclass(frozen=True)
class Quality:
    """A corpus score and how it was computed."""

    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.score:.1f} ({self.signature})"


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Quality:
    """Corpus BLEU of detokenised text."""
    metric = BLEU()
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Quality(result.score, f"BLEU|{metric.get_signature()}")
