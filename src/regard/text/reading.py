"""A text as a run reads it: in sentences, with the words it has never seen, and how it takes what is written otherwise.

A word is read in another way only if it was never seen as it is written and was seen in that way: in other capitals,
with straight instead of curly quotes or the reverse, composed (NFC), or in ordinary instead of full width.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import Field

from regard.text.known import KnownWords, script_of
from regard.text.sentences import Cut, cut
from regard.text.words import JOINER, split_words

_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "…": "..."})
_CURLY = str.maketrans({"'": "’", '"': "”"})
_NAMED = 10  # unknown words that a warning names


@dataclass(frozen=True)
class Unknown:
    """A word that a run has never seen, and where it is, in characters."""

    start: Annotated[int, Field(description="Its first character.")]
    end: Annotated[int, Field(description="The one behind its last.")]
    word: Annotated[str, Field(examples=["wizard"])]


@dataclass(frozen=True)
class Reading:
    """One sentence as it is read."""

    text: str
    unknown: tuple[Unknown, ...] = ()  # places in the sentence as it was written
    words: int = 0  # that have a letter in them
    left: bool = False  # nothing of it was ever seen: it stays as it is


@dataclass(frozen=True)
class Passage:
    """A text and its sentences."""

    text: str
    cut: Cut
    readings: tuple[Reading, ...]
    known: KnownWords | None

    @cached_property
    def unknown(self) -> tuple[Unknown, ...]:
        """The words never seen, at their places in the text."""
        pairs = zip(self.cut.spans, self.readings, strict=True)
        return tuple(
            Unknown(first + each.start, first + each.end, each.word)
            for (first, _), reading in pairs
            for each in reading.unknown
        )

    @property
    def read_as(self) -> str:
        """The text as it was read, where that differs from how it was written."""
        whole = self.cut.join([reading.text for reading in self.readings])
        return whole if whole != self.text else ""

    def remarks(self, output: str, language: str = "") -> list[str]:
        """What a person should know who reads the output, in plain sentences."""
        return [*self._of_left(), *self._of_unknown(output), *self._of_doubt(language)]

    def _of_left(self) -> Iterator[str]:
        left = [place for place, reading in enumerate(self.readings) if reading.left and reading.words]
        if not left or self.known is None:
            return
        which = "this sentence" if len(self.readings) == 1 else f"sentence {left[0] + 1}"
        which, stay = (which, "left as it is") if len(left) == 1 else (f"{len(left)} sentences", "left as they are")
        script, own = script_of("".join(self.readings[place].text for place in left)), self.known.script
        why = f" ({script} script; this run reads {own})" if script != own and script and own else ""
        yield f"no word of {which} was in the training text{why}: {stay}"

    def _of_unknown(self, output: str) -> Iterator[str]:
        translated = [reading for reading in self.readings if not reading.left]
        words = list(dict.fromkeys(each.word for reading in translated for each in reading.unknown))
        if not words or self.known is None:
            return
        whole = output.casefold()  # a word that began the source need not begin the output
        there = {piece.removeprefix(JOINER) for piece in split_words(whole)}
        lost = [word for word in words if word.casefold() not in there and word.casefold() not in whole]
        if not self.known.whole:  # they are spelled, in one way or another
            lost = []
        named = [f"{word} (copied)" if word.casefold() in there else word for word in words if word not in lost]
        count = _never_seen(len(words))
        kept = f": {_listed(named)}" if named else ""
        yield f"{count}{kept}{f'; left out: {_listed(lost)}' if lost else ''}"

    def _of_doubt(self, language: str) -> Iterator[str]:
        translated = [reading for reading in self.readings if not reading.left]
        words = sum(reading.words for reading in translated)
        unknown = sum(any(map(str.isalpha, each.word)) for reading in translated for each in reading.unknown)
        if words >= 3 and 2 * unknown > words:
            question = f"is this {language}" if language else "is this the language it was trained on"
            yield f"{unknown} of {words} words were never seen in training: {question}?"


def _never_seen(count: int) -> str:
    return f"{count} word{'s' if count > 1 else ''} this run has never seen"


def unseen(text: str, known: KnownWords | None) -> tuple[tuple[Unknown, ...], str]:
    """The words of a text that is read as it is written which a run has never seen, and a sentence about them."""
    spans = [] if known is None else known.spans(text)
    found = tuple(Unknown(start, end, text[start:end]) for start, end in spans if _is_unseen(text[start:end], known))
    words = list(dict.fromkeys(each.word for each in found))
    return found, f"{_never_seen(len(words))}: {_listed(words)}" if words else ""


def _is_unseen(word: str, known: KnownWords | None) -> bool:
    return known is not None and word not in known and any(map(str.isalpha, word))


def _listed(words: list[str]) -> str:
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def read(text: str, known: KnownWords | None) -> Passage:
    """Cut a text and read its sentences. A run that does not say what it has seen reads everything as it is."""
    found = cut(text)
    return Passage(text, found, tuple(_read(sentence, known) for sentence in found.sentences), known)


def _read(sentence: str, known: KnownWords | None) -> Reading:
    if known is None:
        return Reading(sentence)
    written, place, unknown, words, seen = "", 0, [], 0, False
    for start, end in known.spans(sentence):
        word = sentence[start:end]
        lettered, solid = any(map(str.isalpha, word)), any(map(str.isalnum, word))
        words += lettered
        as_read = word if word in known else _otherwise(word, known)
        if as_read is None and (lettered or (known.whole and solid)):
            unknown.append(Unknown(start, end, word))
        seen = seen or (solid and as_read is not None)
        written += sentence[place:start] + (as_read or word)
        place = end
    if not seen:
        return Reading(sentence, tuple(unknown), words, left=True)
    return Reading(written + sentence[place:], tuple(unknown), words)


def _otherwise(word: str, known: KnownWords) -> str | None:
    """Another way to write a word, in which it was seen."""
    forms = [word, unicodedata.normalize("NFC", word), word.translate(_STRAIGHT), word.translate(_CURLY)]
    if any("\uff00" <= character <= "\uffef" for character in word):
        forms.append(unicodedata.normalize("NFKC", word))
    for form in dict.fromkeys(forms):
        if form in known:
            return form
        if other := known.in_other_case(form):
            return other
    return None
