"""Small random models of `transformers`, saved by it and read without it: equal logits, equal tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
import transformers
from torch import Tensor

from importing import KINDS, imported, opus, pieces_of, random_model, saved, trained_pieces
from regard.convert.huggingface import from_transformers
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.errors import ModelError
from regard.tasks.load import open_translator
from regard.text.vocabulary import END, START


def expected(model: transformers.PreTrainedModel, source: Tensor, target: Tensor) -> Tensor:
    mask = (source != model.config.pad_token_id).int()
    with torch.no_grad():
        return model(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits


@pytest.mark.parametrize("kind", KINDS)
def test_equal_logits_and_generate_token_for_token(kind: str) -> None:
    theirs = random_model(kind)
    ours, read, written = from_transformers(theirs)
    special = {theirs.config.pad_token_id, theirs.config.decoder_start_token_id, 0, 1, 2, 3, 28}
    torch.manual_seed(3)
    plain = torch.tensor([number for number in range(29) if number not in special])
    source, target = plain[torch.randint(len(plain), (3, 7))], plain[torch.randint(len(plain), (3, 5))]
    source[:, -1] = theirs.config.eos_token_id
    target[:, 0] = theirs.config.decoder_start_token_id
    wanted = expected(theirs, source, target)
    given = written.ours(target)
    given[:, 0] = START
    with torch.no_grad():
        found = ours(read.ours(source), given)
    kept = torch.arange(len(written.theirs)) != START
    torch.testing.assert_close(found[..., kept], wanted[..., written.theirs][..., kept], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.logsumexp(-1), wanted.logsumexp(-1), atol=1e-5, rtol=1e-5)
    for beam in (1, 4):
        compare_search(theirs, ours, source, read.ours(source), written.ours, beam)


def compare_search(theirs: Any, ours: Any, source: Tensor, read: Tensor, to_ours: Any, beam: int) -> None:
    """Search never writes what only pads, starts or is unknown: `generate` is told so too."""
    pad, start = theirs.config.pad_token_id, theirs.config.decoder_start_token_id
    unknown = next(number for number in (1, 3, 4, 5) if number not in (pad, start, theirs.config.eos_token_id))
    never = [[number] for number in {pad, start, unknown} - {theirs.config.eos_token_id}]
    generated = theirs.generate(
        source,
        num_beams=beam,
        do_sample=False,
        max_length=12,
        bad_words_ids=never,
        length_penalty=1.0,
        early_stopping=True,
    )
    with torch.inference_mode():
        first, state = ours.start(read)
        found = search(ours, first, state, torch.tensor([11] * len(read)), rule=Beam(beam, length_penalty=1.0))
    for row, (best, *_) in zip(generated[:, 1:], found, strict=True):
        wanted = to_ours(row).tolist()
        assert END in wanted, "an output that never ends is cut here and ended there"
        assert best.tokens == wanted[: wanted.index(END)]


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_a_marian_folder_becomes_a_run_that_reads_as_its_own_tokenizer(tmp_path: Path) -> None:
    model = opus(tmp_path / "opus-mt-en-fr")
    material = open_translator(imported(tmp_path / "opus-mt-en-fr" / "model.safetensors", tmp_path / "run"))
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path / "opus-mt-en-fr")
    text = "the black cat sees a bear"
    ids = theirs(text, return_tensors="pt")["input_ids"]
    pieces = [{"</s>": "<end>"}.get(piece, piece) for piece in theirs.convert_ids_to_tokens(ids[0])]
    read = material.tokenizers.read(text)
    assert [material.tokenizers.source.token(number) for number in read] == pieces
    start = torch.tensor([[model.config.decoder_start_token_id]])
    with torch.no_grad():
        found = material.models[0](torch.tensor([read]), torch.tensor([[START]]))
    wanted = expected(model, ids, start)
    vocabulary = theirs.get_vocab()
    for number in range(4, material.tokenizers.target.size):
        there = vocabulary[material.tokenizers.target.token(number)]
        assert float(found[0, 0, number]) == pytest.approx(float(wanted[0, 0, there]), abs=1e-5)
    assert material.run.settings.data.languages == "en-fr"


def test_one_of_many_target_languages_is_a_token_before_the_source(tmp_path: Path) -> None:
    opus(tmp_path / "many", ">>fra<<", ">>ron<<")
    with pytest.raises(ModelError, match="has 2 languages; choose two with --languages SOURCE-TARGET; known: fra, ron"):
        imported(tmp_path / "many", tmp_path / "run")
    tokenizers = open_translator(imported(tmp_path / "many", tmp_path / "run", languages="eng-ron")).tokenizers
    assert tokenizers.source.token(tokenizers.read("the cat")[0]) == ">>ron<<"
    assert tokenizers.target.decode([tokenizers.target.id(">>ron<<")]) == ""


LANGUAGES = ["ace_Arab", "eng_Latn", "fra_Latn"]


def multilingual(kind: str, folder: Path, tokenizer: str, languages: list[str]) -> transformers.PreTrainedModel:
    """With sentencepiece alone: ids are fairseq's."""
    spm = trained_pieces()
    size = len(pieces_of(spm)) + 1 + len(languages) + 1
    model = saved(kind, folder, vocab_size=size)
    (folder / "sentencepiece.bpe.model").write_bytes(spm)
    about = {"tokenizer_class": tokenizer, "additional_special_tokens": languages}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return model


