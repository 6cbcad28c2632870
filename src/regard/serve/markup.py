"""Translating HTML: every tag is kept exactly once and put around the translations of its words.

A page is cut at its blocks (paragraphs, cells, list items, line breaks) into sentences with inline tags. Their words go
to the model. Each element is then put around the range of target words in which those linked with its own source words
most outnumber the others (a maximum subarray with +1 and -1), inside its parent's range and outside its siblings': so
elements stay nested, each occurs once, and attributes do not change.

Scripts, styles, preformatted text and elements with ``translate="no"`` stay as they are; inside a sentence the model
reads the words of such an element as context, and the original words replace their translation.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Literal

from regard.errors import DataError
from regard.text.words import space_words

Attributes = list[tuple[str, str | None]]
Kind = Literal["open", "close", "single", "text", "other"]
DEEPEST = 100  # nested elements of a sentence


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INLINE = _names(
    "a abbr b bdi bdo big cite code data del dfn em font i img input ins kbd label mark meter output q s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
# Elements whose content is not translated.
_KEPT = _names("canvas code iframe kbd math object pre samp script style svg template textarea var xmp")
_WORD = re.compile(r"[\S\u00a0\u202f]+")
_EDGES = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)


@dataclass(frozen=True)
class _Event:
    """A tag, a text or something else, as it is in the page."""

    kind: Kind
    tag: str
    raw: str  # of a text, with its entities
    kept: bool = False  # an opening tag whose content is not translated

    @property
    def inline(self) -> bool:
        return self.kind in ("text", "other") or self.tag in _INLINE

    @property
    def text(self) -> str:
        return html.unescape(self.raw) if self.kind == "text" else ""


class _PageReader(HTMLParser):
    """Records where each tag and text begins; each ends where the next begins, so that nothing is lost."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self._page = page
        self._lines = [0, *(match.end() for match in re.finditer("\n", page))]
        self._found: list[tuple[int, Kind, str, bool]] = []
        self.feed(page)
        self.close()

    def events(self) -> Iterator[_Event]:
        starts = [0, *(start for start, *_ in self._found[1:]), len(self._page)]
        for (_, kind, tag, kept), (start, end) in zip(self._found, pairwise(starts), strict=False):
            if start < end:
                yield _Event(kind, tag, self._page[start:end], kept)

    def _note(self, kind: Kind, tag: str = "", kept: bool = False) -> None:
        line, column = self.getpos()
        self._found.append((self._lines[line - 1] + column, kind, tag, kept))

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self._note("single" if tag in _VOID else "open", tag, tag in _KEPT or ("translate", "no") in attrs)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        del attrs
        self._note("single", tag)

    def handle_endtag(self, tag: str) -> None:
        self._note("close", tag)

    def handle_data(self, data: str) -> None:
        del data
        self._note("text")

    def handle_comment(self, data: str) -> None:
        del data
        self._note("other")

    def handle_decl(self, decl: str) -> None:
        self.handle_comment(decl)

    def handle_pi(self, data: str) -> None:
        self.handle_comment(data)

    def unknown_decl(self, data: str) -> None:
        self.handle_comment(data)


@dataclass
class _Element:
    """A tag pair in a sentence, or a single tag; positions are indices of characters."""

    begin: int
    opening: str
    end: int = -1
    closing: str = ""
    kept: str | None = None  # its content, where that must not change
    inside: list[_Element] = field(default_factory=list)
    first: int = 0  # of its target words, and the one after the last
    last: int = 0


