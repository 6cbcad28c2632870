"""Minimum Bayes risk: not the most probable output, but the one most like all others (Eikema and Aziz, 2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def utilities(samples: Sequence[str]) -> list[float]:
    """How much each sample agrees with all of them: ``u_i = 1/N Σ_j chrF(y_i, y_j)``, sacreBLEU's sentence chrF.

    Samples stand for the model's distribution, so that this mean is the expected quality of an output when the
    truth is drawn from the model. A text that was drawn more than once counts as often, and is compared once.
    """
    from sacrebleu.metrics.chrf import CHRF  # only when it is used

    metric, counts = CHRF(), Counter(samples)
    expected = {
        text: sum(
            times * (100.0 if text == other else metric.sentence_score(text, [other]).score)
            for other, times in counts.items()
        )
        / len(samples)
        for text in counts
    }
    return [expected[text] for text in samples]


def least_risk(samples: Sequence[str]) -> int:
    """Which sample has the highest expected chrF; the first of equals."""
    agreement = utilities(samples)
    return agreement.index(max(agreement))
