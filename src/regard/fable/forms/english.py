"""English plurals, third persons, pasts, participles and articles, by rule."""

from __future__ import annotations

import re

VOWELS = "aeiou"
_NUMERALS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty eighty"
)
NUMERALS = tuple(_NUMERALS.split())
HISSING = ("s", "x", "z", "ch", "sh")
IRREGULAR = {"good": "better", "bad": "worse", "quiet": "quieter"}
SYLLABLES = re.compile(r"[aeiouy]+")
SHORT = re.compile(r"[^aeiou]+[aeiou][^aeiouwxy]")  # big → bigger
DOUBLED = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]|begin|forget")  # run → running


def add_s(word: str) -> str:
    """The plural of a noun, or the third person of a verb: the spelling rule is the same."""
    if word.endswith(HISSING) or word == "go":
        return word + "es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def past(base: str) -> str:
    """The regular past: helped, chased, carried."""
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in VOWELS:
        return base[:-1] + "ied"
    return base + "ed"


# Of irregular verbs whose past participle is not like the past.
_PARTICIPLES = (
    "eat:eaten drink:drunk see:seen break:broken know:known write:written draw:drawn hide:hidden steal:stolen "
    "throw:thrown wake:woken wear:worn choose:chosen sing:sung give:given run:run swim:swum fly:flown come:come "
    "fall:fallen go:gone take:taken bite:bitten tear:torn drive:driven ride:ridden forgive:forgiven "
    "forget:forgotten begin:begun speak:spoken grow:grown"
)
PARTICIPLES = dict(pair.split(":") for pair in _PARTICIPLES.split())


def present_participle(base: str) -> str:
    """eating, chasing, running, lying, fleeing."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + (base[-1] if DOUBLED.fullmatch(base) else "") + "ing"


def comparative(adjective: str) -> tuple[str, ...]:
    """bigger, happier, nicer, and with two words more famous."""
    if adjective in IRREGULAR:
        return (IRREGULAR[adjective],)
    stem = adjective.removesuffix("e")
    if adjective.endswith("y") and adjective[-2] not in VOWELS:
        return (adjective[:-1] + "ier",)
    if len(SYLLABLES.findall(stem)) > 1:
        return "more", adjective
    return (stem + (stem[-1] if SHORT.fullmatch(adjective) else "") + "er",)


def article(following: str) -> str:
    """``a`` or ``an``, by the sound that follows: an honest man, a useful book."""
    if following.startswith(("honest", "hour")):
        return "an"
    return "an" if following[0] in VOWELS and not following.startswith(("use", "uni", "eu")) else "a"
