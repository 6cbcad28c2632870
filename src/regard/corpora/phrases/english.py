"""English: words, universal part-of-speech tags, and a note in every node of where its words stand."""

from __future__ import annotations

from regard.corpora.forms.english import article
from regard.corpora.lexicon import Adjective, Adverb, Verb
from regard.corpora.syntax import Clause, Conjunction, NounPhrase, Pronoun, Relative, Subject, Text, person

DETERMINER_TAGS = {"my": "PRON", "two": "NUM", "three": "NUM", "several": "ADJ"}
CONJUNCTION_TAGS: dict[Conjunction, str] = {
    "and": "CCONJ",
    "but": "CCONJ",
    "because": "SCONJ",
    "when": "SCONJ",
    "while": "SCONJ",
}
BE = {"past": ("was", "was", "were"), "present": ("am", "is", "are")}
DO = {"past": ("did", "did", "did"), "present": ("do", "does", "do"), "future": ("will", "will", "will")}


class Page:
    """The English line while it is written."""

    __slots__ = ("tags", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.tags: list[str] = []

    def put(self, word: str, tag: str) -> int:
        """Write a word and say where it stands."""
        self.words.append(word)
        self.tags.append(tag)
        return len(self.words) - 1


def write(text: Text) -> Page:
    """The whole sentence; afterwards every `at` in the tree is filled."""
    page = Page()
    put_clause(page, text.clauses[0])
    for conjunction, clause in zip(text.conjunctions, text.clauses[1:], strict=True):
        text.at.append(page.put(conjunction, CONJUNCTION_TAGS[conjunction]))
        put_clause(page, clause)
    return page


def put_subject(page: Page, subject: Subject) -> None:
    if isinstance(subject, NounPhrase):
        put_noun_phrase(page, subject)
    elif isinstance(subject, Pronoun):
        subject.at = page.put(subject.word, "PRON")
    else:
        put_noun_phrase(page, subject.first)
        subject.at = page.put("and", "CCONJ")
        put_noun_phrase(page, subject.second)


def put_noun_phrase(page: Page, phrase: NounPhrase) -> None:
    noun = phrase.noun.english[phrase.plural]
    adjectives = phrase.adjectives
    determiner: str = phrase.determiner
    if determiner == "a":
        determiner = article(adjectives[0].english if adjectives else noun)
    elif determiner == "this" and phrase.plural:
        determiner = "these"
    phrase.at = page.put(determiner, DETERMINER_TAGS.get(determiner, "DET"))
    for adjective in adjectives:
        page.put(adjective.english, "ADJ")
    page.put(noun, "NOUN")
    if phrase.owner is not None:
        page.put("of", "ADP")
        put_noun_phrase(page, phrase.owner)
    if phrase.relative is not None:
        put_relative(page, phrase.relative, phrase)


def put_relative(page: Page, relative: Relative, head: NounPhrase) -> None:
    relative.at = page.put("that", "PRON")
    put_clause(page, relative.clause, head)


def put_clause(page: Page, clause: Clause, head: NounPhrase | None = None) -> None:
    """`head` is the noun phrase a relative clause hangs on; it is the subject where the clause has none."""
    at = clause.at
    if clause.time is not None and clause.time_first:
        at["time"] = page.put(clause.time.english, clause.time.tag)
    subject = clause.subject or head
    assert subject is not None, "a clause has a subject or hangs on a head"
    who = person(subject)
    if clause.question:
        put_auxiliary(page, clause, who)
    if clause.subject is not None:
        put_subject(page, clause.subject)
    if isinstance(clause.predicate, Adjective):
        put_state(page, clause, clause.predicate, who)
    else:
        put_verb(page, clause, clause.predicate, who)
    put_rest(page, clause)


def put_auxiliary(page: Page, clause: Clause, who: int) -> None:
    """did, does, will, was: what opens a question or carries a negation."""
    forms = BE if isinstance(clause.predicate, Adjective) and clause.tense != "future" else DO
    clause.at["tense"] = page.put(forms[clause.tense][who], "AUX")


def put_between(page: Page, clause: Clause) -> None:
    """What stands between the auxiliary and the predicate: not, never, often."""
    if clause.negation:
        clause.at["not"] = page.put(clause.negation, "PART" if clause.negation == "not" else "ADV")
    if clause.frequency is not None:
        clause.at["frequency"] = page.put(clause.frequency.english, "ADV")


def put_verb(page: Page, clause: Clause, verb: Verb, who: int) -> None:
    at = clause.at
    supported = clause.question or clause.negation == "not" or clause.tense == "future"
    if supported and not clause.question:
        put_auxiliary(page, clause, who)
    put_between(page, clause)
    form = verb.past if clause.tense == "past" else (verb.english, verb.third, verb.english)[who]
    at["verb"] = page.put(verb.english if supported else form, "VERB")
    if not supported:
        at["tense"] = at["verb"]
    at["particle"] = page.put(verb.particle, "ADP") if verb.particle else at["verb"]


def put_state(page: Page, clause: Clause, adjective: Adjective, who: int) -> None:
    at = clause.at
    if not clause.question:
        put_auxiliary(page, clause, who)
    put_between(page, clause)
    at["verb"] = page.put("be", "AUX") if clause.tense == "future" else at["tense"]
    if clause.degree is not None:
        at["degree"] = page.put(clause.degree.english, "ADV")
    at["adjective"] = page.put(adjective.english, "ADJ")


def put_rest(page: Page, clause: Clause) -> None:
    """Objects, then how, where and when."""
    if clause.object is not None:
        put_noun_phrase(page, clause.object)
    if clause.recipient is not None:
        clause.at["to"] = page.put("to", "ADP")
        put_noun_phrase(page, clause.recipient)
    put_adverb(page, clause, "manner", clause.manner)
    put_adverb(page, clause, "place", clause.place)
    for adjunct in clause.adjuncts:
        adjunct.at = page.put(adjunct.preposition.english, "ADP")
        put_noun_phrase(page, adjunct.phrase)
    if not clause.time_first:
        put_adverb(page, clause, "time", clause.time)


def put_adverb(page: Page, clause: Clause, role: str, adverb: Adverb | None) -> None:
    if adverb is not None:
        clause.at[role] = page.put(adverb.english, adverb.tag)
