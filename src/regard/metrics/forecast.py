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
    """Adds up windows, each with the forecasts made for it by name."""

    def __init__(self, season: int) -> None:
        self.season, self.count = season, 0
        self._truths: list[Matrix] = []  # (H, F)
        self._found: dict[str, list[Matrix]] = {}  # (H, F, Q)
        self._scale: list[Matrix] = []  # (F,)

    def add(self, context: Matrix, truth: Matrix, forecasts: dict[str, Matrix]) -> None:
        """A window: the forecasts are joined by the seasonal naive one, where there is a season, and the naive one."""
        self.count += 1
        self._truths.append(truth)
        self._scale.append(differences(context, self.season))
        seasonal = {"seasonal naive": naive_quantiles(context, len(truth), self.season)} if self.season > 1 else {}
        others = seasonal | {"naive": naive_quantiles(context, len(truth), 1)}
        for name, found in (forecasts | others).items():
            self._found.setdefault(name, []).append(found)

    def result(self) -> ForecastResult:
        truths, scale = np.stack(self._truths), mean(np.stack(self._scale), 0)
        scale = np.where(scale > 0, scale, 1.0)
        scores = (_score(name, truths, np.stack(found), scale) for name, found in self._found.items())
        return ForecastResult(self.count, tuple(scores))


def _score(name: str, truths: Matrix, found: Matrix, scale: Matrix) -> ForecastScore:
    """``truths`` (N, H, F), ``found`` (N, H, F, Q), ``scale`` (F,)."""
    median = found[..., MEDIAN]
    error = np.abs(truths - median)
    sizes = np.abs(truths) + np.abs(median)
    relative = 200 * error / np.where(sizes > 0, sizes, 1.0)
    inside = []
    for share in INTERVALS:
        low, high = (LEVELS.index(round((1 + side * share) / 2, 2)) for side in (-1, 1))
        within = (truths >= found[..., low]) & (truths <= found[..., high])
        inside.append(float(mean(np.where(np.isnan(truths), np.nan, within))))
    crps = 2 * quantile_loss(truths, found) / scale
    steps = mean((error / scale).transpose(0, 2, 1).reshape(-1, truths.shape[1]), 0)
    mase, smape, ranked = (float(mean(each)) for each in (error / scale, relative, crps))
    return ForecastScore(name, mase, smape, ranked, tuple(inside), tuple(steps.tolist()))


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
