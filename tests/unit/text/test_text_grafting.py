"""Pieces that are added to a vocabulary are used, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import SettingsError
from regard.text.foreign import SentencePieceTokenizer
from regard.text.grafting import graft, graft_both, origins, recut_targets
from regard.text.subwords import SubwordTokenizer
from regard.text.tokenizers import Tokenizers, learn, load
from regard.text.vocabulary import SPECIAL_TOKENS, UNK, Kind, Vocabulary
from regard.text.words import WordTokenizer

GENERAL = ["the cat sleeps on the mat", "a bear eats honey by the river", "the small bird sings", "we eat bread"] * 20
DOMAIN = ["the migration changes the database", "migrations are database changes", "run the migration again"] * 5


def learned(kind: Kind, size: int = 320) -> SubwordTokenizer:
    found = learn(kind, GENERAL, size=size)
    assert isinstance(found, SubwordTokenizer)
    return found


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_go_on_being_merged(kind: Kind, tmp_path: Path) -> None:
    old = learned(kind)
    new = graft(old, DOMAIN, 40)
    assert old.size < new.size <= old.size + 40
    assert all(new.token(number) == old.token(number) for number in range(old.size))
    for line in (*DOMAIN, *GENERAL):
        assert new.decode(new.encode(line)) == line
    assert len(new.encode(DOMAIN[0])) < len(old.encode(DOMAIN[0])) / 2
    assert any(number >= old.size for number in new.encode(DOMAIN[0]))
    new.save(tmp_path / "saved")
    assert load(tmp_path / "saved") == new


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_new_piece_is_made_of_what_it_was_cut_into(kind: Kind) -> None:
    old = learned(kind)
    new = graft(old, DOMAIN, 40)
    for number, before in enumerate(origins(old, new), old.size):
        piece = new.token(number)
        assert "".join(old.token(each) for each in before) == piece
        if piece.startswith("▁"):
            assert before == old.encode(piece.removeprefix("▁"))


def test_a_foreign_vocabulary_takes_pieces_at_its_end() -> None:
    """Whatever the order of its ids."""
    model = learned("unigram").model
    pieces = [learned("unigram").token(number) for number in range(4, learned("unigram").size)]
    old = SentencePieceTokenizer(Vocabulary((*SPECIAL_TOKENS, *reversed(pieces))), model=model)
    new = graft(old, DOMAIN, 12)
    assert new.size == old.size + 12
    assert len(new.encode(DOMAIN[0])) < len(old.encode(DOMAIN[0]))
    assert all("".join(map(old.token, ids)) == new.token(n) for n, ids in enumerate(origins(old, new), old.size))
    shared = Tokenizers(old, SentencePieceTokenizer(old.vocabulary, model=model))
    with pytest.raises(SettingsError, match=r"train.graft = 3: two tokenizers share one vocabulary, which cannot grow"):
        graft_both(shared, DOMAIN, DOMAIN, 3)


@pytest.mark.parametrize("kind", ["word", "space", "character"])
def test_unknown_words_and_characters_become_known(kind: Kind) -> None:
    old = learn(kind, GENERAL)
    new = graft(old, ["Zürich database"] * 3, 30)
    assert UNK in old.encode("Zürich database")
    assert UNK not in new.encode("Zürich database")
    assert all(new.token(number) == old.token(number) for number in range(old.size))
    assert origins(old, new) == [[UNK]] * (new.size - old.size)


def test_each_side_has_its_own_pieces() -> None:
    pair = Tokenizers(learned("bpe"), learned("unigram"))
    new = graft_both(pair, DOMAIN, ["changements de la base"] * 4, 6)
    assert (new.source.size, new.target.size) == (pair.source.size + 6, pair.target.size + 6)
    assert new.source.encode(GENERAL[0]) == pair.source.encode(GENERAL[0])


def test_pieces_seen_once_are_not_learned() -> None:
    old = learned("bpe")
    assert graft(old, ["xylophone"], 9).size == old.size


def test_words_of_a_vector_file_are_the_last() -> None:
    words = learn("word", GENERAL)
    with pytest.raises(
        SettingsError, match=r"train.graft = 3: the vocabulary ends with words from a vector file; use 0"
    ):
        graft(WordTokenizer(words.vocabulary.extended(["zebra"])), DOMAIN, 3)  # type: ignore[attr-defined]


def test_targets_are_cut_into_what_a_model_writes_where_only_the_sources_cutter_came_along() -> None:
    """As in packages of Argos: one vocabulary of two sentencepiece models, of which one is missing."""
    source, target = learned("unigram"), learn("unigram", DOMAIN * 9, size=330)
    pieces = [each.token(number) for each in (target, source) for number in range(4, each.size)]
    one = SentencePieceTokenizer(Vocabulary((*SPECIAL_TOKENS, *dict.fromkeys(pieces))), model=source.model)
    cut = recut_targets(Tokenizers(one, one))
    assert cut.source == one
    assert cut.joint
    assert cut.target.pieces("the migration changes the database") == target.pieces(
        "the migration changes the database"
    )
    assert len(cut.target.encode(DOMAIN[0])) < len(one.encode(DOMAIN[0]))
    assert UNK not in cut.target.encode(DOMAIN[0])
    assert cut.target.decode(cut.target.encode(DOMAIN[0])) == DOMAIN[0]
    whole = SentencePieceTokenizer(Vocabulary(tuple(source.token(n) for n in range(source.size))), model=source.model)
    assert recut_targets(Tokenizers(whole, whole)).target is whole, "it has all of its pieces"
    own = Tokenizers(source, source)
    assert recut_targets(own) is own
