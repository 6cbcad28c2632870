"""Small runs with random weights, and models from elsewhere made of them."""

from __future__ import annotations

import argparse
import io
import json
import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers
from torch import Tensor

import marian_files
import tiny
from regard.convert.ctranslate2 import ModelFile
from regard.convert.foreign import Foreign, write
from regard.convert.recognise import opened
from regard.models import build
from regard.runs.checkpoint import model_tensors
from regard.runs.folder import Origin
from regard.settings import load_settings
from regard.tasks.engines import export
from regard.tasks.load import open_translator
from regard.text.tokenizers import Tokenizers

LINES = ["the black cat ate the mouse .", "a small dog sees the bear", "le chat noir a mangé la souris ."] * 3


def small_run(folder: Path, *overrides: str) -> Path:
    """A Transformer that was never trained, as a run."""
    values = ("text.tokenizer=bpe", "text.size=300", *overrides)
    settings = load_settings("transformer-small", *tiny.TRANSFORMER, *values)
    joint = settings.text.joint
    tokenizers = Tokenizers.learn("bpe", LINES, LINES[:2], joint=joint, size=300)
    torch.manual_seed(7)
    model = build.encoder_decoder(settings.model, tokenizers.source.size, tokenizers.target.size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.7) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
    weights = model_tensors(model).items()
    return write(Foreign(settings, weights, tokenizers, Origin("none", "small")), folder).folder


def imported(what: Path, out: Path, part: str | None = None, languages: str = "") -> Path:
    """What `regard import` does."""
    with opened(what, part, languages) as (package, read):
        return write(read(package), out).folder


# Hugging Face

