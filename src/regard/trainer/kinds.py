"""Which kind of step a training takes, and in which precision."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import torch

from regard.errors import SettingsError
from regard.settings import TrainSettings
from regard.trainer.workers import Workers

GRAPHS = ("graph", "compiled-graph")
PAYS = 300.0  # seconds of training that win back the time to compile


def step_kind(settings: TrainSettings, device: torch.device, workers: Workers) -> str:
    """Which kind of step, and why another cannot be had."""
    can_capture = device.type == "cuda" and workers.world == 1 and settings.accumulate == 1
    can_capture = can_capture and settings.scheduled_sampling == 0
    if settings.step == "auto":
        pays = can_compile() and (settings.seconds is None or settings.seconds >= PAYS)
        return ("compiled-graph" if pays else "graph") if can_capture else "eager"
    if settings.step in GRAPHS and not can_capture:
        raise SettingsError(
            f"train.step = {settings.step}: needs one GPU, train.accumulate = 1 and no scheduled sampling; use 'auto'"
        )
    return settings.step


def can_compile() -> bool:
    """Whether kernels can be made here: Triton is there, and a C compiler for what calls them."""
    return find_spec("triton") is not None and any(shutil.which(name) for name in ("cc", "gcc", "clang"))


def uses_bfloat16(settings: TrainSettings, device: torch.device) -> bool:
    if settings.precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return settings.precision == "bfloat16"
