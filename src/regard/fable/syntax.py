"""The meaning of a sentence, independent of language: trees of noun phrases and clauses.

English is written first, and every node stores the positions of its tokens (`at`). When another language is written,
each of its words is linked to the English tokens that it translates: the gold alignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from regard.fable.lexicon import Adjective, Adverb, Noun, Phrase, Preposition, Tense, Verb

# Names have ""; UNSAID ones are not written in English; numbers are words ("five") or digits ("12").
Determiner: TypeAlias = str
Negation = Literal["", "not", "never", "no"]  # *no* is the determiner of an object, or of what there is
Person = Literal["i", "he", "she", "they", "it", "we", "you", "who"]
Conjunction = Literal["and", "but", "because", "when", "while", "if"]
# *want to* and *going to* are verbs with *to*, *would like to* an auxiliary with one; the others are auxiliaries.
Modal = Literal["", "can", "could", "must", "should", "want", "would", "going"]
Asked = Literal["", "what", "who", "where", "when", "why", "how"]
Kind = Literal["job", "noun", "this", "there", "place", "where", "who"]
Case = Literal["", "lower", "upper"]
Said = Literal["say", "ask", "answer"]

FIRST, THIRD, PLURAL, WE, YOU = range(5)  # what a finite verb agrees with
PERSONS: dict[Person, int] = {"i": FIRST, "they": PLURAL, "we": WE, "you": YOU}
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
GENERIC, PARTITIVE = "in general", "an amount of"  # I love music, I drink water: English has no word for them
UNSAID = frozenset({GENERIC, PARTITIVE})
DEFINITE = frozenset({"the", "this", "that", "every", "", *POSSESSIVES})


@dataclass(slots=True)
class NounPhrase:
    """the | old | house | of the king | that the merchant built; or the king's | old | house"""

    noun: Noun
    determiner: Determiner = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: NounPhrase | None = None
    relative: Clause | None = None  # without the part that the head stands for; `at` has the position of *that*
    genitive: bool = False  # the owner comes first, with 's, in place of the determiner
    own: bool = False  # the possessive means the subject of the clause; Hindi has another word for it
    at: int = -1  # the determiner, or the 's of the owner
    head: int = -1  # the noun

    @property
    def definite(self) -> bool:
        return self.determiner in DEFINITE


@dataclass(slots=True)
class Coordination:
    """the cat and the dog"""

    first: NounPhrase
    second: NounPhrase
    at: int = -1


@dataclass(slots=True)
class Pronoun:
    """A person (*i* is *me* as an object), or a word that stands for `referent` and has its gender in the target."""

    word: Person
    referent: NounPhrase | None = None
    at: int = -1


Subject: TypeAlias = NounPhrase | Coordination | Pronoun
Complement: TypeAlias = NounPhrase | Pronoun


@dataclass(slots=True)
class Adjunct:
    """in the garden"""

    preposition: Preposition
    phrase: NounPhrase
    at: int = -1


@dataclass(slots=True)
class Clause:
    """One predicate with all that belongs to it. A relative clause lacks the part that its head stands for: *that ate
    the mouse* has no subject, *that the dog saw* no object.

    A verb is an event or a state; an adjective is a predicate with *to be*. A question about the object (`asked` is
    "what" or "who") has no object.
    """

    subject: Subject | None
    predicate: Verb | Adjective
    tense: Tense = "past"
    negation: Negation = ""
    question: bool = False
    object: Complement | None = None
    recipient: Complement | None = None
    dative: bool = False  # gave him an apple: the recipient first, without *to*
    than: NounPhrase | None = None  # is bigger than the dog
    degree: Adverb | None = None
    also: Adjective | None = None  # tired and *sad*
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: Adverb | None = None
    adjuncts: tuple[Adjunct, ...] = ()
    time: Adverb | None = None
    time_first: bool = False
    contracted: bool = False  # didn't, I'm, he'll
    modal: Modal = ""
    progressive: bool = False  # is eating
    perfect: bool = False  # has eaten
    shared: bool = False  # the subject is that of the clause before, and not said: ate and *slept*
    inverted: bool = False  # said the king
    who: bool = False  # a relative clause that begins with *who*, and not with *that*
    aside: bool = False  # a relative clause between commas: the king, who slept, …
    asked: Asked = ""
    command: bool = False  # the subject is *you* and not said, or *we*: let's go
    please: bool = False
    pleading: bool = False  # … , please: it comes last
    at: dict[str, int] = field(default_factory=dict)

    @property
    def together(self) -> bool:
        """Let's go."""
        return self.command and isinstance(self.subject, Pronoun) and self.subject.word == "we"

    @property
    def wishing(self) -> bool:
        """I would like an apple: *want*, said politely."""
        return self.modal == "would" and self.predicate.name == "want"


