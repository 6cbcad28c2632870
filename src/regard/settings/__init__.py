"""All settings, typed and frozen, read from TOML and written to it. No torch here.

Variants differ in ``kind``. Combinations that make no sense are refused here, with the reason, before anything is
built.
"""

from __future__ import annotations

from regard.settings.fitting import NO_LIMIT, Extent, Machine, careful, choose, fit
from regard.settings.loading import load_settings, preset_names, read_settings
from regard.settings.schema import (
    AdaptSettings,
    AttentionSettings,
    AverageSettings,
    BahdanauDecoderSettings,
    ConditionalDecoderSettings,
    ContextDecoderSettings,
    DataSettings,
    ForecastSettings,
    LuongDecoderSettings,
    ModelSettings,
    RecurrentAttention,
    RecurrentModel,
    ReinforceSettings,
    ScoreName,
    Settings,
    SourceSettings,
    TaskName,
    TextSettings,
    TrainSettings,
    TransformerModel,
    VectorSettings,
    WindowSettings,
    parse_time,
)

__all__ = [
    "NO_LIMIT",
    "AdaptSettings",
    "AttentionSettings",
    "AverageSettings",
    "BahdanauDecoderSettings",
    "ConditionalDecoderSettings",
    "ContextDecoderSettings",
    "DataSettings",
    "Extent",
    "ForecastSettings",
    "LuongDecoderSettings",
    "Machine",
    "ModelSettings",
    "RecurrentAttention",
    "RecurrentModel",
    "ReinforceSettings",
    "ScoreName",
    "Settings",
    "SourceSettings",
    "TaskName",
    "TextSettings",
    "TrainSettings",
    "TransformerModel",
    "VectorSettings",
    "WindowSettings",
    "careful",
    "choose",
    "fit",
    "load_settings",
    "parse_time",
    "preset_names",
    "read_settings",
]
