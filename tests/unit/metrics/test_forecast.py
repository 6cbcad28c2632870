"""What forecasts are measured by, on numbers that can be worked out by hand."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from regard.data.series import naive
from regard.metrics.forecast import (
    INTERVALS,
    LEVELS,
    MEDIAN,
    ForecastTally,
    differences,
    naive_quantiles,
    quantile_loss,
    widening,
)


def certain(values: np.ndarray) -> np.ndarray:
    return np.repeat(values[..., None], len(LEVELS), -1)


def test_the_naive_forecast_repeats_the_last_season() -> None:
    history = np.array([[1.0], [2], [3], [4], [5], [6], [7]])
    np.testing.assert_array_equal(naive(history, 5, 3)[:, 0], [5, 6, 7, 5, 6])
    np.testing.assert_array_equal(naive(history, 2, 1)[:, 0], [7, 7])
    np.testing.assert_array_equal(naive(history, 2, 11)[:, 0], [7, 7])


def test_a_number_missing_in_the_last_season_is_that_of_the_season_before() -> None:
    history = np.array([[1.0], [2], [3], [4], [np.nan], [6]])
    np.testing.assert_array_equal(naive(history, 3, 3)[:, 0], [4, 2, 6])
    history[1] = np.nan  # neither season has it: the last one that is known
    np.testing.assert_array_equal(naive(history, 3, 3)[:, 0], [4, 6, 6])
    assert np.isnan(naive(np.full((3, 1), np.nan), 2, 1)).all()


def test_mase_is_one_where_errors_are_those_of_the_naive_forecast() -> None:
    context, truth = np.array([[0.0], [2], [0], [2]]), np.array([[5.0], [5]])
    tally = ForecastTally(1)
    tally.add(context, truth, {"mine": certain(np.array([[3.0], [3]]))})
    found = tally.result()
    mine = found.scores[0]
    assert mine.mase == pytest.approx(1.0)
    assert mine.steps == pytest.approx((1.0, 1.0))
    assert mine.smape == pytest.approx(50.0)
    assert mine.crps == pytest.approx(1.0)  # of a certain forecast it is the absolute error, in units of MASE
    assert mine.coverage == (0.0, 0.0)
    assert [one.name for one in found.scores] == ["mine", "naive"]
    assert found.numbers()[0] == ("MASE (%)", 100 * mine.mase)


def test_a_season_adds_a_baseline_and_missing_truths_count_nowhere() -> None:
    context = np.tile([[1.0], [3.0], [8.0]], (4, 1))
    tally = ForecastTally(3)
    tally.add(context, np.array([[1.0], [np.nan]]), {"mine": certain(np.array([[2.0], [99.0]]))})
    found = {one.name: one for one in tally.result().scores}
    assert found["seasonal naive"].mase == 0.0
    assert found["mine"].mase == pytest.approx(1.0)  # the series repeats itself: there is nothing to divide by
    assert found["mine"].coverage == (0.0,) * len(INTERVALS)


def test_the_quantile_loss_is_least_at_the_quantile() -> None:
    truths = np.random.default_rng(1).normal(size=4001)
    losses = [quantile_loss(truths, np.full((4001, 1), guess), [0.9]).mean() for guess in (0.8, 1.2816, 1.8)]
    assert min(losses) == losses[1]


def test_intervals_of_the_naive_forecast_grow_with_the_seasons() -> None:
    history = np.random.default_rng(2).normal(size=(50, 2)).cumsum(0)
    found = naive_quantiles(history, 6, 1)
    widths = found[..., -1] - found[..., 0]
    np.testing.assert_allclose(widths[3] / widths[0], 2.0)
    np.testing.assert_allclose(found[:, :, MEDIAN], naive(history, 6, 1))
    assert differences(history, 1).shape == (2,)


def test_intervals_are_widened_until_they_hold_what_they_say() -> None:
    truths = np.random.default_rng(3).normal(size=(4001, 1, 1))
    normal = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
    for wide in (0.5, 1.0, 2.0):
        found = np.broadcast_to(wide * normal, (4001, 1, 1, len(LEVELS)))
        assert widening(truths, found) == pytest.approx(1 / wide, rel=0.05)
    assert widening(np.full((1, 1, 1), np.nan), found[:1]) == 1.0


def test_few_windows_change_intervals_little() -> None:
    """Half of what they say, where they are as many as the model counts for: of one moment each, or overlapping."""
    chance, normal = np.random.default_rng(4), np.array([NormalDist().inv_cdf(level) for level in LEVELS])
    for windows, moments in ((20, 1), (60, 3)):
        truths = chance.normal(size=(windows, moments, 50))
        found = np.broadcast_to(0.25 * normal, (*truths.shape, len(LEVELS)))
        assert widening(truths, found) == pytest.approx(2.0, rel=0.1)
