"""Word vectors from files of three forms, and where they go."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

import corpora_for_tests as small
from regard.data.vectors import find_vectors, read_vectors, vector_width, vector_words
from regard.errors import DataError, SettingsError
from regard.models import build
from regard.nn.embeddings import Embedding
from regard.nn.words import LetterConvolution, WordEmbedding
from regard.tasks import vectors
from regard.text.tokenizers import Tokenizers, learn, seen_words
from regard.text.vocabulary import UNK, Vocabulary
from regard.text.words import SpaceTokenizer

WORDS = {"the": [0.5, -1.0, 2.0], "cat": [1.0, 0.25, -3.0], "souris": [0.0, 1.5, 1.0]}
GLOVE = "".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in WORDS.items()).encode()
BINARY = b"3 3\n" + b"".join(
    word.encode() + b" " + np.array(numbers, "<f4").tobytes() + b"\n" for word, numbers in WORDS.items()
)
FORMS = {
    "glove.txt": GLOVE,
    "glove.txt.gz": gzip.compress(GLOVE),
    "word2vec.txt": b"3 3\n" + GLOVE,
    "word2vec.bin": BINARY,
    "word2vec-without-line-ends.bin.gz": gzip.compress(BINARY.replace(b"\x00\n", b"\x00")),
}


def write(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_words(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, FORMS[name])
    assert {word: vector.tolist() for word, vector in read_vectors(path)} == WORDS
    assert vector_width(path) == 3
    assert vector_words(path, 2) == ["the", "cat"]


def test_a_word_may_hold_spaces(tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", b"the 1 2\n. . . 3 4\n")
    assert [word for word, _ in read_vectors(path)] == ["the", ". . ."]


def test_a_capital_is_looked_up_as_written_and_then_in_small_letters(tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", b"us 1 2\nUS 3 4\ncat 5 6\n")
    places, vectors = find_vectors(path, ["Cat", "dog", "US", "us", "Us"])
    assert places == [0, 2, 3, 4]
    assert vectors.tolist() == [[5, 6], [3, 4], [1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"the 1 2\ncat 1 x\n", r"v\.txt line 2: not a number among the 2 after the word"),
        (b"the 1 2\ncat 1\n", r"v\.txt line 2: 1 numbers, the first line has 2"),
        (b"the 1 2\ncat 1 nan\n", r"v\.txt line 2: a number that is not finite"),
        (b"hello\n", r"v\.txt line 1: no word vector; a line is a word and its numbers"),
        (b"", r"v\.txt line 1: no word vector"),
        (BINARY[:-9], r"v\.txt word 3: the file ends before its 3 words do"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(data: bytes, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=problem):
        list(read_vectors(write(tmp_path, "v.txt", data)))


def test_a_packed_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt.gz", gzip.compress(GLOVE * 100)[:-20])
    with pytest.raises(DataError, match=r"v\.txt\.gz: the file is cut short or damaged"):
        list(read_vectors(path))


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["text.tokenizer=bpe"], "has vectors of words, but text.tokenizer is 'bpe'; use 'word'"),
        (["model.vectors.width=5"], "model.vectors.width = 5: .* has 3 numbers a word; use 0"),
        (["model.width=16"], "model.width = 16: .* has 3 numbers a word; set model.width=3"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(overrides: list[str], problem: str, tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", GLOVE)
    with pytest.raises(SettingsError, match=problem):
        vectors.resolve(small.settings("lstm", f"model.vectors.file={path}", *overrides))


def test_without_a_file_the_settings_stay_as_they_are() -> None:
    settings = small.settings("lstm")
    assert vectors.resolve(settings) is settings


def test_the_width_is_read_from_the_file_once(tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", GLOVE)
    known = vectors.resolve(small.settings("lstm", f"model.vectors.file={path}", "model.vectors.frozen=true"))
    assert known.model.vectors.width == 3


def test_the_files_words_are_known_and_told_from_those_of_the_text(tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", GLOVE)
    plain = learn("space", ["The cat sat"])
    settings = small.settings("lstm", f"model.vectors.file={path}").model.vectors
    both = vectors.extend(Tokenizers(plain, plain), settings)
    assert both.joint
    assert both.source.encode("cat souris dog") == [plain.id("cat"), plain.size + 1, UNK]
    assert seen_words(both.source) == plain.size
    assert seen_words(learn("byte", [])) == 260
    apart = vectors.extend(Tokenizers(learn("word", ["The cat sat"]), plain), settings)
    assert apart.source.size == both.source.size
    assert apart.target is plain


@pytest.mark.parametrize("frozen", [False, True])
def test_vectors_take_their_places_and_are_counted(frozen: bool, tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", GLOVE)
    overrides = ("task=tag", f"model.vectors.file={path}", "model.letters=7", "model.width=3")
    settings = vectors.resolve(small.settings("lstm", *overrides, f"model.vectors.frozen={str(frozen).lower()}"))
    tokenizer = SpaceTokenizer(Vocabulary.count(["The", "cat", "sat"]).extended(["souris", "the"]))
    model = build.labeller(settings.model, tokenizer.size, 5, seen=seen_words(tokenizer))
    told: list[str] = []
    vectors.begin(model, tokenizer, settings.model.vectors, told.append)
    embedding = model.get_submodule("encoder.embedding")
    assert isinstance(embedding, WordEmbedding)
    table = embedding.vectors if frozen else embedding.learned.weight
    found = torch.tensor([WORDS["the"], WORDS["cat"], WORDS["souris"], WORDS["the"]])
    rows = [tokenizer.id(word) for word in ("The", "cat", "souris", "the")]
    torch.testing.assert_close(table[rows], found if frozen else found / found.norm(dim=1).mean())
    assert told == [
        f"word vectors: 2 of the 3 words of the training text are in {path}; 2 words are known from there alone"
    ]
    assert not any(name.endswith("vectors") for name, _ in model.named_parameters())


def test_a_language_model_may_begin_with_vectors(tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", GLOVE)
    overrides = ("task=language", f"model.vectors.file={path}", "model.vectors.width=3", "model.width=4")
    settings = small.settings("transformer-tiny", *overrides)
    tokenizer = learn("space", ["the cat"])
    model = build.language_model(settings.model, tokenizer.size)
    with pytest.raises(DataError, match="do not fit 2 tokens of width 4"):
        vectors.begin(model, tokenizer, settings.model.vectors, print)


def test_a_word_that_training_never_saw_is_unknown_to_the_learned_vectors_alone() -> None:
    embedding = WordEmbedding(Embedding(5, 3), unknown=UNK, vectors=(11, 2))
    embedding.load_vectors(torch.tensor([[7.0, 8.0]]), torch.tensor([10]))
    out = embedding(torch.tensor([[10, 4]]))
    assert out.shape == (1, 2, 5)
    torch.testing.assert_close(out[0, 0], torch.cat((embedding.learned.weight[UNK], torch.tensor([7.0, 8.0]))))
    assert out[0, 1, 3:].tolist() == [0, 0]


def test_training_hides_learned_vectors_and_never_the_others() -> None:
    embedding = WordEmbedding(Embedding(5, 3), unknown=UNK, vectors=(5, 2), forget=0.5)
    assert not embedding.learned.weight.any()  # begins with nothing but the others
    with torch.no_grad():
        embedding.learned.weight[4] = 1.0
    embedding.load_vectors(torch.tensor([[7.0, 8.0]]), torch.tensor([4]))
    source = torch.full((7, 11), 4)
    assert embedding.eval()(source)[..., :3].all()
    out = embedding.train()(source)
    assert 0 < (out[..., 0] == 1).sum() < 77
    assert (out[..., 3] == 7).all()


def test_letters_make_words_of_one_id_differ() -> None:
    embedding = WordEmbedding(Embedding(5, 3), unknown=UNK, spelling=LetterConvolution(23, 7, 13), project=17)
    source = torch.tensor([[[UNK, 5, 6, 7, 0, 0], [UNK, 5, 6, 8, 0, 0], [UNK, 5, 6, 7, 0, 0]]])
    out = embedding(source)
    assert out.shape == (1, 3, 17)
    torch.testing.assert_close(out[0, 0], out[0, 2])
    assert not torch.allclose(out[0, 0], out[0, 1])


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["model.letters=9"], "model.letters = 9: a .* reads pieces alone; use 0"),
        (["model.vectors.frozen=true"], "model.vectors.frozen = true: a .* learns its vectors; use false"),
    ],
)
def test_letters_and_frozen_vectors_are_for_labellers(overrides: list[str], problem: str) -> None:
    model = small.settings("gru", *overrides).model
    with pytest.raises(SettingsError, match=problem):
        build.encoder_decoder(model, 23, 29)
    with pytest.raises(SettingsError, match=problem):
        build.language_model(model, 23)


def test_letters_leave_room_for_begin_and_end() -> None:
    with pytest.raises(
        SettingsError, match=r"model\.letters = 3: begin and end of a word take two of them; 16 is usual"
    ):
        small.settings("gru", "model.letters=3")


def test_a_file_that_knows_none_of_the_words_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "v.txt", b"zebra 1 2 3\n")
    settings = vectors.resolve(small.settings("lstm", "task=tag", f"model.vectors.file={path}", "model.width=3"))
    tokenizer = learn("space", ["the cat"])
    model = build.labeller(settings.model, tokenizer.size, 5)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    vectors.begin(model, tokenizer, settings.model.vectors, print)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
