"""Where each peer lives: an environment of its own under .bench, made when it is first asked for.

Every environment gets the same torch first. The peer itself comes without what it asks for, because some ask for a
torch of years ago, and then with the packages that its model, loss and optimizer really import.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".bench"
TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Environment:
    """What pip is to install."""

    peer: str
    needs: tuple[str, ...]
    numpy: str = "numpy"
    constrained: bool = True  # by constraints.txt; a peer that wants older packages is not


ENVIRONMENTS = {
    "opennmt": Environment(
        "OpenNMT-py==3.5.1",
        (
            *("configargparse", "ctranslate2", "pyonmttok", "pyyaml", "sacrebleu", "rapidfuzz", "pyahocorasick", "six"),
            *("fasttext-wheel", "spacy", "tensorboard"),
        ),
    ),
    "eole": Environment(
        "eole==0.6.4",
        (
            *("configargparse", "ctranslate2", "pyonmttok", "pyyaml", "sacrebleu", "rapidfuzz", "pyahocorasick", "six"),
            *("safetensors", "sentencepiece", "huggingface_hub", "pydantic", "rich", "torch-optimi", "tokenizers"),
            "tensorboard",
        ),
    ),
    "joeynmt": Environment(
        "joeynmt==2.3.0",
        (
            *("tensorboard", "sacrebleu", "sacremoses", "sentencepiece", "subword-nmt", "matplotlib", "seaborn"),
            *("pyyaml", "six", "packaging", "pandas", "setuptools", "datasets", "importlib_metadata"),
        ),
    ),
    "sockeye": Environment("sockeye==3.1.34", ("pyyaml", "sacrebleu"), numpy="numpy<2", constrained=False),
}


def interpreter(name: str) -> str:
    """The Python of a peer; peers without an environment of their own share that of Regard."""
    if name not in ENVIRONMENTS:
        return sys.executable
    home = HOME / name
    if not (home / "ready").exists():
        install(ENVIRONMENTS[name], home)
    return str(home / "bin" / "python")


def install(wanted: Environment, home: Path) -> None:
    print(f"installing {wanted.peer} into {home.relative_to(ROOT)}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    limits = ["--constraint", str(ROOT / "constraints.txt")]
    pip(home, *(limits if wanted.constrained else []), TORCH, wanted.numpy)
    pip(home, "--no-deps", wanted.peer)
    pip(home, *(limits if wanted.constrained else []), TORCH, wanted.numpy, *wanted.needs)
    (home / "ready").touch()


def pip(home: Path, *arguments: str) -> None:
    command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True)
