"""A text as a run reads it: cut into sentences, with the words that its training text did not have.

Such a word is replaced by a variant that the training text did have, if there is one: with other capitals, with
straight instead of curly quotes or the reverse, composed (NFC), or in ordinary instead of full width.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Annotated, Final

from pydantic import Field

from regard.text.sentences import Cut, cut
from regard.text.vocabulary import SPECIAL_TOKENS, Tokenizer, Vocabulary
from regard.text.words import (
    CAPITALS,
    JOINER,
    Case,
    SpaceTokenizer,
    WordTokenizer,
    lowered,
    space_spans,
    split_words,
    word_spans,
)

# Which words a run has seen: its vocabulary, if that consists of words, else the words counted when it was learned.

COUNTED: Final = "words.tsv"
MOST: Final = 300_000  # words that are kept, the most frequent ones
_SAMPLE = 2000  # words from which the script of a run is found
_FIRST_UNSPACED = "\u0e00"  # Thai: no script before it is written without spaces
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


def count_words(lines: Iterable[str], case: Case, counts: Counter[str]) -> Iterator[str]:
    """Yield the lines unchanged, and count their words on the way."""
    for line in lines:
        pieces = (piece.removeprefix(JOINER) or piece for piece in split_words(line))
        counts.update(_key(part, case) for piece in pieces for part in _parts(piece))
        yield line


def commonest(counts: Counter[str]) -> Vocabulary:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST]
    return Vocabulary(tuple(word for word, _ in ordered), tuple(times for _, times in ordered))


@dataclass(frozen=True)
class KnownWords:
    """The words that a run saw in training. A word tokenizer reads all others as `<unk>`, other kinds spell them."""

    tokenizer: Tokenizer
    counted: Vocabulary  # the vocabulary itself, if that consists of words

    @property
    def whole(self) -> bool:
        """Whether a word that was not seen is `<unk>`."""
        return isinstance(self.tokenizer, WordTokenizer | SpaceTokenizer)

    @property
    def marked(self) -> bool:
        """Whether capitals are marks beside a word, and no part of it."""
        return getattr(self.tokenizer, "case", "keep") == "mark"

    def __contains__(self, word: str) -> bool:
        match self.tokenizer:
            case WordTokenizer():
                return self.tokenizer.knows(word)
            case SpaceTokenizer():
                return word in self.counted
            case _:
                return _key(word, getattr(self.tokenizer, "case", "keep")) in self.counted

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where words and marks begin and end; in scripts without spaces each letter is a word."""
        match self.tokenizer:
            case WordTokenizer():
                return word_spans(text)
            case SpaceTokenizer():
                return space_spans(text)
            case _:
                return [span for start, end in word_spans(text) for span in _split_span(text, start, end)]

    @cached_property
    def by_small_letters(self) -> dict[str, str]:
        """The most frequent word for each spelling in small letters."""
        words = [token.removeprefix(JOINER) or token for token in self.counted]
        return {word.lower(): word for word in reversed(words)}

    @cached_property
    def total(self) -> int:
        """How many words the training text had."""
        return sum(self.counted.counts)

    def times(self, word: str) -> int:
        """How often a word was seen, in any capitals and whatever stood before it."""
        return self._times[word.lower()]

    @cached_property
    def _times(self) -> Counter[str]:
        found = Counter[str]()
        for token, times in zip(self.counted.tokens, self.counted.counts, strict=True):
            found[(token.removeprefix(JOINER) or token).lower()] += times
        return found

    @cached_property
    def script(self) -> str:
        """The script that most of the words are in."""
        return script_of("".join(islice((token for token in self.counted if token not in SPECIAL_TOKENS), _SAMPLE)))


def script_of(text: str) -> str:
    """The name of the script that most letters are in: Latin, Arabic; empty without letters."""
    letters = (unicodedata.name(letter, "") for letter in text if letter.isalpha())
    names = Counter(name.split()[0] for name in letters if name)
    name = names.most_common(1)[0][0] if names else ""
    return {"CJK": "Chinese"}.get(name, name.capitalize())


def _key(word: str, case: Case) -> str:
    """A word as it is counted: without its capitals, if these are marks."""
    return lowered(word)[1] if case == "mark" else word


def _parts(word: str) -> Iterable[str]:
    """The word, or its letters in a script without spaces."""
    return (word[start:end] for start, end in _split_span(word, 0, len(word)))


def _split_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if all(character < _FIRST_UNSPACED for character in text[start:end]):
        yield start, end
        return
    for index in range(start, end):
        if is_unspaced(text[index]):
            if start < index:
                yield start, index
            yield index, index + 1
            start = index + 1
    if start < end:
        yield start, end


