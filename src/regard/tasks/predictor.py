"""What every trained run can do, whatever its task. Translators can do more: `regard.tasks.translator`."""

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
    """The prediction for one text. As a string it is a line of ``regard predict``."""

    def to_dict(self) -> dict[str, Any]:
        """The same with ``--json``."""

    def fields(self) -> dict[str, Any]:
        """The fields of the service's answer besides the text."""


class Result(Protocol):
    """The scores of a run on a corpus."""

    def rows(self) -> list[tuple[str, ...]]:
        """For a table."""

    def to_dict(self) -> dict[str, object]:
        """For JSON."""

    def numbers(self) -> tuple[tuple[str, float], ...]:
        """The metrics of the task; the first decides."""

    def confusions(self) -> tuple[Confusion, ...]:
        """Of all labels and, where they are counted separately, of those of unknown words."""


def continuing(asked: DecodeSettings) -> DecodeSettings:
    """The settings for continuing a text, checked; those that mean nothing for it are refused."""
    rule_of(asked.only(CONTINUED, "a text that is continued"))
    if asked.length < 1:
        raise SettingsError(f"length = {asked.length}: a continuation has at least one piece; 40 is usual")
    return asked


class Predictor(Protocol):
    """A trained run in use that does not translate. Order is kept: there is an answer for every text."""

    @property
    def task(self) -> TaskName: ...

    @property
    def model(self) -> nn.Module: ...

    @property
    def known(self) -> KnownWords | None:
        """The words it has seen."""

    def predict(self, texts: Sequence[str], how: DecodeSettings = ..., *, first: int = 0) -> Sequence[Predicted]:
        """The prediction for each text; an empty one for an empty text.

        Only language models read ``how``, and ``first``, the number of the first text: sampling draws by numbers.
        """

    def read(self, texts: Sequence[str]) -> list[str]:
        """The result of one pass over each text, as a string; comparisons measure its time."""

    def evaluate(self, chunks: Iterable[list[Row]], name: str) -> Result:
        """The scores on rows with the right answers in them; error messages have the name and the line."""
