"""``regard doctor``: versions and hardware, to paste into a bug report."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from regard import __version__
from regard.cli.streams import as_called
from regard.cli.verb import common

PACKAGES = (
    *("torch", "numpy", "sentencepiece", "safetensors", "sacrebleu", "pydantic", "typer", "rich", "fastapi", "uvicorn"),
    *("prometheus_client", "ctranslate2"),
)
# Optional packages and their use; below, the name to import if it differs from the name to install.
EXTRAS = {
    "matplotlib": "PNG",
    "tensorboard": "event files",
    "scikit-learn": "baselines to compare with",
    "transformers": "models of Hugging Face",
    "pyarrow": "Parquet files",
    "zstandard": ".zst files",
    "datasets": "hf:// names",
    "ray": "bulk work on a cluster",
}
IMPORTED = {"scikit-learn": "sklearn"}


def doctor(context: typer.Context) -> None:
    """Check the installation and the machine."""
    import torch

    from regard.device import matrix_rate

    rate = matrix_rate(torch.device("cpu"), torch.float32) / 1e9
    found = {
        "regard": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "disk free": f"{shutil.disk_usage('.').free / 2**30:,.0f} GiB",
        "GPU": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "matrix rate": f"{rate:,.0f} GFLOP/s in float32 on the CPU, {torch.get_num_threads()} threads",
        "demo": _demo(),
        "runs": _runs(),
        **{name: _version(name) or "not installed" for name in PACKAGES},
        **{name: _version(name) or f"not installed; for {use}: pip install {name}" for name, use in EXTRAS.items()},
    }
    if common(context).json:
        print(json.dumps(found, indent=2))
        return
    width = max(map(len, found)) + 2
    for name, value in found.items():
        print(as_called(f"{name:{width}}{value}"))


def _demo() -> str:
    """Whether the run in the package is complete."""
    from regard.errors import RegardError
    from regard.runs.folder import Run, belongs, best_checkpoint, packaged, verify

    try:
        run = Run.open(packaged())
        verify(best := best_checkpoint(run))
        belongs(run, best)
    except RegardError as problem:
        return f"not usable: {problem}"
    return 'complete; try: regard translate demo "The black cat ate the mouse."'


def _runs() -> str:
    """The runs here: how many, which cannot be read, and what killed processes left."""
    from regard.runs.listing import find, leftovers, summarise

    folder = Path("runs")
    if not folder.is_dir():
        return "none here"
    found = [summarise(path) for path in find(folder)]
    bad = [summary.name for summary in found if summary.state == "unreadable"]
    left = leftovers(folder)
    words = [f"{len(found)} in {folder}"]
    words += [f"not readable: {', '.join(bad[:5])}; see: regard runs ls --json"] if bad else []
    several = "leftovers" if len(left) > 1 else "leftover"
    words += [f"{len(left)} {several} of killed processes; see: regard runs sweep"] if left else []
    return "; ".join(words)


def _version(name: str) -> str:
    """Empty if it is not there."""
    if importlib.util.find_spec(IMPORTED.get(name, name)) is None:
        return ""
    try:
        return version(name)
    except PackageNotFoundError:
        return "installed"
