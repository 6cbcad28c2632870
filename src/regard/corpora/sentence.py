"""One pair of the corpus with everything known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from regard.corpora.phrases import english, french, hindi
from regard.corpora.phrases.line import alignment
from regard.corpora.syntax import Pronoun, Text, sentiment

Language = Literal["fr", "hi"]
Sentiment = Literal["negative", "neutral", "positive"]
Links = tuple[tuple[int, int], ...]
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A source sentence with its translation and gold labels; positions count whitespace words from 0."""

    source: str
    target: str
    alignment: Links  # (source word, target word), sorted
    tags: tuple[str, ...]  # universal part of speech, one for each source word
    sentiment: Sentiment
    referents: Links  # (pronoun, noun it stands for), both in the source


def compose(text: Text, language: Language, page: english.Page | None = None) -> Sentence:
    """Put a tree into English and the language asked for; `page` is the English if it is written already."""
    page = page or english.write(text)
    line = french.write(text) if language == "fr" else hindi.write(text)
    return Sentence(
        source=" ".join(page.words),
        target=" ".join(line.words),
        alignment=alignment(line.sources),
        tags=tuple(page.tags),
        sentiment=label(sentiment(text)),
        referents=referents(text),
    )


def label(mood: int) -> Sentiment:
    return "positive" if mood > 0 else "negative" if mood < 0 else "neutral"


def referents(text: Text) -> Links:
    """Which noun each *it* and *they* stands for, where the sentence says so."""
    return tuple(
        (clause.subject.at, clause.subject.referent.head)
        for clause in text.clauses
        if isinstance(clause.subject, Pronoun) and clause.subject.referent is not None
    )
