"""The words of fable: tables read once, and every form of every word worked out.

The tables hold what no rule can know (genders, irregular forms, which nouns a verb goes with); the rules
are in `forms`. A full stop in a table means "by rule" or "none".
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast, get_args

from regard.corpora.forms import english, french, hindi

Tense = Literal["past", "present", "future"]
TENSES: tuple[Tense, ...] = get_args(Tense)
Row = dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """One sense of a noun; `feminine_french` and `feminine_hindi` often differ, which is the point."""

    name: str  # with the sense where the word has several: bank#river
    english: tuple[str, str]
    french: tuple[str, str]
    feminine_french: bool
    hindi: hindi.NounForms
    feminine_hindi: bool
    classes: frozenset[str]
    countable: bool
    has_plural: bool
    human: bool
    animate: bool


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """`before` is the side of the French noun; the four French forms count as agreement does."""

    name: str
    english: str
    french: tuple[str, str, str, str]
    french_before_vowel: str
    before: bool
    hindi: tuple[str, str, str]
    classes: frozenset[str]
    reason: bool
    polarity: int


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its frame: who does it to what, and how Hindi marks that."""

    name: str
    english: str
    past: str
    third: str
    particle: str
    french: french.VerbForms
    imperfect: tuple[str, str, str] | None  # only states have it as their past
    with_etre: bool
    prefix: tuple[str, ...]  # the Hindi words before the inflected one: मदद in मदद कर
    hindi: hindi.VerbForms
    marker: str
    inner: str  # gender of a noun inside the Hindi verb, which the perfective then agrees with
    ergative: bool
    subjects: frozenset[str]
    objects: frozenset[str]
    recipients: frozenset[str]
    tools: tuple[str, ...]
    takes_manner: bool
    motion: bool
    polarity: int


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    """A word that stands alone in English and may be several words elsewhere."""

    english: str
    tag: str
    french: tuple[str, ...]
    hindi: tuple[str, ...]
    kind: str
    tenses: frozenset[str]
    polarity: int


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """Before its noun phrase in English and French, after it in Hindi."""

    english: str
    french: tuple[str, ...]
    hindi: tuple[str, ...]
    classes: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Surroundings that settle which sense of an ambiguous word is meant."""

    word: Noun
    subjects: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    objects: tuple[Noun, ...]  # empty: the verb takes none, or the word itself is the object
    prepositions: tuple[Preposition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All the words. An ambiguous noun is in `nouns` like any other, and its contexts in `contexts`."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    adverbs: tuple[Adverb, ...]
    prepositions: tuple[Preposition, ...]
    contexts: tuple[Context, ...]

    def noun(self, name: str) -> Noun:
        return next(noun for noun in self.nouns if noun.name == name)

    def adjective(self, name: str) -> Adjective:
        return next(adjective for adjective in self.adjectives if adjective.name == name)

    def verb(self, name: str) -> Verb:
        return next(verb for verb in self.verbs if verb.name == name)

    def adverb(self, name: str) -> Adverb:
        return next(adverb for adverb in self.adverbs if adverb.english == name)

    def preposition(self, name: str) -> Preposition:
        return next(preposition for preposition in self.prepositions if preposition.english == name)

    def content_words(self) -> frozenset[str]:
        """The distinct English nouns, verbs, adjectives and adverbs, each in its plain form."""
        words = {noun.english[0] for noun in self.nouns} | {verb.english for verb in self.verbs}
        words |= {adjective.english for adjective in self.adjectives}
        return frozenset(words | {adverb.english for adverb in self.adverbs})


@cache
def load() -> Lexicon:
    """The lexicon of fable, read from its tables."""
    nouns = tuple(map(read_noun, rows("nouns")))
    verbs = tuple(map(read_verb, rows("verbs")))
    prepositions = tuple(map(read_preposition, rows("prepositions")))
    bare = Lexicon(
        nouns=nouns,
        adjectives=tuple(map(read_adjective, rows("adjectives"))),
        verbs=verbs,
        adverbs=tuple(map(read_adverb, rows("adverbs"))),
        prepositions=prepositions,
        contexts=(),
    )
    contexts = tuple(read_context(row, bare) for row in rows("senses"))
    return Lexicon(bare.nouns, bare.adjectives, bare.verbs, bare.adverbs, bare.prepositions, contexts)


def rows(table: str) -> Iterator[Row]:
    """The lines of a table by column name, normalised so that equal words are equal strings."""
    text = (files("regard.corpora") / "tables" / f"{table}.tsv").read_text(encoding="utf-8")
    lines = [line for line in unicodedata.normalize("NFC", text).splitlines() if not line.startswith("#")]
    return iter(csv.DictReader(lines, delimiter="\t"))


def classes(cell: str) -> frozenset[str]:
    return frozenset() if cell == "." else frozenset(cell.split())


def read_noun(row: Row) -> Noun:
    name, singular = row["english"], row["english"].partition("#")[0]
    has_plural = row["plural"] != "-"
    kinds = classes(row["classes"])
    plural = english.add_s(singular) if row["plural"] == "." else row["plural"]
    french_plural = french.noun_plural(row["french"]) if row["plural_fr"] == "." else row["plural_fr"]
    forms = hindi.noun(row["hindi"], row["gender_hi"])
    if row["forms_hi"] != ".":
        direct, oblique, obliques = row["forms_hi"].split(",")
        forms = hindi.NounForms((row["hindi"], direct), (oblique, obliques))
    return Noun(
        name=name,
        english=(singular, plural),
        french=(row["french"], french_plural),
        feminine_french=row["gender_fr"] == "f",
        hindi=forms,
        feminine_hindi=row["gender_hi"] == "f",
        classes=kinds,
        countable="mass" not in kinds,
        has_plural=has_plural,
        human="human" in kinds,
        animate=not kinds.isdisjoint(("human", "animal")),
    )


def read_adjective(row: Row) -> Adjective:
    masculine, *others = row["french"].split(",")
    forms = row["hindi"].split(",")
    return Adjective(
        name=row["english"],
        english=row["english"].partition("#")[0],
        french=french.agreeing(masculine, others[0] if others else french.feminine(masculine)),
        french_before_vowel=others[1] if len(others) == 2 else masculine,
        before=row["side"] == "before",
        hindi=(forms[0], forms[1], forms[2]) if len(forms) == 3 else hindi.adjective(forms[0]),
        classes=classes(row["nouns"]),
        reason=row["reason"] == "yes",
        polarity=int(row["polarity"]),
    )


def read_verb(row: Row) -> Verb:
    plain = row["english"].partition("#")[0]
    base, _, particle = plain.partition("+")
    parts = None if row["forms"] == "." else cast("tuple[str, str, str, str]", tuple(row["forms"].split(",")))
    forms = french.verb(row["french"], parts)
    *prefix, root = row["hindi"].split()
    return Verb(
        name=row["english"],
        english=base,
        past=english.past(base) if row["past"] == "." else row["past"],
        third=english.add_s(base),
        particle=particle,
        french=forms,
        imperfect=french.imperfect(forms.present[2]) if row["kind"] == "state" else None,
        with_etre=row["auxiliary"] == "être",
        prefix=tuple(prefix),
        hindi=hindi.verb(root),
        marker=row["marker"].strip("."),
        inner=row["agreement"].strip("."),
        ergative=row["ergative"] != ".",
        subjects=classes(row["subjects"]),
        objects=classes(row["objects"]),
        recipients=classes(row["recipient"]),
        tools=tuple(sorted(classes(row["tools"]))),
        takes_manner=row["manner"] == "yes",
        motion=row["motion"] == "yes",
        polarity=int(row["polarity"]),
    )


def read_adverb(row: Row) -> Adverb:
    return Adverb(
        english=row["english"],
        tag=row["tag"],
        french=tuple(row["french"].split()),
        hindi=tuple(row["hindi"].split()),
        kind=row["kind"],
        tenses=classes(row["tenses"]) or frozenset(TENSES),
        polarity=int(row["polarity"]),
    )


def read_preposition(row: Row) -> Preposition:
    return Preposition(
        english=row["english"],
        french=tuple(row["french"].split()),
        hindi=tuple(row["hindi"].split()),
        classes=classes(row["nouns"]),
    )


def read_context(row: Row, lexicon: Lexicon) -> Context:
    word = lexicon.noun(row["word"])
    objects = () if row["objects"] in {".", word.english[0]} else row["objects"].split()
    prepositions = () if row["prepositions"] == "." else row["prepositions"].split()
    return Context(
        word=word,
        subjects=tuple(lexicon.noun(name) for name in row["subjects"].split()),
        verbs=tuple(lexicon.verb(name) for name in row["verbs"].split()),
        objects=tuple(lexicon.noun(name) for name in objects),
        prepositions=tuple(lexicon.preposition(name) for name in prepositions),
    )
