"""A text as a client sends it, with its tags where it has some, and the pieces of it that go to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from regard.serve.markup import Page
from regard.serve.worker import Translated


class Translatable(Protocol):
    """Texts to translate, and how they become one again."""

    tagged: bool  # whether links are needed to put it together

    @property
    def texts(self) -> list[str]: ...

    def render(self, found: Sequence[Translated], count: int) -> list[str]:
        """At most ``count`` different translations of the whole, best first, at least one."""


def passage(text: str, *, markup: bool) -> Translatable:
    return HtmlPassage(text) if markup else PlainPassage(text)


class PlainPassage:
    """Plain text, which is cut into sentences where it is translated."""

    tagged = False

    def __init__(self, text: str) -> None:
        self.texts = [text]

    def render(self, found: Sequence[Translated], count: int) -> list[str]:
        return _different([_ranked(found[0], rank)[0] for rank in range(count)])


class HtmlPassage:
    """HTML: each sentence by itself, its tags where its words have gone."""

    tagged = True

    def __init__(self, text: str) -> None:
        self._page = Page(text)

    @property
    def texts(self) -> list[str]:
        return [sentence.source for sentence in self._page.sentences]

    def render(self, found: Sequence[Translated], count: int) -> list[str]:
        return _different([self._whole(found, rank) for rank in range(count)])

    def _whole(self, found: Sequence[Translated], rank: int) -> str:
        pairs = zip(self._page.sentences, found, strict=True)
        return self._page.render(sentence.render(*_ranked(each, rank)) for sentence, each in pairs)


def _ranked(found: Translated, rank: int) -> tuple[str, list[tuple[int, int]]]:
    """A text's translation of this rank, or its last, and the links of target and source word."""
    outputs = found.translation.outputs
    rank = min(rank, len(outputs) - 1)
    links = found.links[rank] if found.links else []
    return outputs[rank].text, [(link.target_place, link.source_place) for link in links]


def _different(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))
