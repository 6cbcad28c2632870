"""One word in several sentences."""

from __future__ import annotations

import pytest
import torch

import tiny
from regard.errors import DataError
from regard.explain.alignment import Aligner
from regard.explain.contextual import Neighbours, Occurrence, find, layers, meaning, plane, translations
from regard.explain.replay import replay
from regard.text import Tokenizers, WordTokenizer
from regard.text.special import END

SOURCES = WordTokenizer.learn([" ".join(f"s{number}" for number in range(tiny.SOURCE_SIZE - 4))])
TARGETS = WordTokenizer.learn([" ".join(f"t{number}" for number in range(tiny.TARGET_SIZE - 4))])
SENTENCES = ["s1 s5 s3", "s5 s2", "s7 s8 s5 s9"]


def test_a_word_is_found_whatever_its_capitals_and_marks() -> None:
    found = find("Bank", ["The bank, near the river", "“BANK!”"])
    assert [one.word for one in found] == [1, 0]
    assert str(found[0]) == "bank,"
    with pytest.raises(DataError, match="word = 银行: is part of a longer one in '他在银行'; put spaces"):
        find("银行", ["他在银行"])
    with pytest.raises(DataError, match="word = bank: does not stand in 'the shore'"):
        find("bank", ["the shore"])


@pytest.mark.parametrize("preset", tiny.PRESETS)
def test_the_layers_are_those_of_a_trace(preset: str) -> None:
    model = tiny.translator(preset)
    trace = replay(model, [*SOURCES.encode(SENTENCES[0]), END], [5, END])
    found = layers(model, SOURCES, SENTENCES[0])
    torch.testing.assert_close(found[0], trace.tensors["encoder.embedded"][:3])
    torch.testing.assert_close(found[-1], trace.tensors["encoder.states"][:3])
    depth = len([name for name in trace.tensors if name.startswith("encoder.") and name.endswith(".states")])
    assert len(found) == depth  # all layers but the top one, whose place encoder.states takes, and the embedding
    if depth > 2:
        torch.testing.assert_close(found[1], trace.tensors["encoder.0.states"][:3])


def test_a_word_of_several_pieces_is_their_mean() -> None:
    tokenizer = WordTokenizer.learn(["s1 s'2"])
    model = tiny.translator("gru")
    trace = replay(model, [*tokenizer.encode("s1 s'2"), END], [5, END])
    torch.testing.assert_close(layers(model, tokenizer, "s1 s'2")[-1][1], trace.tensors["encoder.states"][1:3].mean(0))


@pytest.mark.parametrize("preset", ["bahdanau", "transformer-tiny"])
def test_without_context_a_word_is_itself_and_with_it_it_differs(preset: str) -> None:
    cosines = meaning(tiny.translator(preset), SOURCES, find("s5", SENTENCES)).cosines()
    torch.testing.assert_close(cosines[0], torch.ones(3, 3, dtype=torch.float64))
    assert cosines[-1].triu(1).max() < 1
    torch.testing.assert_close(cosines[-1].diagonal(), torch.ones(3, dtype=torch.float64))


def test_a_labeller_has_meaning_too() -> None:
    found = meaning(tiny.tagger("gru"), SOURCES, find("s5", SENTENCES))
    assert [layer.shape for layer in found.vectors] == [(3, 7), (3, 11)]
    assert [points.shape for points in plane(found.vectors)[0]] == [(3, 2), (3, 2)]


def test_all_layers_lie_on_the_same_axes() -> None:
    layer = torch.randn(7, 5, dtype=torch.float64)
    points, explained = plane([layer, layer, 3 * layer])
    torch.testing.assert_close(points[0], points[1])
    torch.testing.assert_close(points[0], points[2])  # it is angles that count
    assert 0 < explained[0] <= 1


def test_the_plane_shows_the_most_there_is_to_see() -> None:
    flat = torch.zeros(5, 4, dtype=torch.float64)
    angle = torch.linspace(0, 3, 5, dtype=torch.float64)
    flat[:, 1], flat[:, 3] = angle.cos(), angle.sin()
    points, explained = plane([flat])
    assert explained[0] == pytest.approx(1.0)
    torch.testing.assert_close(torch.cdist(points[0], points[0]), torch.cdist(flat, flat))


def test_one_occurrence_is_a_point() -> None:
    assert plane([torch.ones(1, 3)])[0][0].tolist() == [[0.0, 0.0]]


def test_the_nearest_neighbour_of_a_word_is_the_same_word_elsewhere() -> None:
    model = tiny.translator("transformer-tiny")
    index = Neighbours.of(model, SOURCES, ["", *SENTENCES], layer=0)
    assert len(index.occurrences) == 9
    mine = meaning(model, SOURCES, [Occurrence(SENTENCES[0], 1)])
    found = index.nearest(mine.vectors[0][0], 3, besides=mine.occurrences[0])
    assert str(found[0][0]) == "s5"
    assert found[0][0] != mine.occurrences[0]
    assert found[0][1] == pytest.approx(1.0)
    assert len({str(one) for one, _ in found}) == 3  # each spelling once
    assert [likeness for _, likeness in found] == sorted((likeness for _, likeness in found), reverse=True)


def test_each_occurrence_is_translated_by_the_words_linked_with_it() -> None:
    model = tiny.translator("bahdanau")
    found = translations(model, Tokenizers(SOURCES, TARGETS), find("s5", SENTENCES), Aligner(cover=0.0))
    assert len(found) == 3
    for linked, whole in found:
        assert linked  # to cover is to leave no source word alone
        assert set(linked.split()) <= set(whole.split())


@pytest.mark.parametrize(
    ("occurrences", "complaint"),
    [([], "occurrences = 0"), ([Occurrence("s1 s2", 2)], "word = 2: is past the end of 's1 s2'; 0 to 1")],
)
def test_what_is_not_there_has_no_meaning(occurrences: list[Occurrence], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        meaning(tiny.translator("gru"), SOURCES, occurrences)


def test_empty_sentences_and_layers_that_do_not_exist_are_refused() -> None:
    model = tiny.translator("gru")
    with pytest.raises(DataError, match="sentence = '': an empty sentence"):
        layers(model, SOURCES, " ")
    with pytest.raises(DataError, match="sentences = 0"):
        Neighbours.of(model, SOURCES, [""])
    with pytest.raises(DataError, match="layer = 2: there is no such layer; 0"):
        Neighbours.of(model, SOURCES, SENTENCES, layer=2)
