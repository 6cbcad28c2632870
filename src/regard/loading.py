"""A trained run as something to use."""

from __future__ import annotations

from pathlib import Path

import torch

from regard import build
from regard.decode.translator import Translator
from regard.errors import ModelError
from regard.run import Run, best_checkpoint
from regard.text.tokenizers import Tokenizers
from regard.trainer import checkpoint


def load(folder: str | Path, device: str = "cpu") -> Translator:
    """The best model of a run, ready to translate."""
    run = Run.open(Path(folder))
    settings = run.settings
    if settings.task != "translate":
        raise ModelError(f"{folder}: is a run for task '{settings.task}' and does not translate")
    tokenizers = Tokenizers.load(run.tokenizer)
    model = build.encoder_decoder(settings.model, tokenizers.source.size, tokenizers.target.size)
    path = best_checkpoint(run)
    prefix = "model."
    weights = {
        name.removeprefix(prefix): tensor
        for name, tensor in checkpoint.load_weights(path).items()
        if name.startswith(prefix)
    }
    checkpoint.load_model(model, weights, str(path))
    chosen = torch.device(device)
    return Translator(model.to(chosen).eval(), tokenizers, chosen)
