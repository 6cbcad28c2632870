"""Text as it is drawn: what belongs together, which way it runs, about how wide it is."""

from __future__ import annotations

from unicodedata import bidirectional, category, combining, east_asian_width

VIRAMA = 9  # the combining class of the sign that joins two Indic consonants
NARROW, USUAL, INDIC, WIDE = 0.34, 0.6, 0.8, 1.05  # of the size of letters


def clusters(text: str) -> list[str]:
    """What a reader sees as one letter: with its marks, and Indic consonants or emoji that are joined."""
    found: list[str] = []
    for letter in text:
        if found and _joins(found[-1], letter):
            found[-1] += letter
        else:
            found.append(letter)
    return found


def _joins(before: str, letter: str) -> bool:
    last = before[-1]
    if category(letter)[0] == "M" or letter in "\u200d\u200c" or "\U0001f3fb" <= letter <= "\U0001f3ff":
        return True
    if last == "\u200d" or (combining(last) == VIRAMA and category(letter)[0] == "L"):
        return True
    return _flag(letter) and len(before) == 1 and _flag(last)


def _flag(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def right_to_left(text: str) -> bool:
    """Whether the first letter that has a direction runs to the left."""
    directions = (bidirectional(letter) for letter in text)
    return next((found in ("R", "AL") for found in directions if found in ("L", "R", "AL")), False)


def extent(text: str, size: float) -> float:
    """About how many pixels a line takes, rather more than less."""
    return size * sum(_share(cluster[0]) for cluster in clusters(text))


def _share(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return WIDE
    if "\u0900" <= letter <= "\u0dff":
        return INDIC
    return NARROW if letter in "iljtfr.,:;'!|() ·" else USUAL


def shortened(text: str, width: float, size: float) -> str:
    """A text that fits, with an ellipsis where its end had to go; no letter loses its marks."""
    if extent(text, size) <= width:
        return text
    kept = clusters(text)
    while len(kept) > 1 and extent("".join(kept) + "…", size) > width:
        kept.pop()
    return "".join(kept).rstrip() + "…"


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Lines that fit, broken at spaces; a word that does not fit alone is shortened."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and extent(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(shortened(word, width, size))
    return lines
