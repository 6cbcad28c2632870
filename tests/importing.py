"""Small runs with random weights, and models from elsewhere made of them."""

from __future__ import annotations

from pathlib import Path

import torch

import tiny
from regard.convert.foreign import Foreign, write
from regard.convert.recognise import opened
from regard.models import build
from regard.runs.checkpoint import model_tensors
from regard.runs.origin import Origin
from regard.settings import load_settings
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
