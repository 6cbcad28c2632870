"""``tokenizer.json`` cuts here as it does in the library that it is of."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers

from importing import LINES, imported, opus, pieces_of, saved
from regard.convert.tokenizer_json import TokenizerJson
from regard.errors import ModelError
from regard.tasks.load import open_translator
from regard.text.grafting import _fields
from regard.text.vocabulary import UNK

TEXTS = [*LINES[:3], "the  cats ate", "THE ﬁsh　ate Ⅷ mice!", "a 日本 cat", " dog ", "mangé souris noir"]
FIRST = ["<s>", "<pad>", "</s>", "<unk>"]


def trained(kind: str) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        model_type=kind,
        vocab_size=70,
        minloglevel=5,
        hard_vocab_limit=False,
    )
    return model.getvalue()


def charsmap(model: bytes) -> bytes:
    """What sentencepiece's normaliser is made of: field 2 of field 3."""
    (chunk,) = (chunk for number, chunk in _fields(model) if number == 3)
    inside = chunk[1:]
    while inside[0] & 0x80:
        inside = inside[1:]
    return next(part for number, part in _fields(_texts(inside[1:])) if number == 2)


def _texts(data: bytes) -> bytes:
    """The fields before the first number."""
    place = 0
    while place < len(data) and data[place] & 7 == 2:
        length, shift, at = 0, 0, place + 1
        while True:
            length, shift, at = length | (data[at] & 0x7F) << shift, shift + 7, at + 1
            if data[at - 1] < 0x80:
                break
        place = at + length
    return data[:place]


def bare(field: bytes) -> bytes:
    """A field without its number and length."""
    at = 1
    while field[at] & 0x80:
        at += 1
    return field[at + 1 :]


def made(kind: str, folder: Path, extra: list[str]) -> library.Tokenizer:
    """A file as `transformers` writes it for a sentencepiece model."""
    spm = trained(kind)
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    scores = {piece: processor.get_score(number) for number, piece in enumerate(pieces_of(spm))}
    own = [*FIRST, *(piece for piece in scores if piece not in FIRST)]
    if kind == "unigram":
        listed = [(piece, 0.0 if piece in FIRST else scores[piece]) for piece in own]
        model: Any = models.Unigram(listed, unk_id=3, byte_fallback=False)
    else:
        ranked = sorted((piece for piece in own[4:] if len(piece) > 1), key=lambda piece: -scores[piece])
        merges = [
            (piece[:at], piece[at:])
            for piece in ranked
            for at in range(1, len(piece))
            if piece[:at] in scores and piece[at:] in scores
        ]
        table = {piece: number for number, piece in enumerate(own)}
        model = models.BPE(vocab=table, merges=merges, unk_token="<unk>", fuse_unk=True)
    found = library.Tokenizer(model)
    replaced = normalizers.Replace(library.Regex(" {2,}"), " ")
    found.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(bare(charsmap(spm))), normalizers.Strip(), replaced]
    )
    found.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    found.decoder = decoders.Metaspace()
    found.add_special_tokens([*FIRST, *extra])
    folder.mkdir(exist_ok=True)
    found.save(str(folder / "tokenizer.json"))
    return found