def is_unspaced(character: str) -> bool:
    """Whether its script is written without spaces between words."""
    return character >= _FIRST_UNSPACED and unicodedata.name(character, "").startswith(_UNSPACED)


_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "…": "..."})
_CURLY = str.maketrans({"'": "’", '"': "”"})
_QUOTES = '"“”„«»'
_OPENED = re.compile(r"(?<!\w)['‘](?=\w)")  # no apostrophe: a word follows, and none is before it
_CLOSED = re.compile(r"(?<=[,.!?…])['’](?=\s|$)")
_PAUSES = ",:.!?…"  # what ends before a quotation mark, unless only a word or two are quoted
_MARKS = re.compile(  # no hyphen, no 3:30, no 3–5, no ellipsis at the end; a tag as a whole
    r"(?:(?<!\s)\s+)?(?:</?[a-zA-Z][^<>\s]*(?:\s[^<>=]*=[^<>]*)?\s*/?>|[;()\[\]{}—<>|]|(?:…|\.{2,})(?=\s*\w)|[:–-]+(?=\s)|(?<=\s)[–-]+|(?<!\S)#+)+\s*"
)
FEW: Final = 3  # words from which on it is asked whether a text is in another language
_NAMED = 10  # how many unknown words a remark lists


@dataclass(frozen=True)
class Unknown:
    """A word that a run has never seen, and where it is in the text."""

    start: Annotated[int, Field(description="Its first character.")]
    end: Annotated[int, Field(description="The one behind its last.")]
    word: Annotated[str, Field(examples=["wizard"])]


@dataclass(frozen=True)
class Reading:
    """One sentence as it is read."""

    text: str
    unknown: tuple[Unknown, ...] = ()  # positions in the sentence as it was written
    words: int = 0  # words with at least one letter
    left: bool = False  # no word of it was ever seen: it is not translated
    unquoted: bool = False  # its quotation marks were not read
    begins: bool = False  # it is a part of a sentence, and begins that, or a quotation, with a capital


@dataclass(frozen=True)
class Passage:
    """A text and its sentences."""

    text: str
    cut: Cut
    readings: tuple[Reading, ...]
    known: KnownWords | None

    @cached_property
    def unknown(self) -> tuple[Unknown, ...]:
        """The words never seen, with their positions in the text."""
        pairs = zip(self.cut.spans, self.readings, strict=True)
        return tuple(
            Unknown(first + each.start, first + each.end, each.word)
            for (first, _), reading in pairs
            for each in reading.unknown
        )

    @property
    def read_as(self) -> str:
        """The text as it was read, if that differs from how it was written; else empty."""
        whole = self.cut.join([reading.text for reading in self.readings])
        return whole if whole != self.text else ""

    def remarks(self, output: str, language: str = "") -> list[str]:
        """Sentences for people who read the output: what was left out, copied or in doubt."""
        return [*self._of_left(), *self._of_unknown(output), *self._of_doubt(language), *self._of_quotations()]

    def _of_left(self) -> Iterator[str]:
        left = [index for index, reading in enumerate(self.readings) if reading.left and reading.words]
        if not left or self.known is None:
            return
        which = "this sentence" if len(self.readings) == 1 else f"sentence {left[0] + 1}"
        which, stay = (which, "left as it is") if len(left) == 1 else (f"{len(left)} sentences", "left as they are")
        script, own = script_of("".join(self.readings[index].text for index in left)), self.known.script
        why = f" ({script} script; this run reads {own})" if script != own and script and own else ""
        yield f"no word of {which} was in the training text{why}: {stay}"

    def _of_unknown(self, output: str) -> Iterator[str]:
        translated = [reading for reading in self.readings if not reading.left]
        words = list(dict.fromkeys(each.word for reading in translated for each in reading.unknown))
        if not words or self.known is None:
            return
        whole = output.casefold()  # a capital at the beginning of the source need not be one in the output
        written = {piece.removeprefix(JOINER) for piece in split_words(whole)}
        # a tokenizer of pieces spells every word, so that none is lost
        lost = [word for word in words if self.known.whole and word.casefold() not in whole]
        named = [f"{word} (copied)" if word.casefold() in written else word for word in words if word not in lost]
        kept = f": {_listed(named)}" if named else ""
        yield f"{_never_seen(len(words))}{kept}{f'; left out: {_listed(lost)}' if lost else ''}"

    def _of_quotations(self) -> Iterator[str]:
        if any(reading.unquoted for reading in self.readings):
            yield "quotation marks within a sentence were left out: the training text has none"

    def _of_doubt(self, language: str) -> Iterator[str]:
        translated = [reading for reading in self.readings if not reading.left]
        words = sum(reading.words for reading in translated)
        unknown = sum(any(map(str.isalpha, each.word)) for reading in translated for each in reading.unknown)
        if words >= FEW and 2 * unknown > words:
            yield f"{unknown} of {words} words were never seen in training: {_question(language)}"


