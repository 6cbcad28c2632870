"""Every knob, typed. Settings are frozen, go to TOML and back, and complain in one line. No torch here.

Variants are told apart by ``kind``. What a combination of knobs cannot mean is refused here, with the
reason, before anything is built.
"""

from __future__ import annotations

from regard.settings.fitting import NO_LIMIT, Extent, Machine, choose, fit
from regard.settings.learning import (
    DataSettings,
    LastAverage,
    LowRankSettings,
    MovingAverageSettings,
    ReinforceSettings,
    TextSettings,
    TrainSettings,
    parse_time,
)
from regard.settings.loading import load_settings, preset_names, read_settings
from regard.settings.model import (
    AttentionSettings,
    BahdanauDecoderSettings,
    ConditionalDecoderSettings,
    ContextDecoderSettings,
    LuongDecoderSettings,
    ModelSettings,
    MonotonicWindowSettings,
    NoWindow,
    PredictedWindowSettings,
    RecurrentAttention,
    RecurrentModel,
    ScoreName,
    TransformerModel,
    VectorSettings,
    WindowSettings,
)
from regard.settings.whole import Settings, TaskName

__all__ = [
    "NO_LIMIT",
    "AttentionSettings",
    "BahdanauDecoderSettings",
    "ConditionalDecoderSettings",
    "ContextDecoderSettings",
    "DataSettings",
    "Extent",
    "LastAverage",
    "LowRankSettings",
    "LuongDecoderSettings",
    "Machine",
    "ModelSettings",
    "MonotonicWindowSettings",
    "MovingAverageSettings",
    "NoWindow",
    "PredictedWindowSettings",
    "RecurrentAttention",
    "RecurrentModel",
    "ReinforceSettings",
    "ScoreName",
    "Settings",
    "TaskName",
    "TextSettings",
    "TrainSettings",
    "TransformerModel",
    "VectorSettings",
    "WindowSettings",
    "choose",
    "fit",
    "load_settings",
    "parse_time",
    "preset_names",
    "read_settings",
]
