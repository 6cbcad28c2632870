"""The training of `regard demo` and of the studio's first button."""

from __future__ import annotations

from regard.settings.loading import load_settings
from regard.settings.schema import Settings

PRESET = "transformer-tiny"
CORPUS = "fable:fr"
ABOUT = "regard demo"
TEXT = (
    f"data.corpus='{CORPUS}'",
    "data.pairs=50000",
    "data.words=14",
    "data.riddles=0.9",
    "data.unknown=0.1",
    "text.tokenizer=word",
    "text.joint=false",
    "text.case=mark",
    "text.minimum=2",
)
OVERRIDES = (
    *TEXT,
    "train.batch=768",
    "train.rate=0.007",
    "train.warmup=150",
    "train.second_moment=0.99",
    "train.schedule=linear",
    "train.steps=5500",
    "train.validate_every=1375",
    "train.average={kind='moving', decay=0.99}",
    "train.smoothing=0.0",
    "model.width=80",
    "model.positions=rotary",
    "model.dropout=0.0",
    f"about='{ABOUT}'",
)


def demo_settings(preset: str = PRESET, *overrides: str) -> Settings:
    """Settings of the demo; of another preset, its own with the text of the demo."""
    return load_settings(preset, *(OVERRIDES if preset == PRESET else TEXT), *overrides)
