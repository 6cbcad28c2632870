"""What a trained run can be asked, whatever its task. Translators are asked for more: `regard.tasks.translator`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from regard.data.tables import Row
from regard.decode.options import rule_of
from regard.decode.rules import Beam, Rule
from regard.errors import SettingsError
from regard.metrics.labels import Confusion
from regard.settings import TaskName
from regard.settings.call import CONTINUED, DecodeSettings
from regard.text.known import KnownWords

GREEDY = Beam(width=1)


class Rows(Protocol):
    """Text in rows: a `data.readers.Corpus`, or a part of a run's own."""

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        """Numbered rows with one text for each of the columns."""


class Predicted(Protocol):
    """What a run says of one text. As a string it is a line of ``regard predict``."""

    def to_dict(self) -> dict[str, Any]:
        """The same with ``--json``."""

    def fields(self) -> dict[str, Any]:
        """What the service answers beside the text, by the names of its schema."""


class Result(Protocol):
    """How good a run is on a corpus."""

    def rows(self) -> list[tuple[str, ...]]:
        """For a table."""

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it."""

    def numbers(self) -> tuple[tuple[str, float], ...]:
        """What the task is measured by, the first number deciding."""

    def confusions(self) -> tuple[Confusion, ...]:
        """Of all labels and, where these are counted apart, of those of unknown words."""


@dataclass(frozen=True)
class Writing:
    """How a text is gone on with; only what writes asks for it."""

    length: int = 40  # pieces to add at the most
    rule: Rule = GREEDY
    first: int = 0  # the number of the first text, which decides its chance where the rule draws

    def __post_init__(self) -> None:
        if self.length < 1:
            raise SettingsError(f"length = {self.length}: a continuation has at least one piece; 40 is usual")

    @classmethod
    def of(cls, asked: DecodeSettings) -> Writing:
        """What a command line or a request asks for."""
        return cls(asked.length, rule_of(asked.only(CONTINUED, "a text that is gone on with")))


WRITING = Writing()


@dataclass(frozen=True)
class Opening:
    """How a run is opened. Only translators have a choice of engines."""

    checkpoint: str | None = None  # such as step-2000; the best, if none is named
    engine: str = "auto"
    tell: Callable[[str], object] = lambda _: None


class Predictor(Protocol):
    """A trained run in use, that does not translate. Order is kept: there is an answer for every text."""

    @property
    def task(self) -> TaskName: ...

    @property
    def model(self) -> nn.Module: ...

    @property
    def known(self) -> KnownWords | None:
        """The words it has seen."""

    def predict(self, texts: Sequence[str], writing: Writing = ...) -> Sequence[Predicted]:
        """What it says of each text. Of an empty one it says nothing, which is an answer too."""

    def read(self, texts: Sequence[str]) -> list[str]:
        """What one pass over each text finds, in a word: what a comparison times."""

    def evaluate(self, chunks: Iterable[list[Row]], name: str) -> Result:
        """How good it is on rows with the right answers in them; complaints say the name and the line."""
