"""Encoding and shards: what is stored, that it is reused, and that damage is noticed."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.data import (
    Corpus,
    LabelEncoder,
    PairEncoder,
    TagEncoder,
    TextEncoder,
    encode_examples,
    open_shards,
    prepare,
    prepare_corpus,
)
from regard.data.encoding import encode_rows, number_type
from regard.data.shards import fingerprint
from regard.errors import DataError
from regard.text import END, UNK, ByteTokenizer, Tokenizers, Vocabulary, learn

TEXTS = [("ein Bär", "a bear"), ("", "nothing"), ("der alte Bär frisst Honig", "the old bear eats honey")]


@pytest.fixture
def pairs() -> PairEncoder:
    return PairEncoder(Tokenizers.learn("word", [a for a, _ in TEXTS], [b for _, b in TEXTS], joint=True))


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    paths = (tmp_path / "train.de", tmp_path / "train.en")
    for side, path in enumerate(paths):
        path.write_text("".join(f"{row[side]}\n" for row in TEXTS), encoding="utf-8")
    return Corpus(tuple(map(str, paths)))


def numbers(shards, name: str) -> list[list[int]]:
    column = shards.columns[name]
    return [column[row].tolist() for row in range(len(column))]


def test_shards_hold_the_ids_of_every_row_and_a_source_ends(corpus: Corpus, pairs: PairEncoder, tmp_path) -> None:
    shards = prepare_corpus(corpus, pairs, tmp_path / "shards")
    assert len(shards) == 3
    ended = [[*pairs.tokenizers.source.encode(source), END] for source, _ in TEXTS]
    assert numbers(shards, "source") == [ended[0], [], ended[2]]  # a pair with an empty side has none
    assert numbers(shards, "target") == [pairs.tokenizers.target.encode(target) for _, target in TEXTS]
    assert shards.columns["source"].lengths().tolist() == [3, 0, 6]
    assert shards.columns["source"].numbers.dtype == np.uint16


def test_the_manifest_says_what_preflight_needs(pairs: PairEncoder, tmp_path) -> None:
    rows = [(1, ("ein Zebra", "a bear")), (2, ("Bär", "zebra zebra"))]
    shards = prepare(rows, pairs, tmp_path / "shards")
    source, target = shards.manifest.columns["source"], shards.manifest.columns["target"]
    assert (shards.manifest.rows, source.numbers, source.longest, source.unknown) == (2, 5, 3, 1)
    assert target.unknown_share == 0.5
    assert shards.columns["target"][1].tolist() == [UNK, UNK]


def test_an_unchanged_corpus_is_not_encoded_again(corpus: Corpus, pairs: PairEncoder, tmp_path) -> None:
    done: list[tuple[int, int | None]] = []
    for _ in range(2):
        prepare_corpus(corpus, pairs, tmp_path / "shards", progress=lambda *step: done.append(step))
    assert done == [(3, None)]
    Path(corpus.paths[0]).write_text("andere\nZeilen\nhier\n", encoding="utf-8")
    shards = prepare_corpus(corpus, pairs, tmp_path / "shards", progress=lambda *step: done.append(step))
    assert done == [(3, None)] * 2
    assert numbers(shards, "source") == [[UNK, END]] * 3


def test_the_fingerprint_follows_text_tokenizer_columns_and_task(corpus: Corpus, pairs: PairEncoder) -> None:
    separate = PairEncoder(Tokenizers.learn("word", ["a"], ["b"], joint=False))
    tokenizer, labels = pairs.tokenizers.source, Vocabulary(("x",))
    tasks = [
        pairs,
        separate,
        TextEncoder(tokenizer),
        LabelEncoder(tokenizer, labels),
        TagEncoder(tokenizer, labels),
    ]
    prints = {fingerprint(corpus, task) for task in tasks}
    prints.add(fingerprint(Corpus(corpus.paths[::-1]), pairs))
    prints.add(fingerprint(Corpus(corpus.paths, ("1", "2")), pairs))
    prints.add(fingerprint(Corpus(("hf://a",)), pairs))
    prints.add(fingerprint(Corpus(("hf://b",)), pairs))
    assert len(prints) == 9
    assert fingerprint(corpus, pairs) in prints


def test_processes_do_not_change_what_is_written(pairs: PairEncoder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("regard.data.shards._CHUNK", 100)
    rows = [(number + 1, (TEXTS[number % 3][0], TEXTS[number % 2][1])) for number in range(990)]
    alone = prepare(rows, pairs, tmp_path / "alone")
    together = prepare(rows, pairs, tmp_path / "together", processes=2)
    assert alone.manifest == together.manifest
    assert numbers(alone, "target") == numbers(together, "target")


def test_a_failed_preparation_leaves_nothing_behind(corpus: Corpus, pairs: PairEncoder, tmp_path) -> None:
    Path(corpus.paths[0]).write_text("one line\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 lines but"):
        prepare_corpus(corpus, pairs, tmp_path / "shards")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.de", "train.en"]


def test_an_empty_corpus_is_an_empty_folder_of_shards(pairs: PairEncoder, tmp_path) -> None:
    shards = prepare([], pairs, tmp_path / "shards", total=0)
    assert len(shards) == 0
    assert shards.manifest.columns["source"].unknown_share == 0


def test_damage_is_refused_by_file_and_mended_by_preparing(corpus: Corpus, pairs: PairEncoder, tmp_path) -> None:
    folder = tmp_path / "shards"
    prepare_corpus(corpus, pairs, folder)
    path = folder / "source.numbers"
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(DataError, match=r"source\.numbers: contents differ from the manifest"):
        open_shards(folder)
    assert len(open_shards(folder, verify=False)) == 3
    path.write_bytes(whole[:-2])
    with pytest.raises(DataError, match=r"source\.numbers: 16 bytes: should be 18"):
        open_shards(folder, verify=False)
    path.unlink()
    with pytest.raises(DataError, match=r"source\.numbers: 0 bytes"):
        open_shards(folder)
    prepare_corpus(corpus, pairs, folder)
    assert path.read_bytes() == whole


def test_a_damaged_manifest_is_refused(corpus: Corpus, pairs: PairEncoder, tmp_path) -> None:
    with pytest.raises(DataError, match=r"manifest\.json: cannot be read \(No such file"):
        open_shards(tmp_path / "nowhere")
    prepare_corpus(corpus, pairs, tmp_path / "shards")
    path = tmp_path / "shards" / "manifest.json"
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps(content | {"version": 99}), encoding="utf-8")
    with pytest.raises(DataError, match="version = 99: this Regard reads 1"):
        open_shards(tmp_path / "shards")
    for text in ("{", "{}", "[]", '{"columns": {"source": {}}}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"manifest\.json: not the manifest of a prepared corpus"):
            open_shards(tmp_path / "shards")


def test_released_memory_can_be_read_again(corpus: Corpus, pairs: PairEncoder, tmp_path) -> None:
    shards = prepare_corpus(corpus, pairs, tmp_path / "shards")
    before = numbers(shards, "target")
    shards.release()
    assert numbers(shards, "target") == before


def test_a_missing_corpus_is_refused_by_name(pairs: PairEncoder, tmp_path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.de: cannot be read"):
        prepare_corpus(Corpus((str(tmp_path / "nowhere.de"), str(tmp_path / "nowhere.en"))), pairs, tmp_path / "x")


def test_language_modelling_has_targets_alone() -> None:
    examples = encode_examples([("ab",), ("c",)], TextEncoder(ByteTokenizer()))
    assert list(examples.columns) == ["target"]
    assert numbers(examples, "target") == [ByteTokenizer().encode("ab"), ByteTokenizer().encode("c")]


def test_a_class_is_stored_plus_one() -> None:
    encoder = LabelEncoder(ByteTokenizer(), Vocabulary(("bad", "good")))
    examples = encode_examples([("yes", "good"), ("no", "bad")], encoder)
    assert numbers(examples, "label") == [[2], [1]]


def test_a_tag_belongs_to_the_first_piece_of_its_word() -> None:
    tokenizer = learn("word", ["do n't go"])
    encoder = TagEncoder(ByteTokenizer(), Vocabulary(("VERB", "PART")))
    examples = encode_examples([("do go on", "VERB PART VERB")], encoder)
    assert numbers(examples, "labels") == [[1, 0, 2, 0, 1, 0]]
    whole = encode_examples([("do go", "VERB PART")], TagEncoder(tokenizer, Vocabulary(("VERB", "PART"))))
    assert numbers(whole, "labels") == [[1, 2]]


def test_labels_and_tags_that_do_not_fit_are_refused_with_their_line() -> None:
    labels = Vocabulary(("bad", "good"))
    with pytest.raises(DataError, match="line 2: label = 'god': not one of the labels learnt; did you mean 'good'"):
        encode_examples([("x", "good"), ("x", "god")], LabelEncoder(ByteTokenizer(), labels))
    with pytest.raises(DataError, match="line 7: 2 words but 1 tags; every word needs one tag"):
        encode_rows(TagEncoder(ByteTokenizer(), labels), [(7, ("a b", "good"))])


def test_numbers_take_two_bytes_as_long_as_they_fit() -> None:
    assert number_type(65_536) == np.uint16
    assert number_type(65_537) == np.uint32
