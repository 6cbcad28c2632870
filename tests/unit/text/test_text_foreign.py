"""Tokenizers of models from elsewhere: they cut and join as their own libraries do, and what is damaged is refused."""

import io
import json
import pickle
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import sentencepiece

from regard.data.encoding import PairEncoder
from regard.errors import ModelError, SettingsError
from regard.explain.trace import OUTSIDE, spell
from regard.serve.detect import Letters, detector
from regard.text import (
    END,
    PAD,
    SPECIAL_TOKENS,
    UNK,
    ByteMergesTokenizer,
    MergesTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    Tokenizers,
    Vocabulary,
    learn,
    load,
)
from regard.text.foreign import read_dictionary
from regard.text.subwords import MODEL
from regard.text.tokenizers import Frame
from regard.text.vocabulary import VOCABULARY

LINES = [
    f"{subject} {verb} {thing} ."
    for subject in ("the bear", "a cat", "l'ours", "The old woman", "un chat noir", "भालू")
    for verb in ("doesn't eat", "saw", "a mangé", "will not find", "n'aime pas", "ने देखा")
    for thing in ("the honey", "a mouse", "la souris", "the bank of the river", "शहद", "bread 12")
]
TEXTS = [
    "",
    "the bear doesn't eat the honey .",
    "L'ours  a mangé\tla souris .",
    "भालू ने शहद देखा .",
    "ﬁne ① bread 😀 中文 x",  # what a normaliser changes, and what no vocabulary has
    "</s> <pad> >>fra<< <unk>",
    "half \ud83d a pair",
]
CODES_2 = "#version: 0.2\nt h\nth e</w>\nb e\na r</w>\nbe ar</w>\no n\ne y</w>\nh on\nx x\n"
CODES_1 = CODES_2.replace("0.2", "0.1").replace("e</w>", "e").replace("y</w>", "y").replace("r</w>", "r") + "r </w>\n"


def numbered(pieces: Sequence[str]) -> Vocabulary:
    """In another order than that of their library."""
    mixed = sorted(set(pieces) - set(SPECIAL_TOKENS))
    random.Random(3).shuffle(mixed)
    return Vocabulary((*SPECIAL_TOKENS, *mixed))


def model(kind: str = "unigram", lines: Sequence[str] = LINES, size: int = 120) -> bytes:
    """With NFKC and without bytes, as OPUS-MT has them."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=5,
    )
    return written.getvalue()


def reference(data: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=data)


def foreign(kind: str = "unigram", *more: str, control: tuple[str, ...] = ()) -> SentencePieceTokenizer:
    data = model(kind)
    known = reference(data)
    pieces = [known.id_to_piece(number) for number in range(known.get_piece_size()) if not known.is_control(number)]
    return SentencePieceTokenizer(numbered([*pieces, *more, *control]), control, model=data)


def bytes_of_bart(lines: Sequence[str] = LINES) -> tuple[object, ByteMergesTokenizer]:
    """A tokenizer of the library that BART's comes with, and ours of its files."""
    library = pytest.importorskip("tokenizers")
    theirs = library.ByteLevelBPETokenizer()
    theirs.train_from_iterator(lines, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    content = json.loads(theirs.to_str())["model"]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in content["merges"]]
    pieces = [piece for piece in content["vocab"] if piece not in ("<s>", "</s>", "<pad>", "<unk>", "<mask>")]
    return theirs, ByteMergesTokenizer(numbered(pieces), codes="#version: 0.2\n" + "\n".join(merges) + "\n")


def merges(codes: str = CODES_2, **how: bool) -> MergesTokenizer:
    words = ["the", "bear", "hon@@", "ey", "b@@", "e@@", "ar", "t@@", "h@@", "e", "x", "xx@@", "a@@", "xx"]
    return MergesTokenizer(numbered(words), codes=codes, **how)


def every() -> list[Tokenizer]:
    return [foreign("unigram", control=(">>fra<<",)), foreign("bpe"), merges(lower=True), bytes_of_bart()[1]]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("text", TEXTS)
