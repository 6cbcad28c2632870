"""Plans and batches: every row once, little padding, the right special tokens, any number of processes."""

from itertools import islice

import numpy as np
import pytest

from regard.data import (
    NO_LABEL,
    Batches,
    BatchShape,
    Examples,
    LabelEncoder,
    PairEncoder,
    Position,
    TagEncoder,
    TextEncoder,
    choose_menu,
    collate,
    encode_examples,
    menu_for,
    plan,
)
from regard.errors import DataError, SettingsError
from regard.text import END, PAD, START, ByteTokenizer, Tokenizers, Vocabulary

BYTES = ByteTokenizer()


def sentences(rows: int = 211, seed: int = 0) -> list[tuple[str, str]]:
    random = np.random.default_rng(seed)
    lengths = random.gamma(4, 3, rows).astype(int) + 1
    return [("s" * n, "t" * max(0, n + random.integers(-2, 3))) for n in lengths.tolist()]


@pytest.fixture(scope="module")
def examples() -> Examples:
    return encode_examples(sentences(), PairEncoder(Tokenizers(BYTES, BYTES)))


def lengths(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    source = (random.gamma(4, 3.5, rows) + 1).astype(np.int32)
    return source, np.maximum(1, source + random.integers(-3, 4, rows)).astype(np.int32)


def test_a_batch_begins_and_ends_its_targets() -> None:
    examples = encode_examples([("ab", "xyz"), ("c", "x")], PairEncoder(Tokenizers(BYTES, BYTES)))
    batch = collate(examples, np.array([0, 1]), BatchShape(3, 4, 5))
    a, b, c, x, y, z = BYTES.encode("abcxyz")
    assert batch.rows.tolist() == [0, 1, -1]
    assert batch.source.tolist() == [[a, b, END, PAD], [c, END, PAD, PAD], [END, PAD, PAD, PAD]]
    assert batch.target_in.tolist() == [[START, x, y, z, PAD], [START, x, *[PAD] * 3], [START, *[PAD] * 4]]
    assert batch.target_out.tolist() == [[x, y, z, END, PAD], [x, END, *[PAD] * 3], [PAD] * 5]
    assert batch.labels.shape == (3, 0)
    assert (len(batch), batch.tokens) == (3, 6)


def test_a_row_longer_than_the_shape_is_cut_and_still_ends() -> None:
    examples = encode_examples([("abc", "xyz")], PairEncoder(Tokenizers(BYTES, BYTES)))
    batch = collate(examples, np.array([0]), BatchShape(1, 2, 3))
    assert batch.source.tolist() == [[*BYTES.encode("a"), END]]
    assert batch.target_out.tolist() == [[*BYTES.encode("xy"), END]]


def test_language_modelling_batches_have_no_source() -> None:
    batch = next(Batches(encode_examples([("ab",)], TextEncoder(BYTES)), budget=100).epoch(0))
    assert batch.source.shape == (1, 0)
    assert batch.target_in.tolist() == [[START, *BYTES.encode("ab")]]
    assert batch.target_out.tolist() == [[*BYTES.encode("ab"), END]]


def test_classification_batches_have_one_label_a_row() -> None:
    encoder = LabelEncoder(BYTES, Vocabulary(("bad", "good")))
    batch = collate(encode_examples([("a", "good"), ("b", "bad")], encoder), np.array([1, 0]), BatchShape(3, 1, 0))
    assert batch.labels.tolist() == [[0], [1], [NO_LABEL]]
    assert batch.target_in.shape == (3, 0)
    assert batch.tokens == 2


def test_tagging_batches_have_one_label_a_piece() -> None:
    encoder = TagEncoder(BYTES, Vocabulary(("N", "V")))
    batch = collate(encode_examples([("ab c", "N V"), ("d", "V")], encoder), np.array([0, 1]), BatchShape(2, 4, 0))
    assert batch.labels.tolist() == [[0, NO_LABEL, 1, NO_LABEL], [1, NO_LABEL, NO_LABEL, NO_LABEL]]
    assert batch.source.shape == batch.labels.shape
    assert batch.tokens == 3


def test_every_row_is_read_once_an_epoch_within_the_budget(examples: Examples) -> None:
    for menu in ((), menu_for(examples, budget=128, size=7)):
        rows: list[int] = []
        for batch in Batches(examples, budget=128, menu=menu).epoch(3):
            assert max(batch.source.size, batch.target_in.size) <= 128
            rows += [row for row in batch.rows.tolist() if row >= 0]
        assert sorted(rows) == list(range(len(examples)))


def test_batches_hold_what_the_corpus_holds(examples: Examples) -> None:
    texts = sentences()
    for batch in Batches(examples, budget=200).epoch(0):
        for row, source, target in zip(batch.rows, batch.source, batch.target_out, strict=True):
            assert (BYTES.decode(source), BYTES.decode(target)) == texts[row]


def test_epochs_and_seeds_differ_and_repeat(examples: Examples) -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return [batch.rows.tolist() for batch in Batches(examples, budget=128, seed=seed).epoch(epoch)]

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)
    groups = [{tuple(sorted(rows)) for rows in order(0, epoch)} for epoch in (0, 1)]
    assert len(groups[0] & groups[1]) < len(groups[0]) / 2  # not the same batches in another order


