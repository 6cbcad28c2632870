"""Noun phrases and clauses of exactly the length asked for.

Every method is given a number of English words and makes exactly that many, so that a sentence of n words needs no
second attempt: a clause divides its words among subject, verb, objects and adverbials, a noun phrase its own among
adjectives, owner and relative clause.

Three rules make the translation a function of the English words. A prepositional phrase belongs to the verb, never to
a noun (only *of* does); nothing follows an object with a relative clause, so that the end of the sentence belongs to
that clause; and a possessive that can mean the subject does mean it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from regard.fable.determiners import (
    DEFINITE,
    EVENTS,
    FREE,
    HEADS,
    KNOWN,
    NUMBER,
    ONE,
    Determiners,
    beside,
    nobodys,
    owning,
    possessor,
)
from regard.fable.forms.english import NUMERALS, comparative
from regard.fable.lexicon import Adjective, Adverb, Noun, Tense, Verb
from regard.fable.pools import FEELINGS, Acts, Place, Pools
from regard.fable.syntax import (
    GENERIC,
    PARTITIVE,
    Adjunct,
    Asked,
    Clause,
    Coordination,
    Modal,
    Negation,
    NounPhrase,
    Person,
    Pronoun,
    Subject,
)

Item = TypeVar("Item")
TENSES: tuple[Tense, ...] = ("past",) * 10 + ("present",) * 5 + ("future",) * 5
PEOPLE: tuple[Person, ...] = (*("i",) * 4, *("we",) * 3, *("you",) * 3, "he", "he", "she", "she", "they", "they")
COMMONEST = 0.6  # the share of clauses with a pronoun whose verb is one of everyday
OTHERS: tuple[Person, ...] = ("he", "she", "they", "we", "you", "i")  # the subject of a relative clause
BACKGROUND: dict[Tense, Tense] = {"past": "past", "present": "present", "future": "past"}
MODALS: dict[Tense, tuple[Modal, ...]] = {
    "past": ("want", "want", "could", "could", "going"),
    "present": ("can",) * 4 + ("want",) * 3 + ("must", "should", "going", "would") * 2,
    "future": (),
}
MODAL, OFTEN = 0.2, 0.35  # the share of verbs with a modal, if they can have one; and of the commonest verbs
PROGRESSIVE: dict[Tense, float] = {"past": 0.18, "present": 0.4, "future": 0.0}  # the share of verbs, if they can be
PERFECT = 0.12  # the share of verbs in the past that say *has eaten*, if they can
OBJECTIVE = 0.12  # the share of objects and recipients that are pronouns
DATIVE = frozenset({"give", "send", "show", "lend", "tell", "teach", "offer"})  # … him an apple
THEM: tuple[Person, ...] = ("i", "i", "you", "he", "he", "she", "she", "we", "they", "they")  # as objects
ASIDE = 0.3  # the share of clauses with *who* about a subject that stand between commas
LANDED = 0.1  # the share of people in four to six words that are of a country or a town: the king of France
BOTH = 0.12  # the share of predicates that are two adjectives, where there is room
COMPARED = 0.8  # the share of predicates that are compared, where there is room
BARE = 0.12  # the share of objects without a determiner
IN_GENERAL = frozenset({"love", "like", "like#person", "hate", "fear", "admire", "respect", "learn", "study", "teach"})
GOING = frozenset({"come", "return", "travel", "go", "walk", "run", "fly", "flee"})  # … to Paris
HEADING = frozenset({"go", "come", "return"})  # … to the market
HOMEWARD = GOING | {"arrive", "stay"}  # … home
PLACED = frozenset({"go", "live"})  # verbs that need a place
BLOCKED: dict[Asked, str] = {"when": "time", "where": "place", "how": "manner"}


def clause_words(clause: Clause) -> int:
    """How many English words the verb takes: ate, will eat, has eaten, didn't eat, looked for, is going to eat; was,
    will not be."""
    predicate, negation, modal = clause.predicate, clause.negation, clause.modal
    if isinstance(predicate, Adjective):
        return 1 + (clause.tense == "future") + bool(negation) - clause.contracted
    if clause.wishing:
        return 2 + bool(negation) - clause.contracted
    supported = clause.tense == "future" or negation == "not" or clause.question or clause.progressive
    supported = supported or clause.perfect or modal not in {"", "want"}
    contracted = clause.contracted or (modal == "can" and negation == "not" and not clause.question)  # cannot
    linked = modal in {"want", "would", "going"}  # … to
    denied = negation in {"not", "never"}  # *no* is a word of its object
    return 1 + supported + 2 * linked + denied + bool(predicate.particle) - contracted


def narrow(verbs: tuple[Verb, ...], spare: int) -> tuple[Verb, ...]:
    """The verbs that fit: with a particle only if a word is left for it, and none if no word is left at all."""
    if spare > 0:
        return verbs
    return tuple(verb for verb in verbs if not verb.particle) if spare == 0 else ()


def somewhere(verbs: tuple[Verb, ...], spare: int) -> tuple[Verb, ...]:
    """The verbs that fit: those that need a place only if a word is left for it."""
    return verbs if spare > 0 else tuple(verb for verb in verbs if verb.name not in PLACED)


def is_placed(clause: Clause) -> bool:
    """Whether the clause must have a place or a destination."""
    verb = clause.predicate
    return isinstance(verb, Verb) and verb.name in PLACED and clause.asked != "where"


COMPANY, WHERE, WHEN = range(3)  # the groups of prepositional phrases


class Composer:
    """Composes trees. All randomness comes from `draw`, a stream of floats in [0, 1)."""

    def __init__(self, pools: Pools, draw: Callable[[], float]) -> None:
        self.pools = pools
        self.draw = draw
        self.used: list[object] = []

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self.draw() * len(items))]

    def up_to(self, most: int) -> int:
        """A whole number from 0 to `most`, each as likely."""
        return int(self.draw() * (most + 1))

    def common(self, words: Sequence[Item]) -> Item:
        """A word of a table that begins with the most frequent words: the last is drawn half as often as on average."""
        return words[int(self.draw() ** 2 * len(words))]

    def fresh(self, words: Sequence[Item]) -> Item:
        """A noun or verb that the sentence has not used yet, if a few tries find one."""
        for _ in range(4):
            word = self.common(words)
            if word not in self.used:
                break
        self.used.append(word)
        return word

    # ── Noun phrases ───────────────────────────────────────────────────────────────────────────────

    def noun_phrase(
        self, noun: Noun, size: int, determiners: Determiners = FREE, relative: Tense | None = None
    ) -> NounPhrase:
        """`relative` is the tense of a relative clause, if the noun may have one."""
        if relative is not None and size >= (4 if noun.animate else 5) and self.draw() < 0.6:
            return self.related(noun, size, relative, HEADS if "a" in determiners.singular else KNOWN)
        if noun in self.pools.belongings and self.draw() < (0.3 if size >= 5 else 0.1):
            return self.genitive(noun, size, determiners)
        if 4 <= size <= 6 and noun in self.pools.landed and self.draw() < LANDED:
            return self.owned(noun, size - 2, size, KNOWN)
        if size >= 5:
            return self.owned(noun, 2 + self.up_to(min(2, size - 5)), size, determiners)
        return self.simple(noun, size, determiners)

    def genitive(self, noun: Noun, size: int, determiners: Determiners) -> NounPhrase:
        """Mary's house, the old king's big house: the noun has up to two adjectives, the owner the other words."""
        adjectives = self.up_to(min(2, size - 2))
        phrase = self.simple(noun, 2 + adjectives, HEADS)
        phrase.determiner, phrase.genitive = "the", True
        words = size - 1 - adjectives
        if words == 1:
            phrase.owner = self.name()
        else:
            owner = self.noun_phrase(self.fresh(self.pools.owners[noun]), words, owning(determiners))
            # the king's, but not the kings' nor the king of the island's
            phrase.genitive = not owner.plural and owner.relative is None and (owner.owner is None or owner.genitive)
            phrase.owner = owner
        if phrase.genitive:
            return phrase
        if size <= 4:  # "of" takes one more word
            return self.simple(noun, size, determiners)
        return self.owned(noun, max(2, min(4, size - 3)), size, determiners)

    def owned(self, noun: Noun, own: int, size: int, determiners: Determiners) -> NounPhrase:
        """the house of the old king: `own` words, *of*, and the owner with the other words; the king of France."""
        phrase = self.simple(noun, own, nobodys(determiners))
        if size - own == 2:
            phrase.owner = NounPhrase(self.fresh(self.pools.lands), "")
            return phrase
        owner = self.fresh(self.pools.owners[noun])
        phrase.owner = self.noun_phrase(owner, size - own - 1, owning(determiners))
        return phrase

    def name(self) -> NounPhrase:
        return NounPhrase(self.fresh(self.pools.lexicon.names), "")

    def simple(self, noun: Noun, size: int, determiners: Determiners) -> NounPhrase:
        """A determiner, up to two adjectives, a noun; two adjectives are on different sides of the noun in French."""
        qualities = self.pools.qualities[noun]
        adjectives: tuple[Adjective, ...] = ()
        if size == 3:
            adjectives = (self.common(qualities.all),)
        elif size == 4:
            adjectives = (self.common(qualities.before), self.common(qualities.after))
        plural = noun.has_plural and self.draw() < 0.25
        words = determiners.plural if plural else determiners.singular if noun.countable else determiners.mass
        determiner = self.pick(words)
        if determiner is NUMBER:
            determiner = self.number()
        return NounPhrase(noun, determiner, plural, adjectives, own=determiner == determiners.own)

    def number(self) -> str:
        """More than three, in words or in digits."""
        if self.draw() < 0.5:
            return self.pick(NUMERALS)
        return str(int((2, 10, 100, 1000)[self.up_to(2) + (self.draw() < 0.1)] * (1 + 8.9 * self.draw())))

    def related(self, noun: Noun, size: int, tense: Tense, determiners: Determiners = HEADS) -> NounPhrase:
        """the cat that …"""
        own = 2 + (size >= 6 and self.draw() < 0.3)
        phrase = self.simple(noun, own, determiners)
        left = size - own - 1
        alone = noun.animate and (left == 1 or self.draw() < 0.65)
        if alone or self.draw() < 0.2 or not self.pools.undergone[noun]:
            phrase.relative = self.doing(phrase, left, tense)
        else:
            phrase.relative = self.undergoing(noun, left, tense)
        phrase.relative.who = noun.human and self.draw() < (0.7 if phrase.relative.subject is None else 0.3)
        return phrase

    # ── Clauses ────────────────────────────────────────────────────────────────────────────────────

    def clause(self, size: int, tense: Tense, *, question: bool = False, asked: Asked = "") -> Clause:
        """Subject, predicate and the rest, in exactly `size` words."""
        size -= bool(asked)
        kind = self.draw()
        if kind < 0.3 or (size < 4 and kind < 0.7):
            clause = self.personal(size, tense, question=question, asked=asked)
        elif kind < 0.37 and size >= 8:
            clause = self.paired(size, tense, question=question, asked=asked)
        else:
            clause = self.nominal(self.actor(size, 1.0 if asked else kind), size, tense, question=question, asked=asked)
        clause.time_first = clause.time is not None and not question and self.draw() < 0.3
        return clause

    def actor(self, size: int, kind: float) -> Noun:
        """The subject of a clause: a name, a person, an animal, rarely a thing."""
        if size < 3 or self.draw() < 0.1:
            return self.fresh(self.pools.lexicon.names)
        if kind < 0.47 and size >= 6:
            return self.fresh(self.pools.things)
        return self.fresh(self.pools.humans if self.draw() < 0.55 else self.pools.animals)

    def beside(self, clause: Clause, subject: Subject | None = None) -> Determiners:
        """The determiners of the other noun phrases of a clause."""
        whose = subject or clause.subject
        assert whose is not None, "a clause has a subject or a head"
        return beside(possessor(whose), DEFINITE if clause.negation else FREE)

    def nominal(self, noun: Noun, size: int, tense: Tense, *, question: bool, asked: Asked = "") -> Clause:
        least = 1 if noun.proper else 2
        clause = self.begin(self.pools.acts[noun], noun, size - least, tense, question=question, asked=asked)
        spare = size - least - self.least(clause)
        if noun.proper:
            extra = 0
            clause.subject = NounPhrase(noun, "")
        else:
            extra = self.up_to(min(spare, 7 if self.draw() < 0.4 else 2))
            determiners = DEFINITE if clause.negation else FREE
            clause.subject = self.noun_phrase(noun, 2 + extra, determiners, BACKGROUND[tense])
            relative = clause.subject.relative
            if relative is not None and relative.who and relative.subject is None and not (question or asked):
                relative.aside = clause.subject.determiner != "a" and self.draw() < ASIDE
        if isinstance(clause.predicate, Adjective) and clause.subject.adjectives:  # not a second colour or size
            reasons, said = self.pools.qualities[noun].reasons, clause.subject.adjectives
            clause.predicate = self.common([adjective for adjective in reasons if adjective not in said])
        self.complete(clause, spare - extra, self.beside(clause))
        return clause

    def personal(
        self, size: int, tense: Tense, *, question: bool, asked: Asked = "", person: Person | None = None
    ) -> Clause:
        """A pronoun without antecedent; *they* only with a verb: "they were …" is left to `reference`. Most clauses
        have an everyday verb."""
        chosen: Person = self.pick(PEOPLE) if person is None else person
        noun = None if chosen == "they" else self.pools.humans[0]
        acts = self.pools.everyday if self.draw() < COMMONEST else self.pools.human_acts
        clause = self.begin(acts, noun, size - 1, tense, question=question, asked=asked, clitic=chosen != "who")
        while isinstance(clause.predicate, Adjective) and clause.predicate.english in FEELINGS:
            clause.predicate = self.common(self.pools.qualities[self.pools.humans[0]].all)
        clause.subject = Pronoun(chosen)
        if clause.perfect and not (clause.negation or question) and chosen in {"i", "we", "you", "they"}:
            clause.contracted = self.draw() < 0.5
        self.complete(clause, size - 1 - self.least(clause), self.beside(clause))
        return clause

    def paired(self, size: int, tense: Tense, *, question: bool, asked: Asked = "") -> Clause:
        """the cat and the dog …"""
        people = self.draw() < 0.5
        nouns = self.pools.humans if people else self.pools.animals
        acts = self.pools.human_acts if people else self.pools.animal_acts
        clause = self.begin(acts, None, size - 5, tense, question=question, asked=asked)
        spare = size - 5 - self.least(clause)
        determiners = DEFINITE if clause.negation else FREE
        extra = self.up_to(min(spare, 1)), self.up_to(min(spare - 1, 1)) if spare else 0
        first, second = (self.noun_phrase(self.fresh(nouns), 2 + more, determiners) for more in extra)
        clause.subject = Coordination(first, second)
        self.complete(clause, spare - sum(extra), self.beside(clause))
        return clause

    def doing(self, head: NounPhrase, size: int, tense: Tense) -> Clause:
        """The inside of *the cat that ate the mouse*."""
        clause = self.begin(self.pools.acts[head.noun], head.noun, size, tense)
        self.complete(clause, size - self.least(clause), self.beside(clause, head))
        return clause

    def sharing(self, first: Clause, size: int, tense: Tense) -> Clause | None:
        """Another clause about the subject of the first, which is not said again: … *and ate the cheese*."""
        subject = first.subject
        if isinstance(subject, NounPhrase):
            acts = self.pools.acts[subject.noun]
        elif isinstance(subject, Pronoun) and subject.referent is None and subject.word not in {"it", "who"}:
            acts = self.pools.human_acts
        else:
            return None
        ends = [first.than, first.object, *(adjunct.phrase for adjunct in first.adjuncts)]
        related = any(isinstance(end, NounPhrase) and end.relative is not None for end in ends)
        if related or first.question or not acts.alone or size < 1 + (tense == "future"):
            return None
        clause = self.begin(acts, None, size, tense)
        clause.subject, clause.shared = subject, True
        self.complete(clause, size - self.least(clause), self.beside(clause))
        return clause

    def undergoing(self, noun: Noun, size: int, tense: Tense) -> Clause:
        """The inside of *the mouse that the cat ate*."""
        verb = self.fresh(self.pools.undergone[noun])
        spare = size - clause_words(Clause(None, verb, tense))
        if spare == 1 or self.draw() < 0.2:
            clause = Clause(Pronoun(self.pick(OTHERS)), verb, tense)
            self.adverbials(clause, spare - 1, self.beside(clause))
            return clause
        extra = self.up_to(min(spare - 2, 2))
        doer = self.noun_phrase(self.fresh(self.pools.doers[verb]), 2 + extra)
        clause = Clause(doer, verb, tense)
        self.adverbials(clause, spare - 2 - extra, self.beside(clause))
        return clause

    def begin(
        self,
        acts: Acts,
        noun: Noun | None,
        room: int,
        tense: Tense,
        *,
        question: bool = False,
        asked: Asked = "",
        clitic: bool = False,
    ) -> Clause:
        """A predicate that fits into `room` words after its subject; an adjective only with a noun.

        `clitic`: the subject is a pronoun with which *am*, *is*, *are* and *will* can be contracted.
        """
        kind, chance = self.draw(), self.draw()
        denied = 0.25 if acts is self.pools.everyday else 0.14
        negation: Negation = "not" if chance < denied else "never" if chance < denied + 0.03 and not question else ""
        tight = room < 5 + question  # there is only room for "don't", not for "do not"
        if asked or (tight and (question or room < 3 or negation == "never")):
            negation = ""
        short = tight and negation == "not"
        modal = self.modal(acts, noun, tense)
        plainest = Clause(None, self.pools.plainest, tense, negation, question, contracted=short, modal=modal)
        if clause_words(plainest) > room:
            plainest.modal = modal = ""
        verbal = clause_words(plainest)
        predicate: Verb | Adjective
        if asked:
            predicate = self.asked_about(
                acts, noun if room > 2 or tense != "future" else None, asked, room - max(verbal, 2)
            )
            modal = modal if isinstance(predicate, Verb) else ""
        elif kind < 0.13 and acts.giving and room >= verbal + 5:
            predicate = self.fresh(acts.giving)
        elif kind < (0.5 if acts is self.pools.everyday else 0.6) and (
            fitting := self.fitting(acts.upon, room - verbal - 2)
        ):
            predicate = self.fresh(fitting)
        elif noun is not None and (kind > 0.8 or not acts.alone) and room >= 2 + (tense == "future") + bool(negation):
            predicate, modal = self.common(self.pools.qualities[noun].all), ""
        else:
            predicate = self.fresh(somewhere(acts.alone, room - verbal))
        if predicate.name == "want":
            modal = "would" if modal and tense == "present" else ""
        if negation == "never" and isinstance(predicate, Verb):  # which would leave no adverb for a last word
            alone = not predicate.takes_manner and (modal or tense != "past")
            negation = "" if predicate.imperfect or alone else "never"
        clause = Clause(None, predicate, tense, negation, question, contracted=short, modal=modal, asked=asked)
        if isinstance(predicate, Verb) and not modal:
            self.going_on(clause, predicate, room, clitic=clitic and tense == "present")
            self.completed(clause, predicate, room)
        clause.contracted = clause.contracted or self.contracted(clause, clitic=clitic)
        return clause

    def going_on(self, clause: Clause, verb: Verb, room: int, *, clitic: bool) -> None:
        """Some clauses are progressive: the cat is eating, was eating; in two words, I'm eating."""
        if clause.negation == "never" or not verb.progressive or self.draw() >= PROGRESSIVE[clause.tense]:
            return
        room, short = max(room, self.least(clause)), clause.contracted
        clause.progressive = True
        clause.contracted = short or (clitic and not clause.question and self.least(clause) > room)
        if self.least(clause) > room:
            clause.progressive, clause.contracted = False, short

    def completed(self, clause: Clause, verb: Verb, room: int) -> None:
        """Some clauses in the past are perfect: the cat has eaten, has never eaten. Where a verb has no adverb of
        manner, *never* is always so, because there must be an adverb to choose from."""
        if clause.tense != "past" or clause.progressive or verb.imperfect is not None or clause.asked == "when":
            return
        must = clause.negation == "never" and not verb.takes_manner
        if must or self.draw() < (0.5 if clause.negation == "never" else PERFECT):
            room = max(room, self.least(clause))
            clause.perfect = True
            clause.perfect = self.least(clause) <= room
        if must and not clause.perfect:
            clause.negation = ""

    def fitting(self, verbs: tuple[Verb, ...], spare: int) -> tuple[Verb, ...]:
        """Verbs for an object of two words or, if a word is missing, of one: I drink milk, I see him."""
        if spare == -1:
            return tuple(verb for verb in narrow(verbs, 0) if self.pools.unsaid[verb] or "human" in verb.objects)
        return narrow(verbs, spare)

    def asked_about(self, acts: Acts, noun: Noun | None, asked: Asked, spare: int) -> Verb | Adjective:
        """A predicate for a question, with an object if there is room for one."""
        if asked == "why" and noun is not None and self.draw() < 0.3:
            return self.common(self.pools.qualities[noun].all)
        if asked in {"what", "who"}:
            return self.fresh(narrow(self.pools.asked[asked][acts], spare))
        upon = narrow(self.pools.asked["upon"][acts], spare - 2)
        alone = somewhere(self.pools.asked["alone"][acts], 1 if asked == "where" else spare)
        return self.fresh(upon if upon and self.draw() < 0.5 else alone)

    def modal(self, acts: Acts, noun: Noun | None, tense: Tense) -> Modal:
        """can, must, want to and the like, for persons and animals."""
        share = OFTEN if acts is self.pools.everyday else MODAL
        if not MODALS[tense] or (noun is not None and not noun.animate) or self.draw() > share:
            return ""
        return self.pick(MODALS[tense])

    def contracted(self, clause: Clause, *, clitic: bool) -> bool:
        """Half of what can be contracted: didn't; I'm, he'll after a pronoun."""
        if clause.question or self.draw() < 0.5:
            return False
        if clause.negation == "not":
            return True
        being = clause.progressive or clause.modal == "going" or isinstance(clause.predicate, Adjective)
        short = (being and clause.tense == "present") or clause.tense == "future" or clause.modal == "would"
        return clitic and short

    def least(self, clause: Clause) -> int:
        """How many words a clause needs at least, without its subject."""
        predicate, words = clause.predicate, clause_words(clause)
        if isinstance(predicate, Adjective):
            return words + 1
        if clause.asked in {"what", "who"}:
            return words
        return words + 2 * bool(predicate.objects) + 3 * bool(predicate.recipients)

    def complete(self, clause: Clause, spare: int, determiners: Determiners) -> None:
        """Objects and adverbials, in exactly `spare` words more than the least."""
        verb = clause.predicate
        frequencies = self.pools.frequencies[clause.tense]
        plain = not (clause.negation or clause.asked or clause.command or clause.progressive)
        if spare > is_placed(clause) and frequencies and plain and self.draw() < 0.15:
            clause.frequency = self.common(frequencies)
            spare -= 1
        if isinstance(verb, Adjective) and self.compare(clause, verb, spare):
            return
        if isinstance(verb, Adjective) and spare >= 2 and clause.subject is not None and self.draw() < BOTH:
            noun = clause.subject.noun if isinstance(clause.subject, NounPhrase) else self.pools.humans[0]
            others = [each for each in self.pools.qualities[noun].reasons if each.english not in FEELINGS]
            clause.also = self.common([each for each in others if each.english != verb.english] or others)
            spare -= 2
        if isinstance(verb, Verb) and verb.objects and clause.asked not in {"what", "who"}:
            if self.short_object(clause, verb, must=spare < 0):
                spare += 1
            else:
                noun = self.fresh(self.pools.patients[verb])
                nested = clause.subject is None or verb.recipients
                if spare >= 2 and not nested and self.draw() < 0.35:
                    clause.object = self.noun_phrase(noun, 2 + spare, determiners, BACKGROUND[clause.tense])
                    return
                extra = self.up_to(min(spare, 4 if self.draw() < 0.3 else 2))
                clause.object = self.noun_phrase(noun, 2 + extra, determiners)
                spare -= extra
            if verb.recipients:
                spare = self.receive(clause, spare, determiners)
        self.adverbials(clause, spare, determiners)

    def short_object(self, clause: Clause, verb: Verb, *, must: bool) -> bool:
        """Sometimes the object is one word: him; a name; music, cats."""
        if self.draw() < (0.5 if must else OBJECTIVE) and (pronoun := self.objective(clause, verb)):
            clause.object = pronoun
        elif "human" in verb.objects and (self.draw() < 0.2 or (must and not self.pools.unsaid[verb])):
            clause.object = self.name()
        elif self.pools.unsaid[verb] and (must or self.draw() < BARE):
            clause.object = self.bare(verb)
        else:
            return False
        return True

    def objective(self, clause: Clause, verb: Verb) -> Pronoun | None:
        """me, him, them; *it* and *them* may be things, so a verb must have one sense only to go with them."""
        plain = verb not in self.pools.puzzling
        if "human" not in verb.objects:
            return Pronoun(self.pick(("it", "it", "they"))) if plain else None
        return self.somebody_else(clause, () if plain else ("they",))

    def somebody_else(self, clause: Clause, barred: tuple[Person, ...] = ()) -> Pronoun:
        """me, you, him, her, us or them: not the subject."""
        subject = clause.subject.word if isinstance(clause.subject, Pronoun) else ""
        same = {"i", "we"} if subject in {"i", "we"} else {subject}
        return Pronoun(self.pick([person for person in THEM if person not in {*same, *barred}]))

    def compare(self, clause: Clause, adjective: Adjective, spare: int) -> bool:
        """… is bigger than the dog, with all the words that are left."""
        others = self.pools.bearers.get(adjective, ())
        more = len(comparative(adjective.english)) - 1
        fitting = 3 <= spare - more <= 6 and clause.negation != "never" and not clause.asked and not clause.question
        if not others or not fitting or self.draw() >= COMPARED:
            return False
        clause.than = self.noun_phrase(self.fresh(others), spare - more - 1, nobodys(DEFINITE))
        return True

    def bare(self, verb: Verb) -> NounPhrase:
        """An object without determiner: in general after *love*, an amount after *eat*; countable nouns are plural."""
        nouns = self.pools.unsaid[verb]
        masses = [noun for noun in nouns if not noun.countable]
        noun = self.fresh(masses if masses and self.draw() < 0.5 else nouns)
        return NounPhrase(noun, GENERIC if verb.name in IN_GENERAL else PARTITIVE, noun.countable)

    def receive(self, clause: Clause, spare: int, determiners: Determiners) -> int:
        """The recipient; returns how many spare words are left. Some stand before the object: gave her a book."""
        assert isinstance(clause.predicate, Verb), "only a verb has a recipient"
        pronoun = None
        if isinstance(clause.object, NounPhrase) and self.draw() < 0.5:
            pronoun = self.somebody_else(clause)
        clause.dative = not isinstance(clause.object, Pronoun) and clause.predicate.name in DATIVE
        clause.dative = clause.dative and self.draw() < (0.8 if pronoun else 0.4)
        if pronoun or self.draw() < 0.25:
            clause.recipient = pronoun or self.name()
            return spare + 1 + clause.dative
        extra = self.up_to(min(spare, 2))
        clause.recipient = self.noun_phrase(self.fresh(self.pools.humans), 2 + extra, determiners)
        return spare - extra + clause.dative

    # ── How, where and when ────────────────────────────────────────────────────────────────────────

    def adverbials(self, clause: Clause, spare: int, determiners: Determiners) -> None:
        """Prepositional phrases of two words and more, and up to two adverbs, in exactly `spare` words."""
        placed = is_placed(clause)
        spare -= 0 if placed else self.timed(clause, spare)
        groups = {place: group for place, group in enumerate(self.adjunct_groups(clause)) if group}
        adjuncts: dict[int, Adjunct] = {}
        most = min(2, len(self.slots(clause)))  # how many adverbs there can be
        must = spare == 2 and (placed or most < 2)
        can = spare >= 2 and (spare - 2 <= most or spare >= 5)
        if must or (can and self.draw() < (0.35 if spare == 2 else 0.15)):
            place, adjunct = self.short_adjunct(clause)
            if groups.pop(place, None) is not None:
                adjuncts[place] = adjunct
                spare -= 2
        if spare >= 3:
            count = min(len(groups), spare // 3)
            if count > 1 and spare <= 8:
                count -= self.up_to(count - 1)
            single = self.up_to(min(most, spare - 3 * count))
            chosen = self.sample(list(groups), count)
            if placed and WHERE in groups and WHERE not in chosen:
                chosen[0] = WHERE
            for place, size in zip(chosen, self.sizes(spare - single, count), strict=True):
                adjuncts[place] = self.adjunct(self.pick(groups[place]), size, determiners)
            spare = single
        clause.adjuncts = tuple(adjuncts[place] for place in sorted(adjuncts))
        if spare:
            self.adverbs(clause, spare)

    def timed(self, clause: Clause, spare: int) -> int:
        """Perhaps a time of several words; returns how many."""
        fitting = isinstance(clause.predicate, Adjective) or clause.predicate.imperfect is None
        regular = clause.negation == "never" or clause.progressive or clause.perfect  # not "is eating every day"
        if spare < 2 or not fitting or regular or clause.asked or self.draw() > 0.12:
            return 0
        clause.time = self.pools.calendar.draw(self.draw, clause.tense, spare)
        return clause.time.english.count(" ") + 1

    def short_adjunct(self, clause: Clause) -> tuple[int, Adjunct]:
        """with Mary, in Paris, to India: two words, and the group they belong to."""
        verb, pools = clause.predicate, self.pools
        alone = isinstance(verb, Verb) and not verb.impersonal and not is_placed(clause)
        if clause.asked == "where" or (alone and self.draw() < 0.4):
            return COMPANY, Adjunct(pools.tool_preposition, self.name())
        place = self.fresh(pools.lexicon.places)
        going = isinstance(verb, Verb) and verb.name in GOING
        return WHERE, Adjunct(place.towards if going else place.inside, NounPhrase(place.noun, ""))

    def sizes(self, words: int, count: int) -> list[int]:
        """The lengths of `count` prepositional phrases, at least three words each."""
        sizes = [3] * count
        for _ in range(words - 3 * count):
            sizes[self.up_to(count - 1)] += 1
        return sizes

    def sample(self, population: list[Item], count: int) -> list[Item]:
        """`count` different ones of the population."""
        return [population.pop(self.up_to(len(population) - 1)) for _ in range(count)]

    def adjunct_groups(self, clause: Clause) -> list[tuple[Place, ...]]:
        """With whom or what, where, when: in this order, each at most once, and not what the clause asks for."""
        pools, verb = self.pools, clause.predicate
        if isinstance(verb, Adjective):
            company: tuple[Place, ...] = ()
            where = pools.surroundings
        else:
            company = () if verb.impersonal else pools.company
            if pools.tools[verb] and self.draw() < 0.6:
                company = ((pools.tool_preposition, pools.tools[verb]),)
            where = pools.directions if verb.motion and self.draw() < 0.5 else pools.locations
            if verb.name in HEADING and self.draw() < 0.6:
                where = pools.destinations
        groups = [company, where, pools.events]
        if clause.asked == "where":
            groups[WHERE] = ()
        elif clause.asked == "when":
            groups[WHEN] = ()
        return groups

    def adjunct(self, place: Place, size: int, determiners: Determiners) -> Adjunct:
        preposition, nouns = place
        if place in self.pools.events:
            determiners = EVENTS
        phrase = self.noun_phrase(self.fresh(nouns), size - 1, determiners)
        if place in self.pools.destinations:  # one at a time
            phrase.plural = False
            phrase.determiner = phrase.determiner if phrase.determiner in ONE else "the"
        return Adjunct(preposition, phrase)

    def adverbs(self, clause: Clause, count: int) -> None:
        """So many adverbs."""
        for role, adverbs in self.sample(self.slots(clause), count):
            setattr(clause, role, self.common(adverbs))

    def slots(self, clause: Clause) -> list[tuple[str, Sequence[Adverb]]]:
        """The kinds of adverbs a clause can have; one of place only if there are no others."""
        pools, verb = self.pools, clause.predicate
        slots: list[tuple[str, Sequence[Adverb]]] = []
        if isinstance(verb, Adjective):
            slots.append(("degree", pools.denied_degrees if clause.negation else pools.degrees))
        elif verb.takes_manner:
            slots.append(("manner", pools.manners))
        if clause.perfect:
            slots.append(("time", pools.lately))
        elif clause.negation != "never" and clause.time is None:
            slots.append(("time", pools.times[clause.tense]))
        if is_placed(clause) and not clause.adjuncts:
            slots = []
        if clause.asked in BLOCKED:
            slots = [slot for slot in slots if slot[0] != BLOCKED[clause.asked]]
        if clause.asked != "where" and (len(slots) < 2 or (not clause.adjuncts and isinstance(verb, Verb))):
            slots.append(("place", pools.homeward if verb.name in HOMEWARD else pools.place_adverbs))
        return slots