def test_sentencepiece_cuts_and_joins_as_the_library_does(kind: str, text: str) -> None:
    ours = foreign(kind)
    theirs = reference(ours.model)
    cut = theirs.encode(text.replace("\ud83d", "\N{REPLACEMENT CHARACTER}"), out_type=str)
    assert ours.pieces(text) == cut
    known = {theirs.id_to_piece(number) for number in range(theirs.get_piece_size())}
    assert [ours.token(number) for number in ours.encode(text)] == [
        piece if piece in known else "<unk>" for piece in cut
    ]
    spelled = [piece for piece in cut if piece in known]
    assert ours.decode([ours.id(piece) for piece in spelled]) == theirs.decode(spelled)
    assert UNK not in ours.encode(LINES[0])


@pytest.mark.filterwarnings("ignore:Recommended")
def test_the_ids_are_those_of_marian_in_the_transformers_library(tmp_path: Path) -> None:
    """Two sentencepiece models, one vocabulary; a piece that only the other model has is found by its spelling."""
    transformers = pytest.importorskip("transformers")
    sides = {"source": model("unigram", LINES[:100]), "target": model("bpe", LINES[60:])}
    pieces = list[str]()
    for name, data in sides.items():
        (tmp_path / f"{name}.spm").write_bytes(data)
        known = reference(data)
        pieces += [known.id_to_piece(number) for number in range(known.get_piece_size())]
    pieces = [piece for piece in dict.fromkeys(pieces) if piece not in ("<s>", "</s>", "<unk>")]
    vocabulary = {"</s>": 0, "<unk>": 1} | {piece: place for place, piece in enumerate([*pieces, ">>fra<<"], 2)}
    vocabulary["<pad>"] = len(vocabulary)
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    theirs = transformers.MarianTokenizer(
        str(tmp_path / "source.spm"), str(tmp_path / "target.spm"), str(tmp_path / "vocab.json")
    )
    both = Vocabulary((*SPECIAL_TOKENS, *pieces, ">>fra<<"))
    source, target = (SentencePieceTokenizer(both, (">>fra<<",), model=data) for data in sides.values())
    ours = Tokenizers(source, target, frame=Frame(before=(">>fra<<",)))
    assert ours.joint
    names = {"<end>": "</s>"}
    for text in TEXTS[:4]:
        mine = [names.get(source.token(number), source.token(number)) for number in ours.read(text)]
        assert [vocabulary[piece] for piece in mine] == theirs(f">>fra<<{text}")["input_ids"]
        written = theirs(text_target=text)["input_ids"][:-1]
        assert [vocabulary[target.token(number)] for number in target.encode(text)] == written
        assert ours.written(text) == target.encode(text)
        decoded = theirs.decode(written, skip_special_tokens=True, use_source_tokenizer=False)
        assert target.decode(number for number in target.encode(text) if number != UNK) == decoded


def test_a_token_of_control_is_made_by_no_text_and_leaves_none() -> None:
    ours = foreign("unigram", control=(">>fra<<", "eng_Latn"))
    assert ours.id("eng_Latn") not in ours.encode("eng_Latn >>fra<< <pad> </s>")
    assert PAD not in ours.encode("<pad>")
    assert ours.decode([ours.id(">>fra<<"), *ours.encode("the bear"), END, ours.id("eng_Latn")]) == "the bear"
    side = spell([ours.id(">>fra<<"), *ours.encode("the bear"), END, ours.id("eng_Latn")], ours, "the bear")
    assert side.pieces[0] == ">>fra<<"
    assert side.pieces[-2:] == ("<end>", "eng_Latn")
    assert side.words == ("the", "bear")
    assert (side.word_of[0], side.word_of[-1]) == (OUTSIDE, OUTSIDE)


def test_a_piece_that_only_the_vocabulary_has_is_written_with_its_space() -> None:
    ours = foreign("unigram", "▁zebra")
    assert ours.decode([*ours.encode("the bear"), ours.id("▁zebra")]) == "the bear zebra"
    assert ours.decode([ours.id("▁zebra")]) == "zebra"
    assert "⁇" in ours.decode([UNK])