def test_reading_resumes_at_any_position(examples: Examples) -> None:
    batches = Batches(examples, budget=256, seed=5)
    through = list(islice(batches.read(), 30))
    assert {position.epoch for _, position in through} >= {0, 1}
    for step in (0, 7, len(batches.plan(0)) - 1, 20):
        again = list(islice(batches.read(through[step][1]), 29 - step))
        assert [position for _, position in again] == [position for _, position in through[step + 1 :]]
        for (one, _), (other, _) in zip(again, through[step + 1 :], strict=True):
            assert np.array_equal(one.rows, other.rows)
            assert np.array_equal(one.target_out, other.target_out)


def test_reading_begins_at_the_beginning(examples: Examples) -> None:
    batch, position = next(Batches(examples, budget=256).read())
    assert position == Position(0, 1)
    assert np.array_equal(batch.rows, next(Batches(examples, budget=256).epoch(0)).rows)


@pytest.mark.parametrize("world", [2, 3, 5])
@pytest.mark.parametrize("with_menu", [False, True])
def test_the_shares_of_all_processes_make_the_same_batch(examples: Examples, world: int, with_menu: bool) -> None:
    menu = menu_for(examples, budget=128, size=5) if with_menu else ()
    alone = Batches(examples, budget=128, menu=menu).epoch(0)
    shares = [Batches(examples, budget=128, menu=menu, rank=rank, world=world).epoch(0) for rank in range(world)]
    for whole, *parts in zip(alone, *shares, strict=True):
        assert len({part.source.shape for part in parts}) == 1
        assert all(part.source.shape[1] == whole.source.shape[1] for part in parts)
        rows = np.concatenate([part.rows for part in parts])
        assert sorted(rows[rows >= 0]) == sorted(whole.rows[whole.rows >= 0])
        assert sum(part.tokens for part in parts) == whole.tokens


def test_batches_are_tight() -> None:
    source, target = lengths(20_000)
    made = plan(source, target, budget=4096)
    assert 1 - sum(made.tokens) / int((made.shapes[:, 0] * made.shapes[:, 1:].sum(axis=1)).sum()) < 0.05


def test_the_padding_share_is_what_the_shapes_say() -> None:
    made = plan(np.array([1, 2], np.int32), np.array([4, 4], np.int32), budget=8, menu=(BatchShape(2, 4, 4),))
    assert made.padding == (1 - 3 / 8, 0.0)
    assert (made.shape(0), made.rows(0).tolist()) in [(BatchShape(2, 4, 4), [0, 1]), (BatchShape(2, 4, 4), [1, 0])]


def test_room_that_is_planned_for_longer_rows_is_padding(examples: Examples) -> None:
    plain, roomy = (Batches(examples, budget=512, stretch=stretch).plan(0) for stretch in ((1.0, 1.0), (1.5, 1.0)))
    assert roomy.tokens == plain.tokens
    assert roomy.padding[0] > 0.3 > plain.padding[0]


def test_more_shapes_pad_less() -> None:
    source, target = lengths(20_000)
    shares = []
    for size in (1, 4, 12, 24):
        menu = choose_menu(source, target, budget=4096, size=size)
        assert len(menu) <= size
        assert all(shape.rows * max(shape.source, shape.target) <= 4096 for shape in menu)
        made = plan(source, target, budget=4096, menu=menu)
        assert {made.shape(batch) for batch in range(len(made))} <= set(menu)
        shares.append(sum(made.padding) / 2)
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.12


def test_a_menu_of_all_shapes_pads_nothing() -> None:
    source = np.repeat(np.array([2, 3, 3], np.int32), 60)
    target = np.repeat(np.array([5, 2, 4], np.int32), 60)
    menu = choose_menu(source, target, budget=20, size=3)
    assert {(shape.source, shape.target) for shape in menu} == {(2, 5), (3, 2), (3, 4)}
    assert plan(source, target, budget=20, menu=menu).padding == (0.0, 0.0)


