"""What a sentence says, before any language says it: trees of noun phrases and clauses.

English is laid out first and every node notes where its words came to stand (`at`); the other languages
then know, word by word, which English words each of theirs translates. That is the gold alignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from regard.corpora.lexicon import Adjective, Adverb, Noun, Preposition, Tense, Verb

Determiner = Literal["the", "a", "this", "my", "every", "two", "three", "some", "several"]
Negation = Literal["", "not", "never"]
Person = Literal["i", "he", "she", "they", "it"]
Conjunction = Literal["and", "but", "because", "when", "while"]

FIRST, THIRD, PLURAL = range(3)  # whom a finite verb agrees with


@dataclass(slots=True)
class NounPhrase:
    """the | old | house | of the king | that the merchant built"""

    noun: Noun
    determiner: Determiner = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: NounPhrase | None = None
    relative: Relative | None = None
    at: int = -1

    @property
    def head(self) -> int:
        """Where English put the noun; the determiner stands at `at` and the adjectives between."""
        return self.at + 1 + len(self.adjectives)

    @property
    def definite(self) -> bool:
        return self.determiner in {"the", "this", "my", "every"}


@dataclass(slots=True)
class Pair:
    """the cat and the dog"""

    first: NounPhrase
    second: NounPhrase
    at: int = -1


@dataclass(slots=True)
class Pronoun:
    """A person, or a word that stands for `referent`, whose gender it takes in the target."""

    word: Person
    referent: NounPhrase | None = None
    at: int = -1


Subject: TypeAlias = NounPhrase | Pair | Pronoun


@dataclass(slots=True)
class Adjunct:
    """in the garden; with a tool Hindi says से instead of के साथ."""

    preposition: Preposition
    phrase: NounPhrase
    at: int = -1


@dataclass(slots=True)
class Clause:
    """One predicate with all that belongs to it. Inside a relative clause one place is empty: the head's.

    A verb is an event or a state; an adjective is a predicate with *to be*.
    """

    subject: Subject | None
    predicate: Verb | Adjective
    tense: Tense = "past"
    negation: Negation = ""
    question: bool = False
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    degree: Adverb | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: Adverb | None = None
    adjuncts: tuple[Adjunct, ...] = ()
    time: Adverb | None = None
    time_first: bool = False
    at: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Relative:
    """that ate the mouse (its subject is empty), that the dog saw (its object is empty)"""

    clause: Clause
    at: int = -1


@dataclass(slots=True)
class Text:
    """Clauses in a row with a conjunction between each two."""

    clauses: list[Clause]
    conjunctions: list[Conjunction] = field(default_factory=list)
    at: list[int] = field(default_factory=list)  # where the conjunctions stand


def person(subject: Subject) -> int:
    """Whom the verb agrees with: FIRST, THIRD or PLURAL."""
    if isinstance(subject, NounPhrase):
        return PLURAL if subject.plural else THIRD
    if isinstance(subject, Pronoun):
        return FIRST if subject.word == "i" else PLURAL if subject.word == "they" else THIRD
    return PLURAL


def sentiment(text: Text) -> int:
    """How the words weigh in sum: a negation turns its predicate and manner round, not the noun phrases.

    *the kind king did not help the cruel thief*: kind +1, not help -1, cruel -1.
    """
    return sum(map(clause_sentiment, text.clauses))


def clause_sentiment(clause: Clause) -> int:
    mood = clause.predicate.polarity
    if clause.manner is not None:
        mood += clause.manner.polarity
    if clause.negation:
        mood = -mood
    for phrase in phrases(clause):
        for adjective in phrase.adjectives:
            mood += adjective.polarity
        if phrase.relative is not None:
            mood += clause_sentiment(phrase.relative.clause)
    return mood


def phrases(clause: Clause) -> list[NounPhrase]:
    """The noun phrases of a clause with their owners, not those inside relative clauses."""
    found: list[NounPhrase] = []
    if isinstance(clause.subject, NounPhrase):
        found.append(clause.subject)
    elif isinstance(clause.subject, Pair):
        found += (clause.subject.first, clause.subject.second)
    if clause.object is not None:
        found.append(clause.object)
    if clause.recipient is not None:
        found.append(clause.recipient)
    found += [adjunct.phrase for adjunct in clause.adjuncts]
    found += [phrase.owner for phrase in found if phrase.owner is not None]
    return found