@pytest.mark.parametrize(
    ("codes", "text", "cut"),
    [  # as subword-nmt 0.3.8 cuts them
        (CODES_2, "the bear honey xxxxx a b", "the bear hon@@ ey xx@@ xx@@ x a b"),
        (CODES_2, "bearing thee ar", "be@@ a@@ r@@ i@@ n@@ g th@@ e@@ e ar"),
        (CODES_1, "the bear honey xxxxx a b", "the bear hon@@ ey xx@@ xx@@ x a b"),
        (CODES_1, "bearing thee ar", "bear@@ i@@ n@@ g the@@ e ar"),
    ],
)
def test_merges_cut_as_subword_nmt_does(codes: str, text: str, cut: str) -> None:
    assert merges(codes).pieces(text) == cut.split()
    subword_nmt = pytest.importorskip(
        "subword_nmt.apply_bpe", reason="subword-nmt is not installed: fixed answers only"
    )
    assert cut == subword_nmt.BPE(io.StringIO(codes)).process_line(text)
    for line in LINES:
        assert " ".join(merges(codes).pieces(line)) == subword_nmt.BPE(io.StringIO(codes)).process_line(line)


def test_the_codes_of_fastbpe_have_counts() -> None:
    counted = "".join(f"{line} {10 - place}\n" for place, line in enumerate(CODES_2.splitlines()[1:]))
    for line in [*LINES, "bearing thee"]:
        assert merges(counted).pieces(line) == merges().pieces(line)


def test_merges_say_where_words_end_and_come_back() -> None:
    ours = merges(lower=True)
    pieces = ours.pieces("The honey  Bear")
    assert pieces == ["the", "hon@@", "ey", "bear"]
    assert ours.word_of(pieces) == [0, 1, 1, 2]
    assert ours.word_of([]) == []
    assert ours.decode(ours.encode("the honey bear")) == "the honey bear"
    assert ours.decode([ours.id("hon@@")]) == "hon"  # as fairseq joins them
    assert ours.encode("zzz") == [UNK] * 3
    assert ours.decode([UNK]) == "<unk>"


@pytest.mark.parametrize("text", [*TEXTS, "it's 12½ o'clock\n\n  we'll  see ", "naïve\u200bx _y_\x1cz", "٣٤ Ⅻ"])
def test_byte_merges_cut_and_join_as_the_library_does(text: str) -> None:
    theirs, ours = bytes_of_bart()
    read = text.replace("\ud83d", "\N{REPLACEMENT CHARACTER}")
    plain = read.replace("</s>", "<").replace("<pad>", "<").replace("<unk>", "<")  # the library takes these for its own
    assert ours.pieces(plain) == theirs.encode(plain).tokens
    assert ours.decode(ours.encode(text)) == read
    assert UNK not in ours.encode(text)


@pytest.mark.parametrize("ours", every(), ids=lambda each: each.kind)
def test_every_kind_is_kept_in_a_folder_and_travels(ours: Tokenizer, tmp_path: Path) -> None:
    ours.save(tmp_path / "one")
    back = load(tmp_path / "one")
    assert back == ours
    assert back.fingerprint() == ours.fingerprint()
    for text in TEXTS:
        assert back.encode(text) == ours.encode(text)
    again = pickle.loads(pickle.dumps(back))
    assert again.encode(LINES[0]) == ours.encode(LINES[0])
    assert again.silent == ours.silent


@pytest.mark.parametrize("ours", every(), ids=lambda each: each.kind)
def test_pieces_fold_into_words(ours: Tokenizer) -> None:
    text = "the bear saw the honey"
    side = spell([*ours.encode(text), END], ours, text)
    assert side.words == tuple(text.split())
    assert max(side.word_of) == 4


def test_a_frame_is_read_around_every_source_and_before_every_target(tmp_path: Path) -> None:
    ours = foreign("unigram", control=("eng_Latn", "fra_Latn"))
    frame = Frame(before=("eng_Latn",), after=("<end>", "eng_Latn"), begin=("fra_Latn",))
    both = Tokenizers(ours, ours, frame=frame)
    english, french = ours.id("eng_Latn"), ours.id("fra_Latn")
    assert both.read("the bear") == [english, *ours.encode("the bear"), END, english]
    assert both.written("l'ours") == [french, *ours.encode("l'ours")]
    assert PairEncoder(both).encode(("the bear", "l'ours")) == (both.read("the bear"), both.written("l'ours"))
    assert PairEncoder(both).fingerprint() != PairEncoder(Tokenizers(ours, ours)).fingerprint()
    both.save(tmp_path / "both")
    assert Tokenizers.load(tmp_path / "both") == both
    with pytest.raises(ModelError, match=r"frame = 'deu_Latn': the vocabulary has no such token"):
        Tokenizers(ours, ours, frame=Frame(begin=("deu_Latn",))).written("x")