FORMS = {
    "NLLB": ("m2m_100", "NllbTokenizer", LANGUAGES, "eng_Latn-fra_Latn", ("eng_Latn", "<end>"), ("fra_Latn",)),
    "mBART-50": ("mbart", "MBart50Tokenizer", ["en_XX", "fr_XX"], "en_XX-fr_XX", ("en_XX", "<end>"), ("fr_XX",)),
    "mBART": ("mbart", "MBartTokenizer", ["en_XX", "fr_XX"], "en_XX-fr_XX", ("<end>", "en_XX"), ()),
}


@pytest.mark.parametrize("form", FORMS)
def test_languages_stand_where_each_model_has_them(form: str, tmp_path: Path) -> None:
    kind, tokenizer, languages, chosen, around, begin = FORMS[form]
    model = multilingual(kind, tmp_path / "model", tokenizer, languages)
    material = open_translator(imported(tmp_path / "model", tmp_path / "run", languages=chosen))
    tokenizers = material.tokenizers
    read = tokenizers.read("the cat")
    framed = [tokenizers.source.token(number) for number in tokenizers.framed(())]
    assert tuple(framed) == around
    assert tokenizers.frame.begin == begin
    offset = len(pieces_of((tmp_path / "model" / "sentencepiece.bpe.model").read_bytes())) + 1
    there = {name: offset + place for place, name in enumerate(languages)} | {"<end>": 2}
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "model" / "sentencepiece.bpe.model"))
    ids = [
        there[token] if token in there else processor.piece_to_id(token) + 1
        for token in map(tokenizers.source.token, read)
    ]
    start = 2 if begin else there[languages[1]]
    wanted = expected(model, torch.tensor([ids]), torch.tensor([[start, 9]]))
    number = tokenizers.target.id(processor.id_to_piece(8))
    with torch.no_grad():
        found = material.models[0](torch.tensor([read]), torch.tensor([[START, number]]))
    assert float(found[0, 1, number]) == pytest.approx(float(wanted[0, 1, 9]), abs=1e-5)
    assert float(found[0, 1, END]) == pytest.approx(float(wanted[0, 1, 2]), abs=1e-5)


def test_m2m_numbers_its_pieces_in_a_file_and_languages_after_them(tmp_path: Path) -> None:
    spm = trained_pieces()
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(spm)[3:]]
    languages = ["__en__", "__fr__"]
    model = saved("m2m_100", tmp_path / "m2m", vocab_size=len(pieces) + 5)
    (tmp_path / "m2m" / "sentencepiece.bpe.model").write_bytes(spm)
    numbered = {piece: number for number, piece in enumerate(pieces)}
    (tmp_path / "m2m" / "vocab.json").write_text(json.dumps(numbered), encoding="utf-8")
    listed = {"additional_special_tokens": languages}
    (tmp_path / "m2m" / "special_tokens_map.json").write_text(json.dumps(listed), encoding="utf-8")
    material = open_translator(imported(tmp_path / "m2m", tmp_path / "run", languages="en-fr"))
    tokenizers = material.tokenizers
    read = tokenizers.read("the cat")
    there = numbered | {name: len(pieces) + place for place, name in enumerate(languages)} | {"<end>": 2}
    ids = [there[tokenizers.source.token(number)] for number in read]
    assert (ids[0], ids[-1]) == (len(pieces), 2)
    assert tokenizers.frame.begin == ("__fr__",)
    wanted = expected(model, torch.tensor([ids]), torch.tensor([[2, len(pieces) + 1]]))
    with torch.no_grad():
        found = material.models[0](torch.tensor([read]), torch.tensor([[START, *tokenizers.begin]]))
    for piece in pieces[4:9]:
        number = tokenizers.target.id(piece)
        assert float(found[0, 1, number]) == pytest.approx(float(wanted[0, 1, there[piece]]), abs=1e-5)
    assert material.run.settings.data.languages == "en-fr"


