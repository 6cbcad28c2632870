"""``regard doctor``: what this machine has, in a form that can be pasted into a question."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from regard import __version__

PACKAGES = ("torch", "numpy", "sentencepiece", "safetensors", "sacrebleu", "pydantic", "typer", "rich")
EXTRAS = {"transformers": "huggingface", "pyarrow": "parquet", "zstandard": "zstd", "datasets": "datasets"}


def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Check the installation and the machine."""
    import torch

    found = {
        "regard": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "disk free": f"{shutil.disk_usage('.').free / 2**30:,.0f} GiB",
        "GPU": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "matrix rate": f"{_matrix_rate():,.0f} GFLOP/s in float32 on the CPU, {torch.get_num_threads()} threads",
        **{name: _version(name) for name in PACKAGES},
        **{f"{name} (extra {extra})": _version(name) for name, extra in EXTRAS.items()},
    }
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name:30}{value}")


def _version(name: str) -> str:
    if importlib.util.find_spec(name) is None:
        return "not installed"
    try:
        return version(name)
    except PackageNotFoundError:
        return "installed"


def _matrix_rate() -> float:
    import torch

    matrix, best = torch.randn(1024, 1024), 0.0
    for _ in range(5):
        began = time.perf_counter()
        matrix @ matrix
        best = max(best, 2 * 1024**3 / (time.perf_counter() - began) / 1e9)
    return best
