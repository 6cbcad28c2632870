"""French: agreement, the place of the adjective, compound past, negation around the verb, elision."""

from __future__ import annotations

from regard.corpora.forms.french import BEFORE_VOWEL, CONTRACTED, ELIDING, begins_with_vowel, meet
from regard.corpora.lexicon import Adjective, Adverb, Verb
from regard.corpora.phrases.line import Line
from regard.corpora.syntax import (
    Clause,
    Conjunction,
    Determiner,
    NounPhrase,
    Pair,
    Pronoun,
    Relative,
    Subject,
    Text,
    person,
)

# In the order of agreement: masculine, masculine plural, feminine, feminine plural.
DETERMINERS: dict[Determiner, tuple[str, str, str, str]] = {
    "the": ("le", "les", "la", "les"),
    "a": ("un", "un", "une", "une"),
    "this": ("ce", "ces", "cette", "ces"),
    "my": ("mon", "mes", "ma", "mes"),
    "every": ("chaque",) * 4,
    "two": ("deux",) * 4,
    "three": ("trois",) * 4,
    "some": ("quelques",) * 4,
    "several": ("plusieurs",) * 4,
}
CONJUNCTIONS: dict[Conjunction, tuple[str, ...]] = {
    "and": ("et",),
    "but": ("mais",),
    "because": ("parce", "que"),
    "when": ("quand",),
    "while": ("tandis", "que"),
}
# In the order of person: je, il, ils.
AVOIR = ("ai", "a", "ont")
ETRE = {
    "past": ("étais", "était", "étaient"),
    "present": ("suis", "est", "sont"),
    "future": ("serai", "sera", "seront"),
}
NEGATIONS = {"not": "pas", "never": "jamais"}
SENSITIVE = ELIDING | BEFORE_VOWEL.keys() | {first for first, _ in CONTRACTED}


def write(text: Text) -> Line:
    """The sentence, laid out in English before."""
    line = Line()
    put_clause(line, text.clauses[0])
    for conjunction, at, clause in zip(text.conjunctions, text.at, text.clauses[1:], strict=True):
        line.put_all(CONJUNCTIONS[conjunction], at)
        put_clause(line, clause)
    return join(line)


def join(line: Line) -> Line:
    """Let neighbours meet, from right to left: *de le ours* is first *de l'ours* and then never *du ours*."""
    joined = Line()
    words, links = joined.words, joined.sources
    for word, sources in zip(reversed(line.words), reversed(line.sources), strict=True):
        if word in SENSITIVE and words:
            first, *second = meet(word, words[-1])
            if not second:
                words[-1], links[-1] = first, sources + links[-1]
                continue
            word = first  # noqa: PLW2901
        words.append(word)
        links.append(sources)
    words.reverse()
    links.reverse()
    return joined


def agreement(subject: Subject) -> int:
    """Twice the gender plus the number: the index into every table of four forms."""
    if isinstance(subject, NounPhrase):
        return 2 * subject.noun.feminine_french + subject.plural
    if isinstance(subject, Pair):
        return 2 * (subject.first.noun.feminine_french and subject.second.noun.feminine_french) + 1
    if subject.referent is not None:
        return agreement(subject.referent)
    return {"she": 2, "they": 1}.get(subject.word, 0)


def put_subject(line: Line, subject: Subject) -> None:
    if isinstance(subject, NounPhrase):
        put_noun_phrase(line, subject)
    elif isinstance(subject, Pronoun):
        line.put("je" if subject.word == "i" else ("il", "ils", "elle", "elles")[agreement(subject)], subject.at)
    else:
        put_noun_phrase(line, subject.first)
        line.put("et", subject.at)
        put_noun_phrase(line, subject.second)