def _never_seen(count: int) -> str:
    return f"{count} word{'s' if count > 1 else ''} this run has never seen"


def unseen(text: str, known: KnownWords | None) -> tuple[tuple[Unknown, ...], str]:
    """The words of a text that a run has never seen, and a sentence about them. The text is read without variants."""
    if known is None:
        return (), ""
    words = (Unknown(start, end, text[start:end]) for start, end in known.spans(text))
    unknown = tuple(each for each in words if each.word not in known and any(map(str.isalpha, each.word)))
    names = list(dict.fromkeys(each.word for each in unknown))
    return unknown, f"{_never_seen(len(names))}: {_listed(names)}" if names else ""


def doubt_of_language(texts: Iterable[str], known: KnownWords | None, language: str) -> str:
    """A question where most words of many texts were never seen in training; else empty."""
    if known is None:
        return ""
    words = [text[start:end] for text in texts for start, end in known.spans(text)]
    words = [word for word in words if any(map(str.isalpha, word))]
    unknown = sum(not (word in known or word.lower() in known.by_small_letters) for word in words)
    if len(words) < FEW or 2 * unknown <= len(words):
        return ""
    return f"{unknown:,} of {len(words):,} words were never seen in training: {_question(language)}"


def _question(language: str) -> str:
    return f"is this {language}?" if language else "is this the language it was trained on?"


def _listed(words: list[str]) -> str:
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def read(text: str, known: KnownWords | None, *, plain: bool = False) -> Passage:
    """Cut a text and read its sentences; without known words they are read as they are written.

    ``plain`` is for runs whose training text, as the built-in one, has no single words in capitals and no quotation
    but *The king said, "The cat slept."* A word in capitals among others is then read without them, or the run would
    take the sentence for one in capitals. Quotation marks are not read: they stay where they are, around sentences and
    between a speaker and what is said; where they quote a part of a sentence, they are left out. Nor are brackets,
    tags, bars, dashes, ellipses, semicolons and colons: what stands between them is read by itself, and they stay.
    """
    parts, begins = _cut_and_marked(text, plain=plain)
    readings = (_read(sentence, known, plain=plain) for sentence in parts.sentences)
    marked = (replace(reading, begins=begun) for reading, begun in zip(readings, begins, strict=True))
    return Passage(text, parts, tuple(marked), known)


def cut_as_read(text: str, *, plain: bool) -> Cut:
    """The sentences of a text; for a ``plain`` run also what somebody says, and who says it, by themselves, and what
    stands between brackets, tags, dashes, semicolons and the like, which such a run has never seen."""
    return _cut_and_marked(text, plain=plain)[0]


def _cut_and_marked(text: str, *, plain: bool) -> tuple[Cut, list[bool]]:
    """The same, and which of them begin a sentence or a quotation of which they are but a part."""
    whole = cut(text)
    if not plain:
        return whole, [False] * len(whole.sentences)
    sentences, between, begins = list[str](), [whole.between[0]], list[bool]()
    for sentence, gap in zip(whole.sentences, whole.between[1:], strict=True):
        done = 0
        for start, end in chain.from_iterable(
            _spans_between_marks(sentence, *span) for span in _quoted_spans(sentence)
        ):
            begins.append(end - start < len(sentence) and _begins(sentence, start, first=not done))
            between[-1] += sentence[done:start]
            sentences.append(sentence[start:end])
            between.append("")
            done = end
        between[-1] += sentence[done:] + gap
    return Cut(tuple(sentences), tuple(between)), begins


def _begins(sentence: str, start: int, *, first: bool) -> bool:
    """Whether a part is the first of its sentence, or of the first quotation in it, and has a capital there."""
    before = sentence[:start].rstrip()
    quoted = before[-1:] in tuple(_QUOTES) and sum(sign in _QUOTES for sign in before) == 1
    return sentence[start].isupper() and (first or quoted)


