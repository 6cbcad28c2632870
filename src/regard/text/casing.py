"""Capitals as marks of their own, so that *The* and *the* are one word to a model: The → ⇧ the, NATO → ⇪ nato.

A word gets a mark only where the mark gives it back exactly; one of mixed case (McDonald, iPhone) stays as it is.
A mark that the text itself holds is written twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Literal

Case = Literal["keep", "mark"]
CAPITAL: Final = "⇧"  # the first letter of the next word is a capital
CAPITALS: Final = "⇪"  # all its letters are, two at the least
MARKS: Final = (CAPITAL, CAPITALS)


@lru_cache(maxsize=1 << 16)
def lowered(word: str) -> tuple[str, str]:
    """The mark that a word needs, or none, and the word as it stands behind that mark."""
    if word.startswith(MARKS):
        return "", word[0] + word
    low = word.lower()
    if low != word and not low.startswith(MARKS):
        for mark in MARKS:
            if _raised(mark, low) == word:
                return mark, low
    return "", word


def raised(mark: str, word: str) -> str:
    """The word that `lowered` was given."""
    if word.startswith(MARKS) and word[1:2] == word[0]:
        return word[1:]
    return _raised(mark, word)


def _raised(mark: str, word: str) -> str:
    if mark == CAPITALS:
        return word.upper()
    if mark == CAPITAL:
        place = next((place for place, letter in enumerate(word) if letter.upper() != letter), len(word))
        return word[:place] + word[place : place + 1].upper() + word[place + 1 :]
    return word


def mark_words(words: Iterable[str]) -> Iterator[str]:
    """Words with their marks between them, each a word of its own."""
    for word in words:
        mark, low = lowered(word)
        if mark:
            yield mark
        yield low


def unmark_words(words: Iterable[str]) -> Iterator[str]:
    """Undo `mark_words`. A mark glued to its word, as a model may write it, counts; one without a word is lost."""
    mark = ""
    for word in words:
        if word in MARKS:
            mark = word
        elif word.startswith(MARKS) and word[1] != word[0]:
            yield raised(word[0], word[1:])
            mark = ""
        else:
            yield raised(mark, word)
            mark = mark if not word else ""
