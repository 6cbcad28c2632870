"""A sentence pair of the corpus with its labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from regard.fable import typography
from regard.fable.phrases import english, french, hindi
from regard.fable.phrases.line import alignment
from regard.fable.syntax import Clause, Pronoun, Text, sentiment

Language = Literal["fr", "hi"]
Sentiment = Literal["negative", "neutral", "positive"]
Links = tuple[tuple[int, int], ...]
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True, slots=True)
class ParallelSentence:
    """A source sentence with its translation and gold labels.

    Positions count words between spaces, from 0: "mouse." is one word, and so is "faim\\u202f?", because a no-break
    space does not separate words.
    """

    source: str
    target: str
    alignment: Links  # (source word, target word), sorted
    tokens: tuple[str, ...]  # of the source, with marks and clitics apart: do n't, mouse .
    tags: tuple[str, ...]  # universal part of speech, one for each token
    sentiment: Sentiment
    referents: Links  # (pronoun, noun it stands for), both in the source


def draft(text: Text) -> english.EnglishLine:
    """The English side of a text, written."""
    page = english.write(text)
    page.tokens = typography.tokens(page, text)
    words, page.word_of = typography.words(page.tokens, page.glued)
    page.source = " ".join(words)
    return page


def compose(text: Text, language: Language, page: english.EnglishLine | None = None) -> ParallelSentence:
    """A tree in English and in the language asked for; `page` is the English, if it is written already."""
    page = page or draft(text)
    line = french.write(text) if language == "fr" else hindi.write(text)
    return ParallelSentence(
        source=page.source,
        target=typography.target(line, text, language),
        alignment=alignment(line.sources, page.word_of),
        tokens=tuple(page.tokens),
        tags=tuple(page.tags),
        sentiment="positive" if (mood := sentiment(text)) > 0 else "negative" if mood < 0 else "neutral",
        referents=referents(text, page.word_of),
    )


def referents(text: Text, word_of: list[int]) -> Links:
    """Which noun each *it* and *they* stands for, if the sentence has that noun."""
    return tuple(
        (word_of[clause.subject.at], word_of[clause.subject.referent.head])
        for clause in text.clauses
        if isinstance(clause, Clause) and isinstance(clause.subject, Pronoun) and clause.subject.referent is not None
    )
