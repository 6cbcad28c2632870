"""Quality by how rare the words of the source are in the text that a model learned from."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from regard.metrics.by_length import Bucket, bucket_names, in_buckets
from regard.settings.call import MeasureSettings
from regard.text.words import split_words

EDGES = (0, 9, 99, 999)


def by_rarity(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    counts: Mapping[str, int],
    how: MeasureSettings,
    *,
    words: Callable[[str], Sequence[str]] = split_words,
) -> list[Bucket]:
    """The first metric by how often the training text has a sentence's rarest word, or its words on average.

    ``words`` must cut a sentence as the text was cut when ``counts`` was made; a word not in there counts 0.
    """
    frequency = rarest if how.rarity == "rarest" else mean
    places = [bisect_left(EDGES, frequency([counts.get(word, 0) for word in words(source)])) for source in sources]
    names = ["unseen" if name == "up to 0" else name for name in bucket_names(EDGES)]
    return in_buckets(names, places, hypotheses, references, how)


def rarest(counts: Sequence[int]) -> int:
    """The count of the rarest word; of no words, that of one never seen."""
    return min(counts, default=0)


def mean(counts: Sequence[int]) -> int:
    """The geometric mean, because counts of words spread over many orders: exp(Σ log(1 + count) / n) - 1."""
    return round(math.expm1(sum(map(math.log1p, counts)) / len(counts))) if counts else 0