SIZES = {
    "d_model": 20,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 5,
    "encoder_ffn_dim": 19,
    "decoder_ffn_dim": 19,
    "max_position_embeddings": 64,
    "init_std": 0.3,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
FAIRSEQ = {
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
OPUS = {"pad_token_id": 28, "decoder_start_token_id": 28, "eos_token_id": 0, "forced_eos_token_id": None}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "marian": ("Marian", OPUS | {"scale_embedding": True, "activation_function": "swish"}),
    "marian, own ids, gelu": ("Marian", {"pad_token_id": 0, "decoder_start_token_id": 1, "eos_token_id": 2}),
    "marian, two vocabularies": (
        "Marian",
        OPUS | {"decoder_vocab_size": 31, "share_encoder_decoder_embeddings": False},
    ),
    "marian, untied": ("Marian", OPUS | {"tie_word_embeddings": False}),
    "m2m_100": ("M2M100", FAIRSEQ),
    "m2m_100, unscaled, gelu": ("M2M100", FAIRSEQ | {"scale_embedding": False, "activation_function": "gelu"}),
    "mbart": ("MBart", FAIRSEQ | {"scale_embedding": True}),
    "bart": ("Bart", FAIRSEQ | {"forced_bos_token_id": None}),
}


def random_model(kind: str, **changes: Any) -> transformers.PreTrainedModel:
    name, values = KINDS[kind]
    config = getattr(transformers, f"{name}Config")(**{"vocab_size": 29, **SIZES, **values, **changes})
    torch.manual_seed(5)
    family = {"Marian": "MarianMTModel"}.get(name, f"{name}ForConditionalGeneration")
    model: transformers.PreTrainedModel = getattr(transformers, family)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.normal_()
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
            model.final_logits_bias[0, config.eos_token_id] += 12
        else:  # outputs are to end, and only the last norm can say so
            row = model.get_output_embeddings().weight[config.eos_token_id]
            model.model.decoder.layer_norm.bias.add_(12 * row / row.square().sum())
    return model


def trained_pieces(size: int = 60) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, vocab_size=size, minloglevel=5, hard_vocab_limit=False
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


def saved(kind: str, folder: Path, **changes: Any) -> transformers.PreTrainedModel:
    """A model with a tokenizer, as `transformers` keeps them."""
    model = random_model(kind, **changes)
    model.save_pretrained(folder)
    return model


def opus(folder: Path, *languages: str) -> transformers.PreTrainedModel:
    spm = trained_pieces()
    pieces = [
        "</s>",
        "<unk>",
        *(piece for piece in pieces_of(spm) if piece not in ("<s>", "</s>", "<unk>")),
        *languages,
        "<pad>",
    ]
    last = len(pieces) - 1
    model = saved("marian", folder, vocab_size=len(pieces), pad_token_id=last, decoder_start_token_id=last)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(spm)
    (folder / "vocab.json").write_text(
        json.dumps({piece: number for number, piece in enumerate(pieces)}), encoding="utf-8"
    )
    about = {"source_lang": "en", "target_lang": "fr", "tokenizer_class": "MarianTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return model


# fairseq

WORDS = ["the@@", "cat", "dog", "a", "b", "c", "d", "e"]
CODES = "#version: 0.2\nt h\nth e\nc a\nca t</w>\nd o\ndo g</w>\n"


def weights(width: int = 12, hidden: int = 19, *, learned: bool = False, before: bool = True) -> dict[str, Tensor]:
    """What a small model of fairseq's has, with its names."""
    torch.manual_seed(3)
    found: dict[str, Tensor] = {}

    def linear(name: str, inside: int, out: int) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = torch.randn(out, inside) / 2, torch.randn(out) / 2

    def norm(name: str) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = 1 + torch.randn(width) / 5, torch.randn(width) / 5

    for side in ("encoder", "decoder"):
        found[f"{side}.version"] = torch.tensor([3.0])
        found[f"{side}.embed_tokens.weight"] = torch.randn(16, width)
        if learned:
            found[f"{side}.embed_positions.weight"] = torch.randn(22, width)
            norm(f"{side}.layernorm_embedding")
        else:
            found[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
        for attention in ("self_attn",) if side == "encoder" else ("self_attn", "encoder_attn"):
            for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                linear(f"{side}.layers.0.{attention}.{part}", width, width)
            norm(f"{side}.layers.0.{attention}_layer_norm")
        linear(f"{side}.layers.0.fc1", width, hidden)
        linear(f"{side}.layers.0.fc2", hidden, width)
        norm(f"{side}.layers.0.final_layer_norm")
        if before:
            norm(f"{side}.layer_norm")
    return found


ARGUMENTS = {
    "arch": "transformer",
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "share_decoder_input_output_embed": True,
    "source_lang": "aa",
    "target_lang": "bb",
    "activation_fn": "gelu",
}


def checkpoint(folder: Path, *, old: bool = False, model: dict[str, Tensor] | None = None, **changes: Any) -> Path:
    folder.mkdir()
    for code in ("aa", "bb"):
        (folder / f"dict.{code}.txt").write_text("".join(f"{word} 5\n" for word in WORDS), encoding="utf-8")
    (folder / "bpe.codes").write_text(CODES, encoding="utf-8")
    content = {"args": argparse.Namespace(**{**ARGUMENTS, **changes}), "model": weights() if model is None else model}
    torch.save(content, folder / "model.pt", _use_new_zipfile_serialization=not old)
    return folder


# One small model of each format


def ctranslate2_folder(folder: Path) -> Path:
    with tempfile.TemporaryDirectory() as place:
        return export(open_translator(small_run(Path(place) / "run")), folder, "int8")


def huggingface_folder(folder: Path) -> Path:
    opus(folder)
    return folder


def tokenizer_json_folder(folder: Path) -> Path:
    """The same with ``tokenizer.json`` in place of all that says how a text is cut."""
    opus(folder)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    pieces = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    for name in ("source.spm", "target.spm", "vocab.json"):
        (folder / name).unlink()
    listed = [[piece, processor.get_score(processor.piece_to_id(piece))] for piece in pieces]
    model = {"type": "Unigram", "unk_id": 1, "vocab": listed}
    content = {"model": model, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}}
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


FORMATS: dict[str, Callable[[Path], Path]] = {
    "ctranslate2": ctranslate2_folder,
    "huggingface": huggingface_folder,
    "tokenizer-json": tokenizer_json_folder,
    "fairseq": checkpoint,
    "marian-bin": marian_files.binary_folder,
    "marian-npz": marian_files.npz_folder,
    "marian-s2s": marian_files.recurrent_folder,
}


def rewritten(engine: Path, folder: Path, changes: dict[str, Any]) -> Path:
    """A copy of a model of CTranslate2's with other variables; None takes one away."""
    shutil.copytree(engine, folder)
    file = ModelFile(engine / "model.bin")
    names = [name for name in (*file.variables, *changes) if changes.get(name, name) is not None]
    arrays = {name: changes[name] if name in changes else file._raw(name).numpy() for name in dict.fromkeys(names)}
    (folder / "model.bin").write_bytes(written(6, arrays, file.aliases))
    return folder


def packed(text: str) -> bytes:
    return struct.pack("<H", len(text.encode()) + 1) + text.encode() + b"\0"


def written(format: int, variables: dict[str, Any], aliases: dict[str, str]) -> bytes:
    """A file of CTranslate2's, as each format has it."""
    data = struct.pack("<I", format)
    if format > 1:
        data += packed("TransformerSpec") + struct.pack("<I", 3)
    data += struct.pack("<I", len(variables))
    for name, array in variables.items():
        data += packed(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        kind = {"float32": 0, "int8": 1, "int16": 2, "int32": 3}[str(array.dtype)]
        data += struct.pack("<BI", kind, array.nbytes) if format > 3 else struct.pack("<BI", array.itemsize, array.size)
        data += array.tobytes()
    if format > 2:
        data += struct.pack("<I", len(aliases)) + b"".join(packed(one) + packed(two) for one, two in aliases.items())
    return data
