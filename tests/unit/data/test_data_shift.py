"""Guessing where two sides came apart."""

import numpy as np
import pytest

from regard.data import find_shift


@pytest.fixture
def sides() -> tuple[np.ndarray, np.ndarray]:
    """Lengths as translations have them: related, but noisy."""
    random = np.random.default_rng(3)
    source = random.gamma(4, 15, 3000).astype(np.uint32) + 3
    return source, (source * random.normal(1.2, 0.25, 3000).clip(0.5, 2)).astype(np.uint32) + 2


@pytest.mark.parametrize("place", [40, 700, 2950])
@pytest.mark.parametrize("missing", [1, 2, 40])
def test_a_gap_is_found_within_a_few_lines(sides, place: int, missing: int) -> None:
    source, target = sides
    short = np.delete(source, slice(place - 1, place - 1 + missing))
    found = find_shift(short, target)
    assert found is not None
    assert abs(found - place) <= 12
    assert find_shift(target, short) == found


def test_the_first_of_two_gaps_is_reported(sides) -> None:
    source, target = sides
    found = find_shift(np.delete(source, [500, 2000]), target)
    assert found is not None
    assert abs(found - 501) <= 12


def test_equal_lengths_have_no_shift(sides) -> None:
    assert find_shift(*sides) is None


def test_an_empty_side_slips_at_once() -> None:
    assert find_shift(np.zeros(0, np.uint32), np.array([3, 4], np.uint32)) == 1
