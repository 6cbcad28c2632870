"""A heat map as data: what the rows and columns are, the numbers, and where the numbers come from.

It is drawn in a terminal, as SVG and as PNG (`regard.show.terminal`, `svg`, `png`); all of them draw this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Numbers = tuple[tuple[float, ...], ...]
Scale = Literal["sequential", "diverging"]  # from nothing to much; from minus to plus


@dataclass(frozen=True)
class HeatMap:
    """Row t belongs to ``rows[t]``, column s to ``columns[s]``, in the order of the texts."""

    title: str  # cross-attention
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Numbers  # one tuple for each row
    origin: str  # cross-attention, layer 2, head 1 (best aligner on valid, AER 0.04)
    column_name: str = ""  # what columns are: source
    scale: Scale = "sequential"
    most: float = 1.0  # where the scale ends; a diverging one begins at minus that
    sums: bool = False  # whether a row's sum means something: then it stands beside it
    unit: str = "weight"  # of a number
    image: str = ""  # what the columns are patches of, as a data URI
    curve: Numbers = ()  # or the numbers that they are, for each channel: it is drawn on these

    @property
    def low(self) -> float:
        return -self.most if self.scale == "diverging" else 0.0

    @property
    def totals(self) -> tuple[float, ...]:
        """Σ of each row."""
        return tuple(sum(row) for row in self.values)


def reaching(picture: HeatMap) -> HeatMap:
    """The same with a scale that ends at its largest number, for numbers that are no distribution."""
    largest = max((abs(value) for row in picture.values for value in row), default=0.0)
    return replace(picture, most=largest or 1.0)


def brief(value: float, most: float = 1.0) -> str:
    """A number in as few letters as tell it: ``.97``, ``1``, ``−.3``, ``2.4``; nothing for what rounds to zero.

    ``most`` is the largest there is: numbers up to one have two decimals, larger ones fewer.
    """
    rounded = f"{abs(value):.{2 if most <= 1 else 1 if most < 100 else 0}f}"
    if float(rounded) == 0:
        return ""
    whole, _, part = rounded.partition(".")
    short = f"{whole.lstrip('0')}.{part}" if part.strip("0") else whole
    return f"−{short}" if value < 0 else short
