"""What a trained run can be asked, whatever its task. Translators are asked for more: `regard.tasks.translator`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from torch import nn

from regard.data.tables import Row
from regard.decode.options import rule_of
from regard.errors import SettingsError
from regard.metrics.labels import Confusion
from regard.settings import TaskName
from regard.settings.call import CONTINUED, DecodeSettings
from regard.text.reading import KnownWords

GREEDY = DecodeSettings(beam=1)


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


def continuing(asked: DecodeSettings) -> DecodeSettings:
    """How a text is gone on with, as a command line or a request asks for it; complains of what means nothing there."""
    rule_of(asked.only(CONTINUED, "a text that is gone on with"))
    if asked.length < 1:
        raise SettingsError(f"length = {asked.length}: a continuation has at least one piece; 40 is usual")
    return asked


class Predictor(Protocol):
    """A trained run in use, that does not translate. Order is kept: there is an answer for every text."""

    @property
    def task(self) -> TaskName: ...

    @property
    def model(self) -> nn.Module: ...

    @property
    def known(self) -> KnownWords | None:
        """The words it has seen."""

    def predict(self, texts: Sequence[str], how: DecodeSettings = ..., *, first: int = 0) -> Sequence[Predicted]:
        """What it says of each text. Of an empty one it says nothing, which is an answer too.

        Only what writes asks ``how``, and ``first``, the number of the first text, which decides its chance in a draw.
        """

    def read(self, texts: Sequence[str]) -> list[str]:
        """What one pass over each text finds, in a word: what a comparison times."""

    def evaluate(self, chunks: Iterable[list[Row]], name: str) -> Result:
        """How good it is on rows with the right answers in them; complaints say the name and the line."""
