"""Which language a text is in, judged by the letters of the words in the vocabularies of the runs.

Every run has the words of two languages. From them each language gets a table of letter trigrams: ` th`, `the`,
`he `. With c(t) the weight of a trigram among all words of the language, N their sum and T the number of trigrams that
any language has, the text's trigrams t₁ … tₙ have the log-probability

    log p(text | language) = Σᵢ log (c(tᵢ) + ½) / (N + ½ T)

and Bayes' rule with equal priors gives the probability of each language. The confidence is that in percent, times the
share of the text's letters that the language has at all: a script that no language has gives 0. Only languages of the
runs are detected, and two languages that share one vocabulary cannot be told apart.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import Field

from regard.text.subwords import SPACE
from regard.text.vocabulary import SPECIAL_TOKENS, Tokenizer

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class Detection:
    """A language with its confidence."""

    confidence: Annotated[float, Field(ge=0, le=100, description="In percent.", examples=[97.0])]
    language: Annotated[str, Field(examples=["fr"])]


class Letters:
    """The trigrams and letters of one language."""

    def __init__(self) -> None:
        self.triples: dict[str, float] = {}
        self.letters: set[str] = set()

    def learn(self, tokenizer: Tokenizer) -> None:
        """Add a vocabulary. Its words count as often as they were seen; pieces that were not counted, by rank."""
        for entry, weight in _entries(tokenizer):
            for triple in _threes(entry):
                self.triples[triple] = self.triples.get(triple, 0.0) + weight
            self.letters.update(entry.replace(" ", ""))

    @cached_property
    def total(self) -> float:
        return sum(self.triples.values())

    def log_probability(self, found: Iterable[str], different: int) -> float:
        smallest = self.total + different / 2
        return sum(math.log((self.triples.get(triple, 0) + 0.5) / smallest) for triple in found)


def detector(known: Mapping[str, Letters]) -> Callable[[str], list[Detection]]:
    """A function that gives every language with its confidence for a text, the most probable first."""
    different = len({triple for each in known.values() for triple in each.triples}) + 1

    def detect(text: str) -> list[Detection]:
        letters, found = _letters(text), list(triples(text))
        log_probabilities = {code: each.log_probability(found, different) for code, each in known.items()}
        best = max(log_probabilities.values(), default=0.0)
        weights = {code: math.exp(value - best) for code, value in log_probabilities.items()}
        total = sum(weights.values())
        shares = {code: sum(map(known[code].letters.__contains__, letters)) / max(1, len(letters)) for code in known}
        results = [Detection(round(100 * weight / total * shares[code], 1), code) for code, weight in weights.items()]
        return sorted(results, key=lambda each: -each.confidence)

    return detect


def triples(text: str) -> Iterator[str]:
    """The letter trigrams of each word with a space before and after it, without case."""
    for word in text.split():
        if letters := _letters(word):
            yield from _threes(f" {letters} ")


def _threes(entry: str) -> Iterator[str]:
    return (entry[place : place + 3] for place in range(len(entry) - 2))


def _letters(text: str) -> str:
    """Only letters and combining marks."""
    return "".join(character for character in text.casefold() if unicodedata.category(character)[0] in "LM")


def _entries(tokenizer: Tokenizer) -> Iterator[tuple[str, float]]:
    """The entries of a vocabulary, with spaces where a word begins and ends, and their weights.

    A subword shows where a word begins, not where it ends. A character shows neither; bytes are no letters.
    """
    counts: tuple[int, ...] = getattr(getattr(tokenizer, "vocabulary", None), "counts", ())
    counts = counts if any(counts) else ()
    for number in sorted(set(range(len(SPECIAL_TOKENS), tokenizer.size)) - tokenizer.silent):
        piece = tokenizer.token(number)
        if (letters := _letters(piece)) and not _BYTE.fullmatch(piece):
            if tokenizer.kind == "character":
                yield letters, 1.0
            elif counts:
                yield f" {letters} ", float(counts[number])
            else:
                yield f" {letters}" if piece.startswith(SPACE) else letters, 1000 / number
