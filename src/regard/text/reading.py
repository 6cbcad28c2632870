"""A text as a run reads it: in sentences, with the words it has never seen, and how it takes what is written otherwise.

A word is read in another way only if it was never seen as it is written and was seen in that way: in other capitals,
with straight instead of curly quotes or the reverse, composed (NFC), or in ordinary instead of full width.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Annotated, Final

from pydantic import Field

from regard.text.sentences import Cut, cut
from regard.text.vocabulary import SPECIAL_TOKENS, Tokenizer, Vocabulary
from regard.text.words import JOINER, Case, SpaceTokenizer, WordTokenizer, lowered, space_spans, split_words, word_spans

# Which words a run has seen: its vocabulary, where that is one of words, else the words counted as it was learned.

COUNTED: Final = "words.tsv"
MOST: Final = 300_000  # words that are remembered, the commonest
_SAMPLE = 2000  # words that tell which script a run reads
_FIRST_UNSPACED = "\u0e00"  # no script before this one, Thai, is written without spaces
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


def count_words(lines: Iterable[str], case: Case, counts: Counter[str]) -> Iterator[str]:
    """The same lines, whose words are counted as something else reads them."""
    for line in lines:
        pieces = (piece.removeprefix(JOINER) or piece for piece in split_words(line))
        counts.update(_key(part, case) for piece in pieces for part in _parts(piece))
        yield line


def commonest(counts: Counter[str]) -> Vocabulary:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST]
    return Vocabulary(tuple(word for word, _ in ordered), tuple(times for _, times in ordered))


@dataclass(frozen=True)
class KnownWords:
    """The words that a run has seen, without torch and without its model.

    In a vocabulary of words, what is not known cannot be read; a tokenizer of another kind spells it all the same.
    """

    tokenizer: Tokenizer
    counted: Vocabulary  # of a tokenizer of words its vocabulary

    @property
    def whole(self) -> bool:
        """Whether a word that is not known is `<unk>`."""
        return isinstance(self.tokenizer, WordTokenizer | SpaceTokenizer)

    def __contains__(self, word: str) -> bool:
        match self.tokenizer:
            case WordTokenizer():
                return self.tokenizer.knows(word)
            case SpaceTokenizer():
                return word in self.counted
            case _:
                return _key(word, getattr(self.tokenizer, "case", "keep")) in self.counted

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the words and marks of a text are; in scripts without spaces each letter is a word."""
        match self.tokenizer:
            case WordTokenizer():
                return word_spans(text)
            case SpaceTokenizer():
                return space_spans(text)
            case _:
                return [span for start, end in word_spans(text) for span in _split_span(text, start, end)]

    def in_other_case(self, word: str) -> str | None:
        """The commonest word that differs from this one in case alone."""
        found = self._by_small_letters.get(word.lower())
        return found if found != word else None

    @cached_property
    def _by_small_letters(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for token in self.counted:
            word = token.removeprefix(JOINER) or token
            found.setdefault(word.lower(), word)
        return found

    @cached_property
    def script(self) -> str:
        """The script that most of the words are in."""
        return script_of("".join(islice((token for token in self.counted if token not in SPECIAL_TOKENS), _SAMPLE)))


def script_of(text: str) -> str:
    """The name of the script that most letters are in: Latin, Arabic; empty without letters."""
    names = Counter(unicodedata.name(letter, " ").split()[:1][0] for letter in text if _is_named(letter))
    name = names.most_common(1)[0][0] if names else ""
    return {"CJK": "Chinese"}.get(name, name.capitalize())


def _is_named(letter: str) -> bool:
    return letter.isalpha() and bool(unicodedata.name(letter, ""))


def _key(word: str, case: Case) -> str:
    """How a word is counted: as the tokenizer sees it."""
    return lowered(word)[1] if case == "mark" else word


def _parts(word: str) -> Iterable[str]:
    """The word, or its letters in a script without spaces."""
    return (word[start:end] for start, end in _split_span(word, 0, len(word)))


def _split_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if all(character < _FIRST_UNSPACED for character in text[start:end]):
        yield start, end
        return
    for place in range(start, end):
        if is_unspaced(text[place]):
            if start < place:
                yield start, place
            yield place, place + 1
            start = place + 1
    if start < end:
        yield start, end


def is_unspaced(character: str) -> bool:
    """Whether it is of a script without spaces between words."""
    return character >= _FIRST_UNSPACED and unicodedata.name(character, "").startswith(_UNSPACED)


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


def whole(text: str) -> Passage:
    """A text that is no sentences, such as numbers: it is read at once and as it is, unless it is empty."""
    given = bool(text.strip())
    return Passage(text, Cut((text,), ("", "")) if given else Cut((), (text,)), (Reading(text),) * given, None)


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