@dataclass(slots=True)
class Being:
    """*To be* without an adjective: he is a doctor, this is a house, there is a cat, the cat is in the house, I'm here,
    who is that man."""

    kind: Kind
    subject: Subject | None = None
    complement: NounPhrase | None = None
    tense: Tense = "present"
    negation: Negation = ""
    question: bool = False
    contracted: bool = False
    that: bool = False  # that is …, those are …
    place: Adverb | None = None
    adjuncts: tuple[Adjunct, ...] = ()
    at: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Text:
    """Clauses with a conjunction between each two, or a set phrase; and how it is written down.

    Without a `mark` at the end there are no commas either.
    """

    clauses: list[Clause | Being]
    conjunctions: list[Conjunction] = field(default_factory=list)
    fronted: bool = False  # the conjunction of two clauses stands before the first: If he sleeps, …
    opener: Literal["", "yes", "no"] = ""
    speech: tuple[Subject, Said] | None = None  # The king said, "…"
    reported: bool = False  # The king said that …
    phrase: Phrase | None = None
    mark: str = ""
    capital: bool = False
    case: Case = ""
    at: list[int] = field(default_factory=list)  # where the conjunctions stand
    opener_at: int = -1
    speech_at: int = -1
    tag: bool = False  # …, aren't you?
    tag_at: list[int] = field(default_factory=list)  # where its tokens stand
    phrase_at: list[int] = field(default_factory=list)  # where each token of the set phrase stands

    @property
    def quoted(self) -> bool:
        return self.speech is not None and not self.reported


def person(subject: Subject) -> int:
    """What the verb agrees with: FIRST, THIRD, PLURAL, WE or YOU."""
    if isinstance(subject, NounPhrase):
        return PLURAL if subject.plural else THIRD
    if isinstance(subject, Pronoun):
        return PERSONS.get(subject.word, THIRD)
    return PLURAL


def sentiment(text: Text) -> int:
    """The sum of the words' polarities: a negation reverses that of its predicate and manner, not of noun phrases.

    *the kind king did not help the cruel thief*: kind +1, not help -1, cruel -1.
    """
    return sum(map(clause_sentiment, text.clauses)) + (text.phrase.polarity if text.phrase else 0)


def clause_sentiment(clause: Clause | Being) -> int:
    mood = 0
    if isinstance(clause, Clause):
        mood = clause.predicate.polarity + (clause.also.polarity if clause.also else 0)
        if clause.manner is not None:
            mood += clause.manner.polarity
        if clause.negation:
            mood = -mood
    for phrase in phrases(clause):
        for adjective in phrase.adjectives:
            mood += adjective.polarity
        if phrase.relative is not None:
            mood += clause_sentiment(phrase.relative)
    return mood


def phrases(clause: Clause | Being) -> list[NounPhrase]:
    """The noun phrases of a clause with their owners, not those inside relative clauses."""
    noun_phrases: list[NounPhrase] = []
    if isinstance(clause.subject, NounPhrase):
        noun_phrases.append(clause.subject)
    elif isinstance(clause.subject, Coordination):
        noun_phrases += (clause.subject.first, clause.subject.second)
    others = (clause.complement,) if isinstance(clause, Being) else (clause.object, clause.recipient)
    noun_phrases += [phrase for phrase in others if isinstance(phrase, NounPhrase)]
    if isinstance(clause, Clause) and clause.than is not None:
        noun_phrases.append(clause.than)
    noun_phrases += [adjunct.phrase for adjunct in clause.adjuncts]
    noun_phrases += [phrase.owner for phrase in noun_phrases if phrase.owner is not None]
    return noun_phrases
