"""A corpus so small that training on it takes a moment, and settings that do."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.runs.log import Moment, Validation, Watched
from regard.settings import Settings

SMALL = (
    "data.corpus='fable:fr'",
    "data.pairs=300",
    "data.words=8",
    "text.tokenizer=word",
    "text.joint=false",
    "train.batch=128",
    "train.steps=12",
    "train.validate_every=5",
    "train.warmup=4",
)
SIZES = {
    "transformer": (
        "model.width=16",
        "model.heads=2",
        "model.hidden=32",
        "model.encoder_depth=1",
        "model.decoder_depth=1",
    ),
    "recurrent": ("model.width=16", "model.hidden=16"),
}


def settings(preset: str, *overrides: str) -> Settings:
    kind = "transformer" if preset.startswith("transformer") else "recurrent"
    return regard.load_settings(preset, *SIZES[kind], *SMALL, *overrides)


ANIMALS = {
    "the black cat": "le chat noir",
    "the cat": "le chat",
    "the bear": "l'ours",
    "a small bird": "un petit oiseau",
    "the bird": "l'oiseau",
    "a black bear": "un ours noir",
    "the small dog": "le petit chien",
    "the river": "la rivière",
}
DOINGS = {
    "sleeps": "dort",
    "ate": "a mangé",
    "ate the honey": "a mangé le miel",
    "sees the river": "voit la rivière",
    "sees a small bird": "voit un petit oiseau",
    "ate, the cat sleeps": "a mangé, le chat dort",
}


def animals(folder: Path) -> tuple[str, ...]:
    """Settings for a corpus whose few words are these, whatever the built-in one has: no capital and no mouse."""
    sides: tuple[list[str], list[str]] = ([], [])
    for end in ("", ".", "!"):
        for subject, verb in product(ANIMALS, DOINGS):
            sides[0].append(f"{subject} {verb}{end}\n")
            sides[1].append(f"{ANIMALS[subject]} {DOINGS[verb]}{end}\n")
    for name, lines in zip(("en", "fr"), sides, strict=True):
        (folder / f"train.{name}").write_text("".join(lines), encoding="utf-8")
        (folder / f"valid.{name}").write_text("".join(lines[::11]), encoding="utf-8")
    files = {"source": "train.en", "target": "train.fr", "valid_source": "valid.en", "valid_target": "valid.fr"}
    return ("data.corpus=''", *(f"data.{side}={folder / name}" for side, name in files.items()))


class Notes:
    """Keeps all that a training says."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.validations: list[Validation] = []
        self.lines: list[str] = []
        self.watched: list[tuple[int, Watched]] = []

    def moment(self, moment: Moment) -> None:
        self.moments.append(moment)

    def validation(self, validation: Validation) -> None:
        self.validations.append(validation)

    def watch(self, step: int, watched: Watched) -> None:
        self.watched.append((step, watched))

    def tell(self, line: str) -> None:
        self.lines.append(line)


def weights(folder: Path) -> dict[str, bytes]:
    """The bytes of a run's last weights and optimizer, by file."""
    from regard.runs.checkpoint import steps  # noqa: PLC0415

    last = steps(folder / "checkpoints")[-1]
    return {name: (last / f"{name}.safetensors").read_bytes() for name in ("weights", "average", "optimizer")}


def forbid(monkeypatch: pytest.MonkeyPatch, place: Path, number: int = errno.EACCES) -> None:
    """Let the system refuse to open a file or a folder and to look at what is in it; permissions stop no root."""
    stat = Path.stat

    def refusing(before: Callable[..., Any]) -> Callable[..., Any]:
        def maybe(path: Path, *arguments: Any, **named: Any) -> Any:
            if place in path.parents or (path == place and before is not stat):
                raise OSError(number, os.strerror(number), str(path))
            return before(path, *arguments, **named)

        return maybe

    for name in ("stat", "open", "iterdir"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name)))
