"""The words of fable with all their forms, from tables and rules.

The tables have what no rule can know (genders, irregular forms, which nouns a verb goes with); the rules are in
`forms`. A full stop in a table means "by rule" or "none".
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal, cast, get_args

from regard.fable.forms import english, french, hindi
from regard.fable.forms.french import Finite

Tense = Literal["past", "present", "future"]
TENSES: tuple[Tense, ...] = get_args(Tense)
Row = dict[str, str]
# Events in French and Hindi, but without a progressive in English: not "is seeing the house".
STATIVE = frozenset({"see", "hear", "find", "lose", "recognize", "believe", "understand", "forget", "feel", "receive"})
STATIVE |= {"smell", "taste", "disappoint", "surprise"}
SLOTS = frozenset({"NAME", "PLACE", "WEEKDAY", "HOUR", "NUMBER"})
Links = tuple[tuple[int, ...], ...]  # for each word, the tokens or words it goes with


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """One sense of a noun; `feminine_french` and `feminine_hindi` often differ."""

    name: str  # with the sense where the word has several: bank#river
    english: tuple[str, str]
    french: tuple[str, str]
    feminine_french: bool
    hindi: tuple[str, str]
    oblique: tuple[str, str]  # the Hindi forms before a postposition
    feminine_hindi: bool
    classes: frozenset[str]
    countable: bool = True
    has_plural: bool = True
    human: bool = False
    animate: bool = False
    proper: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """`before`: before the French noun. The four French forms are in the order of agreement."""

    name: str
    english: str
    french: tuple[str, str, str, str]
    french_before_vowel: str
    before: bool
    hindi: tuple[str, str, str]
    classes: frozenset[str] = frozenset()
    reason: bool = False
    polarity: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with the classes of its subjects and objects, and how Hindi marks these."""

    name: str
    english: str
    past: str
    participle: str
    third: str
    french: french.FrenchVerbForms
    hindi: hindi.HindiVerbForms
    subjects: frozenset[str]
    objects: frozenset[str]
    recipients: frozenset[str] = frozenset()
    progressive: str = ""  # eating; empty if there is none: not "is knowing"
    particle: str = ""
    imperfect: Finite | None = None  # the past of states
    with_etre: bool = False
    complement: tuple[str, ...] = ()  # the words between the French verb and its object: avoir besoin de
    prefix: tuple[str, ...] = ()  # the Hindi words before the inflected one: मदद in मदद कर
    marker: str = ""
    inner: str = ""  # gender of a noun inside the Hindi verb, with which the perfective agrees
    ergative: bool = False
    tools: tuple[str, ...] = ()
    takes_manner: bool = False
    motion: bool = False
    impersonal: bool = False  # it rains; Hindi has no subject
    polarity: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    """Mostly one word in English and perhaps several in the target; a time may be several words in English, too. The
    links say which English words each target word translates."""

    english: str
    tag: str
    french: tuple[str, ...]
    hindi: tuple[str, ...]
    kind: str
    tenses: frozenset[str]
    polarity: int
    french_links: Links
    hindi_links: Links


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """Before its noun phrase in English and French, after it in Hindi."""

    english: str
    french: tuple[str, ...]
    hindi: tuple[str, ...]
    classes: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class PlaceName:
    """A town or a country; French chooses the preposition by it: à Paris, en Inde, au Japon."""

    noun: Noun
    inside: Preposition
    towards: Preposition


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """A set phrase: its words, and for each target word the tokens it translates."""

    english: tuple[str, ...]
    tags: tuple[str, ...]
    glued: tuple[bool, ...]
    mark: str
    french: tuple[str, ...]
    french_links: Links
    hindi: tuple[str, ...]
    hindi_links: Links
    polarity: int

    @property
    def slot(self) -> str:
        """The slot that is still open: NAME, PLACE, WEEKDAY, HOUR, NUMBER, or empty."""
        return next((word for word in self.english if word in SLOTS), "")

    @property
    def size(self) -> int:
        """English whitespace words."""
        return len(self.glued) - sum(self.glued)

    def filled(self, english: str, french: str, hindi: str) -> Phrase:
        """The same with the slot filled."""

        def fill(words: tuple[str, ...], word: str) -> tuple[str, ...]:
            return tuple(each.replace(self.slot, word) for each in words)

        sides = fill(self.english, english), fill(self.french, french), fill(self.hindi, hindi)
        return replace(self, english=sides[0], french=sides[1], hindi=sides[2])


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Words that say which sense of an ambiguous noun is meant."""

    word: Noun
    subjects: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    objects: tuple[Noun, ...]  # empty: the verb has none, or the word itself is the object
    prepositions: tuple[Preposition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All words. An ambiguous noun is in `nouns`, too, and its contexts are in `contexts`."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    adverbs: tuple[Adverb, ...]
    prepositions: tuple[Preposition, ...]
    contexts: tuple[Context, ...]
    names: tuple[Noun, ...]
    places: tuple[PlaceName, ...]
    phrases: tuple[Phrase, ...]
    calendar: dict[str, tuple[Row, ...]]  # weekdays, months and set times
    have: Verb
    need: Verb
    weather: tuple[Verb, ...]
    speech: tuple[Verb, ...]

    def noun(self, name: str) -> Noun:
        return next(noun for noun in (*self.nouns, *self.names) if noun.name == name)

    def verb(self, name: str) -> Verb:
        return next(verb for verb in self.verbs if verb.name == name)

    def preposition(self, name: str) -> Preposition:
        return next(preposition for preposition in self.prepositions if preposition.english == name)


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
        names=tuple(map(read_name, rows("names"))),
        places=tuple(map(read_place, rows("places"))),
        phrases=tuple(map(read_phrase, rows("phrases"))),
        calendar=read_calendar(),
        have=have(),
        need=need(),
        weather=(
            weather("rain", french.verb("pleuvoir", ("pleut", "pleuvent", "pleuvr", "plu")), "बारिश"),
            weather("snow", french.verb("neiger"), "बर्फ़बारी"),
        ),
        speech=(
            speech("say", "said", french.verb("dire", ("dit", "disent", "dir", "dit")), "कह"),
            speech("ask", "asked", french.verb("demander"), "पूछ"),
            speech("answer", "answered", french.verb("répondre"), "जवाब दे"),
        ),
    )
    return replace(bare, contexts=tuple(read_context(row, bare) for row in rows("senses")))


def rows(table: str) -> Iterator[Row]:
    """The lines of a table by column name, in NFC."""
    text = (files("regard.fable") / "tables" / f"{table}.tsv").read_text(encoding="utf-8")
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
    direct, oblique = hindi.noun(row["hindi"], row["gender_hi"])
    if row["forms_hi"] != ".":
        several, *rest = row["forms_hi"].split(",")
        direct, oblique = (row["hindi"], several), (rest[0], rest[1])
    return Noun(
        name=name,
        english=(singular, plural),
        french=(row["french"], french_plural),
        feminine_french=row["gender_fr"] == "f",
        hindi=direct,
        oblique=oblique,
        feminine_hindi=row["gender_hi"] == "f",
        classes=kinds,
        countable="mass" not in kinds,
        has_plural=has_plural,
        human="human" in kinds,
        animate=not kinds.isdisjoint(("human", "animal")),
    )


def proper(name: str, french_name: str, hindi_name: str, *, feminine: bool, human: bool) -> Noun:
    """A name: it has no plural, and is not inflected in Hindi."""
    return Noun(
        name=name,
        english=(name, name),
        french=(french_name, french_name),
        feminine_french=feminine,
        hindi=(hindi_name, hindi_name),
        oblique=(hindi_name, hindi_name),
        feminine_hindi=feminine,
        classes=frozenset({"human"} if human else {"town"}),
        has_plural=False,
        human=human,
        animate=human,
        proper=True,
    )


def read_name(row: Row) -> Noun:
    return proper(row["name"], row["name"], row["hindi"], feminine=row["gender"] == "f", human=True)


def read_place(row: Row) -> PlaceName:
    words = (row["preposition"],)
    return PlaceName(
        noun=proper(row["name"], row["french"], row["hindi"], feminine=False, human=False),
        inside=Preposition("in", words, ("में",), frozenset()),
        towards=Preposition("to", words, (), frozenset()),
    )


def read_calendar() -> dict[str, tuple[Row, ...]]:
    kinds: dict[str, tuple[Row, ...]] = {}
    for row in rows("calendar"):
        kinds[row["kind"]] = (*kinds.get(row["kind"], ()), row)
    return kinds


def read_phrase(row: Row) -> Phrase:
    """Links are given between words; a word is linked by its first token."""
    tokens = row["english"].split()
    glued = tuple(token.startswith("~") for token in tokens)
    firsts = tuple(at for at, glue in enumerate(glued) if not glue)
    sides = []
    for side, column in (("french", "links_fr"), ("hindi", "links_hi")):
        words = tuple(row[side].split())
        if row[column] == "*":
            links: list[tuple[int, ...]] = [firsts] * len(words)
        else:
            pairs = [tuple(map(int, pair.split("-"))) for pair in row[column].split()]
            links = [tuple(firsts[one] for one, other in pairs if other == at) for at in range(len(words))]
        sides.append((words, tuple(links)))
    return Phrase(
        english=tuple(token.removeprefix("~") for token in tokens),
        tags=tuple(row["tags"].split()),
        glued=glued,
        mark=row["mark"],
        french=sides[0][0],
        french_links=sides[0][1],
        hindi=sides[1][0],
        hindi_links=sides[1][1],
        polarity=int(row["polarity"]),
    )


def have() -> Verb:
    """*To have*, which is too irregular for the table; in Hindi: the cat is near me."""
    avoir = french.FrenchVerbForms(
        infinitive="avoir",
        present=("ai", "a", "ont", "avons", "avez"),
        future=("aurai", "aura", "auront", "aurons", "aurez"),
        participle=french.agreeing("eu", "eue"),
    )
    return Verb(
        name="have",
        english="have",
        past="had",
        participle="had",
        third="has",
        french=avoir,
        imperfect=("avais", "avait", "avaient", "avions", "aviez"),
        hindi=hindi.verb("हो"),
        subjects=frozenset({"human"}),
        objects=frozenset(
            {"thing", "pet", "vehicle", "building", "furniture", "goods", "food", "drink", "money", "kin"}
        ),
    )


def need() -> Verb:
    """*To need*, which is *to have need of* in French; in Hindi: to me is need of the cat."""
    return replace(
        have(),
        name="need",
        english="need",
        past="needed",
        participle="needed",
        third="needs",
        complement=("besoin", "de"),
        prefix=("ज़रूरत",),
        marker="की",
        inner="f",
        objects=frozenset({"thing", "pet", "vehicle", "building", "furniture", "human", "goods", "food", "drink"}),
    )


def speech(base: str, past: str, forms: french.FrenchVerbForms, into_hindi: str) -> Verb:
    """*Said the king*, behind what he said."""
    *prefix, root = into_hindi.split()
    return Verb(
        name=base,
        english=base,
        past=past,
        participle=past,
        third=english.add_s(base),
        french=forms,
        hindi=hindi.verb(root),
        prefix=tuple(prefix),
        inner="m" if prefix else "",
        ergative=True,
        subjects=frozenset({"human"}),
        objects=frozenset(),
    )


def weather(base: str, forms: french.FrenchVerbForms, noun: str) -> Verb:
    """*It rains*; in Hindi: rain is."""
    return Verb(
        name=base,
        english=base,
        past=english.past(base),
        participle=english.past(base),
        third=english.add_s(base),
        progressive=english.present_participle(base),
        french=forms,
        hindi=hindi.verb("हो"),
        prefix=(noun,),
        inner="f",
        subjects=frozenset(),
        objects=frozenset(),
        impersonal=True,
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
    past = english.past(base) if row["past"] == "." else row["past"]
    *prefix, root = row["hindi"].split()
    return Verb(
        name=row["english"],
        english=base,
        past=past,
        participle=english.PARTICIPLES.get(base, past),
        third=english.add_s(base),
        progressive=english.present_participle(base) if row["kind"] == "event" and base not in STATIVE else "",
        particle=particle,
        french=forms,
        imperfect=french.imperfect(forms) if row["kind"] == "state" else None,
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
    into_french, into_hindi = (tuple(row[side].split()) for side in ("french", "hindi"))
    return Adverb(
        english=row["english"],
        tag=row["tag"],
        french=into_french,
        hindi=into_hindi,
        kind=row["kind"],
        tenses=classes(row["tenses"]) or frozenset(TENSES),
        polarity=int(row["polarity"]),
        french_links=((0,),) * len(into_french),
        hindi_links=((0,),) * len(into_hindi),
    )


def read_preposition(row: Row) -> Preposition:
    return Preposition(
        english=row["english"],
        french=tuple(row["french"].split()),
        hindi=tuple(row["hindi"].strip(".").split()),
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
