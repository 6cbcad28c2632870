"""How good forecasts are: MASE, sMAPE, CRPS and coverage, beside two that need no model. No torch.

A forecast is its quantiles at `LEVELS`, (H, F, Q): H moments, F channels. Numbers that are missing count nowhere.

    MASE      mean |y − median| / mean |y_t − y_{t−season}| of the contexts (Hyndman and Koehler, 2006)
    sMAPE     mean 200 |y − median| / (|y| + |median|), in percent
    CRPS      the continuous ranked probability score, twice the mean quantile loss, in the units of MASE
    coverage  the share of truths between two quantiles: 80 % would be right between 10 % and 90 %
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from regard.data.series import Matrix, mean, naive
from regard.metrics.labels import Confusion

LEVELS = tuple(number / 20 for number in range(1, 20))
MEDIAN = LEVELS.index(0.5)
INTERVALS = (0.8, 0.9)  # nominal coverage
TRUST = 20  # windows; a series may change, and few windows know less than the training part (docs/vectors.md)
Row = tuple[str, ...]


@dataclass(frozen=True)
class ForecastScore:
    """One way to forecast, measured."""

    name: str
    mase: float
    smape: float  # percent
    crps: float
    coverage: tuple[float, ...]  # of `INTERVALS`
    steps: tuple[float, ...]  # MASE of each moment ahead

    def numbers(self) -> tuple[tuple[str, float], ...]:
        """In percent, as other scores are."""
        return ("MASE (%)", 100 * self.mase), ("CRPS (%)", 100 * self.crps), ("sMAPE (%)", self.smape)

    def row(self) -> Row:
        shares = (f"{100 * share:.1f} %" for share in self.coverage)
        return self.name, f"{self.mase:.3f}", f"{self.smape:.1f} %", f"{self.crps:.3f}", *shares


@dataclass(frozen=True)
class ForecastResult:
    """A forecaster on a corpus: the run with its own forecasts first, then the others."""

    windows: int
    scores: tuple[ForecastScore, ...]

    def numbers(self) -> tuple[tuple[str, float], ...]:
        """What a forecaster is measured by."""
        return self.scores[0].numbers()

    def confusions(self) -> tuple[Confusion, ...]:
        """It gives no labels."""
        return ()

    def rows(self) -> list[Row]:
        """For a table: each way to forecast, then the error of each moment ahead."""
        intervals = (f"in {100 * share:.0f} %" for share in INTERVALS)
        head = (f"{self.windows:,} windows", "MASE", "sMAPE", "CRPS", *intervals)
        ahead = [
            (f"MASE of moment {step + 1}", *(f"{one.steps[step]:.3f} {one.name}" for one in self.scores))
            for step in range(len(self.scores[0].steps))
        ]
        return [head, *(one.row() for one in self.scores), *ahead]

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it."""
        each = [
            {**vars(one), "coverage": dict(zip(map(str, INTERVALS), one.coverage, strict=True))} for one in self.scores
        ]
        return {"task": "forecast", "windows": self.windows, "scores": each}


class ForecastTally:
    """Adds up windows, each with the forecasts made for it by name. It keeps sums, however many windows there are."""

    def __init__(self, season: int) -> None:
        self.season, self.count = season, 0
        self._sums: dict[str, _Sum] = {}  # of `_measures`, (M, H, F)
        self._scale = _Sum()  # (F,)

    def add(self, context: Matrix, truth: Matrix, forecasts: dict[str, Matrix]) -> None:
        """A window: the forecasts are joined by the seasonal naive one, where there is a season, and the naive one."""
        self.count += 1
        self._scale.add(differences(context, self.season))
        seasonal = {"seasonal naive": naive_quantiles(context, len(truth), self.season)} if self.season > 1 else {}
        others = seasonal | {"naive": naive_quantiles(context, len(truth), 1)}
        for name, found in (forecasts | others).items():
            self._sums.setdefault(name, _Sum()).add(_measures(truth, found))

    def result(self) -> ForecastResult:
        scale = self._scale.total / np.maximum(self._scale.count, 1)
        scale = np.where(scale > 0, scale, 1.0)
        return ForecastResult(self.count, tuple(_score(name, each, scale) for name, each in self._sums.items()))


