"""Times of several words: on Monday, in May, in 1998, on 3 May, at 5 o'clock, last week."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from regard.fable.forms import french, hindi
from regard.fable.lexicon import TENSES, Adverb, Lexicon, Links, Row, Tense

Item = TypeVar("Item")
HOURS = tuple(french.NUMBERS)[:11]  # two to twelve
BOTH: Links = ((0, 1),)
STRAIGHT: Links = ((0,), (1,), (2,))
REVERSED: Links = ((1,), (0,))  # in Hindi the postposition comes last
CLOCKS = 0.06  # the share of times of two words that are written in digits, at 10:30
REVERSED_DATE: Links = ((1,), (2,), (0,))
CLOCK: Links = ((1,), (0, 2))


def time(english: str, tag: str, *sides: str, links: tuple[Links, Links], tenses: str = "") -> Adverb:
    into_french, into_hindi = (tuple(side.split()) for side in sides)
    fitting = frozenset(tenses.split()) or frozenset(TENSES)
    return Adverb(english, tag, into_french, into_hindi, "time", fitting, 0, *links)


def weekday(row: Row) -> Adverb:
    name = f"{row['hindi']} को"
    return time(f"on {row['english']}", "ADP PROPN", row["french"], name, links=(BOTH, REVERSED), tenses="past future")


def month(row: Row) -> Adverb:
    sides = f"en {row['french']}", f"{row['hindi']} में"
    return time(f"in {row['english']}", "ADP PROPN", *sides, links=(STRAIGHT[:2], REVERSED), tenses="past future")


def day(number: int, row: Row) -> Adverb:
    sides = f"le {number} {row['french']}", f"{number} {row['hindi']} को"
    return time(f"on {number} {row['english']}", "ADP NUM PROPN", *sides, links=(STRAIGHT, REVERSED_DATE))


def year(number: int) -> Adverb:
    return time(f"in {number}", "ADP NUM", f"en {number}", f"{number} में", links=(STRAIGHT[:2], REVERSED))


def hour(word: str) -> Adverb:
    """In words or in digits; *one* would be another word in French."""
    sides = f"à {french.NUMBERS.get(word, word)} heures", f"{hindi.NUMBERS.get(word, word)} बजे"
    return time(f"at {word} o'clock", "ADP NUM ADV", *sides, links=(STRAIGHT, CLOCK))


def clock(hours: int, minutes: int) -> Adverb:
    """So many different ones that a vocabulary of words has few of them: the others teach a model to copy."""
    digits = f"{hours}:{minutes:02}"
    return time(f"at {digits}", "ADP NUM", f"à {digits}", f"{digits} बजे", links=(STRAIGHT[:2], REVERSED))


def set_time(row: Row) -> Adverb:
    """ce matin, la semaine dernière: linked as a whole."""
    sides = row["french"], row["hindi"]
    whole = (tuple(range(len(row["english"].split()))),)
    into_french, into_hindi = (whole * len(side.split()) for side in sides)
    return time(row["english"], row["tags"], *sides, links=(into_french, into_hindi), tenses=row["tenses"].strip("."))


class Calendar:
    """All these times by tense; those with a number are made when they are drawn."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.months = lexicon.calendar["month"]
        fixed = [*map(weekday, lexicon.calendar["weekday"]), *map(month, self.months)]
        named = list(map(set_time, lexicon.calendar["time"]))
        short = [adverb for adverb in named if adverb.english.count(" ") == 1]
        self.fixed: dict[Tense, tuple[Adverb, ...]] = {
            tense: tuple(adverb for adverb in (*fixed, *short, *short) if tense in adverb.tenses) for tense in TENSES
        }
        self.parts = [adverb for adverb in named if adverb not in short]  # in the morning

    def draw(self, draw: Callable[[], float], tense: Tense, most: int) -> Adverb:
        """A time of two words, or of three if there is room."""
        kind = draw()
        if most >= 3 and kind < 0.45:
            if kind < 0.1:
                return pick(self.parts, draw)
            if tense == "present" or kind < 0.25:
                return hour(pick(HOURS, draw) if draw() < 0.5 else str(2 + int(11 * draw())))
            return day(2 + int(29 * draw()), pick(self.months, draw))
        if tense != "present" and kind > 0.8:
            return year((1900 if tense == "past" else 2030) + int((125 if tense == "past" else 40) * draw()))
        if draw() < CLOCKS:
            return clock(int(24 * draw()), int(60 * draw()))
        return pick(self.fixed[tense], draw)


def pick(items: Sequence[Item], draw: Callable[[], float]) -> Item:
    return items[int(draw() * len(items))]
