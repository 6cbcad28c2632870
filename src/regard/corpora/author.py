"""The author: draws a sentence of exactly the length asked for.

Every method takes the number of English words it must fill and fills just that many, so a sentence of
n words needs no second attempt: the clause splits its words among subject, verb, objects and adverbials,
a noun phrase splits its own among adjectives, owner and relative clause.

Two rules keep the translation a function of the English words. A prepositional phrase belongs to the
verb, never to a noun (only *of* does), and after an object with a relative clause nothing more follows,
so what ends the sentence belongs to that clause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from regard.corpora.lexicon import Adjective, Adverb, Context, Noun, Tense, Verb
from regard.corpora.pools import Acts, Place, Pools
from regard.corpora.syntax import (
    Adjunct,
    Clause,
    Conjunction,
    Determiner,
    Negation,
    NounPhrase,
    Pair,
    Person,
    Pronoun,
    Relative,
    Text,
)

Item = TypeVar("Item")
SHORTEST_CLAUSE, LONGEST_CLAUSE = 4, 16
TRIES = 4  # at a riddle: many a pair of nouns makes none


class Determiners(NamedTuple):
    """What may open a noun phrase, each as often as it should come up."""

    singular: tuple[Determiner, ...]
    plural: tuple[Determiner, ...]
    mass: tuple[Determiner, ...]


def without_my(determiners: Determiners) -> Determiners:
    return Determiners(*(tuple(word for word in words if word != "my") for words in determiners))


FREE = Determiners(
    singular=("the",) * 10 + ("a",) * 5 + ("this", "this", "my", "every"),
    plural=("the",) * 6 + ("this", "my", "two", "three", "some", "several"),
    mass=("the",) * 7 + ("this", "my"),
)
DEFINITE = Determiners(*(("the",) * 7 + ("this", "my") for _ in range(3)))  # what a negation can deny
# Nobody says "my house of the king"; and of what *I* have, Hindi says *own* and not *my*: left out.
WITHOUT_MY = {FREE: without_my(FREE), DEFINITE: without_my(DEFINITE)}
EVENTS = Determiners(("the",) * 5 + ("this", "every", "a"), ("the",), ("the",))
HEADS = Determiners(("the", "the", "a"), ("the",), ("the",))  # what a relative clause can hang on
TENSES: tuple[Tense, ...] = ("past",) * 11 + ("present",) * 5 + ("future",) * 4
PERSONS: dict[Tense, tuple[Person, ...]] = {
    "past": ("i", "he", "she", "they"),
    "present": ("i", "he", "she", "they"),
    "future": ("he", "she", "they"),
}
CONJUNCTIONS: dict[Tense, tuple[Conjunction, ...]] = {
    "past": ("and", "and", "but", "because", "when", "while"),
    "present": ("and", "and", "but", "because", "when", "while"),
    "future": ("and", "and", "but", "while"),
}
BACKGROUND: dict[Tense, Tense] = {"past": "past", "present": "present", "future": "past"}


def group_words(predicate: Verb | Adjective, tense: Tense, negation: Negation, *, question: bool = False) -> int:
    """How many English words the verb takes: ate, will eat, did not eat, looked for; was, will not be."""
    if isinstance(predicate, Adjective):
        return 1 + (tense == "future") + bool(negation)
    supported = tense == "future" or negation == "not" or question
    return 1 + supported + bool(negation) + bool(predicate.particle)


class Author:
    """Composes trees; `draw` is the only source of chance, a stream of floats in [0, 1).

    `riddles` is the share of clauses of the right length that become one, beside those that chance brings anyway.
    """

    def __init__(self, pools: Pools, draw: Callable[[], float], riddles: float = 0.0) -> None:
        self.pools = pools
        self.draw = draw
        self.riddles = riddles
        self.used: list[object] = []

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self.draw() * len(items))]

    def up_to(self, most: int) -> int:
        """A whole number from 0 to `most`, each as likely."""
        return int(self.draw() * (most + 1))

    def fresh(self, words: Sequence[Item]) -> Item:
        """A noun or verb the sentence has not used yet, as far as a few tries find one."""
        for _ in range(4):
            word = self.pick(words)
            if word not in self.used:
                break
        self.used.append(word)
        return word

    # ── Sentences ──────────────────────────────────────────────────────────────────────────────────

    def text(self, size: int) -> Text:
        """A sentence of exactly `size` words: one question, or one to many clauses in a row."""
        self.used.clear()
        tense = self.pick(TENSES)
        if size <= LONGEST_CLAUSE and self.draw() < 0.06:
            return Text([self.clause(size, tense, question=True)])
        first, *others = self.split(size)
        text = self.unit(first, tense)
        for words in others:
            conjunction = self.pick(CONJUNCTIONS[tense])
            if conjunction in {"and", "but"} and self.draw() < 0.15:
                tense = self.pick(TENSES)
            unit = self.unit(words, tense)
            if unit.conjunctions or conjunction in text.conjunctions[-1:]:  # one reason at a time is enough
                conjunction = "and"
            text.conjunctions += [conjunction, *unit.conjunctions]
            text.clauses += unit.clauses
        return text

    def split(self, size: int) -> list[int]:
        """Lengths of the clauses: they and the conjunctions between them make up `size`."""
        count = round((size + 1) / (6.0 + 10.0 * self.draw()))
        least, most = SHORTEST_CLAUSE + 1, LONGEST_CLAUSE + 1  # each with a conjunction
        count = max(-(-(size + 1) // most), min(count, (size + 1) // least), 1)
        lengths = []
        left = size + 1
        for others in range(count - 1, -1, -1):
            low, high = max(least, left - most * others), min(most, left - least * others)
            length = low + self.up_to(high - low)
            lengths.append(length - 1)
            left -= length
        return lengths

    def unit(self, size: int, tense: Tense) -> Text:
        """A clause, or two that hang together by a pronoun, or one with an ambiguous word."""
        if self.riddles and 9 <= size <= 15 and self.draw() < self.riddles:
            for _ in range(TRIES):
                if (riddle := self.reference(size, tense, riddle=True)) is not None:
                    return riddle
        kind = self.draw()
        special: Text | None = None
        if kind < 0.4 and 9 <= size <= 15:
            special = self.reference(size, tense)
        elif 0.4 <= kind < 0.55:
            special = self.ambiguous(size, tense)
        return special or Text([self.clause(size, tense)])

    # ── Noun phrases ───────────────────────────────────────────────────────────────────────────────

    def noun_phrase(
        self, noun: Noun, size: int, determiners: Determiners = FREE, relative: Tense | None = None
    ) -> NounPhrase:
        """`relative` is the tense of a relative clause where one may hang on the noun."""
        if relative is not None and size >= (4 if noun.animate else 5) and self.draw() < 0.6:
            return self.related(noun, size, relative)
        if size >= 5:
            own = 2 + self.up_to(min(2, size - 5))
            phrase = self.simple(noun, own, WITHOUT_MY.get(determiners, determiners))
            phrase.owner = self.noun_phrase(self.fresh(self.pools.owners[noun]), size - own - 1, DEFINITE)
            return phrase
        return self.simple(noun, size, determiners)

    def simple(self, noun: Noun, size: int, determiners: Determiners) -> NounPhrase:
        """A determiner, up to two adjectives, a noun; of two adjectives French puts one on each side."""
        qualities = self.pools.qualities[noun]
        adjectives: tuple[Adjective, ...] = ()
        if size == 3:
            adjectives = (self.pick(qualities.all),)
        elif size == 4:
            adjectives = (self.pick(qualities.before), self.pick(qualities.after))
        plural = noun.has_plural and self.draw() < 0.25
        words = determiners.plural if plural else determiners.singular if noun.countable else determiners.mass
        return NounPhrase(noun, self.pick(words), plural, adjectives)

    def related(self, noun: Noun, size: int, tense: Tense) -> NounPhrase:
        """the cat that …"""
        own = 2 + (size >= 6 and self.draw() < 0.3)
        phrase = self.simple(noun, own, HEADS)
        left = size - own - 1
        alone = noun.animate and (left == 1 or self.draw() < 0.65)
        if alone or self.draw() < 0.2 or not self.pools.undergone[noun]:
            phrase.relative = Relative(self.doing(noun, left, tense))
        else:
            phrase.relative = Relative(self.undergoing(noun, left, tense))
        return phrase

    # ── Clauses ────────────────────────────────────────────────────────────────────────────────────

    def clause(self, size: int, tense: Tense, *, question: bool = False) -> Clause:
        """Subject, predicate and the rest, in exactly `size` words."""
        kind = self.draw()
        if kind < 0.2:
            clause = self.personal(size, tense, question=question)
        elif kind < 0.3 and size >= 8:
            clause = self.paired(size, tense, question=question)
        else:
            things = kind < 0.4 and size >= 6
            actors = self.pools.humans if self.draw() < 0.55 else self.pools.animals
            noun = self.fresh(self.pools.things if things else actors)
            clause = self.nominal(noun, size, tense, question=question)
        clause.time_first = clause.time is not None and not question and self.draw() < 0.3
        return clause

    def nominal(self, noun: Noun, size: int, tense: Tense, *, question: bool) -> Clause:
        acts = self.pools.acts[noun]
        clause = self.begin(acts, noun, size - 2, tense, question=question)
        spare = size - 2 - self.least(clause)
        extra = self.up_to(min(spare, 7 if self.draw() < 0.4 else 2))
        determiners = DEFINITE if clause.negation else FREE
        clause.subject = self.noun_phrase(noun, 2 + extra, determiners, BACKGROUND[tense])
        if isinstance(clause.predicate, Adjective) and clause.subject.adjectives:
            clause.predicate = self.other_quality(clause.subject)
        self.complete(clause, spare - extra, determiners)
        return clause

    def other_quality(self, phrase: NounPhrase) -> Adjective:
        """What to say of something described already: not the same again, nor a second colour or size."""
        reasons = self.pools.qualities[phrase.noun].reasons
        return self.pick([adjective for adjective in reasons if adjective not in phrase.adjectives])

    def personal(self, size: int, tense: Tense, *, question: bool) -> Clause:
        """A pronoun without antecedent; such a *they* only acts: "they were …" is left to `reference`."""
        person = self.pick(PERSONS[tense])
        noun = None if person == "they" else self.pools.humans[0]
        clause = self.begin(self.pools.human_acts, noun, size - 1, tense, question=question)
        clause.subject = Pronoun(person)
        determiners = DEFINITE if clause.negation else FREE
        determiners = WITHOUT_MY[determiners] if person == "i" else determiners
        self.complete(clause, size - 1 - self.least(clause), determiners)
        return clause

    def paired(self, size: int, tense: Tense, *, question: bool) -> Clause:
        """the cat and the dog …"""
        people = self.draw() < 0.5
        nouns = self.pools.humans if people else self.pools.animals
        acts = self.pools.human_acts if people else self.pools.animal_acts
        clause = self.begin(acts, None, size - 5, tense, question=question)
        spare = size - 5 - self.least(clause)
        determiners = DEFINITE if clause.negation else FREE
        extra = self.up_to(min(spare, 1)), self.up_to(min(spare - 1, 1)) if spare else 0
        first, second = (self.noun_phrase(self.fresh(nouns), 2 + more, determiners) for more in extra)
        clause.subject = Pair(first, second)
        self.complete(clause, spare - sum(extra), determiners)
        return clause

    def doing(self, noun: Noun, size: int, tense: Tense) -> Clause:
        """The inside of *the cat that ate the mouse*."""
        clause = self.begin(self.pools.acts[noun], noun, size, tense)
        self.complete(clause, size - self.least(clause), DEFINITE if clause.negation else FREE)
        return clause

    def undergoing(self, noun: Noun, size: int, tense: Tense) -> Clause:
        """The inside of *the mouse that the cat ate*."""
        verb = self.fresh(self.pools.undergone[noun])
        spare = size - group_words(verb, tense, "")
        if spare == 1 or self.draw() < 0.2:
            clause = Clause(Pronoun(self.pick(PERSONS[tense][1:])), verb, tense)
            self.adverbials(clause, spare - 1, FREE)
            return clause
        extra = self.up_to(min(spare - 2, 2))
        doer = self.noun_phrase(self.fresh(self.pools.doers[verb]), 2 + extra)
        clause = Clause(doer, verb, tense)
        self.adverbials(clause, spare - 2 - extra, FREE)
        return clause

    def begin(self, acts: Acts, noun: Noun | None, room: int, tense: Tense, *, question: bool = False) -> Clause:
        """A predicate that fits into `room` words after its subject; an adjective only if said of a noun."""
        kind, chance = self.draw(), self.draw()
        negation: Negation = "not" if chance < 0.14 else "never" if chance < 0.17 and not question else ""
        if room < 5 + question:
            negation = ""
        verbal = 1 + (tense == "future" or negation == "not" or question) + bool(negation)
        predicate: Verb | Adjective
        if kind < 0.1 and acts.giving and room >= verbal + 5:
            predicate = self.fresh(acts.giving)
        elif kind < 0.6 and acts.upon and room >= verbal + 3:
            predicate = self.fresh(acts.upon)
        elif noun is not None and (kind > 0.8 or not acts.alone) and room >= 2 + (tense == "future") + bool(negation):
            predicate = self.pick(self.pools.qualities[noun].all)
        else:
            predicate = self.fresh(acts.alone)
        if negation == "never" and isinstance(predicate, Verb) and not predicate.takes_manner:
            negation = ""  # it takes no time either, and something must be able to fill a last word
        return Clause(None, predicate, tense, negation, question)

    def least(self, clause: Clause) -> int:
        """The words a clause begun cannot do without, its subject apart."""
        predicate = clause.predicate
        words = group_words(predicate, clause.tense, clause.negation, question=clause.question)
        if isinstance(predicate, Adjective):
            return words + 1
        return words + 2 * bool(predicate.objects) + 3 * bool(predicate.recipients)

    def complete(self, clause: Clause, spare: int, determiners: Determiners) -> None:
        """Objects and adverbials, which take up all the `spare` words."""
        verb = clause.predicate
        frequencies = self.pools.frequencies[clause.tense]
        if spare and frequencies and not clause.negation and self.draw() < 0.15:
            clause.frequency = self.pick(frequencies)
            spare -= 1
        if isinstance(verb, Verb) and verb.objects:
            noun = self.fresh(self.pools.patients[verb])
            nested = clause.subject is None or verb.recipients
            if spare >= 2 and not nested and self.draw() < 0.35:
                clause.object = self.noun_phrase(noun, 2 + spare, determiners, BACKGROUND[clause.tense])
                return
            extra = self.up_to(min(spare, 4 if self.draw() < 0.3 else 2))
            clause.object = self.noun_phrase(noun, 2 + extra, determiners)
            spare -= extra
            if verb.recipients:
                extra = self.up_to(min(spare, 2))
                clause.recipient = self.noun_phrase(self.fresh(self.pools.humans), 2 + extra, determiners)
                spare -= extra
        self.adverbials(clause, spare, determiners)

    # ── How, where and when ────────────────────────────────────────────────────────────────────────

    def adverbials(self, clause: Clause, spare: int, determiners: Determiners) -> None:
        """Prepositional phrases of three words and more, and up to two adverbs, in exactly `spare` words."""
        if spare >= 3:
            groups = self.adjunct_groups(clause)
            count = min(len(groups), spare // 3)
            if count > 1 and spare <= 8:
                count -= self.up_to(count - 1)
            single = self.up_to(min(2, spare - 3 * count))
            sizes = self.sizes(spare - single, count)
            chosen = sorted(self.sample(len(groups), count))
            clause.adjuncts = tuple(
                self.adjunct(self.pick(groups[index]), size, determiners)
                for index, size in zip(chosen, sizes, strict=True)
            )
            spare = single
        if spare:
            self.adverbs(clause, spare)

    def sizes(self, words: int, count: int) -> list[int]:
        """The lengths of `count` prepositional phrases, at least three words each."""
        sizes = [3] * count
        for _ in range(words - 3 * count):
            sizes[self.up_to(count - 1)] += 1
        return sizes

    def sample(self, population: int, count: int) -> list[int]:
        """`count` different numbers below `population`."""
        numbers = list(range(population))
        return [numbers.pop(self.up_to(len(numbers) - 1)) for _ in range(count)]

    def adjunct_groups(self, clause: Clause) -> list[tuple[Place, ...]]:
        """With whom or what, where, when: in this order, and each at most once."""
        pools, verb = self.pools, clause.predicate
        if isinstance(verb, Adjective):
            return [pools.surroundings, pools.events]
        company: tuple[Place, ...] = pools.company
        if pools.tools[verb] and self.draw() < 0.6:
            company = ((pools.tool_preposition, pools.tools[verb]),)
        where = pools.directions if verb.motion and self.draw() < 0.5 else pools.locations
        return [company, where, pools.events]

    def adjunct(self, place: Place, size: int, determiners: Determiners) -> Adjunct:
        preposition, nouns = place
        if place in self.pools.events:
            determiners = EVENTS
        return Adjunct(preposition, self.noun_phrase(self.fresh(nouns), size - 1, determiners))

    def adverbs(self, clause: Clause, count: int) -> None:
        """As many adverbs as asked for; a place adverb only where nothing better is left."""
        pools, verb = self.pools, clause.predicate
        slots: list[tuple[str, Sequence[Adverb]]] = []
        if isinstance(verb, Adjective):
            slots.append(("degree", pools.denied_degrees if clause.negation else pools.degrees))
        elif verb.takes_manner:
            slots.append(("manner", pools.manners))
        if clause.negation != "never":
            slots.append(("time", pools.times[clause.tense]))
        if len(slots) < 2 or (not clause.adjuncts and isinstance(verb, Verb)):
            slots.append(("place", pools.place_adverbs))
        for index in self.sample(len(slots), count):
            role, adverbs = slots[index]
            setattr(clause, role, self.pick(adverbs))

    # ── Words that only their context explains ─────────────────────────────────────────────────────

    def reference(self, size: int, tense: Tense, *, riddle: bool = False) -> Text | None:
        """the bear ate the pear because it was delicious: only one fits the adjective, so *it* is that.

        In many of these number or person tell it already (*the king … it*, *the bears … it*), and where they do
        not, *it* is more often what was eaten. In a riddle only the adjective tells, and both are as likely.
        """
        people = not riddle and self.draw() < 0.4
        subject = self.fresh(self.pools.humans if people else self.pools.animals)
        verb = self.pick(self.pools.acts[subject].upon)
        spare = size - group_words(verb, tense, "") - 8
        if not 0 <= spare <= 5:
            return None
        doer, patient, degree = self.spread(spare)
        agent = self.simple(subject, 2 + doer, FREE)
        theme = self.simple(self.fresh(self.pools.patients[verb]), 2 + patient, FREE)
        if riddle and (theme.plural != agent.plural or theme.noun.human):
            return None
        referent, other = (agent, theme) if self.draw() < (0.5 if riddle else 0.4) else (theme, agent)
        reasons = self.reasons(referent, other)
        if not reasons:
            return None
        pronoun = Pronoun("they" if referent.plural else "it", referent)
        background: Tense = "past" if tense == "past" else "present"
        because = Clause(pronoun, self.pick(reasons), background)
        if degree:
            because.degree = self.pick(self.pools.degrees)
        return Text([Clause(agent, verb, tense, object=theme), because], ["because"])

    def spread(self, spare: int) -> tuple[int, int, int]:
        """Up to two more words for each noun phrase and one for the adjective."""
        doer = max(0, spare - 3) + self.up_to(min(2, spare) - max(0, spare - 3))
        left = spare - doer
        patient = max(0, left - 1) + self.up_to(min(2, left) - max(0, left - 1))
        return doer, patient, left - patient

    def reasons(self, referent: NounPhrase, other: NounPhrase) -> list[Adjective]:
        """The adjectives that can only be meant of the referent."""
        qualities = self.pools.qualities
        rival = other.plural == referent.plural and (other.plural or not other.noun.human)
        if referent.noun.human and not referent.plural:
            return []
        words = qualities[other.noun].words if rival else frozenset[str]()
        said = {adjective.english for adjective in referent.adjectives}
        return [
            adjective
            for adjective in qualities[referent.noun].reasons
            if adjective.english not in words and adjective.english not in said
        ]

    def ambiguous(self, size: int, tense: Tense) -> Text | None:
        """the fisherman slept near the bank: the company of the word tells its sense."""
        context = self.pick(self.pools.lexicon.contexts)
        verb = self.pick(context.verbs)
        phrases = 2 + bool(context.objects and context.prepositions)
        spare = size - group_words(verb, tense, "") - 2 * phrases - bool(context.prepositions)
        if not 0 <= spare <= 2 * phrases + 1:
            return None
        timed = spare == 2 * phrases + 1 or (spare > 0 and self.draw() < 0.2)
        clause = self.settled(context, verb, tense, spare - timed)
        if timed:
            clause.time = self.pick(self.pools.times[tense])
        return Text([clause])

    def settled(self, context: Context, verb: Verb, tense: Tense, spare: int) -> Clause:
        """The clause of a context, with `spare` adjectives strewn over its noun phrases."""
        nouns = [self.fresh(context.subjects), context.word]
        if context.objects and context.prepositions:
            nouns.insert(1, self.fresh(context.objects))
        sizes = [2] * len(nouns)
        for _ in range(spare):
            open_places = [index for index, size in enumerate(sizes) if size < 4]
            sizes[self.pick(open_places)] += 1
        subject, *others = (self.simple(noun, size, FREE) for noun, size in zip(nouns, sizes, strict=True))
        clause = Clause(subject, verb, tense)
        if context.prepositions:
            clause.adjuncts = (Adjunct(self.pick(context.prepositions), others.pop()),)
        if others:
            clause.object = others[0]
        return clause
