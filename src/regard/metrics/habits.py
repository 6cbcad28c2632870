"""What a translator does when it does not know: stop short, repeat itself, copy, or leave words as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import DataError
from regard.text.words import JOINER, split_words

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
    if not len(sources) == len(hypotheses) == len(references):
        counts = f"{len(sources):,} sources, {len(hypotheses):,} hypotheses, {len(references):,} references"
        raise DataError(f"lines = {counts}: they must be as many as each other")
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
