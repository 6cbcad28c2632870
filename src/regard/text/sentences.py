"""Running text is cut into sentences.

A line break always ends a sentence. Within a line a stop (. ! ? … । ؟ 。 and others) ends one if white space follows or
the script needs none, unless the stop belongs to an abbreviation, an initial, a number or an ellipsis, or a quotation
goes on in lower case. What is around sentences (spaces, line breaks, bullets, emoji) is kept as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_NEAR = 100  # how many characters around a stop are looked at
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_CLOSING = "\"'”’“»›«)\\]}」』）】〉》"
_STOP = re.compile(
    r"(?P<signs>[।॥؟۔。！？｡]+[.!?…]*|[.!?…‼⁇⁈⁉]+[।॥؟۔。！？｡]+|[.!?…‼⁇⁈⁉]+)"
    rf"(?P<closed>[{_CLOSING}]*(?:[ \u00a0\u202f][»›](?![^\W_]))*)"
)
_DENSE = frozenset("।॥؟۔。！？｡")  # no space is needed after these
_OPENING = re.compile(r"[\s\"'“‘«„»‹›¿¡(\[{「『（【〈《—–-]*")
_TOKEN = re.compile(r"[^\s\"'“”‘’«»„(\[{—–/]*$")  # the word before a full stop, without opening marks
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J, U.S, z.B
_ROMAN = re.compile(r"[IVXLC]{2,}")
_WORD = re.compile(r"[^\W\d_]+")
_BULLET = re.compile(
    r"(?:[-–—•·‣◦▪●○*+>#]+|(?:\d{1,3}|[a-zA-Z])\)|\(\d{1,3}\))\s+(?=\S)|(?P<number>\d{1,3})\.\s+(?P<word>[^\W\d_]+)"
)
_FACE = re.compile(r"(?<=\s)(?:[:;=]['-]?[()DPp]+|<3)\s*$")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never the end of a sentence: a name or an explanation follows.
_TITLES: Final = _words(
    "mr mrs ms mx dr prof st ste rev fr gen col sgt capt cpt lt maj cmdr hon gov sen rep pres mgr msgr m mm mme mmes "
    "mlle mlles me hr hrn frl dipl ing sr. sra srta sres d dña dott sig sigg sig.ra shri smt vs cf viz ca sog bzw vgl "
    "e.g i.e eg ie z.b d.h u.a u.u z.t i.d.r o.ä p.ex cf approx resp dept est incl excl al "
    "डॉ श्री"
)
_NUMBERED: Final = _words(  # not the end of a sentence before a number
    "no nos nr nrn num núm n fig figs abb tab vol vols bd p pp s chap ch kap art arts sec par para op eq ex c v tel "
    "jan feb mar apr jun jul aug sep sept oct nov dec janv févr avr juil déc okt dez mär"
)
_EITHER: Final = _words(  # the end of a sentence before a capital
    "etc usw usf u.s.w inc ltd co corp jr bros a.m p.m am pm a.d b.c bc ad ph.d m.d b.a m.a gmbh "
    "mon tue tues wed thu thur thurs fri sat sun max min jan feb mar apr jun jul aug sep sept oct nov dec dgl evtl ggf "
    "str ave blvd rd mt ft"
)
_MONTHS: Final = _words(
    "january february march april may june july august september october november december januar jänner februar märz "
    "mai juni juli oktober dezember janvier février mars avril juin juillet août septembre octobre novembre décembre"
)
_DAYS: Final = _words("monday tuesday wednesday thursday friday saturday sunday")
_BEFORE_ORDINALS: Final = _words("der die das dem den des am im vom zum zur beim ein einen eine jeder jeden seit bis")
# After an initial, one of these words begins a sentence; another word is probably a name.
_OPENERS: Final = _words(
    "the a an it he she we they i you this that these those there his her its our their my your in on at but and or so "
    "if when while where who what why how not no yes then after before because as for with is are was were do does did "
    "le la les un une des il elle nous vous ils elles je tu ce cette ces mais et ou où qui que quand si dans sur "
    "der die das ein eine er sie es wir ihr ich du und aber oder wenn in auf nicht was wer wo wie"
)


@dataclass(frozen=True)
class Cut:
    """The sentences of a text, and what is before, between and after them."""

    sentences: tuple[str, ...]
    between: tuple[str, ...]  # one more than there are sentences

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where each sentence begins and ends in the text, in characters."""
        spans, at = [], 0
        for gap, sentence in zip(self.between, self.sentences, strict=False):
            at += len(gap)
            spans.append((at, at + len(sentence)))
            at += len(sentence)
        return tuple(spans)

    def join(self, outputs: Sequence[str]) -> str:
        """The text with an output in place of each sentence."""
        pairs = zip(self.between[:-1], outputs, strict=True)
        return "".join(gap + output for gap, output in pairs) + self.between[-1]


