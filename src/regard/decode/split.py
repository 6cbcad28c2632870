"""Sentences that are longer than a model can take: cut at the best boundary, never truncated.

Clauses first, then words; only a single word that is too long by itself is cut inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Length = Callable[[str], int]  # of a text, in pieces

_CUTS = (
    re.compile(r"(?<=[,;:—、，；])(?=\s)|(?<=[、，；])"),
    re.compile(r"(?=\s)"),
)


def split(text: str, length: Length, longest: int) -> list[str]:
    """The sentence in parts of at most ``longest`` pieces each, as few as their boundaries allow; one if it fits."""
    return [part.strip() for part in _split(text, length, longest, 0) if part.strip()]


def _split(text: str, length: Length, longest: int, level: int) -> list[str]:
    if length(text) <= longest:
        return [text]
    if level == len(_CUTS):
        return _halves(text, length, longest)
    parts: list[str] = []
    fits = 0  # pieces in the last part
    for unit in _CUTS[level].split(text):
        size = length(unit)
        if size > longest:
            parts += _split(unit, length, longest, level + 1)
            fits = longest
        elif parts and fits + size <= longest:
            parts[-1] += unit
            fits += size
        else:
            parts.append(unit)
            fits = size
    return parts


def _halves(text: str, length: Length, longest: int) -> list[str]:
    """Something without a single space in it."""
    if length(text) <= longest or len(text) == 1:
        return [text]
    middle = len(text) // 2
    return [*_halves(text[:middle], length, longest), *_halves(text[middle:], length, longest)]
