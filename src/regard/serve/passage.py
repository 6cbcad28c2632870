"""A text as a client sends it, with its tags where it has some, and the pieces of it that go to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from regard.errors import DataError
from regard.explain.answer import OfSentence, Sentence
from regard.serve.markup import Page
from regard.serve.worker import Model, Translated
from regard.text.reading import Unknown
from regard.text.sentences import cut

# Which sentence of a text is looked into, and the remarks on it.

Found = TypeVar("Found", bound=OfSentence)
UNKNOWN = "<unk>"  # as a search writes it


def about_sentence(
    model: Model, text: str, number: int, answer: Callable[[str], Found], output: Callable[[Found], str]
) -> Found:
    """The answer about a sentence of a text, by its number from 0, with the remarks on it, which depend on the output.
    What does not translate reads a text whole."""
    sentences = (cut_up(text) if model.task == "translate" else ()) or (Sentence(0, len(text), text),)
    if number >= len(sentences):
        raise DataError(f"sentence = {number}: the text has {len(sentences)}, counted from 0; choose one of these")
    found = answer(sentences[number].text)
    unknown, warning = _remarks(model, sentences[number].text, output(found))
    return replace(found, sentences=sentences, sentence=number, unknown=unknown, warning=warning)


def _remarks(model: Model, text: str, output: str) -> tuple[tuple[Unknown, ...], str]:
    """Words that a translator has never seen, and what it warns of."""
    if model.task != "translate":
        return (), ""
    passage = model.search.read(text)
    words = list(dict.fromkeys(each.word for each in passage.unknown))
    copied = [output, *words] if output.count(UNKNOWN) >= len(words) else [output]  # each has its <unk>
    return passage.unknown, "; ".join(passage.remarks(" ".join(copied), model.language))


def cut_up(text: str) -> tuple[Sentence, ...]:
    """Every sentence with its place."""
    found = cut(text)
    places = zip(found.sentences, found.spans, strict=True)
    return tuple(Sentence(start, end, sentence) for sentence, (start, end) in places)


Render = Callable[[Sequence[Translated], int], list[str]]


def passage(text: str, *, markup: bool) -> tuple[list[str], Render]:
    """The texts to translate, and what makes at most so many different translations of the whole of theirs, best first,
    at least one. Plain text is cut into sentences where it is translated; of HTML each sentence goes by itself, and its
    tags where its words have gone."""
    page = Page(text) if markup else None

    def whole(found: Sequence[Translated], rank: int) -> str:
        if page is None:
            return ranked(found[0], rank)[0]
        pairs = zip(page.sentences, found, strict=True)
        return page.render(sentence.render(*ranked(each, rank)) for sentence, each in pairs)

    def render(found: Sequence[Translated], count: int) -> list[str]:
        return list(dict.fromkeys(whole(found, rank) for rank in range(count)))

    return [text] if page is None else [sentence.source for sentence in page.sentences], render


def ranked(found: Translated, rank: int) -> tuple[str, list[tuple[int, int]]]:
    """A text's translation of this rank, or its last, and the links of target and source word."""
    translation, links, *_ = found
    rank = min(rank, len(translation.outputs) - 1)
    places = [(link.target_place, link.source_place) for link in links[rank]] if links else []
    return translation.outputs[rank].text, places
