"""Hindi: the verb comes last, postpositions govern the oblique, and the perfective agrees with the object.

काली बिल्ली ने चूहे को खाया       the black cat ate the mouse     (को: the verb agrees with nothing)
भालू ने नाशपाती खाई               the bear ate the pear           (no marker: the verb agrees with the pear)
"""

from __future__ import annotations

from regard.corpora.lexicon import Adjective, Adverb, Noun, Verb
from regard.corpora.phrases.line import Line
from regard.corpora.syntax import (
    Adjunct,
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

DETERMINERS: dict[Determiner, str] = {
    "a": "एक",
    "every": "हर",
    "two": "दो",
    "three": "तीन",
    "some": "कुछ",
    "several": "कई",
}
# First direct, then oblique; in each, singular and plural.
THIS = (("यह", "ये"), ("इस", "इन"))
THAT = (("वह", "वे"), ("उस", "उन"))  # "the" before a relative clause: वह बिल्ली जो …
CONJUNCTIONS: dict[Conjunction, str] = {
    "and": "और",
    "but": "लेकिन",
    "because": "क्योंकि",
    "when": "जब",
    "while": "जबकि",
}
PRONOUNS = {"i": ("मैं", "मैंने"), "they": ("वे", "उन्होंने")}
HE = ("वह", "उसने")
# The object of a relative clause by its marker, [plural]; without a marker it is जो.
WHOM: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "": (("जो",), ("जो",)),
    "को": (("जिसे",), ("जिन्हें",)),
    "का": (("जिसका",), ("जिनका",)),
    "की": (("जिसकी",), ("जिनकी",)),
    "से": (("जिससे",), ("जिनसे",)),
    "पर": (("जिस", "पर"), ("जिन", "पर")),
}
# In the order of person: मैं, वह, वे.
IS = ("हूँ", "है", "हैं")
# In the order of agreement.
WAS = ("था", "थे", "थी", "थीं")
WILL_BE = ("होगा", "होंगे", "होगी", "होंगी")
OF = ("का", "के", "की")


def write(text: Text) -> Line:
    """The sentence, laid out in English before."""
    line = Line()
    put_clause(line, text.clauses[0])
    for conjunction, at, clause in zip(text.conjunctions, text.at, text.clauses[1:], strict=True):
        line.put(CONJUNCTIONS[conjunction], at)
        put_clause(line, clause)
    return line


def agreement(subject: Subject) -> int:
    """Twice the gender plus the number: the index into every table of four forms."""
    if isinstance(subject, NounPhrase):
        return 2 * subject.noun.feminine_hindi + subject.plural
    if isinstance(subject, Pair):
        return 2 * (subject.first.noun.feminine_hindi and subject.second.noun.feminine_hindi) + 1
    if subject.referent is not None:
        return agreement(subject.referent)
    return {"she": 2, "they": 1}.get(subject.word, 0)


def bend(forms: tuple[str, str, str], noun: Noun, *, plural: bool, oblique: bool) -> str:
    """An adjective, मेरा or का beside its noun: -ा, -े or -ी."""
    if noun.feminine_hindi:
        return forms[2]
    return forms[1] if plural or oblique else forms[0]


def put_noun_phrase(line: Line, phrase: NounPhrase, *, oblique: bool) -> None:
    """The owner with का first, then determiner, adjectives and noun."""
    noun, plural = phrase.noun, phrase.plural
    if phrase.owner is not None:
        put_noun_phrase(line, phrase.owner, oblique=True)
        line.put(bend(OF, noun, plural=plural, oblique=oblique), phrase.head + 1)
    determiner = phrase.determiner
    if determiner == "this":
        line.put(THIS[oblique][plural], phrase.at)
    elif determiner == "my":
        line.put(bend(("मेरा", "मेरे", "मेरी"), noun, plural=plural, oblique=oblique), phrase.at)
    elif determiner != "the":
        line.put(DETERMINERS[determiner], phrase.at)
    elif phrase.relative is not None:
        line.put(THAT[oblique][plural], phrase.at)
    for offset, adjective in enumerate(phrase.adjectives, phrase.at + 1):
        line.put_all(bend(adjective.hindi, noun, plural=plural, oblique=oblique).split(), offset)
    line.put((noun.hindi.oblique if oblique else noun.hindi.direct)[plural], phrase.head)


def is_ergative(clause: Clause) -> bool:
    """ने marks the doer of a completed deed."""
    verb = clause.predicate
    return clause.tense == "past" and isinstance(verb, Verb) and verb.ergative and verb.imperfect is None


def put_subject(line: Line, subject: Subject, *, ergative: bool) -> None:
    if isinstance(subject, Pronoun):
        line.put(PRONOUNS.get(subject.word, HE)[ergative], subject.at)
        return
    if isinstance(subject, NounPhrase):
        put_noun_phrase(line, subject, oblique=ergative)
    else:
        put_noun_phrase(line, subject.first, oblique=ergative)
        line.put("और", subject.at)
        put_noun_phrase(line, subject.second, oblique=ergative)
    if ergative:
        line.put("ने")
    if isinstance(subject, NounPhrase) and subject.relative is not None:
        put_relative(line, subject.relative, subject)


