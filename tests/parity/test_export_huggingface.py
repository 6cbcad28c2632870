"""A run as a folder of `transformers`: the same tokens, greedy and with a beam, and back again."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import sentencepiece
import torch
import transformers
from torch import Tensor

import regard
import tiny
from regard.convert.foreign import Foreign, write
from regard.convert.huggingface import read
from regard.convert.package import Package
from regard.convert.to_huggingface import export
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.errors import ModelError
from regard.runs.card import CARD
from regard.runs.checkpoint import model_tensors
from regard.runs.folder import Origin
from regard.tasks.load import open_translator
from regard.tasks.translator import Translator
from regard.text import END, PAD, SPECIAL_TOKENS, START, SentencePieceTokenizer, Tokenizers, Vocabulary, learn
from regard.text.tokenizers import Frame

SOURCES = [f"{a} {b} {c}" for a in ("the bear", "an old cat") for b in ("sees", "eats") for c in ("honey", "the mouse")]
TARGETS = ["l'ours voit le miel .", "un vieux chat mange la souris .", "le miel voit l'ours"] * 3
TEXTS = [*SOURCES, "the bear", "cat honey bear mouse eats the", "Ünknown wörds 中"]
LIMIT = 23
MARIAN = ("model.norm_place=after",)
SHAPES = {
    "marian, all tied": (*MARIAN, "model.tie=all", "model.activation=silu"),
    "marian, target tied": (*MARIAN, "model.tie=target", "model.embedding_scale=false"),
    "marian, untied": (*MARIAN, "model.tie=none", "model.activation=gelu"),
    "marian, halves": (*MARIAN, "model.tie=all", "model.interleaved=false"),
    "marian, other sinusoids": (*MARIAN, "model.tie=all", "model.frequencies=marian", "model.first_position=2"),
    "marian, learned": (*MARIAN, "model.tie=all", "model.positions=learned", "model.longest=97"),
    "marian, no positions, zero start": (*MARIAN, "model.tie=all", "model.positions=none", "model.start=zero"),
    "pegasus": ("model.tie=all",),
    "pegasus, learned": ("model.tie=all", "model.positions=learned", "model.longest=97"),
}


def loaded(folder: Path, tokenizers: Tokenizers, *overrides: str) -> Translator:
    """A run that was never trained, with weights that have preferences."""
    settings = tiny.settings("transformer-small", "model.width=24", "model.heads=3", *overrides)
    torch.manual_seed(7)
    model = regard.encoder_decoder(settings.model, tokenizers.source.size, tokenizers.target.size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.3) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
        model.decoder.output.bias[END] += 2.0
    made = Foreign(settings, model_tensors(model).items(), tokenizers, Origin("none", "test", "MIT"))
    return open_translator(write(made, folder).folder)


def joint(kind: str = "bpe") -> Tokenizers:
    both = learn(kind, [*SOURCES, *TARGETS], size=330)
    return Tokenizers(both, both)


class EndAtLimit(transformers.LogitsProcessor):
    """At the limit we end an output, at the model's price for that; `generate` would cut it without an end."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.shape[1] < LIMIT:
            return scores
        allowed = torch.full_like(scores, -torch.inf)
        allowed[:, END] = scores[:, END]
        return allowed


