"""Quality by the length of the source: where does a model give up?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.errors import DataError, SettingsError
from regard.metrics.translation import Quality, measure
from regard.settings.call import MeasureSettings

EDGES = (10, 20, 30, 40)
FEWEST = 30  # sentences below which a corpus score says little, and is not given


@dataclass(frozen=True)
class Bucket:
    """Sentences of one kind. Its quality is None where they are too few."""

    name: str
    count: int
    quality: Quality | None


def by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    how: MeasureSettings,
) -> list[Bucket]:
    """The first metric inside each bucket of source lengths, in words between spaces; an edge ends its bucket."""
    edges = how.edges or EDGES
    places = [bisect_left(edges, len(source.split())) for source in sources]
    return in_buckets(bucket_names(edges), places, hypotheses, references, how)


def bucket_names(edges: Sequence[int]) -> list[str]:
    """``up to 10``, ``11 to 20``, …, ``over 40``."""
    if not edges or edges[0] < 0 or any(low >= high for low, high in pairwise(edges)):
        shown = ",".join(map(str, edges)) or "none"
        raise SettingsError(f"edges = {shown}: must be growing numbers; 10,20,30,40 would be right")
    between = [f"{low + 1:,} to {high:,}" for low, high in pairwise(edges)]
    return [f"up to {edges[0]:,}", *between, f"over {edges[-1]:,}"]


def in_buckets(
    names: Sequence[str],
    places: Sequence[int],
    hypotheses: Sequence[str],
    references: Sequence[str],
    how: MeasureSettings,
) -> list[Bucket]:
    """The first metric of the sentences at each place."""
    how = how.model_copy(update={"metrics": how.metrics[:1]})
    if not len(places) == len(hypotheses) == len(references):
        counts = f"{len(places):,} sources, {len(hypotheses):,} hypotheses, {len(references):,} references"
        raise DataError(f"lines = {counts}: they must be as many as each other")
    buckets = []
    for number, name in enumerate(names):
        rows = [row for row, place in enumerate(places) if place == number]
        quality = None
        if len(rows) >= FEWEST:
            ours, theirs = ([side[row] for row in rows] for side in (hypotheses, references))
            (quality,) = measure(ours, theirs, how)
        buckets.append(Bucket(name, len(rows), quality))
    return buckets