def cut(text: str) -> Cut:
    """Cut a text into sentences; together with what is between them they are the text."""
    sentences, between, done = [], [], 0
    for start, end in _spans(text):
        between.append(text[done:start])
        sentences.append(text[start:end])
        done = end
    return Cut(tuple(sentences), (*between, text[done:]))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for line in _LINE.finditer(text):
        start, last = line.span()
        for end in (*_ends(text, start, last), last):
            first, final = _trimmed(text, start, end)
            if any(character.isalpha() for character in text[first:final]):
                yield first, final
            start = end


def _ends(text: str, start: int, last: int) -> Iterator[int]:
    """Where the sentences of a line end, except the last one."""
    lowered = next(filter(str.isalpha, text[start:last]), "").islower()  # text without capitals
    begin = _after_bullets(text, start, last)
    for stop in _STOP.finditer(text, begin, last):
        end = stop.end()
        if end < last and stop.start() > begin and _is_end(text, begin, last, stop, lowered=lowered):
            yield end
            begin = end


def _is_end(text: str, begin: int, last: int, stop: re.Match[str], *, lowered: bool) -> bool:
    """Whether a sentence that began at `begin` ends with this stop."""
    signs, closed = stop["signs"], stop["closed"]
    dense = signs[-1] in _DENSE or signs[0] in _DENSE
    if not text[stop.end()].isspace():
        return dense
    opening = _OPENING.match(text, stop.end(), last)
    assert opening
    after = text[opening.end() : min(last, opening.end() + _NEAR)]
    if not after or after[0] in ".!?…":  # nothing but marks follows, or more stops
        return not after
    small = after[0].islower()
    if dense or (signs == "." and not closed):
        return dense or _full_stop(text[max(begin, stop.start() - _NEAR) : stop.start()], after, small=small)
    lasting = closed or signs == "…" or signs.endswith("..")  # a quotation or an ellipsis within a sentence
    return not small or (lowered and not lasting)


def _full_stop(before: str, after: str, *, small: bool) -> bool:
    """Whether a full stop ends a sentence: not the dot of an abbreviation, an initial or an ordinal."""
    match, following = _TOKEN.search(before), _WORD.match(after)
    token, follows = match[0] if match else "", following[0].lower() if following else ""
    name = token.lower()
    if name in _TITLES or (small and before.endswith(". ")):  # Dr. No, wait . . . what
        return False
    if name in _NUMBERED and after[0].isnumeric():
        return False
    if name in _EITHER:
        return not small and not after[0].isnumeric() and follows not in _MONTHS | _DAYS
    if token.isdecimal():
        previous = before[: len(before) - len(token)].split()[-1:]
        ordinal = len(token) <= 2 and bool(previous) and previous[0].lower() in _BEFORE_ORDINALS
        return not (small or ordinal or (len(token) <= 2 and follows in _MONTHS))
    if _INITIALS.fullmatch(token):
        return follows in _OPENERS and not small
    return not (small and _ROMAN.fullmatch(token))


# What does not belong to a sentence


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without spaces, bullets and symbols around it."""
    start = _after_bullets(text, start, end)
    if (face := _FACE.search(text[start:end])) and start + face.start() > start:
        end = start + face.start()
    while end > start and (text[end - 1].isspace() or _is_symbol(text, end - 1)):
        end -= 1
    return start, end


def _after_bullets(text: str, start: int, end: int) -> int:
    at_line_start = start == 0 or not _LINE.fullmatch(text[start - 1])
    while start < end:
        if text[start].isspace() or _is_symbol(text, start):
            start += 1
        elif at_line_start and (bullet := _BULLET.match(text, start, end)):
            word = bullet["word"] or ""
            if word and (word[0].islower() or word.lower() in _MONTHS):  # 12. Mai, 3. kleiner: an ordinal
                break
            start = bullet.start("word") if word else bullet.end()
        else:
            break
    return start


def _is_symbol(text: str, index: int) -> bool:
    """Whether this character is an emoji, an arrow, a star or the like; a degree or trade mark belongs to its word."""
    character = text[index]
    if character < "\u200d":
        return False
    if character in "\u200d\ufe0e\ufe0f\u20e3":  # parts of an emoji, if one is near
        return any(0 <= near < len(text) and _is_picture(text[near]) for near in (index - 1, index - 2, index + 1))
    return _is_picture(character)


def _is_picture(character: str) -> bool:
    if character < "\u2190":
        return False
    return unicodedata.category(character) == "So" or "\U0001f3fb" <= character <= "\U0001f3ff"


def one_line(text: str) -> str:
    """A text in one line, with spaces in place of line breaks."""
    return " ".join(text.splitlines())