def test_the_menu_is_the_best_there_is() -> None:
    random = np.random.default_rng(1)
    source, target = random.integers(1, 7, 60).astype(np.int32), random.integers(1, 5, 60).astype(np.int32)
    menu = choose_menu(source, target, budget=64, size=2)

    def cost(cuts: list[tuple[int, int]]) -> float:
        fits = [[s + t if a <= s and b <= t else np.inf for s, t in cuts] for a, b in zip(source, target, strict=True)]
        return sum(min(row) for row in fits)

    top = (int(source.max()), int(target.max()))
    grid = [(s, t) for s in range(1, top[0] + 1) for t in range(1, top[1] + 1)]
    nested = [[cut, top] for cut in grid if cut[0] == top[0] or cut[1] == top[1]]  # cuts along one side
    assert cost([(shape.source, shape.target) for shape in menu]) == min(map(cost, nested))


def test_left_over_rows_move_up_to_a_larger_shape() -> None:
    menu = (BatchShape(4, 2, 2), BatchShape(4, 4, 4))
    made = plan(np.full(6, 2, np.int32), np.full(6, 2, np.int32), budget=16, menu=menu)
    assert sorted(made.shape(batch) for batch in range(len(made))) == [BatchShape(4, 2, 2), BatchShape(4, 4, 4)]
    assert sorted(len(made.rows(batch)) for batch in range(len(made))) == [2, 4]


def test_long_and_empty_rows_are_left_out_and_counted() -> None:
    source, target = np.array([1, 9, 0, 3], np.int32), np.array([1, 1, 1, 12], np.int32)
    made = plan(source, target, budget=100, longest=8)
    assert (made.too_long, made.empty, len(made)) == (2, 1, 1)
    assert made.rows(0).tolist() == [0]
    assert plan(source, target, budget=10).too_long == 1
    assert plan(source, target, budget=100, menu=(BatchShape(5, 3, 3),)).too_long == 2


def test_long_rows_are_cut_if_asked_for() -> None:
    source, target = np.array([1, 9, 4, 3], np.int32), np.array([1, 1, 1, 12], np.int32)
    made = plan(source, target, budget=100, longest=8, truncate=True)
    assert (made.too_long, made.tokens) == (0, (16, 11))
    examples = encode_examples([("abcdef", "uvwxyz")], PairEncoder(Tokenizers(BYTES, BYTES)))
    for shapes in ((), (BatchShape(25, 4, 4),)):
        batch = next(Batches(examples, budget=100, longest=4, truncate=True, menu=shapes).epoch(0))
        assert batch.target_out[0].tolist() == [*BYTES.encode("uvw"), END]


def test_a_million_rows_are_planned_quickly_and_exactly_once() -> None:
    source, target = lengths(1_000_000)
    made = plan(source, target, budget=16_384)
    assert np.array_equal(np.sort(made.order), np.arange(1_000_000))
    assert int((made.ends - made.begins).sum()) == 1_000_000


def test_nothing_to_read_is_refused(examples: Examples) -> None:
    with pytest.raises(DataError, match="corpus = 211 rows: none can be used; 211 too long, 0 with an empty side"):
        next(Batches(examples, budget=1).epoch(0))


def test_impossible_wishes_are_refused(examples: Examples) -> None:
    with pytest.raises(SettingsError, match="rank = 2: must be from 0 to 1 of 2 processes"):
        Batches(examples, budget=128, rank=2, world=2)
    with pytest.raises(SettingsError, match="budget = 0: a batch needs tokens"):
        Batches(examples, budget=0)
    with pytest.raises(SettingsError, match="lengths = none: a batch needs a source or a target"):
        plan(None, None, budget=10)
    with pytest.raises(SettingsError, match="menu = 0 shapes for 1 rows: nothing to choose"):
        choose_menu(np.ones(1, int), np.ones(1, int), budget=9, size=0)
    with pytest.raises(SettingsError, match="budget = 9: a row has 10 tokens; raise the budget or limit the length"):
        choose_menu(np.full(1, 10), np.ones(1, int), budget=9)


def test_a_menu_of_multiples_still_holds_every_row() -> None:
    chance = np.random.default_rng(0)
    source, target = chance.integers(1, 41, 997), chance.integers(1, 41, 997)
    menu = choose_menu(source, target, budget=211, size=7, multiple=8)
    assert {shape.source % 8 for shape in menu} == {0}
    assert all(
        any(shape.source >= s and shape.target >= t for shape in menu) for s, t in zip(source, target, strict=True)
    )
