"""Word alignments: the two formats, the scores of Och and Ney, and joining two directions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.metrics.alignment import (
    AlignmentQuality,
    Gold,
    Symmetrisation,
    alignment_quality,
    check_inside,
    flipped,
    read_gold,
    symmetrise,
)

SHARED = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[4] / "shared" / "data")) / "alignment"
PAIRS = [("en-fr", "en", "fr", 200), ("de-en", "de", "en", 50)]


def gold(sure: str, possible: str = "") -> Gold:
    (found,) = read_gold([f"{sure} {possible}"], "here")
    return found


def test_pharaohs_format_has_a_line_for_each_sentence() -> None:
    first, second, third = read_gold(["0-0 1-2", "", "3?1 2p2 4-1"], "gold", sentences=3)
    assert first == Gold(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2)}))
    assert second == Gold(frozenset(), frozenset())
    assert third == Gold(frozenset({(4, 1)}), frozenset({(3, 1), (2, 2), (4, 1)}))


def test_naacls_format_has_a_line_for_each_link_counted_from_one() -> None:
    lines = ["0001 1 1", "0001 2 3 P 0.7", "", "3 1 2 s", "3 0 1 S"]
    first, second, third, fourth = read_gold(lines, "gold", sentences=4)
    assert first == gold("0-0", "1?2")
    assert second == fourth == Gold(frozenset(), frozenset())  # not named, not linked
    assert third == gold("0-1")  # a word 0 is no word
    assert len(read_gold(lines, "gold")) == 3


@pytest.mark.parametrize(
    ("lines", "sentences", "line"),
    [
        (["0-0", "0-0 1:1"], 2, "gold line 2 = 1:1: not a link; 0-0 is a sure one"),
        (["1 1 1", "1 1"], 1, "gold line 2 = 1 1: not a link; '1 2 3 S'"),
        (["1 1 1 X"], 1, "gold line 1 = 1 1 1 X: not a link"),
        (["0 1 1"], 1, "gold line 1 = 0 1 1: not a link"),
        (["0-0"], 2, "gold = 1 alignments: one is needed for each sentence; there are 2 sentences"),
        (["3 1 1"], 2, "gold = 3 alignments: .* there are 2 sentences"),
        ([], None, "gold = 0 alignments: .* at least one would be right"),
    ],
)
def test_what_is_no_alignment_gets_one_line(lines: list[str], sentences: int | None, line: str) -> None:
    with pytest.raises(DataError, match=line):
        read_gold(lines, "gold", sentences=sentences)


def test_a_link_to_a_word_that_is_not_there_is_named() -> None:
    golds = [gold("0-0"), gold("1-2", "2?0")]
    check_inside(golds, ["a", "a b c"], ["x", "x y z"], "gold")
    with pytest.raises(DataError, match=r"gold sentence 2 = 2-0: points outside .* 2 source and 3 target words"):
        check_inside(golds, ["a", "a b"], ["x", "x y z"], "gold")
    with pytest.raises(DataError, match="gold sentence 2 = 1-2: points outside"):
        check_inside(golds, ["a", "a b c"], ["x", "x y"], "gold")


def test_the_scores_are_those_of_och_and_ney() -> None:
    golds = [gold("0-0 1-1", "1?2"), gold("0-1")]
    found = alignment_quality([{(0, 0), (1, 2), (2, 2)}, {(0, 1)}], golds)
    assert found == AlignmentQuality(
        error_rate=pytest.approx(1 - (2 + 3) / (4 + 3)),
        precision=3 / 4,
        recall=2 / 3,
        predicted=4,
        sure=3,
        possible=4,
    )


def test_gold_against_itself_has_no_errors_and_nothing_against_nothing_neither() -> None:
    golds = [gold("0-0 1-1", "1?2"), gold("0-1")]
    assert alignment_quality([pair.sure for pair in golds], golds).error_rate == 0.0
    assert alignment_quality([pair.possible for pair in golds], golds).error_rate == 0.0
    assert alignment_quality([set()], [gold("")]) == AlignmentQuality(0.0, 0.0, 0.0, 0, 0, 0)
    assert alignment_quality([set()], [gold("0-0")]).error_rate == 1.0


def test_alignments_that_do_not_pair_are_refused() -> None:
    with pytest.raises(DataError, match="alignments = 0: the gold has 1"):
        alignment_quality([], [gold("0-0")])


def test_the_other_direction_has_the_target_first() -> None:
    assert flipped({(0, 1), (2, 3)}) == {(1, 0), (3, 2)}
    assert gold("0-1", "2?3").flipped() == gold("1-0", "3?2")


# Two directions: both say 0-0 and 4-4, the rest only one of them does.
FORWARD = {(0, 0), (1, 1), (4, 4), (2, 4), (6, 6)}
BACKWARD = {(0, 0), (4, 4), (0, 1), (5, 4), (6, 5), (8, 6)}
JOINED: dict[Symmetrisation, set[tuple[int, int]]] = {
    "intersection": {(0, 0), (4, 4)},
    "union": FORWARD | BACKWARD,
    # 0-1 touches 0-0 and gives target 1 a link, so does 1-1 for source 1; 5-4 touches 4-4, and 6-5 then 5-4;
    # 6-6 touches 6-5 and gives target 6 a link; 2-4 touches nothing, and 8-6 neither.
    "grow-diag": {(0, 0), (0, 1), (1, 1), (4, 4), (5, 4), (6, 5), (6, 6)},
    # nothing is left whose words are both free
    "grow-diag-final-and": {(0, 0), (0, 1), (1, 1), (4, 4), (5, 4), (6, 5), (6, 6)},
}


@pytest.mark.parametrize("method", JOINED)
def test_two_directions_are_joined_as_koehn_och_and_marcu_do(method: Symmetrisation) -> None:
    assert symmetrise(FORWARD, BACKWARD, method) == JOINED[method]


def test_growing_stops_where_both_words_have_links() -> None:
    square = {(0, 0), (1, 1)}
    assert symmetrise(square | {(0, 1)}, square, "grow-diag") == square


def test_final_and_adds_what_one_direction_says_of_two_free_words() -> None:
    forward, backward = {(0, 0), (3, 3), (3, 5)}, {(0, 0), (3, 4), (6, 5)}
    assert symmetrise(forward, backward, "grow-diag") == {(0, 0)}
    assert symmetrise(forward, backward) == {(0, 0), (3, 3), (6, 5)}


@pytest.mark.skipif(not SHARED.exists(), reason="gold alignments are not here; set REGARD_DATA to the data folder")
@pytest.mark.parametrize(("name", "source", "target", "count"), PAIRS)
def test_gold_that_people_made_is_read_and_scored(name: str, source: str, target: str, count: int) -> None:
    lines = {end: (SHARED / f"{name}.{end}").read_text().split("\n")[:-1] for end in (source, target, "align")}
    golds = read_gold(lines["align"], name, sentences=count)
    check_inside(golds, lines[source], lines[target], name)
    assert alignment_quality([pair.sure for pair in golds], golds).error_rate == 0.0
    diagonal = [
        {(place, place) for place in range(min(len(one.split()), len(other.split())))}
        for one, other in zip(lines[source], lines[target], strict=True)
    ]
    found = alignment_quality(diagonal, golds)
    assert 0.2 < found.error_rate < 1
    assert 0 < found.recall < 1
    flipped_golds = [pair.flipped() for pair in golds]
    assert alignment_quality([flipped(links) for links in diagonal], flipped_golds) == found