def _spans_between_marks(sentence: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the parts of a span are that brackets, tags, dashes and the like separate; all of it, if it quotes."""
    inside = sentence[start:end]
    if not set(_QUOTES).isdisjoint(inside):
        return [(start, end)]
    edges = [0, *(place for mark in _MARKS.finditer(inside) for place in mark.span()), len(inside)]
    spans = zip(edges[::2], edges[1::2], strict=True)
    return [(start + one, start + other) for one, other in spans if any(map(str.isalnum, inside[one:other]))]


def _quoted_spans(sentence: str) -> list[tuple[int, int]]:
    """Where the parts of a sentence are that quotation marks separate; the whole of it, where they quote only some
    words, or stand as in *The king said, "The cat slept."*"""
    marks = [place for place, sign in enumerate(sentence) if sign in _QUOTES] or _single_marks(sentence)
    edges = pairwise((-1, *marks, len(sentence)))
    spans = [_stripped(sentence, start + 1, end) for start, end in edges]
    spoken = [(start, end) for start, end in spans if start < end]
    return spoken if _are_apart(sentence, spoken) and not _is_learned(sentence) else [(0, len(sentence))]


def _are_apart(sentence: str, spoken: list[tuple[int, int]]) -> bool:
    """Whether parts between quotation marks can be read one by one: there is a pause between them, and the last one is
    no second half of what somebody says."""
    if not spoken:
        return False
    start, end = spoken[-1]
    closes = end < len(sentence)  # with a mark
    if len(spoken) > 1 and closes and sentence[start].islower():
        return False
    pauses = [not set(_PAUSES).isdisjoint(sentence[one[1] - 1 : other[0]]) for one, other in pairwise(spoken)]
    whole = closes and sentence[end - 1] in ".!?…"  # a sentence: needs no comma before it
    return all(pauses[: len(pauses) - whole])


def _single_marks(sentence: str) -> list[int]:
    """Where single quotation marks are, and no apostrophes."""
    both = [[mark.start() for mark in kind.finditer(sentence)] for kind in (_OPENED, _CLOSED)]
    return sorted(both[0] + both[1]) if all(both) else []


def _is_learned(sentence: str) -> bool:
    """Whether quotation marks stand as in *The king said, "The cat slept."*"""
    before, _, quoted = sentence.translate(_STRAIGHT).partition('"')
    return before.rstrip().endswith(",") and quoted.find('"') == len(quoted) - 1 >= 0


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the white space at its ends, and without a pause that belongs to a mark before it."""
    inside = text[start:end]
    return start + len(inside) - len(inside.lstrip(_PAUSES + string.whitespace)), start + len(inside.rstrip())


def whole(text: str) -> Passage:
    """A text that has no sentences, such as numbers, in one piece; nothing if it is empty."""
    if not text.strip():
        return Passage(text, Cut((), (text,)), (), None)
    return Passage(text, Cut((text,), ("", "")), (Reading(text),), None)


def _read(sentence: str, known: KnownWords | None, *, plain: bool) -> Reading:
    if known is None:
        return Reading(sentence)
    text, done, unknown, words, seen = "", 0, [], 0, False
    calm = plain and any(map(str.islower, sentence))
    shouted = sentence.isupper() and len(sentence.split()) > 1
    unquoted = plain and bool(set(_QUOTES) & set(sentence)) and not _is_learned(sentence)
    for start, end in known.spans(sentence):
        word = sentence[start:end]
        has_letter, has_sign = any(map(str.isalpha, word)), any(map(str.isalnum, word))
        words += has_letter
        variant = _variant(word, known, shouted=shouted)
        if unquoted and word in _QUOTES:
            text, done = text + sentence[done:start], end
            continue
        if calm and lowered(word)[0] == CAPITALS:
            word, variant = _calmed(word, variant, first=not any(map(str.isalpha, text)))
        if variant is None and (has_letter or (known.whole and has_sign)):
            unknown.append(Unknown(start, end, sentence[start:end]))
        seen = seen or (has_sign and variant is not None)
        text += sentence[done:start] + (variant or word)
        done = end
    if not seen:
        return Reading(sentence, tuple(unknown), words, left=True)
    return Reading(text + sentence[done:], tuple(unknown), words, unquoted=unquoted)


def _calmed(word: str, variant: str | None, *, first: bool) -> tuple[str, str | None]:
    """A word in capitals, and the form it was seen in, without them; the first of a sentence and a name keep one."""
    written = word.capitalize() if first or variant is None else word.lower()
    return written, None if variant is None else written


def _variant(word: str, known: KnownWords, *, shouted: bool) -> str | None:
    """The word, or else another way to write it, in which it was seen; among others in capitals, the usual way: in
    *THAT IS ALL* nothing is called ALL."""
    if shouted and not known.marked and (usual := known.by_small_letters.get(word.lower())):
        return usual
    if word in known:
        return word
    forms = [word, unicodedata.normalize("NFC", word), word.translate(_STRAIGHT), word.translate(_CURLY)]
    if any("\uff00" <= character <= "\uffef" for character in word):
        forms.append(unicodedata.normalize("NFKC", word))
    for form in dict.fromkeys(forms):
        if form in known:
            return form
        if (other := known.by_small_letters.get(form.lower(), form)) != form:
            return other
    return None
