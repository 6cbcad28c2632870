"""A text of a client, perhaps with tags, and the sentences of it that go to a model."""

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

# One sentence of a text is explained, with remarks on it.

Found = TypeVar("Found", bound=OfSentence)
UNKNOWN = "<unk>"  # as a search writes it


def about_sentence(
    model: Model, text: str, number: int, answer: Callable[[str], Found], output: Callable[[Found], str]
) -> Found:
    """The answer about one sentence of a text, counted from 0, with remarks on its output. Models that do not translate
    read a text whole."""
    sentences = (cut_up(text) if model.task == "translate" else ()) or (Sentence(0, len(text), text),)
    if number >= len(sentences):
        raise DataError(f"sentence = {number}: the text has {len(sentences)}, counted from 0; choose one of these")
    found = answer(sentences[number].text)
    unknown, warning = _remarks(model, sentences[number].text, output(found))
    return replace(found, sentences=sentences, sentence=number, unknown=unknown, warning=warning)


def _remarks(model: Model, text: str, output: str) -> tuple[tuple[Unknown, ...], str]:
    """Words that a translator has never seen, and its warnings."""
    if model.task != "translate":
        return (), ""
    passage = model.search.read(text)
    words = list(dict.fromkeys(each.word for each in passage.unknown))
    copied = [output, *words] if output.count(UNKNOWN) >= len(words) else [output]  # each has its <unk>
    return passage.unknown, "; ".join(passage.remarks(" ".join(copied), model.language))


def cut_up(text: str) -> tuple[Sentence, ...]:
    """Every sentence with its start and end."""
    found = cut(text)
    places = zip(found.sentences, found.spans, strict=True)
    return tuple(Sentence(start, end, sentence) for sentence, (start, end) in places)


Render = Callable[[Sequence[Translated], int], list[str]]


def passage(text: str, *, markup: bool) -> tuple[list[str], Render]:
    """The texts to translate, and a function that makes different translations of the whole from theirs, best first, at
    most so many. The translator cuts plain text into sentences; HTML is cut here, and its tags follow its words."""
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
    """The translation of this rank, or the last, and the links of target and source word."""
    translation, links, *_ = found
    rank = min(rank, len(translation.outputs) - 1)
    places = [(link.target_place, link.source_place) for link in links[rank]] if links else []
    return translation.outputs[rank].text, places
