"""Numbers of heads."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import tiny
from regard.errors import SettingsError
from regard.explain.replay import replay
from regard.explain.statistics import HeadStatistics, statistics
from regard.explain.trace import SIDES, Side, SideName, Trace, spell
from regard.text.vocabulary import END

SOURCE, TARGET = [5, 9, 7, END], [8, 11, 6, 20, END]
EMPTY = torch.zeros(0)


def trace_of(weights: Tensor, kind: SideName, source: Side, target: Side) -> Trace:
    side, what, _ = SIDES[kind]
    tensors = {f"{side}.{layer}.{what}.weights": layer_weights for layer, layer_weights in enumerate(weights)}
    return Trace("translate", source, target, tensors, EMPTY, EMPTY, EMPTY, EMPTY)


def one(rows: list[list[float]], kind: SideName = "encoder", ids: tuple[int, ...] = (5, 6, 7, END)) -> HeadStatistics:
    side = spell(ids)
    (found,) = statistics(trace_of(torch.tensor(rows, dtype=torch.float64)[None, None], kind, side, side), kind)
    return found


def identity(size: int = 4, shift: int = 0) -> list[list[float]]:
    return torch.eye(size).roll(shift, 1).tolist()


def test_a_straight_head_has_no_entropy_full_coverage_and_no_distance() -> None:
    found = one(identity(), "cross")
    assert (found.entropy, found.coverage, found.distance) == (0.0, 1.0, 0.0)
    assert found.diagonality == pytest.approx(1.0)
    assert found.end == pytest.approx(1 / 4)


def test_an_even_head_knows_nothing() -> None:
    found = one([[0.25] * 4] * 4, "cross")
    assert found.entropy == pytest.approx(math.log(4))
    assert found.diagonality == pytest.approx(0.0)
    assert found.role == ""


def test_a_reversed_head_runs_against_the_diagonal() -> None:
    assert one(torch.eye(4).flip(1).tolist(), "cross").diagonality == pytest.approx(-1.0)


def test_a_head_that_looks_at_one_word_covers_little() -> None:
    found = one([[0.0, 1.0, 0.0, 0.0]] * 4, "cross")
    assert found.coverage == pytest.approx(1 / 3)  # of three words; <end> does not count
    assert found.diagonality == 0.0
    assert found.distance == pytest.approx((1 + 0 + 1 + 2) / 4)


def test_roles_are_named() -> None:
    assert one(identity()).role == "copies its own place"
    before = torch.tensor(identity(shift=-1))
    before[0] = torch.tensor([1.0, 0, 0, 0])
    assert one(before.tolist()).role == "shifts by one: looks at the token before"
    after = torch.tensor(identity(shift=1))
    after[3] = torch.tensor([0, 0, 0, 1.0])
    assert one(after.tolist()).role == "shifts by one: looks at the token after"
    assert one([[0.1, 0.1, 0.1, 0.7]] * 4, "cross").role == "looks at <end>"
    twice = [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert one(twice, ids=(5, 6, 5, 6)).role == "copies: looks at the same token elsewhere"


def test_a_roll_does_not_look_around_the_corner() -> None:
    assert one(identity(shift=-1)).previous == pytest.approx(3 / 4)
    assert one(identity(shift=1)).following == pytest.approx(3 / 4)


def test_a_decoder_that_looks_at_the_token_it_has_just_read_copies() -> None:
    """Target 5 6 5 <end> is read as <start> 5 6 5: the last row reads 5, and so did the second."""
    weights = [[1.0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 1.0, 0, 0]]
    assert one(weights, "decoder", (5, 6, 5, END)).same == pytest.approx(1 / 4)


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_every_head_of_a_model_has_numbers(kind: str) -> None:
    model = tiny.translator("transformer-tiny")
    first, second = (replay(model, SOURCE[start:], TARGET) for start in (0, 1))
    both = statistics([first, second], kind)
    assert [(found.layer, found.head) for found in both] == [(layer, head) for layer in range(2) for head in range(3)]
    means = [
        (one.entropy + two.entropy) / 2
        for one, two in zip(statistics(first, kind), statistics(second, kind), strict=True)
    ]
    assert [found.entropy for found in both] == pytest.approx(means)


def test_an_attention_that_does_not_exist_is_named() -> None:
    with pytest.raises(SettingsError, match="side = sideways: no such attention"):
        statistics(replay(tiny.translator("transformer-tiny"), SOURCE, TARGET), "sideways")
