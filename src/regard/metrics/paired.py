"""Is one system better than another? SacreBLEU's two paired tests, for any number of systems.

Both ask how often chance alone gives a difference as large as the one that was seen. The bootstrap draws sentences
with replacement (Koehn 2004); approximate randomisation swaps the two systems' outputs at random sentences (Riezler
and Maxwell 2005). The numbers are those of ``sacrebleu REFERENCE -i FIRST SECOND --paired-bs`` and ``--paired-ar``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.significance import PairedTest, Result

from regard.errors import DataError, ResourceError
from regard.metrics.translation import MOST_MEMORY, USUAL, metrics_named, seeded
from regard.settings.call import MeasureSettings

LOWER_IS_BETTER = ("TER", "perplexity/word", "perplexity/byte", "MASE (%)", "CRPS (%)", "sMAPE (%)")
_BYTES = 17  # that a trial takes for a sentence: two choices, and one of them widened to a whole number

System = tuple[str, Sequence[str]]


@dataclass(frozen=True)
class Verdict:
    """Two systems under one metric. A small p says that chance would rarely give so large a difference."""

    metric: str
    first: str
    second: str
    difference: float  # second less first
    bootstrap: float  # p
    randomisation: float  # p

    @property
    def better(self) -> str:
        """The name of the better one; of the second when they are equal."""
        second = self.difference <= 0 if self.metric in LOWER_IS_BETTER else self.difference >= 0
        return self.second if second else self.first

    @property
    def worse(self) -> str:
        return self.first if self.better == self.second else self.second


def paired(
    systems: Sequence[System],
    references: Sequence[str],
    how: MeasureSettings = USUAL,
) -> list[Verdict]:
    """Every pair of systems under every metric, one metric after another.

    The earlier of a pair is the one that sacreBLEU calls the baseline.
    """
    _check(systems, references, how.resamples, how.trials)
    stripped: list[System] = [(name, [text.rstrip() for text in outputs]) for name, outputs in systems]
    verdicts: list[Verdict] = []
    for place in range(len(systems) - 1):
        tests = [
            _test(kind, stripped[place:], references, count, how)
            for kind, count in (("bs", how.resamples), ("ar", how.trials))
        ]
        for metric in tests[0]:
            (baseline, *bootstrap), (_, *randomisation) = (test[metric] for test in tests)
            verdicts += [
                Verdict(
                    metric, systems[place][0], name, one.score - baseline.score, _p(one, baseline), _p(other, baseline)
                )
                for (name, _), one, other in zip(systems[place + 1 :], bootstrap, randomisation, strict=True)
            ]
    order = list(dict.fromkeys(verdict.metric for verdict in verdicts))
    return sorted(verdicts, key=lambda verdict: order.index(verdict.metric))


def holm(values: Sequence[float]) -> list[float]:
    """P values made larger for the number of tests, so that all of them together err as rarely as one (Holm 1979).

    The smallest of m is multiplied by m, the next by m - 1, …; none may end up below a smaller one.
    """
    adjusted, floor = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        floor = max(floor, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = floor
    return adjusted


def _test(
    kind: str,
    systems: list[System],
    references: Sequence[str],
    count: int,
    how: MeasureSettings,
) -> dict[str, list[Result]]:
    """The first system against each of the others: for each metric its own result, then theirs."""
    ready = dict(zip(how.metrics, metrics_named(how.metrics, how.tokenize), strict=True))
    with seeded(how.seed):
        test = PairedTest(systems, ready, [[text.rstrip() for text in references]], test_type=kind, n_samples=count)
        _, columns = test()
    return {
        name: [one for one in column if isinstance(one, Result)] for name, column in columns.items() if name != "System"
    }


def _p(result: Result, baseline: Result) -> float:
    """The p value; 1 where the scores are equal, and sacreBLEU finds no larger difference and says 1/(n+1)."""
    assert result.p_value is not None  # only a baseline has none
    return 1.0 if result.score == baseline.score else float(result.p_value)


def _check(systems: Sequence[System], references: Sequence[str], resamples: int, trials: int) -> None:
    if len(systems) < 2:
        raise DataError(f"systems = {len(systems)}: a paired test compares at least two")
    for name, outputs in systems:
        if len(outputs) != len(references) or not references:
            raise DataError(
                f"{name} = {len(outputs):,} outputs: the references have {len(references):,}; "
                "one is needed for each, and at least one"
            )
    for name, count in (("resamples", resamples), ("trials", trials)):
        if count < 1:
            raise DataError(f"{name} = {count}: a test draws at least once; {USUAL.resamples:,} is usual")
    if (needed := trials * len(references) * _BYTES) > MOST_MEMORY:
        raise ResourceError(
            f"trials = {trials:,}: would take about {needed / 2**30:.0f} GiB for {len(references):,} sentences; "
            f"at most {MOST_MEMORY // (needed // trials):,} would fit"
        )
