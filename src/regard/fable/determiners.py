"""What a noun phrase may begin with, and whose a possessive is."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from regard.fable.syntax import POSSESSIVES, Coordination, Determiner, Person, Pronoun, Subject

NUMBER = "a number"  # stands for a number, which is drawn each time


class Determiners(NamedTuple):
    """What a noun phrase may begin with, each as often as it should come up; `own` is the possessive of the subject."""

    singular: tuple[Determiner, ...]
    plural: tuple[Determiner, ...]
    mass: tuple[Determiner, ...]
    own: str = ""


FREE = Determiners(
    singular=("the",) * 20 + ("a",) * 10 + ("this", "this", "that", "every", "every", "my", "my", *POSSESSIVES),
    plural=("the",) * 12 + ("this", "that", *POSSESSIVES, "two", "three", NUMBER, NUMBER, NUMBER, "some", "several"),
    mass=("the",) * 14 + ("this", "some", "some", "some", *POSSESSIVES),
)
DENIABLE = ("the",) * 14 + ("this", "that", "my", *POSSESSIVES)
DEFINITE = Determiners(DENIABLE, DENIABLE, DENIABLE)  # in negated clauses
EVENTS = Determiners(("the",) * 5 + ("this", "every", "a"), ("the",), ("the",))
HEADS = Determiners(("the", "the", "a"), ("the",), ("the",))  # before a relative clause
KNOWN = Determiners(("the",), ("the",), ("the",))  # before a relative clause in a negated clause
# After *there is*.
SOME = Determiners(("a", "a", "a", "one"), ("two", "three", NUMBER, *("some",) * 3, "several"), ("some",))
OWNERS = ("the",) * 7 + ("this", "my", "your", "our")
ONE = frozenset({"the", "a", "one", "this", "that", "every", "", *POSSESSIVES})  # before a singular
OWN: dict[Person, str] = {"i": "my", "we": "our", "you": "your", "he": "his", "she": "her", "they": "their"}
GROUPS = frozenset({"family", "team", "crowd", "army"})  # neither he nor she


@cache
def without(determiners: Determiners, words: frozenset[str], own: str = "") -> Determiners:
    """The same without some words; `own` is the possessive of the subject."""
    singular, plural, mass = (tuple(word for word in group if word not in words) for group in determiners[:3])
    return Determiners(singular, plural, mass, own)


def nobodys(determiners: Determiners) -> Determiners:
    """Without possessives: not "my house of the king"."""
    return without(determiners, frozenset(POSSESSIVES))


@cache
def owning(determiners: Determiners) -> Determiners:
    """The determiners of an owner, beside a noun with these."""
    words = tuple(word for word in OWNERS if word != determiners.own)
    return Determiners(words, words, words, determiners.own)


def possessor(subject: Subject) -> str:
    """The possessive that means the subject; empty if none certainly does."""
    if isinstance(subject, Pronoun):
        return OWN.get(subject.word, "")
    if isinstance(subject, Coordination):
        return "their" if subject.first.noun.human else ""
    noun = subject.noun
    if not noun.human or noun.feminine_french != noun.feminine_hindi or noun.name in GROUPS:
        return ""
    return "their" if subject.plural else "her" if noun.feminine_french else "his"


@cache
def beside(own: str, determiners: Determiners) -> Determiners:
    """The determiners of other noun phrases in the clause: a possessive means the subject, me, you or us."""
    allowed = {"my", "your", "our", own} - ({"our"} if own == "my" else {"my"} if own == "our" else set())
    if own in {"my", "your", "our"}:
        allowed |= {"his", "her", "their"}
    return without(determiners, frozenset(POSSESSIVES) - allowed, own)
