"""A line of a target language as it is written: words, each with the English tokens it translates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regard.fable.lexicon import Links


class Line:
    """Words from left to right; `sources[i]` are the English tokens of `words[i]` (none for ने)."""

    __slots__ = ("commas", "reported", "sources", "words")

    def __init__(self, *, commas: bool = False, reported: bool = False) -> None:
        self.words: list[str] = []
        self.sources: list[tuple[int, ...]] = []
        self.commas = commas
        self.reported = reported  # what somebody said that was before

    def put(self, word: str, *sources: int) -> None:
        self.words.append(word)
        self.sources.append(sources)

    def put_all(self, words: Iterable[str], *sources: int) -> None:
        for word in words:
            self.words.append(word)
            self.sources.append(sources)

    def put_linked(self, words: Sequence[str], links: Links, places: Sequence[int]) -> None:
        """Words with links; `places` has the positions of the tokens."""
        for word, linked in zip(words, links, strict=True):
            self.words.append(word if self.commas else word.removesuffix(","))
            self.sources.append(tuple(places[at] for at in linked))

    def comma(self) -> None:
        """A comma after the last word, if this text has commas."""
        if self.commas:
            self.words[-1] += ","


def alignment(sources: Sequence[tuple[int, ...]], word_of: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The links as sorted (source word, target word) pairs; `word_of` has the word of each token."""
    return tuple(sorted({(word_of[source], target) for target, linked in enumerate(sources) for source in linked}))
