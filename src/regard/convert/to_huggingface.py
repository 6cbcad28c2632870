"""Exporting a Transformer as a folder for the `transformers` library, which is not needed for that.

Two of its models compute what ours does: Marian with norms after each sublayer, and Pegasus with norms before it. Both
use Marian's tokenizer: sentencepiece, and a JSON file with the ids of pieces. Our ids are kept.

    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    tokens = model.generate(**tokenizer(texts, return_tensors="pt", padding=True))
    tokenizer.batch_decode(tokens, skip_special_tokens=True)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from regard.convert.foreign import NEVER
from regard.convert.names import renamed
from regard.decode.options import SLACK
from regard.errors import ModelError
from regard.files import new_folder
from regard.models.generator import EncoderDecoder
from regard.nn.embeddings import sinusoid
from regard.runs.card import CARD, card
from regard.runs.checkpoint import model_tensors, save_tensors
from regard.settings import AttentionSettings, TransformerModel
from regard.tasks.translator import Translator
from regard.text.foreign import SentencePieceTokenizer
from regard.text.subwords import SubwordTokenizer
from regard.text.tokenizers import Frame, Tokenizers
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, START, UNK, Tokenizer

ENDS: Final = "</s>"  # the end token of Marian's tokenizer
_EPSILON = 1e-5
_PLACES = 512  # positions at the least
_LANGUAGE = re.compile(r">>[\w-]{2,20}<<")


@torch.no_grad()
def export(material: Translator, folder: Path) -> Path:
    """Write the best weights of a run, its tokenizer and its card into a new folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"{folder}: exists already; choose another folder")
    settings = material.loaded_from.settings.model
    if not isinstance(settings, TransformerModel):
        raise ModelError(f"model.kind = {settings.kind}: only Transformers can be exported as Marian")
    _check(settings)
    _check_text(material.tokenizers, settings)
    places = max(_PLACES, 2 * material.longest + SLACK) if settings.positions != "learned" else settings.longest
    with new_folder(folder) as beside:
        weights = dict(_weights(material.models[0], settings, places))
        save_tensors(weights, beside / "model.safetensors", {"format": "pt"})
        for name, content in _described(settings, material.tokenizers, places).items():
            (beside / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        for side in ("source", "target"):
            (beside / f"{side}.spm").write_bytes(_model(getattr(material.tokenizers, side)))
        (beside / CARD).write_text(card(material.loaded_from.folder, library="transformers"), encoding="utf-8")
    return folder


def _check(settings: TransformerModel) -> None:
    """Refuse settings that neither of the two models has."""
    final = settings.final_norm == "yes" or (settings.final_norm == "auto" and settings.norm_place == "before")
    wrong = {
        "norm": settings.norm != "layer",
        "norm_epsilon": settings.norm_epsilon not in (0.0, _EPSILON),
        "final_norm": final != (settings.norm_place == "before"),
        "embedding_norm": settings.embedding_norm,
        "autoregression": settings.autoregression != "attention",
        "activation": settings.activation == "swiglu",
        "positions": settings.positions == "rotary",
        "tie": settings.norm_place == "before" and settings.tie != "all",
    }
    for name, other in wrong.items():
        if other:
            raise ModelError(f"model.{name} = {getattr(settings, name)}: Marian has no such setting; {_HINTS[name]}")
    for name in ("encoder_attention", "decoder_attention", "cross_attention"):
        if getattr(settings, name) != AttentionSettings():
            raise ModelError(f"model.{name}: Marian has only scaled dot-product attention; use --to archive")


_AS_MARIAN = "use --to archive, or train with model.positions=sinusoidal model.activation=relu"
_HINTS = dict.fromkeys(
    ("norm", "norm_epsilon", "final_norm", "embedding_norm", "autoregression"), "use --to archive"
) | {
    "activation": _AS_MARIAN,
    "positions": _AS_MARIAN,
    "tie": "where norms stand before the sublayers, all embeddings are tied: model.tie = all",
}


def _check_text(tokenizers: Tokenizers, settings: TransformerModel) -> None:
    """Refuse a tokenizer that cannot be written as Marian's."""
    for side in (tokenizers.source, tokenizers.target):
        if not isinstance(side, SubwordTokenizer | SentencePieceTokenizer):
            raise ModelError(f"text.tokenizer = {side.kind}: Marian's is sentencepiece; use 'bpe' or 'unigram'")
        if isinstance(side, SubwordTokenizer) and side.case == "mark":
            raise ModelError("text.case = mark: Marian's tokenizer has no marks for capitals; use 'keep'")
    frame = tokenizers.frame
    if frame != Frame(before=frame.before) or not all(map(_LANGUAGE.fullmatch, frame.before)):
        around = " ".join((*frame.before, "…", *frame.after, *frame.begin))
        raise ModelError(f"frame = {around}: Marian's tokenizer puts only >>…<< before a text; use --to archive")
    if settings.norm_place == "before" and not tokenizers.joint:
        raise ModelError(
            "text.joint = false: with norms before the sublayers there is one vocabulary; use --to archive"
        )


def _model(tokenizer: Tokenizer) -> bytes:
    assert isinstance(tokenizer, SubwordTokenizer | SentencePieceTokenizer)
    return tokenizer.model


# Weights


def _weights(model: EncoderDecoder, settings: TransformerModel, places: int) -> Iterator[tuple[str, Tensor]]:
    """The weights under their names. If our sinusoids differ from theirs only in the order of features, these are
    reordered."""
    named = {name: tensor.detach().float().cpu() for name, tensor in model_tensors(model).items()}
    order = torch.arange(settings.width)
    plain = settings.positions == "sinusoidal" and settings.frequencies == "paper" and not settings.first_position
    if plain and settings.interleaved:
        order = torch.cat((order[::2], order[1::2]))
    if settings.start == "zero":  # a row of zeros, which the output layer must not choose
        for name, value in (("decoder.embedding.weight", 0.0), ("decoder.output.bias", NEVER)):
            named[name] = named[name].clone()
            named[name][START] = value
    yield "final_logits_bias", named["decoder.output.bias"][None].contiguous()
    for name, other in _names(settings).items():
        yield other, _reordered(name, named[name], order).contiguous()
    if not plain or settings.norm_place == "before":
        for side in ("encoder", "decoder"):
            yield f"model.{side}.embed_positions.weight", _table(named, side, settings, places)[:, order].contiguous()


def _names(settings: TransformerModel) -> dict[str, str]:
    """Their name for each of our parameters, except for the output's bias and positions."""
    parts = [f"self_attn.{each}" for each in _PROJECTIONS] + ["fc1", "fc2", "self_attn_layer_norm", "final_layer_norm"]
    cross = [*(f"encoder_attn.{each}" for each in _PROJECTIONS), "encoder_attn_layer_norm"]
    sides = {"encoder": (settings.encoder_depth, parts), "decoder": (settings.decoder_depth, parts + cross)}
    found = [
        f"{side}.layers.{level}.{part}"
        for side, (depth, own) in sides.items()
        for level in range(depth)
        for part in own
    ]
    found += [f"{side}.layer_norm" for side in sides if settings.norm_place == "before"]
    named = {renamed(f"{each}.{part}"): f"model.{each}.{part}" for each in found for part in ("weight", "bias")}
    if settings.tie == "all":
        return named | {"decoder.embedding.weight": "model.shared.weight"}
    named |= {f"{side}.embedding.weight": f"model.{side}.embed_tokens.weight" for side in sides}
    return named if settings.tie == "target" else named | {"decoder.output.weight": "lm_head.weight"}


_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def _reordered(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """A weight with the features of the residual stream reordered."""
    *_, module, part = name.split(".")
    if module in ("query", "key", "value", "expand"):
        return tensor[:, order] if part == "weight" else tensor
    if name.endswith(("embedding.weight", "decoder.output.weight")):
        return tensor[:, order]
    return tensor[order]  # outputs into the stream, and norms


def _table(named: dict[str, Tensor], side: str, settings: TransformerModel, places: int) -> Tensor:
    """A vector for each position, (places, D)."""
    if settings.positions == "learned":
        return named[f"{side}.positions.weight"]
    if settings.positions == "none":
        return torch.zeros(places, settings.width)
    first = settings.first_position
    positions = torch.arange(first, first + places)
    to_last = settings.frequencies == "marian"
    return sinusoid(positions, settings.width, to_last=to_last, interleaved=settings.interleaved).float()


# Configuration


def _described(settings: TransformerModel, tokenizers: Tokenizers, places: int) -> dict[str, Any]:
    """The JSON files of the folder."""
    special = {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": START, "bos_token_id": None}
    files = {
        "config.json": _config(settings, tokenizers, places) | special,
        "generation_config.json": special
        | {
            "max_length": places,
            "num_beams": 5,
            "length_penalty": 1.0,
            "early_stopping": True,  # a search ends with as many outputs as the beam is wide, as here
            "suppress_tokens": [PAD, START, UNK],  # never generated
        },
        "tokenizer_config.json": _tokenizer(tokenizers, places),
        "vocab.json": _numbered(tokenizers.source),
    }
    return files if tokenizers.joint else files | {"target_vocab.json": _numbered(tokenizers.target)}


def _config(settings: TransformerModel, tokenizers: Tokenizers, places: int) -> dict[str, Any]:
    before = settings.norm_place == "before"
    sides = {
        "layers": (settings.encoder_depth, settings.decoder_depth),
        "attention_heads": (settings.heads, settings.heads),
        "ffn_dim": (settings.hidden, settings.hidden),
    }
    numbers = {f"{side}_{name}": pair[place] for name, pair in sides.items() for place, side in enumerate(_SIDES)}
    shared = {"share_encoder_decoder_embeddings": settings.tie == "all", "decoder_vocab_size": tokenizers.target.size}
    return {
        "model_type": "pegasus" if before else "marian",
        "architectures": ["PegasusForConditionalGeneration" if before else "MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": tokenizers.source.size,
        "d_model": settings.width,
        "activation_function": settings.activation,
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "activation_dropout": 0.0,
        "max_position_embeddings": places,
        "scale_embedding": settings.embedding_scale,
        "static_position_embeddings": True,
        "tie_word_embeddings": settings.tie != "none",
        "forced_eos_token_id": None,
        "dtype": "float32",
        **numbers,
        **({} if before else shared),
    }


_SIDES = ("encoder", "decoder")


def _tokenizer(tokenizers: Tokenizers, places: int) -> dict[str, Any]:
    return {
        "tokenizer_class": "MarianTokenizer",
        "model_max_length": places,
        "separate_vocabs": not tokenizers.joint,
        "pad_token": SPECIAL_TOKENS[PAD],
        "bos_token": SPECIAL_TOKENS[START],  # else it would be shown
        "unk_token": SPECIAL_TOKENS[UNK],
        "eos_token": ENDS,
        "clean_up_tokenization_spaces": False,
    }


def _numbered(tokenizer: Tokenizer) -> dict[str, int]:
    """Pieces with their ids."""
    pieces = (tokenizer.token(number) for number in range(tokenizer.size))
    named = (f"{piece}#" if piece == ENDS else piece for piece in pieces)  # the name is taken
    return {ENDS if number == END else piece: number for number, piece in enumerate(named)}