FORMS = {
    "NLLB": ("bpe", "m2m_100", "NllbTokenizer", ["eng_Latn", "fra_Latn", "<mask>"], "eng_Latn-fra_Latn"),
    "mBART-50": ("unigram", "mbart", "MBart50Tokenizer", ["en_XX", "fr_XX", "<mask>"], "en_XX-fr_XX"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_with_this_one_file_reads_as_its_own_library(form: str, tmp_path: Path) -> None:
    kind, family, tokenizer, extra, languages = FORMS[form]
    theirs = made(kind, tmp_path / "model", extra)
    saved(family, tmp_path / "model", vocab_size=theirs.get_vocab_size())
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": tokenizer}))
    ours = open_translator(imported(tmp_path / "model", tmp_path / "run", languages=languages)).tokenizers
    for text in TEXTS:
        wanted = [theirs.id_to_token(number) for number in theirs.encode(text, add_special_tokens=False).ids]
        pieces = ["<unk>" if number == UNK else ours.source.token(number) for number in ours.source.encode(text)]
        assert pieces == wanted, text
        assert ours.target.decode(ours.written("the cat")) == "the cat"
    assert ours.frame.begin == (languages.split("-")[1],)
    assert ours.source.decode(ours.read("the cat")) == "the cat"
    assert ours.source.encode("fra_Latn") != [ours.source.id("fra_Latn")]


def test_bart_has_its_merges_in_it(tmp_path: Path) -> None:
    letters = [*map(chr, range(33, 127)), "Ġ", "Ġt", "he"]
    pieces = [*FIRST, *letters, "<mask>"]
    theirs = library.Tokenizer(
        models.BPE(vocab={piece: n for n, piece in enumerate(pieces)}, merges=[("Ġ", "t"), ("h", "e")])
    )
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.add_special_tokens([*FIRST, "<mask>"])
    saved("bart", tmp_path / "bart", vocab_size=len(pieces))
    theirs.save(str(tmp_path / "bart" / "tokenizer.json"))
    ours = open_translator(imported(tmp_path / "bart", tmp_path / "run")).tokenizers
    for text in ("a the heat", "the  th"):
        assert ours.source.pieces(text) == theirs.encode(text, add_special_tokens=False).tokens


@pytest.mark.parametrize("numbered", [True, False])
def test_marian_with_holes_in_it_needs_names_for_what_it_writes(numbered: bool, tmp_path: Path) -> None:
    """As exports for browsers have it: pieces of the target that the source does not know have no name there."""
    opus(tmp_path / "model")
    table = json.loads((tmp_path / "model" / "vocab.json").read_text(encoding="utf-8"))
    spm = (tmp_path / "model" / "source.spm").read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    before = open_translator(imported(tmp_path / "model", tmp_path / "before")).tokenizers
    for name in ("source.spm", "target.spm"):
        (tmp_path / "model" / name).unlink()
    listed = [[piece, processor.get_score(processor.piece_to_id(piece))] for piece in table]
    listed[-5:-1] = [["<NIL>", -100.0]] * 4
    content = {
        "added_tokens": [{"id": number, "content": listed[number][0], "special": True} for number in (0, 1, -1)],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(bare(charsmap(spm))).decode()},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
        "model": {"type": "Unigram", "unk_id": 1, "vocab": listed},
    }
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    if numbered:
        after = open_translator(imported(tmp_path / "model", tmp_path / "after")).tokenizers
        assert after.source.pieces("the cat") == before.source.pieces("the cat")
        assert after.target.size == before.target.size
        return
    (tmp_path / "model" / "vocab.json").unlink()
    with pytest.raises(ModelError, match=r"does not name each of its \d+ pieces; vocab.json must be beside"):
        imported(tmp_path / "model", tmp_path / "after")


UNIGRAM = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁a", -1.0]]}
META = {"type": "Metaspace", "replacement": "▁"}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"model": {"type": "WordPiece"}}, "model.type = WordPiece: not supported; Unigram and BPE are"),
    "none": ({"model": 3}, "model.type = None"),
    "large score": ({"model": UNIGRAM | {"vocab": [["a", 1e300]]}}, r"model.vocab = \['a', 1e\+300\]: not supported"),
    "endless score": ({"model": UNIGRAM | {"vocab": [["a", 10**400]]}}, "model.vocab = .*: not supported"),
    "score": ({"model": UNIGRAM | {"vocab": [["a", "b"]]}}, r"model.vocab = \['a', 'b'\]: not supported"),
    "list": ({"model": UNIGRAM | {"vocab": None}}, "model.vocab = None"),
    "table": ({"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": []}}, "a table of pieces and their ids is"),
    "merges": ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["abc"]}}, "model.merges = abc: not supported"),
    "unknown": ({"model": UNIGRAM | {"unk_id": 9}}, "unk_token = None: not supported; one of its pieces is"),
    "spaces": ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer = .*: not supported; Metaspace with ▁ is"),
    "small letters": ({"normalizer": {"type": "Lowercase"}}, "normalizer = .*Lowercase.*: not supported; Precompiled"),
    "pattern": (
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "x"}}},
        "normalizer.pattern = .*: not supported",
    ),
    "letters": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}},
        "charsmap = .*: not supported; base64",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_sentencepiece_has_not_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    changes, line = WRONG[name]
    content = {"model": UNIGRAM, "pre_tokenizer": META, "normalizer": None} | changes
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelError, match=line) as error:
        TokenizerJson(tmp_path).sentencepiece()
    assert "\n" not in str(error.value)


def test_merges_of_bytes_are_not_those_of_letters(tmp_path: Path) -> None:
    content = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": META}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelError, match="ByteLevel with BPE is for this model"):
        TokenizerJson(tmp_path).merges()
