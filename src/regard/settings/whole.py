"""All settings of a run together."""

from __future__ import annotations

from typing import Literal, Self

import tomli_w
from pydantic import model_validator

from regard.errors import SettingsError
from regard.settings.learning import DataSettings, TextSettings, TrainSettings
from regard.settings.model import ModelSettings
from regard.settings.reading import Frozen

TaskName = Literal["translate", "language", "tag", "classify"]


class Settings(Frozen):
    """Everything that makes a run what it is."""

    about: str = ""
    """One line for people."""
    task: TaskName = "translate"
    """What is learned: a translation, the next piece, a label a token, a label a text."""
    pool: Literal["mean", "max", "final", "attention"] = "attention"
    """How a classifier sums up a text."""
    model: ModelSettings
    text: TextSettings = TextSettings()
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()

    @model_validator(mode="after")
    def _can_be_compiled(self) -> Self:
        if self.train.step == "compiled" and self.model.kind == "recurrent":
            raise SettingsError(
                "train.step = compiled: torch.compile cannot see into recurrent layers, and cuts the step into pieces "
                "that are no faster; use 'auto'"
            )
        return self

    def to_toml(self) -> str:
        """All values, defaults too: a file from which the same settings come back."""
        return tomli_w.dumps(self.model_dump())
