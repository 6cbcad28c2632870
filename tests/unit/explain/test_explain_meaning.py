"""One word in several sentences."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

import regard
import tiny
from regard.errors import DataError
from regard.explain.alignment import Aligner
from regard.explain.meaning import (
    cosines,
    find,
    layers,
    meaning,
    nearest,
    plane,
    spelled,
    translations,
    words_of,
)
from regard.explain.replay import replay
from regard.explain.trace import spell
from regard.text import Tokenizers, WordTokenizer
from regard.text.vocabulary import END

SOURCES = WordTokenizer.learn([" ".join(f"s{number}" for number in range(tiny.SOURCE_SIZE - 4))])
TARGETS = WordTokenizer.learn([" ".join(f"t{number}" for number in range(tiny.TARGET_SIZE - 4))])
SENTENCES = ["s1 s5 s3", "s5 s2", "s7 s8 s5 s9"]


def test_a_word_is_found_whatever_its_capitals_and_marks() -> None:
    found = find("Bank", ["The bank, near the river", "“BANK!”"])
    assert [word for _, word in found] == [1, 0]
    assert spelled(found[0]) == "bank,"
    with pytest.raises(DataError, match="word = 银行: is part of a longer one in '他在银行'; put spaces"):
        find("银行", ["他在银行"])
    with pytest.raises(DataError, match="word = bank: does not stand in 'the shore'"):
        find("bank", ["the shore"])


def test_words_that_no_spaces_set_apart_are_found_in_the_pieces_that_a_model_reads() -> None:
    """A word of two pieces is their mean; one inside a piece has no vector of its own."""
    lines = ["他在银行工作", "银行在河边", "我去银行取钱"] * 9
    tokenizers = Tokenizers.learn("unigram", lines, lines, joint=True, size=290)
    sentence = "银行在河边"
    read = spell(tokenizers.read(sentence), tokenizers.source, sentence)
    assert len(read.words) > 2, "no piece is the whole sentence"
    whole, first = "".join(read.words[:2]), read.words[0]
    size = tokenizers.source.size
    model = regard.encoder_decoder(tiny.settings("bahdanau").model, size, size).eval()
    both, one = find(whole, [sentence], tokenizers)[0], find(first, [sentence], tokenizers)[0]
    assert (spelled(both), both[1], spelled(one)) == (whole, 0, first)
    vectors = layers(model, tokenizers, sentence)
    found = meaning(model, tokenizers, [both, one])
    torch.testing.assert_close(found[-1], torch.stack([vectors[-1][:2].mean(0), vectors[-1][0]]))
    alike = meaning(model, tokenizers, [one, *find(first, [f"他在{sentence}"], tokenizers)])[0]
    torch.testing.assert_close(alike[0], alike[1], msg="an embedding is the same wherever a word stands")
    places, every = words_of(model, tokenizers, [sentence])
    assert [spelled(place) for place in places] == list(read.words)
    assert len(every[-1]) == len(read.words)
    long = next(word for word in read.words if len(word) > 1)
    with pytest.raises(DataError, match=f"word = {long[-1]}: is part of '{long}', one piece in '{sentence}'; choose"):
        find(long[-1], [sentence], tokenizers)
    (linked, _) = translations(model, tokenizers, [both], None)[0]
    assert isinstance(linked, str)


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
    alike = cosines(meaning(tiny.translator(preset), SOURCES, find("s5", SENTENCES)))
    torch.testing.assert_close(alike[0], torch.ones(3, 3, dtype=torch.float64))
    assert alike[-1].triu(1).max() < 1
    torch.testing.assert_close(alike[-1].diagonal(), torch.ones(3, dtype=torch.float64))


def test_a_labeller_has_meaning_too() -> None:
    found = meaning(tiny.tagger("gru"), SOURCES, find("s5", SENTENCES))
    assert [layer.shape for layer in found] == [(3, 7), (3, 11)]
    assert [points.shape for points in plane(found)[0]] == [(3, 2), (3, 2)]


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
    words, vectors = words_of(model, SOURCES, SENTENCES)
    assert len(words) == len(vectors[0]) == 9
    mine = SENTENCES[0], 1
    (vector,) = meaning(model, SOURCES, [mine])[0]
    found = nearest(vector, words, normalize(vectors[0], dim=-1), 3, besides=mine)
    assert spelled(found[0][0]) == "s5"
    assert found[0][0] != mine
    assert found[0][1] == pytest.approx(1.0)
    assert len({spelled(one) for one, _ in found}) == 3  # each spelling once
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
    [([], "occurrences = 0"), ([("s1 s2", 2)], "word = 2: 's1 s2' has no such word; 0 to 1")],
)
def test_what_is_not_there_has_no_meaning(occurrences: list[tuple[str, int]], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        meaning(tiny.translator("gru"), SOURCES, occurrences)


def test_empty_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="sentence = '': an empty sentence"):
        layers(tiny.translator("gru"), SOURCES, " ")
