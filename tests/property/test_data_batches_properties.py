"""Whatever the lengths: every row once, within the budget, the same for any number of processes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import Batches, BatchShape, Examples, choose_menu, find_shift, plan
from regard.data.check import Seen
from regard.data.encoding import Ragged
from regard.text import END, PAD, START

LENGTHS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=80)


def sides(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    source, target = np.array(rows, np.int32).T
    return source, target


def ragged(lengths: np.ndarray) -> Ragged:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Ragged(np.arange(4, 4 + offsets[-1]).astype(np.uint16), offsets)


@settings(max_examples=23)
@given(LENGTHS, st.integers(1, 60), st.integers(0, 5), st.integers(1, 8), st.booleans())
def test_a_plan_has_every_row_that_fits_once(rows, budget: int, seed: int, size: int, with_menu: bool) -> None:
    source, target = sides(rows)
    fits = (np.maximum(source, target) <= budget) & (source > 0)
    menu: tuple[BatchShape, ...] = ()
    if with_menu and fits.any():
        menu = choose_menu(source[fits], target[fits], budget=budget, size=size)
    made = plan(source, target, budget=budget, seed=seed, menu=menu)
    batches = [made.rows(batch) for batch in range(len(made))]
    planned = np.concatenate(batches) if batches else np.zeros(0, int)
    assert sorted(planned) == np.flatnonzero(fits).tolist()
    assert made.too_long + made.empty + len(planned) == len(rows)
    for batch, members in enumerate(batches):
        shape = made.shape(batch)
        assert 0 < len(members) <= shape.rows
        assert shape.rows * max(shape.source, shape.target) <= budget
        assert source[members].max() <= shape.source
        assert target[members].max() <= shape.target
        assert not menu or shape in menu
    assert all(0 <= share < 1 for share in made.padding)


@settings(max_examples=23)
@given(LENGTHS, st.integers(1, 4), st.integers(0, 3))
def test_processes_share_every_batch(rows, world: int, epoch: int) -> None:
    source, target = sides(rows)
    examples = Examples({"source": ragged(source + 1), "target": ragged(target)})
    alone = list(Batches(examples, budget=64).epoch(epoch))
    shares = [list(Batches(examples, budget=64, rank=rank, world=world).epoch(epoch)) for rank in range(world)]
    for whole, *parts in zip(alone, *shares, strict=True):
        found = np.concatenate([part.rows for part in parts])
        assert sorted(found[found >= 0]) == sorted(whole.rows)
        for part in parts:
            real = part.rows >= 0
            assert np.array_equal(part.target_in[:, 0], np.full(len(part), START))
            assert ((part.target_out == END).sum(axis=1) == real).all()
            assert (part.source[:, 0] != PAD).all()
            ends = part.target_out == END
            assert np.array_equal(np.where(ends, PAD, part.target_out)[real][:, :-1], part.target_in[real][:, 1:])


@settings(max_examples=23)
@given(st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=20))
def test_seen_agrees_with_a_set(blocks: list[list[int]]) -> None:
    seen, known = Seen(), set[int]()
    for block in blocks:
        expected = []
        for number in block:
            expected.append(number not in known)
            known.add(number)
        assert seen.add(block).tolist() == expected
    assert len(seen) == len(known)


@settings(max_examples=23)
@given(st.lists(st.integers(0, 200), max_size=40), st.lists(st.integers(0, 200), max_size=40))
def test_a_shift_is_always_a_line_of_the_shorter_side(source: list[int], target: list[int]) -> None:
    found = find_shift(np.array(source, np.uint32), np.array(target, np.uint32))
    if len(source) == len(target):
        assert found is None
    else:
        assert found is not None
        assert 1 <= found <= min(len(source), len(target)) + 1