class _Sum:
    """A sum of arrays in which numbers are missing, and how many there were in each place."""

    def __init__(self) -> None:
        self.total, self.count = np.zeros(()), np.zeros(())

    def add(self, values: Matrix) -> None:
        known = ~np.isnan(values)
        self.total, self.count = self.total + np.where(known, values, 0.0), self.count + known


def _measures(truth: Matrix, found: Matrix) -> Matrix:
    """Of each moment and channel the error, the relative error, the quantile loss, and whether the truth is in each of
    the `INTERVALS`: ``truth`` (H, F), ``found`` (H, F, Q) → (M, H, F)."""
    median = found[..., MEDIAN]
    error, sizes = np.abs(truth - median), np.abs(truth) + np.abs(median)
    inside = []
    for share in INTERVALS:
        low, high = (LEVELS.index(round((1 + side * share) / 2, 2)) for side in (-1, 1))
        within = (truth >= found[..., low]) & (truth <= found[..., high])
        inside.append(np.where(np.isnan(truth), np.nan, within))
    return np.stack([error, 200 * error / np.where(sizes > 0, sizes, 1.0), quantile_loss(truth, found), *inside])


def _score(name: str, summed: _Sum, scale: Matrix) -> ForecastScore:
    (error, relative, loss, *inside), (errors, *counts) = summed.total, summed.count
    smape, crps, *coverage = (
        float(total.sum() / max(1, count.sum()))
        for total, count in zip((relative, 2 * loss / scale, *inside), counts, strict=True)
    )
    mase = float((error / scale).sum() / max(1, errors.sum()))
    steps = (error / scale).sum(-1) / np.maximum(errors.sum(-1), 1)
    return ForecastScore(name, mase, smape, crps, tuple(coverage), tuple(steps.tolist()))


def quantile_loss(truths: Matrix, found: Matrix, levels: Sequence[float] = LEVELS) -> Matrix:
    """``mean_q max(q e, (q − 1) e)`` with e = truth − quantile (Koenker and Bassett, 1978): (…, Q) → (…)."""
    error, shares = truths[..., None] - found, np.array(levels)
    return np.maximum(shares * error, (shares - 1) * error).mean(-1)


def widening(truths: Matrix, found: Matrix) -> float:
    """How many times wider the intervals of forecasts (N, H, F, Q) should be to hold as many of the truths (N, H, F) as
    they say: of each interval a quantile of the errors in its half widths (conformal prediction, Vovk et al., 2005), of
    all the geometric mean. Windows overlap: N of them know as much as N / H, and the model itself as `TRUST`."""
    if np.isnan(truths).all():
        return 1.0
    median, logarithms = found[..., MEDIAN], []
    for low in range(MEDIAN):
        below, above = (np.maximum(np.abs(found[..., side] - median), 1e-9) for side in (low, -1 - low))
        apart = np.where(truths < median, (median - truths) / below, (truths - median) / above)
        logarithms.append(np.log(np.maximum(np.nanquantile(apart, 1 - 2 * LEVELS[low]), 1e-9)))
    known = len(truths) / truths.shape[1]
    return float(np.clip(np.exp(np.mean(logarithms) * known / (known + TRUST)), 0.2, 5.0))


def differences(history: Matrix, season: int) -> Matrix:
    """``mean |y_t − y_{t−season}|`` of each channel: what the naive forecast one season ahead was wrong by."""
    season = season if len(history) > season else 1
    return mean(np.abs(history[season:] - history[:-season]), 0)


def naive_quantiles(history: Matrix, horizon: int, season: int) -> Matrix:
    """The naive forecast with normal intervals: its error one season ahead, growing with the root of the seasons."""
    season = season if len(history) > season else 1
    deviation = np.sqrt(mean((history[season:] - history[:-season]) ** 2, 0))  # (F,)
    seasons = np.arange(horizon) // season + 1
    normal = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
    wide = np.sqrt(seasons)[:, None, None] * deviation[:, None] * normal
    return naive(history, horizon, season)[..., None] + wide