def put_relative(line: Line, relative: Relative, head: NounPhrase) -> None:
    """जो, जिसने, जिसे, जिसका …: the case the head has inside the clause."""
    clause = relative.clause
    if clause.subject is not None:
        assert isinstance(clause.predicate, Verb), "only a verb has an object to ask for"
        line.put_all(WHOM[marker(clause.predicate, head)][head.plural], relative.at)
    elif is_ergative(clause):
        line.put(("जिसने", "जिन्होंने")[head.plural], relative.at)
    else:
        line.put("जो", relative.at)
    put_clause(line, clause, head)


def marker(verb: Verb, phrase: NounPhrase) -> str:
    """What follows the object: what the verb asks for, or को after a person or a known animal."""
    if verb.marker:
        return verb.marker
    return "को" if phrase.noun.human or (phrase.noun.animate and phrase.definite) else ""


def put_clause(line: Line, clause: Clause, head: NounPhrase | None = None) -> None:
    """Subject, when, where, to whom, what, how, verb; after it a relative clause on the object."""
    if clause.question:
        line.put("क्या", clause.at["tense"])
    if clause.time_first:
        put_adverb(line, clause, "time", clause.time)
    subject = clause.subject or head
    assert subject is not None, "a clause has a subject or hangs on a head"
    if clause.subject is not None:
        put_subject(line, clause.subject, ergative=is_ergative(clause))
    if not clause.time_first:
        put_adverb(line, clause, "time", clause.time)
    put_adverb(line, clause, "frequency", clause.frequency)
    for adjunct in clause.adjuncts:
        put_adjunct(line, adjunct)
    put_adverb(line, clause, "place", clause.place)
    if clause.negation == "never":
        line.put("कभी", clause.at["not"])
    if isinstance(clause.predicate, Adjective):
        put_state(line, clause, clause.predicate, subject)
    else:
        put_action(line, clause, clause.predicate, subject, head)
    if clause.object is not None and clause.object.relative is not None:
        put_relative(line, clause.object.relative, clause.object)


def put_adjunct(line: Line, adjunct: Adjunct) -> None:
    """A tool is with से what company is with के साथ."""
    put_noun_phrase(line, adjunct.phrase, oblique=True)
    tool = adjunct.preposition.english == "with" and not adjunct.phrase.noun.animate
    line.put_all(("से",) if tool else adjunct.preposition.hindi, adjunct.at)


def put_action(line: Line, clause: Clause, verb: Verb, subject: Subject, head: NounPhrase | None) -> None:
    at, mark = clause.at, ""
    if clause.recipient is not None:
        put_noun_phrase(line, clause.recipient, oblique=True)
        line.put("को", at["to"])
    if verb.marker in OF:  # nothing comes between लड़की की and मदद
        put_adverb(line, clause, "manner", clause.manner)
    if clause.object is not None:
        mark = marker(verb, clause.object)
        put_noun_phrase(line, clause.object, oblique=bool(mark))
        if mark:
            line.put(mark)
    if verb.marker not in OF:
        put_adverb(line, clause, "manner", clause.manner)
    line.put_all(verb.prefix, at["verb"], at["particle"])
    if clause.negation:
        line.put("नहीं", at["not"])
    put_finite(line, clause, verb, subject, clause.object or (head if clause.subject else None))


def put_finite(line: Line, clause: Clause, verb: Verb, subject: Subject, patient: NounPhrase | None) -> None:
    """खाया; करता था for a state; खाता है; खाएगा."""
    at, index = clause.at, agreement(subject)
    if is_ergative(clause):
        index = perfective_agreement(verb, patient)
    if clause.tense == "future":
        line.put(verb.hindi.future[index], at["tense"], at["verb"], at["particle"])
    elif clause.tense == "past" and verb.imperfect is None:
        line.put(verb.hindi.perfective[index], at["tense"], at["verb"], at["particle"])
    else:
        line.put(verb.hindi.habitual[index], at["verb"], at["particle"])
        line.put(WAS[index] if clause.tense == "past" else IS[person(subject)], at["tense"])


def perfective_agreement(verb: Verb, patient: NounPhrase | None) -> int:
    """With the noun inside the verb, or an object without a marker; otherwise masculine singular."""
    if verb.inner:
        return 2 * (verb.inner == "f")
    return agreement(patient) if patient is not None and not marker(verb, patient) else 0


def put_state(line: Line, clause: Clause, adjective: Adjective, subject: Subject) -> None:
    at, index, who = clause.at, agreement(subject), person(subject)
    put_adverb(line, clause, "degree", clause.degree)
    line.put_all(adjective.hindi[min(index, 2)].split(), at["adjective"])
    if clause.negation:
        line.put("नहीं", at["not"])
    if clause.tense == "past":
        line.put(WAS[index], at["tense"], at["verb"])
    elif clause.tense == "future":
        line.put(WILL_BE[index], at["tense"], at["verb"])
    else:
        line.put(IS[who], at["tense"], at["verb"])


def put_adverb(line: Line, clause: Clause, role: str, adverb: Adverb | None) -> None:
    if adverb is not None:
        line.put_all(adverb.hindi, clause.at[role])