def theirs(folder: Path, texts: Sequence[str], beams: int) -> list[list[int]]:
    """What `transformers` writes, in three lines."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    read = tokenizer(list(texts), return_tensors="pt", padding=True)
    ends = transformers.LogitsProcessorList([EndAtLimit()])
    found = model.generate(
        **read, num_beams=beams, early_stopping=beams > 1, max_length=LIMIT + 1, logits_processor=ends
    )
    return [[token for token in row if token not in (PAD, START, END)] for row in found.tolist()]


def ours(material: Translator, texts: Sequence[str], beams: int) -> list[list[int]]:
    rows = [torch.tensor(material.tokenizers.read(text)) for text in texts]
    source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    first, state = material.models[0].start(source)
    found = search(material.models[0], first, state, torch.full((len(rows),), LIMIT), rule=Beam(beams))
    return [best.tokens for (best, *_) in found]


def compare(found: list[list[int]], expected: list[list[int]]) -> None:
    assert len({tuple(row) for row in expected}) > 2  # worth comparing
    assert found == expected


@pytest.mark.filterwarnings("ignore:Recommended")
@pytest.mark.parametrize("overrides", SHAPES.values(), ids=SHAPES)
def test_transformers_reads_and_writes_the_same_tokens(overrides: tuple[str, ...], tmp_path: Path) -> None:
    material = loaded(tmp_path / "run", joint(), *overrides)
    folder = export(material, tmp_path / "hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert isinstance(tokenizer, transformers.MarianTokenizer)
    for text in TEXTS:
        assert tokenizer(text)["input_ids"] == material.tokenizers.read(text)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    source, target = torch.tensor([material.tokenizers.read(TEXTS[0])]), torch.tensor([[START, 17, 29, 31]])
    with torch.no_grad():
        expected = material.models[0](source, target)
        found = model(input_ids=source, decoder_input_ids=target).logits
    written = [number for number in range(expected.shape[-1]) if number != START]
    torch.testing.assert_close(found[..., written], expected[..., written], atol=1e-4, rtol=1e-5)
    ids = [START, *material.tokenizers.target.encode(TARGETS[0]), END, PAD]
    assert tokenizer.decode(ids, skip_special_tokens=True) == TARGETS[0]
    for beams in (1, 4):
        compare(theirs(folder, TEXTS, beams), ours(material, TEXTS, beams))


@pytest.mark.filterwarnings("ignore:Recommended")
@pytest.mark.parametrize("overrides", SHAPES.values(), ids=SHAPES)
def test_what_was_exported_can_be_imported(overrides: tuple[str, ...], tmp_path: Path) -> None:
    material = loaded(tmp_path / "run", joint(), *overrides)
    folder = export(material, tmp_path / "hf")
    back = write(read(Package(folder / "model.safetensors", "back", folder, folder, "")), tmp_path / "back")
    again = open_translator(back.folder)
    for text in TEXTS:
        assert again.tokenizers.source.encode(text) == material.tokenizers.source.encode(text)
    source, target = torch.tensor([material.tokenizers.read(TEXTS[0])]), torch.tensor([[START, 17, 29, 31]])
    with torch.no_grad():
        expected, found = (each.models[0](source, target) for each in (material, again))
    torch.testing.assert_close(found[..., 4:], expected[..., 4:], atol=1e-4, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Recommended")
def test_two_vocabularies_are_two_files(tmp_path: Path) -> None:
    tokenizers = Tokenizers(learn("unigram", SOURCES, size=300), learn("bpe", TARGETS, size=320))
    material = loaded(tmp_path / "run", tokenizers, *MARIAN, "model.tie=target")
    folder = export(material, tmp_path / "hf")
    assert len(json.loads((folder / "target_vocab.json").read_text())) == tokenizers.target.size
    compare(theirs(folder, TEXTS, 3), ours(material, TEXTS, 3))


@pytest.mark.filterwarnings("ignore:Recommended")
def test_a_foreign_tokenizer_with_a_language_before_the_text(tmp_path: Path) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SOURCES, *TARGETS]),
        model_writer=model,
        vocab_size=70,
        hard_vocab_limit=False,
        minloglevel=5,
    )
    known = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [known.id_to_piece(number) for number in range(3, known.get_piece_size())]
    both = SentencePieceTokenizer(
        Vocabulary((*SPECIAL_TOKENS, *pieces, ">>fra<<")), (">>fra<<",), model=model.getvalue()
    )
    material = loaded(tmp_path / "run", Tokenizers(both, both, frame=Frame(before=(">>fra<<",))), "model.tie=all")
    folder = export(material, tmp_path / "hf")
    compare(theirs(folder, [f">>fra<< {text}" for text in TEXTS], 2), ours(material, TEXTS, 2))
    assert "Every text begins with `>>fra<<`" in (folder / CARD).read_text()


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (("model.norm=rms",), r"model\.norm = rms: Marian has no such setting"),
        (("model.tie=all", "model.activation=swiglu"), r"model\.activation = swiglu: .* train with .*activation=relu"),
        (("model.tie=all", "model.positions=rotary"), r"model\.positions = rotary"),
        (("model.tie=all", "model.embedding_norm=true"), r"model\.embedding_norm = True"),
        (("model.tie=all", "model.norm_epsilon=0.01"), r"model\.norm_epsilon = 0\.01"),
        (("model.tie=all", "model.final_norm=no"), r"model\.final_norm = no"),
        (("model.tie=all", "model.autoregression=ssru"), r"model\.autoregression = ssru"),
        (("model.tie=target",), r"model\.tie = target: .* all embeddings are tied"),
        (
            ("model.tie=all", "model.cross_attention.score=dot"),
            r"model\.cross_attention: Marian has only scaled dot-product attention",
        ),
    ],
)
def test_what_marian_cannot_be_is_refused_in_one_line(overrides: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    material = loaded(tmp_path / "run", joint(), *overrides)
    with pytest.raises(ModelError, match=problem):
        export(material, tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


@pytest.mark.parametrize(
    ("tokenizers", "overrides", "problem"),
    [
        (
            Tokenizers(*[learn("word", SOURCES)] * 2),
            ("model.tie=all",),
            "text.tokenizer = word: Marian's is sentencepiece",
        ),
        (Tokenizers(*[learn("bpe", SOURCES, size=300, case="mark")] * 2), ("model.tie=all",), "text.case = mark"),
        (
            Tokenizers(learn("bpe", SOURCES, size=300), learn("bpe", SOURCES, size=300)),
            ("model.tie=all",),
            "text.joint = false: with norms before",
        ),
        (
            Tokenizers(*[learn("bpe", SOURCES, size=300)] * 2, frame=Frame(begin=("▁the",))),
            ("model.tie=all",),
            "frame = … <end> ▁the: Marian's tokenizer puts only",
        ),
    ],
)
def test_a_tokenizer_that_marian_has_not_is_refused(
    tokenizers: Tokenizers, overrides: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    material = loaded(tmp_path / "run", tokenizers, *overrides)
    with pytest.raises(ModelError, match=problem):
        export(material, tmp_path / "hf")


def test_a_folder_that_is_there_and_a_recurrent_run_are_refused(tmp_path: Path) -> None:
    both = joint()
    settings = tiny.settings("bahdanau")
    model = regard.encoder_decoder(settings.model, both.source.size, both.target.size)
    made = Foreign(settings, model_tensors(model).items(), both, Origin("none", "test"))
    with pytest.raises(ModelError, match=r"model\.kind = recurrent: only Transformers can be exported"):
        export(open_translator(write(made, tmp_path / "recurrent").folder), tmp_path / "other")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "mine").touch()
    material = loaded(tmp_path / "run", joint(), "model.tie=all")
    with pytest.raises(ModelError, match="exists already"):
        export(material, tmp_path / "hf")
