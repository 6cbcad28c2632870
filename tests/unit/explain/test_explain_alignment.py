"""Links from attention, and the choice of where to read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny
from regard.errors import DataError, ModelError
from regard.explain.alignment import (
    Aligner,
    Attended,
    attend,
    choose,
    choose_without_gold,
    error_rate,
    links_of_masking,
    sides,
)
from regard.explain.replay import replay
from regard.explain.trace import OUTSIDE, Side, spell
from regard.metrics.alignment import Gold
from regard.text import Tokenizers, WordTokenizer
from regard.text.vocabulary import END

# "the bear sleeps" and "l'ours dort": l' and ours are two pieces of one word
SOURCE = Side((7, 8, 9, END), ("the", "bear", "sleeps", "<end>"), (0, 1, 2, OUTSIDE), ("the", "bear", "sleeps"))
TARGET = Side((7, 8, 9, END), ("l'", "￭ours", "dort", "<end>"), (0, 0, 1, OUTSIDE), ("l'ours", "dort"))
GOOD = [[0.7, 0.2, 0.1, 0.0], [0.1, 0.8, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6], [0.0, 0.0, 0.0, 1.0]]
LATE = [[0.1, 0.1, 0.1, 0.7], *GOOD[:3]]
BLIND = [[0.25, 0.25, 0.26, 0.24]] * 4
GOLD = Gold(frozenset({(0, 0), (1, 0), (2, 1)}), frozenset({(0, 0), (1, 0), (2, 1)}))


def seen(*heads: list[list[float]]) -> Attended:
    """One layer of these heads."""
    return Attended(torch.tensor([heads]), SOURCE, TARGET)


def test_a_target_word_takes_its_heaviest_source_word_and_end_takes_nothing() -> None:
    assert Aligner(rule="word").align(seen(GOOD)) == {(1, 0), (2, 1)}  # l'ours: mean 0.4, 0.5, 0.1


def test_each_piece_of_a_word_may_take_its_own() -> None:
    assert Aligner(rule="piece").align(seen(GOOD)) == {(0, 0), (1, 0), (2, 1)}


def test_a_threshold_takes_all_that_weigh_enough() -> None:
    assert Aligner(rule="threshold", threshold=0.39).align(seen(GOOD)) == {(0, 0), (1, 0)}
    assert Aligner(rule="threshold", threshold=0.9).align(seen(GOOD)) == frozenset()
    assert Aligner(rule="word", threshold=0.39).align(seen(GOOD)) == {(0, 0), (1, 0), (2, 1)}


def test_a_source_word_that_nobody_took_takes_the_row_where_it_weighs_most() -> None:
    assert Aligner(rule="word", cover=0.0).align(seen(GOOD)) == {(0, 0), (1, 0), (2, 1)}
    assert Aligner(rule="word", cover=0.5).align(seen(GOOD)) == {(1, 0), (2, 1)}


def test_the_late_row_is_the_one_that_read_the_piece() -> None:
    assert Aligner(late=True, rule="piece").align(seen(LATE)) == Aligner(rule="piece").align(seen(GOOD))


def test_the_strongest_source_word_comes_with_its_weight() -> None:
    assert Aligner().strongest(seen(GOOD)) == [(1, pytest.approx(0.5)), (2, pytest.approx(0.3))]


def test_heads_are_read_alone_or_as_their_mean() -> None:
    both = seen(BLIND, GOOD)
    assert Aligner(((0, 1),), rule="piece").align(both) == {(0, 0), (1, 0), (2, 1)}
    torch.testing.assert_close(Aligner().weights(both.cross), both.cross.mean((0, 1)))
    torch.testing.assert_close(Aligner(((0, 1),)).weights(both.cross), torch.tensor(GOOD))


@pytest.mark.parametrize(
    ("head", "complaint"), [((1, 0), "layer = 1.*; 0 would"), ((0, 2), "head = 2.*; 0 to 1 would")]
)
def test_a_head_that_does_not_exist_is_named(head: tuple[int, int], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        Aligner((head,)).align(seen(GOOD, BLIND))


@pytest.mark.parametrize(
    ("heads", "expected", "late"),
    [([BLIND, GOOD, BLIND], (0, 1), False), ([BLIND, BLIND, LATE], (0, 2), True)],
)
def test_the_best_head_and_row_are_found(heads: list[list[list[float]]], expected: tuple[int, int], late: bool) -> None:
    chosen = choose([seen(*heads)] * 3, [GOLD] * 3, "valid")
    assert chosen.heads == (expected,)
    assert (chosen.late, chosen.error_rate, chosen.chosen_on, chosen.sentences) == (late, 0.0, "valid", 3)


def test_heads_that_are_good_at_different_words_are_read_together() -> None:
    noun = [[0.9, 0.1, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.2, 0.2, 0.1, 0.5], GOOD[3]]
    verb = [[0.3, 0.3, 0.4, 0.0], [0.3, 0.3, 0.4, 0.0], [0.0, 0.0, 1.0, 0.0], GOOD[3]]
    pair = seen(noun, verb)
    assert choose([pair], [GOLD], "valid").error_rate == 0.0
    assert set(choose([pair], [GOLD], "valid").heads) == {(0, 0), (0, 1)}
    assert len(choose([pair], [GOLD], "valid", several=False).heads) == 1


def test_an_aligner_is_chosen_on_something() -> None:
    with pytest.raises(DataError, match="sentences = 0"):
        choose([], [], "valid")
    with pytest.raises(DataError, match="sentences = 0"):
        choose_without_gold(tiny.translator("bahdanau"), [(spell([END]), spell([END]))], "valid")


def test_a_run_remembers_its_aligner(tmp_path: Path) -> None:
    assert Aligner.load(tmp_path) is None
    chosen = choose([seen(BLIND, GOOD)], [GOLD], "valid")
    chosen.save(tmp_path)
    assert Aligner.load(tmp_path) == chosen
    assert chosen.describe() == "cross-attention, layer 1, head 2 (best aligner on valid, AER 0.00)"


def test_an_aligner_says_what_it_reads() -> None:
    assert Aligner().describe() == "cross-attention, mean of all heads"
    assert Aligner(((0, 1), (1, 0))).describe() == "cross-attention, mean of heads 1.2 + 2.1"
    assert Aligner(((0, 1),), chosen_on="a guess").describe() == "cross-attention, layer 1, head 2 (chosen by a guess)"


@pytest.mark.parametrize("content", ["", "[]", "[" * 9999, '{"heads": [[0]]}', '{"heads": [], "rule": "guess"}'])
def test_a_damaged_memory_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "aligner.json").write_text(content)
    with pytest.raises(ModelError, match=r"aligner\.json: is not an aligner"):
        Aligner.load(tmp_path)


def pairs() -> list[tuple[Side, Side]]:
    rows = [([5, 6, 7], [8, 9]), ([5], [8, 9, 10, 11]), ([9, 8, 7, 6, 5], [4]), ([11, 5], [12, 8, 9])]
    return [(spell([*source, END]), spell([*target, END])) for source, target in rows]


@pytest.mark.parametrize("preset", ["bahdanau", "luong-general", "transformer-tiny"])
def test_many_pairs_at_once_are_as_one_by_one(preset: str) -> None:
    model = tiny.translator(preset)
    together = attend(model, pairs(), budget=12)
    for (source, target), found in zip(pairs(), together, strict=True):
        assert (found.source, found.target) == (source, target)
        trace = replay(model, source.ids, target.ids)
        torch.testing.assert_close(found.cross, trace.cross)
        assert Aligner().align(found) == Aligner().align(trace)


def test_empty_sentences_have_no_links() -> None:
    empty = spell([END]), spell([END])
    (found,) = attend(tiny.translator("bahdanau"), [empty])
    assert Aligner(cover=0.0).align(found) == frozenset()
    assert Aligner().strongest(found) == []
    assert links_of_masking(tiny.translator("bahdanau"), *empty) == frozenset()


def test_a_model_without_attention_has_no_aligner() -> None:
    with pytest.raises(ModelError, match="attends to no source"):
        attend(tiny.translator("lstm"), pairs())


def test_without_gold_the_head_that_agrees_with_masking_is_taken() -> None:
    model = tiny.translator("transformer-tiny")
    chosen = choose_without_gold(model, pairs(), "three sentences")
    guesses = [links_of_masking(model, source, target) for source, target in pairs()]
    golds = [Gold(links, links) for links in guesses]
    every = attend(model, pairs())
    rates = {
        (layer, head, late): error_rate(Aligner(((layer, head),), late), every, golds)
        for layer in range(2)
        for head in range(3)
        for late in (False, True)
    }
    assert error_rate(chosen, every, golds) == min(rates.values())
    assert chosen.error_rate is None  # nothing is claimed
    assert "masking" in chosen.describe()


def test_texts_become_sides_with_the_words_of_the_text() -> None:
    tokenizer = WordTokenizer.learn(["l'ours dort the bear sleeps"])
    source, target = sides(Tokenizers(tokenizer, tokenizer), "the moose sleeps", "l'ours dort")
    assert source.words == ("the", "moose", "sleeps")
    assert target.words == ("l'ours", "dort")
    assert target.word_of == (0, 0, 1, OUTSIDE)


def test_the_late_view_keeps_the_last_row() -> None:
    late: Tensor = replace(seen(GOOD)).late.cross[0, 0]
    torch.testing.assert_close(late, torch.tensor([*GOOD[1:], GOOD[3]]))
