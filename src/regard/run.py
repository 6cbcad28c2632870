"""A run is a folder: its settings, tokenizers, checkpoints and log. Nothing here imports torch.

RUN/settings.toml       as resolved; resuming reads only this
RUN/tokenizer/          one or two tokenizers
RUN/labels.tsv          the labels, for tagging and classification
RUN/words.tsv           the words of the training text, for tagging
RUN/checkpoints/step-N  see `regard.trainer.checkpoint`
RUN/best                the name of the best checkpoint
RUN/log.jsonl           what happened
RUN/data/               the encoded corpus; made again when missing
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regard.errors import ModelError
from regard.files import new_file
from regard.settings import Settings, load_settings

SETTINGS = "settings.toml"


@dataclass(frozen=True)
class Run:
    """A run folder that exists."""

    folder: Path
    settings: Settings

    @classmethod
    def create(cls, folder: Path, settings: Settings) -> Run:
        """Begin a run. A folder that holds a run already is left alone."""
        if (folder / SETTINGS).exists():
            raise ModelError(
                f"{folder}: holds a run already; continue it with regard train --resume {folder}, "
                "or choose another --out"
            )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ModelError(f"{folder}: is there already and is not a run; choose another --out")
        folder.mkdir(parents=True, exist_ok=True)
        with new_file(folder / SETTINGS) as file:
            file.write(settings.to_toml().encode())
        return cls(folder, settings)

    @classmethod
    def open(cls, folder: Path) -> Run:
        if not (folder / SETTINGS).is_file():
            problem = "is not a run: it has no settings.toml" if folder.exists() else "no such folder"
            raise ModelError(f"{folder}: {problem}; regard train makes one")
        return cls(folder, load_settings(folder / SETTINGS))

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer"

    @property
    def labels(self) -> Path:
        return self.folder / "labels.tsv"

    @property
    def words(self) -> Path:
        return self.folder / "words.tsv"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def log(self) -> Path:
        return self.folder / "log.jsonl"

    @property
    def data(self) -> Path:
        return self.folder / "data"
