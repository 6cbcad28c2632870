"""Quality by source length, by word rarity and by sentence, and typical faults."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from sacrebleu.metrics.chrf import CHRF

from regard.errors import SettingsError
from regard.metrics.translation import Quality, check_lines, measure
from regard.settings.call import MeasureSettings
from regard.text.words import JOINER, split_words

# Quality by the length of the source.

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
    check_lines(sources=places, hypotheses=hypotheses, references=references)
    buckets = []
    for number, name in enumerate(names):
        rows = [row for row, place in enumerate(places) if place == number]
        quality = None
        if len(rows) >= FEWEST:
            ours, theirs = ([side[row] for row in rows] for side in (hypotheses, references))
            (quality,) = measure(ours, theirs, how)
        buckets.append(Bucket(name, len(rows), quality))
    return buckets


# Quality by how rare the words of the source are in the text that a model learned from.

RARITY_EDGES = (0, 9, 99, 999)


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
    seen = [[counts.get(word, 0) for word in words(source)] for source in sources]
    frequencies = [min(each, default=0) if how.rarity == "rarest" else mean(each) for each in seen]
    places = [bisect_left(RARITY_EDGES, each) for each in frequencies]
    names = ["unseen" if name == "up to 0" else name for name in bucket_names(RARITY_EDGES)]
    return in_buckets(names, places, hypotheses, references, how)


def mean(counts: Sequence[int]) -> int:
    """The geometric mean, because counts of words spread over many orders: exp(Σ log(1 + count) / n) - 1."""
    return round(math.expm1(sum(map(math.log1p, counts)) / len(counts))) if counts else 0


# The sentences on which systems differ most: where to look first when one of them is better.


@dataclass(frozen=True)
class Differing:
    """One sentence, each system's output for it, and how good each is: chrF2 of the sentence alone."""

    line: int  # of the test, from 1
    source: str
    reference: str
    outputs: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def spread(self) -> float:
        return max(self.scores) - min(self.scores)


def most_differing(
    sources: Sequence[str],
    references: Sequence[str],
    outputs: Sequence[Sequence[str]],
    *,
    count: int = 10,
    seed: int = 1,
) -> list[Differing]:
    """The sentences with the largest distance between the best and the worst output, largest first.

    Among equals the seed decides, and not the order in the file. A pair of texts that the test repeats is
    shown once; one on which all agree is never shown.
    """
    for each in outputs:
        check_lines(sources=sources, hypotheses=each, references=references)
    metric = CHRF()
    drawn = Random(seed)
    found: dict[tuple[str, str], tuple[float, Differing]] = {}
    for row, (source, reference) in enumerate(zip(sources, references, strict=True)):
        texts = tuple(side[row] for side in outputs)
        chance = drawn.random()
        if len(set(texts)) > 1 and (source, reference) not in found:
            scores = tuple(metric.sentence_score(text, [reference]).score for text in texts)
            found[source, reference] = (chance, Differing(row + 1, source, reference, texts, scores))
    ordered = sorted(found.values(), key=lambda item: (-item[1].spread, item[0]))
    return [one for _, one in ordered[:count]]


# Typical faults: outputs that are too short, repeat themselves, copy the source or leave words untranslated.

ORDER = 3  # words in the n-grams whose repetition is counted


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1. The reference's own repetitions stand beside the output's, because some are right."""

    length_ratio: float  # words of the output over words of the reference
    repeated: float  # n-grams of the output that the same sentence has had already
    repeated_in_reference: float
    copied: float  # sentences whose output is the source, though the reference is not
    untranslated: float  # words of the output that are in the source and not in the reference
    empty: float  # sentences with no output, though the reference has words


def habits(sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> Habits:
    """Count over a whole corpus. Words are compared without case, and marks alone are not words."""
    check_lines(sources=sources, hypotheses=hypotheses, references=references)
    rows = [tuple(map(plain_words, row)) for row in zip(sources, hypotheses, references, strict=True)]
    written = [output for _, output, _ in rows]
    wanted = [reference for _, _, reference in rows]
    left = sum(
        len([word for word in output if word in given and word not in right])
        for given, output, right in ((set(source), output, set(reference)) for source, output, reference in rows)
    )
    words = sum(map(len, written))
    return Habits(
        length_ratio=_share(words, sum(map(len, wanted))),
        repeated=repeated(written),
        repeated_in_reference=repeated(wanted),
        copied=_share(sum(bool(source) and source == output != right for source, output, right in rows), len(rows)),
        untranslated=_share(left, words),
        empty=_share(sum(not output and bool(right) for _, output, right in rows), len(rows)),
    )


def repeated(sentences: Sequence[Sequence[str]], order: int = ORDER) -> float:
    """1 - (different n-grams of each sentence) / (all of them), summed over the corpus."""
    total = different = 0
    for words in sentences:
        grams = [tuple(words[start : start + order]) for start in range(len(words) - order + 1)]
        total, different = total + len(grams), different + len(set(grams))
    return _share(total - different, total)


def plain_words(text: str) -> list[str]:
    """The words of a text without case, glue and marks."""
    words = (piece.removeprefix(JOINER).casefold() for piece in split_words(text))
    return [word for word in words if any(character.isalnum() for character in word)]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
