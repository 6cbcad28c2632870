"""Cuts of words that were drawn beforehand, and rows that are made of them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from regard.data.cuts import FEWEST, MOST, WordCuts
from regard.data.encoding import Examples, PairEncoder, encode_examples
from regard.fable.corpus import generate
from regard.text.tokenizers import Tokenizers
from regard.text.words import Case

SIDES = ("source", "target")


def corpus(kind: str = "bpe", case: Case = "keep") -> tuple[Tokenizers, Examples]:
    rows = [(pair.source.capitalize(), pair.target) for pair in generate("fr", count=200, split="train")]
    rows += [("Two  spaces and 雪 and a ▁ mark", ""), ("", "une seule")]
    texts = [[row[side] for row in rows] for side in range(2)]
    tokenizers = Tokenizers.learn(kind, *map(iter, texts), joint=True, size=420, case=case)  # type: ignore[arg-type]
    return tokenizers, encode_examples(rows, PairEncoder(tokenizers))


@pytest.mark.parametrize(("kind", "case"), [("bpe", "keep"), ("bpe", "mark"), ("unigram", "keep")])
def test_a_row_has_the_same_text_in_other_pieces(kind: str, case: Case) -> None:
    tokenizers, examples = corpus(kind, case)
    rows = np.arange(len(examples))
    for side, tokenizer in zip(SIDES, (tokenizers.source, tokenizers.target), strict=True):
        usual = examples.columns[side]
        drawn = WordCuts.of(usual, tokenizer, 1).draw(rows, 5)
        assert len(drawn) == len(usual)
        for row in rows.tolist():
            assert tokenizer.decode(drawn[row].tolist()) == tokenizer.decode(usual[row].tolist())
        assert sum(drawn[row].tolist() != usual[row].tolist() for row in rows.tolist()) > 0.3 * len(rows)
    assert (drawn.lengths() > 0).sum() == (usual.lengths() > 0).sum()


def test_a_row_is_the_same_whatever_stands_beside_it_and_another_with_another_key() -> None:
    tokenizers, examples = corpus()
    usual = examples.columns["source"]
    cuts = WordCuts.of(usual, tokenizers.source, 1)
    alone, other = cuts.draw(np.array([17]), 5)[0].tolist(), set()
    assert cuts.draw(np.array([3, 17, 90]), 5)[1].tolist() == alone
    assert WordCuts.of(usual, tokenizers.source, 1).draw(np.array([17]), 5)[0].tolist() == alone
    for key in range(20):
        other.add(tuple(cuts.draw(np.array([17]), key)[0].tolist()))
    assert len(other) > 5


def test_rows_keep_to_the_room_and_in_the_end_to_the_usual_cut() -> None:
    tokenizers, examples = corpus()
    usual, rows = examples.columns["source"], np.arange(len(examples))
    cuts, lengths = WordCuts.of(usual, tokenizers.source, 1), examples.columns["source"].lengths()
    room = int(np.quantile(lengths, 0.6))
    short = rows[lengths <= room]
    made = cuts.fitting(usual, short, room, 7, 3)
    first, free = cuts.draw(short, 7), cuts.fitting(usual, short, 10_000, 7, 3)
    assert (made.lengths() <= room).all()
    fits = first.lengths() <= room
    assert fits.any()
    assert not fits.all()
    for place, row in enumerate(short.tolist()):
        assert free[place].tolist() == first[place].tolist()
        if fits[place]:
            assert made[place].tolist() == first[place].tolist()
        assert tokenizers.source.decode(made[place].tolist()) == tokenizers.source.decode(usual[row].tolist())
    none = cuts.fitting(usual, rows, 0, 7, 3)
    assert all(none[row].tolist() == usual[row].tolist() for row in rows.tolist())


def test_words_are_cut_as_often_as_sampling_sentences_cuts_them() -> None:
    """The written-out twin draws every sentence anew: both make sentences longer by the same factor."""
    tokenizers, examples = corpus()
    usual, rows, chance = examples.columns["source"], np.arange(len(examples)), Random(3)
    cuts = WordCuts.of(usual, tokenizers.source, 1)
    texts = [tokenizers.source.decode(usual[row].tolist()) for row in rows.tolist()]
    anew = sum(len(tokenizers.source.sample(text, chance)) + 1 for text in texts for _ in range(20))
    looked_up = sum(len(cuts.draw(rows, key).numbers) for key in range(20))
    assert looked_up / anew == pytest.approx(1.0, abs=0.02)


def test_a_rare_word_has_few_cuts_and_one_that_has_only_one_way_has_one() -> None:
    tokenizers, examples = corpus()
    cuts = WordCuts.of(examples.columns["source"], tokenizers.source, 1)
    counts, often = np.diff(cuts.first), np.bincount(cuts.words.numbers)
    assert counts.max() == MOST
    assert set(counts[often == 1].tolist()) <= {1, FEWEST + 1}
    end = cuts.words[0][-1]
    assert counts[end] == 1
