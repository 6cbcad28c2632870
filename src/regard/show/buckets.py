"""A score by groups of sentences for a page: a chart if groups are large enough, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.metrics import numbers
from regard.metrics.groups import FEWEST, Bucket
from regard.show.page import several
from regard.show.pictures import Chart, Point, Series, categories, linear

Named = tuple[int, str, Sequence[Bucket]]  # the number of a series, its name, its groups


def groups(rows: Sequence[Named], metric: str, label: str, unit: str, kind: str) -> dict[str, Any]:
    """``label`` names the axis, ``unit`` what a group's name counts, ``kind`` the groups."""
    buckets = rows[0][2]
    series = [Series(name, [_point(name, unit, *one) for one in enumerate(each)]) for _, name, each in rows]
    points = [point for one in series for point in one.points]
    ends = [end for point in points for end in (point.low, point.y, point.high) if end is not None]
    spoken = f"{metric} by {label} for {several([name for _, name, _ in rows])}; the table below has the numbers"
    x = categories(label, [f"{bucket.name}\n{bucket.count:,}" for bucket in buckets])
    return {
        "chart": Chart(spoken, series, x, linear(metric, ends)) if ends else None,
        "metric": metric,
        "kind": kind,
        "unit": unit,
        "fewest": FEWEST,
        "few": any(bucket.count < FEWEST for bucket in buckets),
        "buckets": buckets,
        "rows": [(number, name, [_quality(bucket) for bucket in each]) for number, name, each in rows],
    }


def _point(name: str, unit: str, place: int, bucket: Bucket) -> Point:
    quality = bucket.quality
    if quality is None:
        return Point(place, None)
    note = f"{name}, {bucket.name} {unit}: {_quality(bucket)}, {bucket.count:,} sentences"
    return Point(place, quality.score, quality.low, quality.high, note)


def _quality(bucket: Bucket) -> str:
    quality = bucket.quality
    return numbers.UNKNOWN if quality is None else numbers.score(quality.score, quality.margin)
