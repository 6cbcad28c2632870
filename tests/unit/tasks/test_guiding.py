"""Links for guided alignment: read, learned, and moved from words to pieces; and what is refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import corpora_for_tests as small
import tiny
from regard.data.batches import collate
from regard.data.encoding import Examples, LinkEncoder, Ragged, encode_rows, parts_of, pieces_of_parts, pieces_of_words
from regard.data.plan import BatchShape
from regard.errors import DataError, SettingsError
from regard.explain.alignment import aligner_of
from regard.runs.folder import Run
from regard.tasks.linking import JUMP, NOTHING, learn_links, posterior_in_order
from regard.tasks.load import load
from regard.tasks.translate import moved
from regard.text.tokenizers import Tokenizers
from regard.trainer.start import start

CPU = torch.device("cpu")
GUIDED = "train.alignment.kind=guided"
TEXT = ["the black cat sleeps.", "l'ours dort, dit-il", "a small bird sees the river!"]


@pytest.mark.parametrize(
    ("preset", "overrides", "says"),
    [
        ("lstm", (), "needs a model that attends to the source"),
        ("transformer-tiny", ("task=language",), "needs a model that attends to the source"),
        ("luong-hard", (), "selection = 'soft'"),
        ("transformer-tiny", ("train.alignment.layer=3",), "train.alignment.layer = 3: there is no such layer; 1 to 2"),
        ("bahdanau", ("train.alignment.head=2",), "train.alignment.head = 2: there is no such head; 1 would be right"),
        ("bahdanau", ("train.alignment.links=gold",), "only the built-in corpus has these"),
        ("bahdanau", ("train.alignment.links=a.align",), "belongs to data.source and data.target"),
    ],
)
def test_what_cannot_be_guided_is_said_in_one_line(preset: str, overrides: tuple[str, ...], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        tiny.settings(preset, GUIDED, *overrides)


def test_the_last_layer_but_one_is_guided_unless_another_is_named() -> None:
    chosen = tiny.settings("transformer-tiny", GUIDED, "model.decoder_depth=4", "data.corpus=fable:fr")
    assert chosen.guided_head == (2, 0)
    assert tiny.settings("bahdanau", GUIDED).guided_head == (0, 0)
    assert tiny.settings("bahdanau").guided_head is None


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    return Tokenizers.learn("bpe", iter(TEXT), iter(TEXT), joint=True, size=300, minimum=1, seed=1, case="keep")


def test_the_links_of_words_are_those_of_all_their_pieces(tokenizers: Tokenizers) -> None:
    encoder = LinkEncoder(tokenizers)
    (found,) = encoder.encode((TEXT[0], TEXT[1], "1-0 3?2"))
    source = pieces_of_words(tokenizers.source, tokenizers.read(TEXT[0]))
    target = pieces_of_words(tokenizers.target, tokenizers.written(TEXT[1]))
    expected = [*product(source[1], target[0]), *product(source[3], target[2])]
    assert list(zip(found[::2], found[1::2], strict=True)) == expected


@pytest.mark.parametrize("link", ["0", "4-0", "0-3", "a-b", "0-0-0"])
def test_a_link_that_is_none_is_named_with_its_line(tokenizers: Tokenizers, link: str) -> None:
    rows = [(1, (TEXT[0], TEXT[1], "0-0")), (2, (TEXT[0], TEXT[1], link))]
    with pytest.raises(DataError, match=f"line 2: link = {link}: not a link between sentences of 4 and 3 words"):
        encode_rows(LinkEncoder(tokenizers), rows)


def test_parts_of_words_have_punctuation_apart_and_their_own_pieces(tokenizers: Tokenizers) -> None:
    assert parts_of("sleeps.") == ("sleeps", ".")
    assert parts_of("猫眠") == ("猫", "眠")
    ids = tokenizers.read(TEXT[0])
    *_, sleeps, stop = pieces_of_parts(tokenizers.source, ids, TEXT[0])
    token = tokenizers.source.token
    assert "".join(token(ids[place]) for place in sleeps).strip("▁") == "sleeps"
    assert [token(ids[place]) for place in stop] == ["."]
    assert pieces_of_parts(tokenizers.source, ids[:2], TEXT[0]) == [[]] * 5  # another text: nothing is linked


def test_links_outlive_another_way_to_cut(tokenizers: Tokenizers) -> None:
    source, target = tokenizers.read(TEXT[0]), tokenizers.written(TEXT[1])
    (links,) = LinkEncoder(tokenizers).encode((TEXT[0], TEXT[1], "1-0 3-2"))
    assert sorted(zip(links[::2], links[1::2], strict=True)) == sorted(
        zip(*[iter(moved(links, tokenizers, (source, target), (source, target)))] * 2, strict=True)
    )
    letters = [
        tokenizers.source.id(letter)
        for letter in ["▁", "t", "h", "e", "▁", "b", "l", "a", "c", "k", "▁", "c", "a", "t"]
    ]
    again = moved(links, tokenizers, (source, target), (letters, target))
    assert set(again[::2]) == set(range(4, 10))  # black, letter by letter


def test_a_batch_holds_the_links_of_what_was_not_cut_off() -> None:
    columns = {"source": [[5, 6, 7, 2], [8, 2]], "target": [[9, 8, 7], [5]], "links": [[0, 1, 2, 0, 2, 2], []]}
    examples = Examples({name: Ragged.of(rows) for name, rows in columns.items()})  # type: ignore[misc]
    batch = collate(examples, np.array([0, 1]), BatchShape(3, 3, 2))
    assert batch.links.shape == (3, 2, 3)
    assert np.argwhere(batch.links).tolist() == [[0, 0, 2], [0, 1, 0]]  # row, target, source


def enumerated(chosen: torch.Tensor, often: torch.Tensor, jumps: torch.Tensor) -> torch.Tensor:
    """The posterior of every way, one after the other: each step moves to a state, or stays without a partner."""
    steps, states = chosen.shape
    table = torch.tensor([[float(jumps[to - at + JUMP]) for to in range(states)] for at in range(states)])
    table = table / table.sum(1, keepdim=True)
    total, found = 0.0, torch.zeros(steps, states)
    for begin in range(states):
        for way in product(range(states + 1), repeat=steps):  # the last stands for none
            at, weight = begin, 1 / states
            for step, to in enumerate(way):
                if to == states:
                    weight *= NOTHING * float(often[step])
                    continue
                moved_there = 1.0 if step == 0 and to == at else 0.0 if step == 0 else float(table[at, to])
                weight *= moved_there * (1 - NOTHING) * float(chosen[step, to])
                at = to
            total += weight
            for step, to in enumerate(way):
                if to < states:
                    found[step, to] += weight
    return found / total


def test_forward_and_backward_find_what_trying_every_way_finds() -> None:
    torch.manual_seed(3)
    chosen, often, jumps = torch.rand(3, 2), torch.rand(3), torch.rand(2 * JUMP + 1)
    padded = torch.zeros(1, 5, 3)
    padded[0, :3, :2] = chosen
    often_padded = torch.cat((often, torch.rand(2)))[None]
    states, steps = torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[1.0, 1.0, 1.0, 0.0, 0.0]])
    found, _ = posterior_in_order(padded, often_padded, states, steps, jumps)
    torch.testing.assert_close(found[0, :3, :2], enumerated(chosen, often, jumps), atol=1e-5, rtol=1e-4)
    assert not found[0, 3:].any()
    assert not found[0, :, 2].any()


def test_links_are_learned_from_a_few_sentences_and_are_the_same_again(tmp_path: Path) -> None:
    small.animals(tmp_path)
    sides = [(tmp_path / f"train.{side}").read_text().splitlines() for side in ("en", "fr")]
    pairs = list(zip(*sides, strict=True))
    found = learn_links(pairs, CPU)
    assert found == learn_links(pairs, CPU)
    place = pairs.index(("the black cat sleeps.", "le chat noir dort."))
    assert {"0-0", "1-2", "3-3", "4-4"} <= set(found[place].split())


@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau"])
def test_a_guided_run_reads_its_links_from_a_file_and_remembers_its_head(preset: str, tmp_path: Path) -> None:
    files = small.animals(tmp_path)
    lines = (tmp_path / "train.en").read_text().splitlines()
    (tmp_path / "train.align").write_text("0-0\n" * len(lines))
    settings = small.settings(preset, *files, GUIDED, f"train.alignment.links={tmp_path / 'train.align'}")
    start(tmp_path / "run", settings, small.Notes())
    translator = load(tmp_path / "run")
    aligner = aligner_of(Run.open(tmp_path / "run"), translator.model, translator.tokenizers)
    assert (aligner.heads, aligner.late) == (((0, 0),), preset == "transformer-tiny")
    assert "train.align links" in translator.aligner.describe()
    (tmp_path / "train.align").write_text("0-0\n")
    with pytest.raises(DataError, match="1 lines but"):
        start(tmp_path / "other", settings, small.Notes())
    assert not (tmp_path / "other").exists()