class MarkedSentence:
    """Text with inline tags between two block boundaries."""

    def __init__(self, events: Sequence[_Event]) -> None:
        self.raw = "".join(event.raw for event in events)
        self._letters = ""
        self._elements: list[_Element] = []
        self._read(events)
        self._words = [match.span() for match in _WORD.finditer(self._letters)]

    @property
    def source(self) -> str:
        """The text for the model: words with one space between them, so that links count the same words."""
        return " ".join(space_words(self._letters))

    def _read(self, events: Sequence[_Event]) -> None:
        """Pair the tags. A tag without a partner is an element of its own."""
        stack: list[tuple[str, _Element]] = []
        rest = iter(events)
        for event in rest:
            here = stack[-1][1].inside if stack else self._elements
            if event.kind == "text":
                self._letters += event.text
            elif event.kept:
                here.append(self._keep(event, rest))
            elif event.kind == "close" and any(tag == event.tag for tag, _ in stack):
                while (closed := stack.pop())[0] != event.tag:
                    pass
                closed[1].end, closed[1].closing = len(self._letters), event.raw
            else:
                here.append(_Element(len(self._letters), event.raw))
                if event.kind == "open":
                    stack.append((event.tag, here[-1]))
                    if len(stack) > DEEPEST:
                        raise DataError(f"q: more than {DEEPEST} nested tags; close some of them")

    def _keep(self, first: _Event, rest: Iterator[_Event]) -> _Element:
        """An element whose content stays as it is."""
        found = _Element(len(self._letters), first.raw, kept="")
        for event in _until_closed(first, rest):
            self._letters += event.text
            if event.kind == "close" and event.tag == first.tag:
                found.closing = event.raw
            found.kept = (found.kept or "") + event.raw
        found.kept = (found.kept or "").removesuffix(found.closing)
        found.end = len(self._letters)
        return found

    # Putting the tags back

    def render(self, target: str, links: Iterable[tuple[int, int]]) -> str:
        """The translation with all tags, by links of (target word, source word)."""
        words = space_words(target)
        aligned = dict(links) or _by_position(len(words), len(self._words))
        looks = [aligned.get(place) for place in range(len(words))]  # the source word of each target word
        placed = self._place(self._elements, looks, 0, len(words))
        written = _SentenceWriter(words, self._letters, self._words).write(placed)
        before, after = self._words[0][0], self._words[-1][1]  # the space around the sentence stays as it is
        return self._letters[:before] + written + self._letters[after:]

    def _place(self, elements: list[_Element], looks: list[int | None], low: int, high: int) -> list[_Element]:
        """The elements with the range of target words of each, in their order."""
        free = [low <= place < high for place in range(len(looks))]
        found = []
        for element in elements:
            own = self._own(element)
            scores = [
                (1 if looks[place] in own else -1) if free[place] else -len(looks) - 1 for place in range(len(looks))
            ]
            first, last = _heaviest(scores) if own else (0, 0)
            if first == last:  # no words: it stays behind the word that it followed
                first = last = min(max(self._anchor(element, looks), low), high)
                first = last = next((place for place in range(first, high) if free[place]), high)
            free[first:last] = [False] * (last - first)
            inside = self._place(element.inside, looks, first, last)
            found.append(replace(element, inside=inside, first=first, last=last))
        return sorted(found, key=lambda each: (each.first, each.last))

    def _own(self, element: _Element) -> set[int]:
        """The source words that are at least half inside an element; if none is, all that overlap it."""
        spans = [(max(first, element.begin), min(last, element.end)) for first, last in self._words]
        touched = {word for word, (first, last) in enumerate(spans) if first < last}
        counts = {word: (_solid(self._letters[slice(*spans[word])]), self._solid(word)) for word in touched}
        return {word for word, (inside, whole) in counts.items() if 2 * inside >= whole} or touched

    def _solid(self, word: int) -> int:
        return _solid(self._letters[slice(*self._words[word])])

    def _anchor(self, element: _Element, looks: list[int | None]) -> int:
        """The position after the target words of the last source word before the element."""
        before = bisect_right([last for _, last in self._words], element.begin)
        for word in range(before - 1, -1, -1):
            if word in looks:
                return len(looks) - looks[::-1].index(word)
        return 0