def test_bart_reads_bytes(tmp_path: Path) -> None:
    letters = [*map(chr, range(33, 127)), "Ġ", "Ġt", "he"]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *letters, "<mask>"]
    model = saved("bart", tmp_path / "bart", vocab_size=len(pieces))
    change(tmp_path / "bart", "generation_config.json", forced_bos_token_id=0)
    (tmp_path / "bart" / "vocab.json").write_text(
        json.dumps({piece: n for n, piece in enumerate(pieces)}), encoding="utf-8"
    )
    (tmp_path / "bart" / "merges.txt").write_text("#version: 0.2\nĠ t\nh e\n", encoding="utf-8")
    material = open_translator(imported(tmp_path / "bart", tmp_path / "run"))
    read = material.tokenizers.read("a the")
    assert [material.tokenizers.source.token(number) for number in read] == ["<s>", "a", "Ġt", "he", "<end>"]
    assert material.tokenizers.frame.begin == ("<s>",)
    ids = [pieces.index({"<end>": "</s>"}.get(token, token)) for token in map(material.tokenizers.source.token, read)]
    wanted = expected(model, torch.tensor([ids]), torch.tensor([[2, 0]]))
    with torch.no_grad():
        found = material.models[0](torch.tensor([read]), torch.tensor([[START, material.tokenizers.begin[0]]]))
    there, here = pieces.index("he"), material.tokenizers.target.id("he")
    assert float(found[0, 1, here]) == pytest.approx(float(wanted[0, 1, there]), abs=1e-5)


def test_pickled_weights_are_read_and_sharded_ones(tmp_path: Path) -> None:
    model = opus(tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "one" / "pytorch_model.bin")
    first = open_translator(imported(tmp_path / "one", tmp_path / "first")).models[0]
    opus(tmp_path / "two").save_pretrained(tmp_path / "two", max_shard_size="4KB")
    (tmp_path / "two" / "model.safetensors").unlink(missing_ok=True)
    second = open_translator(imported(tmp_path / "two", tmp_path / "second")).models[0]
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def change(folder: Path, name: str, **values: Any) -> None:
    content = json.loads((folder / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps(content | values), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        ("config.json", {"model_type": "t5"}, "model_type = t5: not supported"),
        ("config.json", {"activation_function": "tanh"}, "activation_function = tanh: not supported"),
        ("config.json", {"decoder_attention_heads": 4}, "decoder_attention_heads = 4: the encoder has 5"),
        ("config.json", {"encoder_attention_heads": 7, "decoder_attention_heads": 7}, "model.heads = 7"),
        ("config.json", {"pad_token_id": "x"}, "pad_token_id = x: must be an id"),
        ("config.json", {"eos_token_id": 1}, "must be ids of"),
        ("vocab.json", {"more": 99}, "does not number its pieces consecutively"),
        ("vocab.json", {"more": "99"}, "does not number its pieces consecutively"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_in_one_line(name: str, values: Any, line: str, tmp_path: Path) -> None:
    opus(tmp_path / "model")
    (tmp_path / "model" / "generation_config.json").unlink()
    change(tmp_path / "model", name, **values)
    with pytest.raises(ModelError, match=line):
        imported(tmp_path / "model", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_tensor_that_no_part_has_is_refused(tmp_path: Path) -> None:
    model = opus(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save(model.state_dict() | {"alone": torch.zeros(3)}, tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="alone"):
        imported(tmp_path / "model", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_weights_of_float64_are_not_rounded() -> None:
    theirs = random_model("marian").double()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 1e-9)
        ours, read, written = from_transformers(theirs)
        source, target = torch.randint(3, 28, (2, 7)), torch.randint(3, 28, (2, 5))
        found = ours(read.ours(source), written.ours(target))
    wanted = expected(theirs, source, target)
    torch.testing.assert_close(found[..., 4:], wanted[..., written.theirs[4:]], atol=1e-12, rtol=0)


def test_files_that_are_not_what_they_should_be_are_refused(tmp_path: Path) -> None:
    model = opus(tmp_path / "model")
    vocabulary = json.loads((tmp_path / "model" / "vocab.json").read_text(encoding="utf-8"))
    change(tmp_path / "model", "vocab.json", **{"one more": len(vocabulary)})
    with pytest.raises(ModelError, match="pieces: the model has"):
        imported(tmp_path / "model", tmp_path / "run")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"x" * 20)
    with pytest.raises(ModelError, match="not a safetensors file, or damaged"):
        imported(tmp_path / "model", tmp_path / "run")
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save([model.lm_head.weight], tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="is not a table of tensors"):
        imported(tmp_path / "model", tmp_path / "run")
    index = {"weight_map": {"a": "../x.safetensors"}}
    (tmp_path / "model" / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ModelError, match="names files that are not beside it"):
        imported(tmp_path / "model", tmp_path / "run")
