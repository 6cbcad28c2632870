"""Dropout against its definition: where the way from one dropped feature to the next is drawn, and by a hash."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from regard.nn.fast import dropout as fast
from regard.nn.fast.dropout import Dropout, by_hash, hashed, places_to_drop, scale_of


def test_dropout_zeroes_its_share_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    x = torch.ones(1009, 401, requires_grad=True)
    for p in (0.1, 0.5):
        dropped = Dropout(p)(x)
        kept = dropped != 0
        deviation = (p * (1 - p) / x.numel()) ** 0.5
        assert abs(float((~kept).float().mean()) - p) < 5 * deviation
        torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / (1 - p)), rtol=1e-6, atol=0)
        (slope,) = torch.autograd.grad(dropped.sum(), x)
        torch.testing.assert_close(slope, dropped.detach())
        rows, columns = kept.float().mean(0), kept.float().mean(1)
        assert float(rows.std()) < 2 * (p * (1 - p) / 1009) ** 0.5
        assert float(columns.std()) < 2 * (p * (1 - p) / 401) ** 0.5


def test_dropout_draws_anew_and_again_with_the_same_seed() -> None:
    dropout, x = Dropout(0.5), torch.ones(5, 3)
    torch.manual_seed(3)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(3)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_dropout_of_nothing_or_at_rest_is_the_same_tensor() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.0)(x) is x
    assert Dropout(0.5).eval()(x) is x
    assert bool((Dropout(1.0)(torch.ones(101, 7)) == 0).all())


@pytest.mark.parametrize("p", [0.1, 0.3, 0.9])
def test_every_feature_is_dropped_by_itself(p: float) -> None:
    """The first and the last as often as the others, and none because its neighbours are."""
    torch.manual_seed(1)
    tries, count = 20_000, 7
    dropped = torch.zeros(tries, count)
    for row in dropped:
        row[places_to_drop(count, p)] = 1
    together = dropped.T @ dropped / tries
    wanted = torch.full((count, count), p * p).fill_diagonal_(p)
    bound = 5 * (wanted * (1 - wanted) / tries).sqrt()
    assert bool(((together - wanted).abs() < bound).all())


def test_ways_to_the_next_are_geometric() -> None:
    torch.manual_seed(2)
    p = 0.2
    gaps = places_to_drop(2_000_000, p).diff()
    for gap in range(1, 30):
        wanted = p * (1 - p) ** (gap - 1)
        assert abs(float((gaps == gap).float().mean()) - wanted) < 5 * (wanted / len(gaps)) ** 0.5 + 2**-16, gap


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("count", [0, 1, 2, 63, 10_007])
def test_places_are_in_order_and_reach_the_end(count: int, p: float) -> None:
    torch.manual_seed(3)
    places = places_to_drop(count, p)
    assert bool((places.diff() > 0).all())
    assert places.tolist() == [place for place in places.tolist() if 0 <= place < count]
    deviation = (count * p * (1 - p)) ** 0.5
    assert abs(len(places) - count * p) <= 6 * deviation + 1e-4 * count


def test_however_a_tensor_lies_in_memory() -> None:
    x = torch.randn(5, 301, dtype=torch.float64)
    torch.manual_seed(4)
    straight = Dropout(0.4)(x)
    torch.manual_seed(4)
    assert torch.equal(Dropout(0.4)(x.T.contiguous().T), straight)
    assert torch.equal(straight[straight != 0], x[straight != 0] * scale_of(0.4))


def test_what_is_dropped_is_zero_whatever_it_was() -> None:
    torch.manual_seed(5)
    found = Dropout(0.5)(torch.full((100,), torch.inf))
    assert set(found.tolist()) == {0.0, torch.inf}


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_by_hash_a_share_is_dropped_and_the_rest_scaled_with_its_gradient(p: float) -> None:
    torch.manual_seed(6)
    x = torch.ones(1009, 401, requires_grad=True)
    dropped = by_hash(x, p)
    kept = dropped != 0
    deviation = (p * (1 - p) / x.numel()) ** 0.5
    assert abs(float((~kept).float().mean()) - p) < 5 * deviation
    torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / (1 - p)), rtol=1e-6, atol=0)
    torch.testing.assert_close(torch.autograd.grad(dropped.sum(), x)[0], dropped.detach())
    torch.manual_seed(6)
    assert torch.equal(by_hash(x, p), dropped)
    assert not torch.equal(by_hash(x, p), dropped)
    assert bool((by_hash(x / 0, 1.0) == 0).all())


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_hashes_of_near_and_far_places_and_of_other_draws_have_nothing_in_common(p: float) -> None:
    """Correlations as small as those of numbers drawn by themselves, in five standard deviations."""
    torch.manual_seed(7)
    count, deviation = 1 << 20, (p * (1 - p)) ** 0.5
    kept = [(by_hash(torch.ones(count), p) != 0).double().sub(1 - p) / deviation for _ in range(3)]
    for one in kept:
        for lag in (1, 2, 3, 8, 31, 64, 511, 512, 704, 1024, 4096, 65_536):
            assert abs(float((one[lag:] * one[:-lag]).mean())) * (count - lag) ** 0.5 < 5, lag
        rows = one.view(-1, 512)
        assert abs(float(rows.mean(1).std()) * 512**0.5 - 1) < 0.1
        assert abs(float(rows.mean(0).std()) * len(rows) ** 0.5 - 1) < 0.15
    assert all(abs(float((one * other).mean())) * count**0.5 < 5 for one, other in pairwise(kept))


def test_every_bit_of_a_hash_is_set_as_often_as_not() -> None:
    seeds = torch.tensor([3, 5], dtype=torch.int32)
    found = hashed(torch.arange(1 << 16, dtype=torch.int32), seeds[0], seeds[1])
    for bit in range(32):
        assert abs(float((found >> bit & 1).float().mean()) - 0.5) < 5 * 0.5 / 256, bit


def test_compiled_for_a_gpu_dropout_is_by_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the GPU: a tensor without values."""
    asked = list[float]()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(fast, "by_hash", lambda x, p: (asked.append(p), x)[1])
    Dropout(0.3)(torch.ones(3, device="meta"))
    assert asked == [0.3]
    Dropout(0.3)(torch.ones(3))
    assert asked == [0.3]
