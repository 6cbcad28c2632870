"""Sentences with words whose meaning depends on the context: *it* and *they*, and nouns of several senses."""

from __future__ import annotations

from regard.fable.clauses import Composer, clause_words
from regard.fable.determiners import FREE, beside, possessor
from regard.fable.lexicon import Adjective, Context, Tense, Verb
from regard.fable.syntax import Adjunct, Clause, NounPhrase, Pronoun, Text


class ContextComposer(Composer):
    """Composes sentences of which some words say what others mean."""

    def reference(self, size: int, tense: Tense, *, riddle: bool = False) -> Text | None:
        """the bear ate the pear because it was delicious: the adjective fits only one of them, so *it* is that one.

        Often number or person say it already (*the king … it*, *the bears … it*); if not, *it* is more often the
        object. In a riddle only the adjective says it, and both are equally likely.
        """
        people = not riddle and self.draw() < 0.4
        subject = self.fresh(self.pools.humans if people else self.pools.animals)
        verb = self.common(self.pools.acts[subject].upon)
        spare = size - clause_words(Clause(None, verb, tense)) - 8
        if not 0 <= spare <= 5:
            return None
        doer, patient, degree = self.spread(spare)
        agent = self.simple(subject, 2 + doer, FREE)
        theme = self.simple(self.fresh(self.pools.patients[verb]), 2 + patient, beside(possessor(agent), FREE))
        if riddle and (theme.plural != agent.plural or theme.noun.human):
            return None
        referent, other = (agent, theme) if self.draw() < (0.5 if riddle else 0.4) else (theme, agent)
        reasons = self.reasons(referent, other)
        if not reasons:
            return None
        pronoun = Pronoun("they" if referent.plural else "it", referent)
        background: Tense = "past" if tense == "past" else "present"
        because = Clause(pronoun, self.common(reasons), background)
        if degree:
            because.degree = self.common(self.pools.degrees)
        return Text([Clause(agent, verb, tense, object=theme), because], ["because"])

    def spread(self, spare: int) -> tuple[int, int, int]:
        """Up to two more words for each noun phrase and one for the adjective."""
        doer = max(0, spare - 3) + self.up_to(min(2, spare) - max(0, spare - 3))
        left = spare - doer
        patient = max(0, left - 1) + self.up_to(min(2, left) - max(0, left - 1))
        return doer, patient, left - patient

    def reasons(self, referent: NounPhrase, other: NounPhrase) -> list[Adjective]:
        """The adjectives that fit only the referent."""
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
        """the fisherman slept near the bank: the words around it say which sense is meant."""
        context = self.pick(self.pools.lexicon.contexts)
        verb = self.pick(context.verbs)
        phrases = 2 + bool(context.objects and context.prepositions)
        spare = size - clause_words(Clause(None, verb, tense)) - 2 * phrases - bool(context.prepositions)
        if not 0 <= spare <= 2 * phrases + 1:
            return None
        timed = spare == 2 * phrases + 1 or (spare > 0 and self.draw() < 0.2)
        clause = self.settled(context, verb, tense, spare - timed)
        if timed:
            clause.time = self.pick(self.pools.times[tense])
        return Text([clause])

    def settled(self, context: Context, verb: Verb, tense: Tense, spare: int) -> Clause:
        """The clause of a context, with `spare` adjectives in its noun phrases."""
        nouns = [self.fresh(context.subjects), context.word]
        if context.objects and context.prepositions:
            nouns.insert(1, self.fresh(context.objects))
        sizes = [2] * len(nouns)
        for _ in range(spare):
            open_places = [index for index, size in enumerate(sizes) if size < 4]
            sizes[self.pick(open_places)] += 1
        subject = self.simple(nouns[0], sizes[0], FREE)
        clause = Clause(subject, verb, tense)
        allowed = self.beside(clause)
        others = [self.simple(noun, size, allowed) for noun, size in zip(nouns[1:], sizes[1:], strict=True)]
        if context.prepositions:
            clause.adjuncts = (Adjunct(self.pick(context.prepositions), others.pop()),)
        if others:
            clause.object = others[0]
        return clause
