"""A line of a target language as it is written: words, each with the English words it translates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Line:
    """Words from left to right; `sources[i]` are the English positions of `words[i]` (none for ने)."""

    __slots__ = ("sources", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.sources: list[tuple[int, ...]] = []

    def put(self, word: str, *sources: int) -> None:
        self.words.append(word)
        self.sources.append(sources)

    def put_all(self, words: Iterable[str], *sources: int) -> None:
        for word in words:
            self.words.append(word)
            self.sources.append(sources)


def alignment(sources: Sequence[tuple[int, ...]]) -> tuple[tuple[int, int], ...]:
    """The links as sorted (source word, target word) pairs."""
    return tuple(sorted({(source, target) for target, linked in enumerate(sources) for source in linked}))