def put_noun_phrase(line: Line, phrase: NounPhrase) -> None:
    """le petit chat noir: small adjectives before the noun, the others after it."""
    index = 2 * phrase.noun.feminine_french + phrase.plural
    noun = phrase.noun.french[phrase.plural]
    line.put(DETERMINERS[phrase.determiner][index], phrase.at)
    after: list[tuple[str, int]] = []
    for offset, adjective in enumerate(phrase.adjectives, phrase.at + 1):
        form = adjective.french[index]
        if not adjective.before:
            after.append((form, offset))
        elif index == 0 and begins_with_vowel(noun):
            line.put(adjective.french_before_vowel, offset)
        else:
            line.put(form, offset)
    line.put(noun, phrase.head)
    for form, offset in after:
        line.put(form, offset)
    if phrase.owner is not None:
        line.put("de", phrase.head + 1)
        put_noun_phrase(line, phrase.owner)
    if phrase.relative is not None:
        put_relative(line, phrase.relative, phrase)


def put_relative(line: Line, relative: Relative, head: NounPhrase) -> None:
    """*qui* for the subject, *que* for the object."""
    line.put("qui" if relative.clause.subject is None else "que", relative.at)
    put_clause(line, relative.clause, head)


def put_clause(line: Line, clause: Clause, head: NounPhrase | None = None) -> None:
    """A question is a statement after *est-ce que*."""
    if clause.question:
        line.put_all(("est-ce", "que"), clause.at["tense"])
    if clause.time_first:
        put_adverb(line, clause, "time", clause.time)
    subject = clause.subject or head
    assert subject is not None, "a clause has a subject or hangs on a head"
    if clause.subject is not None:
        put_subject(line, clause.subject)
    if isinstance(clause.predicate, Adjective):
        put_state(line, clause, clause.predicate, subject)
    else:
        put_verb(line, clause, clause.predicate, subject, head)
    put_rest(line, clause)


def put_finite(line: Line, clause: Clause, word: str, *sources: int) -> None:
    """The verb that carries the person, between the two halves of a negation."""
    if clause.negation:
        line.put("ne", clause.at["not"])
    line.put(word, *sources)
    if clause.negation:
        line.put(NEGATIONS[clause.negation], clause.at["not"])
    put_adverb(line, clause, "frequency", clause.frequency)


def put_verb(line: Line, clause: Clause, verb: Verb, subject: Subject, head: NounPhrase | None) -> None:
    at, who = clause.at, person(subject)
    whole = (at["tense"], at["verb"], at["particle"])
    if clause.tense == "present":
        put_finite(line, clause, verb.french.present[who], *whole)
    elif clause.tense == "future":
        put_finite(line, clause, verb.french.future[who], *whole)
    elif verb.imperfect is not None:
        put_finite(line, clause, verb.imperfect[who], *whole)
    else:
        auxiliary = ETRE["present"] if verb.with_etre else AVOIR
        put_finite(line, clause, auxiliary[who], at["tense"])
        line.put(verb.french.participle[participle_agreement(clause, verb, subject, head)], *whole[1:])


def participle_agreement(clause: Clause, verb: Verb, subject: Subject, head: NounPhrase | None) -> int:
    """With être the subject decides; with avoir an object that came before: la souris qu'il a mangée."""
    if verb.with_etre:
        return agreement(subject)
    return agreement(head) if head is not None and clause.subject is not None else 0


def put_state(line: Line, clause: Clause, adjective: Adjective, subject: Subject) -> None:
    put_finite(line, clause, ETRE[clause.tense][person(subject)], clause.at["tense"], clause.at["verb"])
    put_adverb(line, clause, "degree", clause.degree)
    line.put(adjective.french[agreement(subject)], clause.at["adjective"])


def put_rest(line: Line, clause: Clause) -> None:
    """Objects, then how, where and when, in the English order."""
    if clause.object is not None:
        put_noun_phrase(line, clause.object)
    if clause.recipient is not None:
        line.put("à", clause.at["to"])
        put_noun_phrase(line, clause.recipient)
    put_adverb(line, clause, "manner", clause.manner)
    put_adverb(line, clause, "place", clause.place)
    for adjunct in clause.adjuncts:
        line.put_all(adjunct.preposition.french, adjunct.at)
        put_noun_phrase(line, adjunct.phrase)
    if not clause.time_first:
        put_adverb(line, clause, "time", clause.time)


def put_adverb(line: Line, clause: Clause, role: str, adverb: Adverb | None) -> None:
    if adverb is not None:
        line.put_all(adverb.french, clause.at[role])
