"""Where to compute."""

from __future__ import annotations

import torch

from regard.errors import SettingsError


def pick_device(name: str = "auto") -> torch.device:
    """``auto`` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"device = {name}: torch sees no GPU here; use cpu")
    return device
