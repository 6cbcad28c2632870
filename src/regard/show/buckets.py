"""A score inside groups of sentences: as a chart where there are enough of them, and all numbers in a table."""

from __future__ import annotations

from collections.abc import Sequence

from regard.metrics import numbers
from regard.metrics.by_length import FEWEST, Bucket
from regard.show import charts
from regard.show.charts import Point, Series
from regard.show.markup import Html, join
from regard.show.page import figure, key, paragraph, table

Named = tuple[int, str, Sequence[Bucket]]  # the number of a series, its name, its groups


def bucket_parts(rows: Sequence[Named], metric: str, label: str, unit: str, kind: str) -> list[Html]:
    """The chart, if there is anything to draw, and the table.

    ``label`` names the axis, ``unit`` what a group's name counts, ``kind`` the groups.
    """
    buckets = rows[0][2]
    x = charts.categories(label, [f"{bucket.name}\n{bucket.count:,}" for bucket in buckets])
    series = [Series(name, [_point(name, unit, *one) for one in enumerate(groups)]) for _, name, groups in rows]
    ends = [
        end for one in series for point in one.points for end in (point.low, point.y, point.high) if end is not None
    ]
    y = charts.linear(metric, ends)
    numbered = table([unit, *(bucket.name for bucket in buckets)], _cells(rows))
    if not ends:
        return [numbered, paragraph("note", f"Groups of fewer than {FEWEST} sentences have no score.")]
    spoken = f"{metric} by {label} for {_and([name for _, name, _ in rows])}; the table below has the numbers"
    few = any(bucket.count < FEWEST for bucket in buckets)
    drawn = figure(
        lambda width: charts.line_chart(series, x, y, title=spoken, width=width),
        f"{metric} inside each group of {kind}, with 95 % intervals; below each group, its number of "
        "sentences." + (f" Groups of fewer than {FEWEST} are not drawn." if few else ""),
    )
    return [drawn, numbered]


def _cells(rows: Sequence[Named]) -> list[list[str]]:
    cells: list[list[str]] = [
        [join([key(number), name]), *(_quality(bucket) for bucket in groups)] for number, name, groups in rows
    ]
    return [*cells, ["sentences", *(f"{bucket.count:,}" for bucket in rows[0][2])]]


def _point(name: str, unit: str, place: int, bucket: Bucket) -> Point:
    quality = bucket.quality
    if quality is None:
        return Point(place, None)
    note = f"{name}, {bucket.name} {unit}: {numbers.score(quality.score, quality.margin)}, {bucket.count:,} sentences"
    return Point(place, quality.score, quality.low, quality.high, note)


def _quality(bucket: Bucket) -> str:
    quality = bucket.quality
    return numbers.UNKNOWN if quality is None else numbers.score(quality.score, quality.margin)


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
