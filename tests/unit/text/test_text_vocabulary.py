"""Vocabularies: the order of ids, what is kept, and what is refused."""

import numpy as np
import pytest

from regard.errors import DataError, ModelError, SettingsError
from regard.text import SPECIAL_TOKENS, UNK, Vocabulary


def test_exact_tokens_get_the_ids_of_their_places() -> None:
    vocabulary = Vocabulary(("a", "am", "I", "thanks", "student", "<eos>"))
    assert vocabulary.ids(["a", "am", "I", "thanks", "student", "<eos>"]) == [0, 1, 2, 3, 4, 5]
    assert np.eye(len(vocabulary))[vocabulary.id("am")].tolist() == [0, 1, 0, 0, 0, 0]
    assert list(vocabulary) == ["a", "am", "I", "thanks", "student", "<eos>"]


def test_counting_orders_by_count_and_then_by_token() -> None:
    vocabulary = Vocabulary.count(["b", "a", "c", "b", "a", "d"])
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "a", "b", "c", "d")
    assert vocabulary.counts == (0, 0, 0, 0, 2, 2, 1, 1)


def test_minimum_count_and_size_drop_the_rare_tokens() -> None:
    tokens = ["a", "a", "a", "b", "b", "c"]
    assert Vocabulary.count(tokens, minimum=2, special=False).tokens == ("a", "b")
    assert Vocabulary.count(tokens, size=5).tokens == (*SPECIAL_TOKENS, "a")
    assert "c" not in Vocabulary.count(tokens, minimum=2)


def test_a_special_token_in_the_stream_keeps_its_own_id() -> None:
    vocabulary = Vocabulary.count(["<pad>", "<pad>", "x"])
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "x")
    assert vocabulary.counts[0] == 2


def test_an_unknown_token_is_unk_or_refused_where_there_is_no_unk() -> None:
    assert Vocabulary.count(["a"]).ids(["a", "z"]) == [4, UNK]
    assert Vocabulary.count(["a"]).id("z") == UNK
    with pytest.raises(DataError, match="'z': not in the vocabulary"):
        Vocabulary(("a",)).ids(["z"])


def test_a_vocabulary_survives_the_disk(tmp_path) -> None:
    vocabulary = Vocabulary.count(["\t", "\n", "\\", "\\t", "\r", "\u2028", "", "नमस्ते", "😀", "a b"])
    vocabulary.save(tmp_path / "v.tsv")
    assert Vocabulary.load(tmp_path / "v.tsv") == vocabulary
    assert (tmp_path / "v.tsv").read_bytes().count(b"\n") == len(vocabulary)


def test_impossible_vocabularies_are_refused() -> None:
    with pytest.raises(DataError, match="'a': appears twice"):
        Vocabulary(("a", "b", "a"))
    with pytest.raises(DataError, match="one is needed for each of 2 tokens"):
        Vocabulary(("a", "b"), (1,))
    with pytest.raises(SettingsError, match="size = 4: leaves no room for a token; at least 5"):
        Vocabulary.count(["a"], size=4)


def test_a_damaged_file_is_refused_with_its_line(tmp_path) -> None:
    path = tmp_path / "v.tsv"
    path.write_text("a\t1\nb\tmany\n", encoding="utf-8")
    with pytest.raises(ModelError, match=r"v\.tsv line 2 = 'b\\tmany': not 'token<TAB>count'"):
        Vocabulary.load(path)
    path.write_text(f"a\t{'9' * 5000}\n", encoding="utf-8")
    with pytest.raises(ModelError, match=r"v\.tsv line 1 = 'a\\t999.*: not 'token<TAB>count'"):
        Vocabulary.load(path)
    path.write_bytes(b"a\xff\t1\n")
    with pytest.raises(ModelError, match=r"v\.tsv: not UTF-8"):
        Vocabulary.load(path)