def test_two_models_with_one_vocabulary_are_joint_and_two_files(tmp_path: Path) -> None:
    one = foreign("unigram")
    other = SentencePieceTokenizer(one.vocabulary, model=model("bpe"))
    Tokenizers(one, other).save(tmp_path / "two")
    back = Tokenizers.load(tmp_path / "two")
    assert back.joint
    assert back.target.files()[MODEL] != back.source.files()[MODEL]
    assert back.known is None  # what it has seen nobody counted, so no word is called unknown


def test_they_are_not_learned() -> None:
    with pytest.raises(SettingsError, match=r"text\.tokenizer = subword-nmt: comes with an imported model"):
        learn("subword-nmt", LINES)


def test_a_language_is_told_by_pieces_without_counts() -> None:
    english, hindi = foreign("unigram"), SentencePieceTokenizer(numbered(["▁भालू", "▁ने", "▁शहद"]), model=model())
    known = {"en": Letters(), "hi": Letters()}
    known["en"].learn(english)
    known["hi"].learn(hindi)
    assert detector(known)("भालू ने")[0].language == "hi"


def spoiled(tmp_path: Path, ours: Tokenizer, name: str, data: bytes) -> Tokenizer:
    ours.save(tmp_path / "spoiled")
    (tmp_path / "spoiled" / name).write_bytes(data)
    return load(tmp_path / "spoiled")


@pytest.mark.parametrize(
    ("codes", "problem"),
    [
        ("#version: 0.9\na b\n", "not a known version"),
        ("#version: x\na b\n", "not a known version"),
        ("#version: 0.2\na b\nc\n", r"line 3 = 'c': not two pieces to merge"),
        ("#version: 0.2\na b c d\n", "not two pieces"),
        ("a \n", "not two pieces"),
        ("", "not two pieces"),
    ],
)
def test_codes_that_are_damaged_are_refused(codes: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=problem):
        spoiled(tmp_path, merges(), "merges.txt", codes.encode()).encode("bear")


def test_files_that_are_damaged_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"merges\.txt: not UTF-8"):
        spoiled(tmp_path, merges(), "merges.txt", b"a \xff")
    twice = numbered(["a"]).to_bytes() + b"a\t0\n"
    with pytest.raises(ModelError, match="appears twice"):
        spoiled(tmp_path / "2", merges(), VOCABULARY, twice)
    with pytest.raises(ModelError, match="control = 3: not a list of tokens"):
        spoiled(tmp_path / "3", merges(), "tokenizer.json", b'{"kind": "subword-nmt", "control": 3}')
    with pytest.raises(ModelError, match=r"dict\.txt: not UTF-8"):
        read_dictionary(b"\xff", "dict.txt")
    with pytest.raises(ModelError, match=r"dict\.txt line 2 = 'b': not a word and its count"):
        read_dictionary(b"a 3\nb\n", "dict.txt")


def test_a_dictionary_is_read_in_its_order() -> None:
    assert read_dictionary("ba@@ 12\n<s> 3 #fairseq:overwrite\né 1\n".encode(), "dict.txt") == ("ba@@", "<s>", "é")


def test_mutations_of_a_sentencepiece_model_are_used_or_refused() -> None:
    data = foreign().model
    refused = list[str]()
    for seed in range(300):
        chance = random.Random(seed)
        spoilt = bytearray(data)
        for _ in range(chance.choice((1, 3, 10))):
            spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
        spoilt = spoilt[: chance.randrange(len(spoilt))] if seed % 3 == 0 else spoilt
        ours = SentencePieceTokenizer(numbered(["▁the"]), model=bytes(spoilt))
        try:
            ours.decode(ours.encode("the bear ﬁ 中"))
        except ModelError as problem:
            refused.append(str(problem))
    assert len(refused) > 50
    assert all("is it damaged?" in line for line in refused)