class _SentenceWriter:
    """Writes words and tags into one text, with a space before each word but the first."""

    def __init__(self, words: list[str], letters: str, spans: Sequence[tuple[int, int]]) -> None:
        self._words = [_edges(word) for word in words]
        self._letters = letters
        self._starts, self._ends = {first for first, _ in spans}, {last for _, last in spans}
        self._written: list[str] = []
        self._spaced = True
        self._head_done = False
        self._tail = ""  # punctuation after the last word: a closing tag may have to stand before it

    def write(self, placed: Sequence[_Element]) -> str:
        self._range(placed, 0, len(self._words))
        self._flush()
        return "".join(self._written)

    def _range(self, placed: Sequence[_Element], low: int, high: int) -> None:
        for each in placed:
            self._put_words(low, each.first)
            self._element(each)
            low = each.last
        self._put_words(low, high)

    def _put_words(self, low: int, high: int) -> None:
        for head, core, tail in self._words[low:high]:
            self._space()
            self._written.append(html.escape(("" if self._head_done else head) + core, quote=False))
            self._head_done, self._spaced, self._tail = False, False, html.escape(tail, quote=False)

    def _element(self, element: _Element) -> None:
        if element.kept is not None:
            self._space()
            self._written.append(element.opening + element.kept + element.closing)
            self._spaced = False
            return
        if element.first < element.last:
            self._space()
            if element.begin not in self._starts and not self._head_done:  # the source's punctuation is outside, too
                self._written.append(html.escape(self._words[element.first][0], quote=False))
                self._head_done = True
        else:
            self._flush()
            if self._blank(element.begin - 1):
                self._space()
        self._written.append(element.opening)
        self._range(element.inside, element.first, element.last)
        if element.end in self._ends or element.end < 0 or element.first == element.last:
            self._flush()
        self._written.append(element.closing)
        if element.first == element.last and self._blank(max(element.begin, element.end)):
            self._spaced = False

    def _blank(self, place: int) -> bool:
        return self._letters[max(place, 0) : place + 1].isspace()

    def _space(self) -> None:
        self._flush()
        if not self._spaced:
            self._written.append(" ")
            self._spaced = True

    def _flush(self) -> None:
        self._written.append(self._tail)
        self._tail = ""


class Page:
    """A text with tags, cut into sentences to translate and the rest."""

    def __init__(self, page: str) -> None:
        self._parts: list[str | MarkedSentence] = list(_cut(_PageReader(page).events()))

    @property
    def sentences(self) -> list[MarkedSentence]:
        return [part for part in self._parts if isinstance(part, MarkedSentence)]

    def render(self, sentences: Iterable[str]) -> str:
        """The page with its sentences replaced, in order."""
        ready = iter(sentences)
        return "".join(part if isinstance(part, str) else next(ready) for part in self._parts)


def _cut(events: Iterator[_Event]) -> Iterator[str | MarkedSentence]:
    gathered: list[_Event] = []
    for event in events:
        if event.inline:
            gathered.append(event)
            if event.kept:
                gathered.extend(_until_closed(event, events))
            continue
        yield from _sentence(gathered)
        gathered = []
        yield event.raw
        if event.kept:
            yield "".join(each.raw for each in _until_closed(event, events))
    yield from _sentence(gathered)


def _sentence(events: list[_Event]) -> Iterator[str | MarkedSentence]:
    """A sentence, if there is a letter in it."""
    if events:
        found = MarkedSentence(events)
        yield found if any(character.isalpha() for character in found.source) else found.raw


def _until_closed(first: _Event, rest: Iterator[_Event]) -> Iterator[_Event]:
    """Everything up to the tag that closes ``first``, and that tag."""
    depth = 1
    for event in rest:
        if event.tag == first.tag:
            depth += {"open": 1, "close": -1}.get(event.kind, 0)
        yield event
        if not depth:
            return


def _heaviest(scores: Sequence[int]) -> tuple[int, int]:
    """The range with the largest sum above zero (Kadane), of several the longest; an empty one if there is none."""
    best, found, total, start = 1, (0, 0), 0, 0
    for place, score in enumerate(scores):
        if total < 0:
            total, start = 0, place
        total += score
        if total >= best:
            best, found = total, (start, place + 1)
    return found


def _by_position(targets: int, sources: int) -> dict[int, int]:
    """Without links: the word at the same relative position."""
    return {place: place * sources // targets for place in range(targets)}


def _solid(text: str) -> int:
    return sum(character.isalnum() for character in text)


def _edges(word: str) -> tuple[str, str, str]:
    """Punctuation before, the word, punctuation after; a word of punctuation alone is not split."""
    match = _EDGES.match(word)
    assert match
    return (match[1], match[2], match[3]) if match[2] else ("", word, "")
