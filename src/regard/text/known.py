"""Which words a run has seen: its vocabulary, where that is one of words, else the words counted as it was learned."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

from regard.text.casing import Case, lowered
from regard.text.special import SPECIAL_TOKENS
from regard.text.tokenizer import Tokenizer
from regard.text.vocabulary import Vocabulary
from regard.text.words import JOINER, SpaceTokenizer, WordTokenizer, space_spans, split_words, word_spans

COUNTED: Final = "words.tsv"
MOST: Final = 300_000  # words that are remembered, the commonest
_SAMPLE = 2000  # words that tell which script a run reads
_FIRST_UNSPACED = "\u0e00"  # no script before this one, Thai, is written without spaces
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


@dataclass
class WordCounter:
    """Counts the words of lines as they are read by something else."""

    case: Case
    counts: Counter[str] = field(default_factory=Counter)

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            pieces = (piece.removeprefix(JOINER) or piece for piece in split_words(line))
            self.counts.update(_key(part, self.case) for piece in pieces for part in _parts(piece))
            yield line

    def commonest(self) -> Vocabulary:
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:MOST]
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
