"""Regard: sequence-to-sequence models that you can look into.

Public names are loaded when first used, so that ``import regard`` is quick and does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.errors import DataError, ModelError, RegardError, ResourceError, SettingsError
    from regard.evaluate.compare import compare
    from regard.models.build import encoder_decoder, labeller, language_model
    from regard.nn.observe import Recorder
    from regard.settings import Settings, load_settings, preset_names
    from regard.tasks.load import load
    from regard.trainer.start import train

__version__ = "0.1.0"

_HOMES = {
    "DataError": "regard.errors",
    "ModelError": "regard.errors",
    "Recorder": "regard.nn.observe",
    "RegardError": "regard.errors",
    "ResourceError": "regard.errors",
    "Settings": "regard.settings",
    "SettingsError": "regard.errors",
    "compare": "regard.evaluate.compare",
    "encoder_decoder": "regard.models.build",
    "labeller": "regard.models.build",
    "language_model": "regard.models.build",
    "load": "regard.tasks.load",
    "load_settings": "regard.settings",
    "preset_names": "regard.settings",
    "train": "regard.trainer.start",
}

__all__ = [
    "DataError",
    "ModelError",
    "Recorder",
    "RegardError",
    "ResourceError",
    "Settings",
    "SettingsError",
    "compare",
    "encoder_decoder",
    "labeller",
    "language_model",
    "load",
    "load_settings",
    "preset_names",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
