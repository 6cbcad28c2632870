"""Spelling, measures, baselines and checks for the tasks that label words or texts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.cli.main import run as cli
from regard.data.batches import collate
from regard.data.check import check_labels
from regard.data.encoding import LabelEncoder, TagEncoder, encode_examples
from regard.data.plan import BatchShape
from regard.data.readers import Corpus
from regard.data.shards import prepare_corpus
from regard.data.stats import stats
from regard.errors import DataError, ResourceError, SettingsError
from regard.metrics.baselines import baselines
from regard.metrics.labels import ClassResult, Confusion, TagResult, Tally
from regard.metrics.language import language_result
from regard.settings import TaskName
from regard.tasks.labels import Reader
from regard.tasks.load import task_of
from regard.tasks.tag import TagTask
from regard.tasks.task import drop_words
from regard.text.tokenizers import learn
from regard.text.vocabulary import END, PAD, START, UNK, Kind, Vocabulary
from regard.text.words import spell, word_ids, word_letters

Capture = pytest.CaptureFixture[str]


# How words are written


def test_a_word_is_its_bytes_between_start_and_end() -> None:
    assert spell("ab", 6) == (START, ord("a") + 4, ord("b") + 4, END, PAD, PAD)


def test_a_long_word_loses_its_middle() -> None:
    letters = spell("abcdefghij", 7)
    assert len(letters) == 7
    assert letters == (START, *(ord(letter) + 4 for letter in "ab"), *(ord(letter) + 4 for letter in "hij"), END)


def test_a_word_without_pieces_is_unknown_and_has_its_letters() -> None:
    tokenizer = learn("bpe", ["the cat sat on the mat"] * 9, size=290)
    assert tokenizer.encode("▁") == []
    assert word_ids(tokenizer, "▁") == [UNK]
    assert len(word_letters(tokenizer, "▁", 5)) == 5


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_the_tag_of_a_word_is_at_its_own_piece_and_not_at_the_mark_of_its_capital(kind: Kind) -> None:
    tokenizer = learn(kind, ["The cat saw NATO"] * 9, size=290, case="mark")
    ids, labels = TagEncoder(tokenizer, Vocabulary(("A", "B", "C"))).encode(("The cat NATO", "A B C"))
    rows, places = Reader(tokenizer, 0, torch.device("cpu")).words(["The", "cat", "NATO"])
    assert [number for (number,) in rows] == ids
    assert [place for place, label in enumerate(labels) if label] == places
    assert [label for label in labels if label] == [1, 2, 3]
    marks = {tokenizer.encode(word)[0] for word in ("The", "NATO")}
    assert len(marks) == 2
    assert marks.isdisjoint(ids[place] for place in places)


def test_a_word_without_pieces_keeps_tags_and_words_in_step() -> None:
    tokenizer = learn("bpe", ["the cat sat on the mat"] * 9, size=290)
    ids, labels = TagEncoder(tokenizer, Vocabulary(("A", "B"))).encode(("▁ the", "A B"))
    assert len(ids) == len(labels)
    assert [label for label in labels if label] == [1, 2]


def test_letters_stand_beside_their_ids_in_a_batch() -> None:
    tokenizer = learn("space", ["a cat sat"])
    encoder = TagEncoder(tokenizer, Vocabulary(("A", "B")), letters=5)
    examples = encode_examples([("a cat", "A B"), ("sat cats a", "A B A")], encoder)
    batch = collate(examples, np.arange(2), BatchShape(3, 3, 1))
    assert batch.source.shape == (3, 3, 6)
    assert batch.source[0, 0].tolist() == [tokenizer.id("a"), *spell("a", 5)]
    assert batch.source[0, 2].tolist() == [PAD] * 6
    assert batch.source[1, 1].tolist() == [UNK, *spell("cats", 5)]
    assert batch.source[2, 0].tolist() == [END] + [PAD] * 5  # a row that only fills up


def test_a_text_to_classify_has_letters_too() -> None:
    tokenizer = learn("space", ["a cat sat"])
    ids, label, letters = LabelEncoder(tokenizer, Vocabulary(("no", "yes")), letters=5).encode(("a cat", "yes"))
    assert (len(ids), label, len(letters)) == (2, [2], 10)


def test_a_dropped_word_keeps_its_letters() -> None:
    source = torch.full((5, 7, 3), 9)
    dropped = drop_words(source, 0.9)
    assert (dropped[..., 0] == UNK).any()
    assert torch.equal(dropped[..., 1:], source[..., 1:])


def test_another_number_of_letters_is_another_encoding() -> None:
    tokenizer, tags = learn("space", ["a cat"]), Vocabulary(("A",))
    assert TagEncoder(tokenizer, tags).fingerprint() != TagEncoder(tokenizer, tags, 5).fingerprint()
    assert LabelEncoder(tokenizer, tags).fingerprint() != LabelEncoder(tokenizer, tags, 5).fingerprint()


# Measures


def test_precision_recall_and_f1_are_counted_by_hand() -> None:
    confusion = Confusion.of([("N", "N"), ("N", "V"), ("V", "V"), ("V", "V"), ("A", "V")])
    assert confusion.accuracy == pytest.approx(3 / 5)
    noun, verb = (next(score for score in confusion.scores() if score.label == label) for label in "NV")
    assert (noun.precision, noun.recall, noun.count) == (1.0, 0.5, 2)
    assert (verb.precision, verb.recall) == (0.5, 1.0)
    assert confusion.macro_f1 == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert confusion.labels == ("A", "N", "V")
    assert confusion.matrix() == [[0, 0, 1], [0, 1, 1], [0, 0, 2]]


def test_a_label_that_is_only_guessed_has_its_column_and_does_not_count_for_macro_f1() -> None:
    confusion = Confusion.of([("N", "X"), ("N", "N")])
    assert confusion.labels == ("N", "X")
    assert confusion.macro_f1 == pytest.approx(2 / 3)


def test_nothing_at_all_is_no_division_by_zero() -> None:
    empty = Confusion.of([])
    assert (empty.accuracy, empty.macro_f1, empty.count) == (0.0, 0.0, 0)
    assert language_result([]).perplexity_per_word == 1.0


def test_unknown_words_are_counted_apart() -> None:
    tally = Tally({"the", "cat"})
    tally.tags(["the", "cat", "purrs"], ["D", "N", "V"], ["D", "N", "N"])
    tally.tags(["a", "cat"], ["D", "N"], ["D", "V"])
    result = TagResult(tally.texts, tally.confusion(), tally.unknown())
    assert result.accuracy == pytest.approx(3 / 5)
    assert (result.unknown.count, result.unknown.accuracy) == (2, 0.5)
    assert result.rows()[1] == ("on unknown words", "2 words", "50.00 %")
    assert result.to_dict()["unknown_words"] == 2
    with pytest.raises(DataError, match="1 words, 2 tags, 1 guesses: every word needs one each"):
        tally.tags(["a"], ["D", "N"], ["D"])


def test_a_classification_shows_its_confusion() -> None:
    result = ClassResult(Confusion.of([("good", "good"), ("good", "bad"), ("bad", "bad")]))
    assert result.accuracy == pytest.approx(2 / 3)
    assert ("truth good", "bad ×1", "good ×1") in result.rows()
    assert result.to_dict()["confusion"] == [[1, 0], [1, 1]]


def test_perplexity_does_not_depend_on_pieces() -> None:
    result = language_result([("the cat", -6.0), ("été", -4.0)])
    assert (result.lines, result.words, result.bytes) == (2, 3, 12)
    assert result.perplexity_per_word == pytest.approx(math.exp(10 / 5))
    assert result.perplexity_per_byte == pytest.approx(math.exp(10 / 14))
    assert 2**result.bits_per_byte == pytest.approx(result.perplexity_per_byte)
    assert [row[0] for row in result.rows()] == ["perplexity per word", "perplexity per byte", "bits per byte"]
    assert result.to_dict()["lines"] == 2


# Baselines

GOOD = [("a fine warm film", "1"), ("fine and funny", "1"), ("a warm tale", "1"), ("so funny", "1")]
BAD = [("a dull cold film", "0"), ("dull and slow", "0"), ("a cold mess", "0")]


def test_counting_words_beats_the_commonest_label() -> None:
    pytest.importorskip("sklearn")
    found = baselines(GOOD + BAD, [("fine , warm", "1"), ("cold and dull", "0"), ("slow mess", "0")])
    assert {name: each.accuracy for name, each in found.items()} == {
        "commonest label": pytest.approx(1 / 3),
        "bag of words": 1.0,
        "TF-IDF": 1.0,
    }
    assert found["bag of words"].macro_f1 == 1.0


def test_baselines_need_texts_and_two_labels() -> None:
    with pytest.raises(DataError, match="held_out = no texts: nothing to learn from or to try on"):
        baselines(GOOD, [])
    with pytest.raises(DataError, match="labels = 1: the only one in training"):
        baselines(GOOD, BAD)


def test_a_missing_scikit_learn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("regard.metrics.baselines.import_module", refuse)
    with pytest.raises(ResourceError, match="need the package scikit-learn; pip install scikit-learn"):
        baselines(GOOD + BAD, GOOD)


# Corpora


def kinds(corpus: Corpus, name: TaskName, held_out: Corpus | None = None) -> dict[str, list[int]]:
    task = task_of(name)
    report = check_labels(corpus, task.columns, task.fault, held_out=held_out)
    return {finding.kind: [example.line for example in finding.examples] for finding in report.findings}


def test_words_without_tags_are_found_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("the cat\na dog barks\n\nthe cat\nthe cat\n")
    (tmp_path / "tags").write_text("D N\nD N\n\nD N\nD V\n")
    corpus = Corpus((str(tmp_path / "words"), str(tmp_path / "tags")))
    assert kinds(corpus, "tag") == {"count": [2], "empty": [3], "duplicate": [4], "conflict": [5]}


def test_a_text_with_two_labels_is_found_and_so_is_a_leak(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("fine\t1\ndull\t0\nfine\t0\nlone\n")
    (tmp_path / "b.tsv").write_text("dull\t0\n")
    corpus, held_out = (Corpus((str(tmp_path / name),)) for name in ("a.tsv", "b.tsv"))
    assert kinds(corpus, "classify", held_out) == {"leak": [2], "conflict": [3], "format": [4]}


def test_plain_text_is_checked_and_counted(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "text.txt"
    path.write_text("one\n\none\ntwo words\n")
    assert kinds(Corpus((str(path),)), "language") == {"empty": [2], "duplicate": [3]}
    assert cli(["data", "check", str(path), "--task", "language"]) == 3
    shown = capsys.readouterr().out
    assert f"{path}: 4 rows\n" in shown
    assert "line 3: an earlier row is the same" in shown
    assert cli(["data", "stats", str(path), "--task", "language"]) == 0
    assert "text words" in capsys.readouterr().out
    (side,) = stats(Corpus((str(path),)), names=("text",)).sides
    assert side.words.total == 4


@pytest.mark.usefixtures("with_demo")
def test_one_plain_text_is_taken_for_that_of_a_language_model(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "text.txt"
    path.write_text("the cat sleeps\nthe zyx sleeps\n")
    for verb in ("check", "stats"):
        assert cli(["data", verb, str(path)]) == 0
        shown, said = capsys.readouterr()
        assert f"{path}: 2 rows\n" in shown
        assert "taken for the text of a language model" in said
        assert cli(["data", verb, str(tmp_path / "no.txt")]) == DataError.exit_code
        assert capsys.readouterr().err.startswith(f"{tmp_path / 'no.txt'}: cannot be read")
    assert cli(["data", "check", str(path), "--run", "demo", "--quiet"]) == 0
    assert "text: 16.67 % <unk>" in capsys.readouterr().out
    assert cli(["train", "--source", str(path)]) == SettingsError.exit_code
    *_, line, hint = capsys.readouterr().err.splitlines()
    assert line.endswith("is one side of a corpus; give data.target, or task=language")
    assert hint == f"  regard train --source {path} task=language"


def test_an_unknown_task_is_told_its_neighbour(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "t.txt").write_text("x\n")
    assert cli(["data", "stats", str(tmp_path / "t.txt"), "--task", "tags"]) == SettingsError.exit_code
    assert "--task = tags: no such task; did you mean 'tag'?" in capsys.readouterr().err


def test_training_names_the_file_whose_words_and_tags_differ(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("the cat\na dog barks\n")
    (tmp_path / "tags").write_text("D N\nD N\n")
    corpus = Corpus((str(tmp_path / "words"), str(tmp_path / "tags")))
    encoder = TagEncoder(learn("space", ["the cat"]), Vocabulary(("D", "N")))
    with pytest.raises(DataError, match=r"tags line 2: 3 words but 2 tags; every word needs one tag"):
        prepare_corpus(corpus, encoder, tmp_path / "shards")
    with pytest.raises(DataError, match="cannot be read"):
        prepare_corpus(Corpus((str(tmp_path / "none.conllu"),)), encoder, tmp_path / "shards")


@pytest.mark.parametrize(
    ("text", "tags", "fault"),
    [
        ("[laughs]", "X Y", "1 words but 2 tags"),
        ("[[1,2],[3,4]]", "X Y", ""),  # vectors: the encoder counts them
        ("[-1,2]", "X Y", ""),
        ("data:text/csv;base64,MQ==", "X Y", ""),
        ("the cat", "X Y", ""),
    ],
)
def test_a_word_in_brackets_is_a_word(text: str, tags: str, fault: str) -> None:
    assert TagTask.fault((text, tags)) == fault
