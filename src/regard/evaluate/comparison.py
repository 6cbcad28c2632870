"""Systems side by side: what `regard compare` found, as a table in a terminal, as JSON and as a page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.errors import SettingsError
from regard.files import new_file
from regard.metrics import numbers
from regard.metrics.groups import Bucket, Differing
from regard.metrics.paired import Verdict
from regard.metrics.translation import Quality

SUFFIXES = (".html", ".json")
LEVEL = 0.05  # a smaller p is called significant
SIGNS = "*†‡§¶abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Cost:
    """What a system takes. None is unknown."""

    parameters: int | None = None
    tokens_per_second: float | None = None  # predictions in training, over the whole of it
    seconds: float | None = None  # of training
    milliseconds: float | None = None  # for a sentence, translated together with others
    alone: float | None = None  # milliseconds for a sentence by itself, the median


@dataclass(frozen=True)
class Row:
    """A system: a run, or anything else that has scores under the same names."""

    name: str
    scores: tuple[Quality, ...]
    cost: Cost = Cost()
    lengths: tuple[Bucket, ...] = ()
    origin: str = ""  # where it comes from


@dataclass(frozen=True)
class Conditions:
    """How the numbers of a comparison or a report came about."""

    data: str
    sentences: int
    sha256: str  # of sources and references
    beam: int | None  # None where nothing is searched for, or outputs are drawn
    device: str
    threads: int
    resamples: int
    trials: int
    seed: int
    versions: dict[str, str]
    how: tuple[str, ...] = ()  # outputs were made: the beam, and what else is not as usual
    held_out: bool = True  # False: by this text checkpoints were chosen
    learned: tuple[str, ...] = ()  # remarks about runs that were trained on some of it


@dataclass(frozen=True)
class Comparison:
    """Rows under the same scores, the first score being the one that decides."""

    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]
    differing: tuple[Differing, ...]
    conditions: Conditions

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the scores, in the order in which rows have them."""
        return tuple(dict.fromkeys(quality.name for row in self.rows for quality in row.scores))

    @property
    def tested(self) -> tuple[str, ...]:
        """The names of the rows that took part in the paired tests."""
        found = {name for verdict in self.verdicts for name in (verdict.first, verdict.second)}
        return tuple(row.name for row in self.rows if row.name in found)

    def beaten(self, name: str) -> list[Verdict]:
        """The verdicts by which this row is better than another under the first score, and not by chance."""
        return [
            verdict
            for verdict in self.verdicts
            if verdict.metric == self.metrics[0] and verdict.better == name and verdict.bootstrap < LEVEL
        ]

    def signs(self, name: str) -> str:
        """A sign for each row that this one beats."""
        worse = {verdict.worse for verdict in self.beaten(name)}
        return "".join(sign(place) for place, row in enumerate(self.rows) if row.name in worse)

    def legend(self) -> list[str]:
        """What the signs mean, with the largest p that each stands for."""
        meanings = []
        for place, row in enumerate(self.rows):
            chances = [
                verdict.bootstrap
                for other in self.rows
                for verdict in self.beaten(other.name)
                if verdict.worse == row.name
            ]
            if chances:
                meanings.append(f"{sign(place)} better than {row.name} {numbers.chance(max(chances))}")
        return meanings

    def test_name(self) -> str:
        return f"paired bootstrap, {self.conditions.resamples:,}"

    def as_json(self) -> dict[str, Any]:
        """All numbers, as `json` can write them."""
        return {"format": "regard comparison 1", "metrics": list(self.metrics), **plain(asdict(self))}

    def save(self, path: str | Path) -> None:
        """Write a page (``.html``) or the numbers alone (``.json``)."""
        from regard.show.comparison_page import comparison_page  # noqa: PLC0415 - it draws what is defined here

        save(Path(path), self.as_json(), lambda: comparison_page(self))

    def __str__(self) -> str:
        """The table."""
        head = ["", *self.metrics, "params", "train", "tokens/s", "ms/sentence"]
        rows = [head, *(self._cells(row) for row in self.rows)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if meanings := self.legend():
            lines.append(f"{'   '.join(meanings)}   ({self.test_name()})")
        elif self.verdicts:
            lines.append(f"no difference in {self.metrics[0]} is significant   ({self.test_name()})")
        return "\n".join(lines)

    def _cells(self, row: Row) -> list[str]:
        shown = {quality.name: numbers.score(quality.score, quality.margin) for quality in row.scores}
        scores = [shown.get(name, numbers.UNKNOWN) for name in self.metrics]
        scores[0] = f"{scores[0]} {self.signs(row.name)}".rstrip()
        return [row.name, *scores, *costs(row.cost)]


def costs(cost: Cost) -> list[str]:
    """Parameters, training time, training speed, milliseconds a sentence."""
    speed = numbers.UNKNOWN if cost.tokens_per_second is None else f"{cost.tokens_per_second:,.0f}"
    return [
        numbers.count(cost.parameters),
        numbers.duration(cost.seconds),
        speed,
        numbers.milliseconds(cost.milliseconds),
    ]


def sign(place: int) -> str:
    """The sign of a row, however many rows there are."""
    return SIGNS[place] if place < len(SIGNS) else f"({place + 1})"


# Writing


def save(path: Path, numbers: Mapping[str, Any], page: Callable[[], str]) -> None:
    """A page (``.html``), or the numbers alone (``.json``)."""
    if check_suffix(path) == ".json":
        written = json.dumps(numbers, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    else:
        written = page()
    with new_file(path) as file:
        file.write(written.encode("utf-8", "replace"))


def check_suffix(path: Path) -> str:
    """The kind of file that is asked for by its name."""
    if path.suffix.lower() not in SUFFIXES:
        raise SettingsError(f"out = {path}: written as a page or as numbers; end it in .html or .json")
    return path.suffix.lower()


def plain(value: Any) -> Any:
    """Tuples as lists, as JSON gives them back; infinity and its like as null."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case tuple() | list():
            return [plain(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
