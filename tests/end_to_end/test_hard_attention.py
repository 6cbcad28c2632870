"""Hard attention learns where to look: no gradient passes through its choices, so REINFORCE has to teach them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import torch

import corpora_for_tests as small
import regard
from regard.nn.attention import Attention
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.trainer.start import start

WORDS = "abcdefg"
SETTINGS = (
    *("text.tokenizer=word", "text.joint=false", "model.width=16", "model.hidden=24", "model.depth=1"),
    *("model.dropout=0.0", "train.batch=512", "train.steps=300", "train.validate_every=300", "train.warmup=30"),
    *("train.rate=0.03", "train.schedule=linear", "train.smoothing=0.0", "train.reinforce.weight=3"),
)


def write(folder: Path, split: str, count: int) -> list[tuple[str, str]]:
    """Random sequences of 4 to 6 words, and the same back to front."""
    chance = Random(split)
    rows = [[chance.choice(WORDS) for _ in range(chance.randint(4, 6))] for _ in range(count)]
    pairs = [(" ".join(row), " ".join(reversed(row))) for row in rows]
    for side in (0, 1):
        (folder / f"{split}.{side}").write_text("".join(pair[side] + "\n" for pair in pairs))
    return pairs


def accuracy(translator: Translator, pairs: list[tuple[str, str]]) -> float:
    """The share of words that greedy search gets right, each in its place."""
    outputs = [each.text for each in translator.translate([source for source, _ in pairs], beam=1)]
    rows = [(output.split(), target.split()) for output, (_, target) in zip(outputs, pairs, strict=True)]
    right = sum(word == other for output, target in rows for word, other in zip(output, target, strict=False))
    return right / sum(max(len(output), len(target)) for output, target in rows)


def test_hard_attention_learns_to_reverse(tmp_path: Path) -> None:
    write(tmp_path, "train", 2000), write(tmp_path, "valid", 50)
    names = {"source": "train.0", "target": "train.1", "valid_source": "valid.0", "valid_target": "valid.1"}
    files = [f"data.{name}='{tmp_path / file}'" for name, file in names.items()]
    settings = regard.load_settings("luong-hard", *SETTINGS, *files)
    start(tmp_path / "run", settings, small.Notes(), device="cpu")
    translator, pairs = load(tmp_path / "run"), write(tmp_path, "test", 100)
    assert accuracy(translator, pairs) >= 0.9
    for module in translator.model.modules():
        if isinstance(module, Attention):  # without what REINFORCE has taught, nothing of this is left
            with torch.no_grad():
                module.score.weight.zero_()
    assert accuracy(translator, pairs) < 0.5
