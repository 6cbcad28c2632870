"""English: tokens, universal part-of-speech tags, and in every node the positions of its tokens."""

from __future__ import annotations

from dataclasses import replace

from regard.fable.forms.english import article, comparative
from regard.fable.lexicon import Adjective, Adverb, Noun, Phrase, Verb
from regard.fable.syntax import (
    FIRST,
    POSSESSIVES,
    THIRD,
    UNSAID,
    Being,
    Clause,
    Complement,
    Conjunction,
    NounPhrase,
    Pronoun,
    Said,
    Subject,
    Text,
    person,
)

DETERMINER_TAGS = {"several": "ADJ"} | dict.fromkeys(POSSESSIVES, "PRON")
CONJUNCTION_TAGS = dict.fromkeys(("and", "but"), "CCONJ") | dict.fromkeys(("because", "when", "while", "if"), "SCONJ")
# In the order of person: I, he, they, we, you.
BE = {"past": ("was", "was", "were", "were", "were"), "present": ("am", "is", "are", "are", "are")}
DO = {"past": ("did",) * 5, "present": ("do", "does", "do", "do", "do"), "future": ("will",) * 5}
WANT = {"past": ("wanted",) * 5, "present": ("want", "wants", "want", "want", "want")}
HAVE = ("have", "has", "have", "have", "have")
CLITICS = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "have": "'ve", "would": "'d"}
LINKING = {"would": "like", "going": "going"}  # would like to, is going to
CUT = {"will": "wo", "can": "ca"}  # won't, can't
OBJECTIVE = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
SAID = {"say": "said", "ask": "asked", "answer": "answered"}


class EnglishLine:
    """The English tokens, and which of them are glued to the one before."""

    __slots__ = ("commas", "glued", "openings", "source", "tags", "tokens", "word_of")

    def __init__(self, *, commas: bool = False) -> None:
        self.tokens: list[str] = []
        self.tags: list[str] = []
        self.glued: set[int] = set()
        self.openings = [0]  # where a sentence begins
        self.commas = commas
        self.source, self.word_of = "", list[int]()  # the finished sentence; for each token, its word

    def put(self, token: str, tag: str, *, glued: bool = False) -> int:
        """Write a token, and return its position."""
        at = len(self.tokens)
        if glued:
            self.glued.add(at)
        self.tokens.append(token)
        self.tags.append(tag)
        return at

    def comma(self) -> None:
        if self.commas:
            self.put(",", "PUNCT", glued=True)


def write(text: Text) -> EnglishLine:
    """The whole sentence, without capitals; fills every `at` in the tree."""
    page = EnglishLine(commas=bool(text.mark))
    if text.speech is not None:
        text.speech_at = put_speech(page, *text.speech, reported=text.reported)
    if text.phrase is not None:
        text.phrase_at = put_phrase(page, text.phrase)
    if text.opener:
        text.opener_at = page.put(text.opener, "INTJ")
        page.comma()
    if text.fronted:
        put_conjunction(page, text, text.conjunctions[0])
    for number, clause in enumerate(text.clauses):
        if number and text.fronted:
            page.comma()
        elif number:
            put_conjunction(page, text, text.conjunctions[number - 1])
        if isinstance(clause, Being):
            put_being(page, clause)
        else:
            put_clause(page, clause, first=not number and not text.fronted)
    if text.tag:
        text.tag_at = put_tag(page, text.clauses[-1])
    if text.mark:
        page.put(text.mark, "PUNCT", glued=True)
    if text.quoted:
        page.put('"', "PUNCT", glued=True)
        page.glued.add(page.openings[-1])
    return page


def put_conjunction(page: EnglishLine, text: Text, conjunction: Conjunction) -> None:
    if conjunction == "but":
        page.comma()
    text.at.append(page.put(conjunction, CONJUNCTION_TAGS[conjunction]))


def put_phrase(page: EnglishLine, phrase: Phrase) -> list[int]:
    """The position of each token; commas are written only if the text has commas."""
    at = []
    for token, tag, glued in zip(phrase.english, phrase.tags, phrase.glued, strict=True):
        at.append(len(page.tokens))
        if token != "," or page.commas:
            page.put(token, tag, glued=glued)
    return at


def put_speech(page: EnglishLine, speaker: Subject, said: Said, *, reported: bool) -> int:
    """The king said, "…"""
    put_subject(page, speaker)
    at = page.put(SAID[said], "VERB")
    if reported:
        page.put("that", "SCONJ")
        return at
    page.comma()
    page.openings.append(page.put('"', "PUNCT") + 1)
    return at


def put_subject(page: EnglishLine, subject: Subject) -> None:
    if isinstance(subject, NounPhrase):
        put_noun_phrase(page, subject)
    elif isinstance(subject, Pronoun):
        subject.at = page.put("I" if subject.word == "i" else subject.word, "PRON")
    else:
        put_noun_phrase(page, subject.first)
        subject.at = page.put("and", "CCONJ")
        put_noun_phrase(page, subject.second)


def put_noun_phrase(page: EnglishLine, phrase: NounPhrase) -> None:
    if phrase.owner is not None and phrase.genitive:
        put_noun_phrase(page, phrase.owner)
        phrase.at = page.put("'s", "PART", glued=True)
    elif phrase.determiner and phrase.determiner not in UNSAID:
        put_determiner(page, phrase)
    for adjective in phrase.adjectives:
        page.put(adjective.english, "ADJ")
    phrase.head = put_noun(page, phrase.noun, plural=phrase.plural)
    if phrase.owner is not None and not phrase.genitive:
        page.put("of", "ADP")
        put_noun_phrase(page, phrase.owner)
    if phrase.relative is not None:
        put_relative(page, phrase.relative, phrase)


def put_relative(page: EnglishLine, clause: Clause, head: NounPhrase) -> None:
    if clause.aside:
        page.comma()
    clause.at["that"] = page.put("who" if clause.who else "that", "PRON")
    put_clause(page, clause, head)
    if clause.aside:
        page.comma()


def put_noun(page: EnglishLine, noun: Noun, *, plural: bool) -> int:
    """The position of the noun; of a name with a title, Mr Brown, that of the title."""
    word, at = noun.english[plural], len(page.tokens)
    *titles, last = word.split() if noun.proper else [word]
    for title in titles:
        page.put(title, "NOUN")
    page.put(last, "PROPN" if noun.proper else "NOUN")
    return at


def put_determiner(page: EnglishLine, phrase: NounPhrase) -> None:
    determiner = phrase.determiner
    if determiner == "a":
        following = phrase.adjectives[0].english if phrase.adjectives else phrase.noun.english[phrase.plural]
        phrase.at = page.put(article(following), "DET")
    elif determiner in POINTING:
        phrase.at = page.put(POINTING[determiner][phrase.plural], "DET")
    else:
        tag = DETERMINER_TAGS.get(determiner) or ("DET" if determiner in PLAIN else "NUM")
        phrase.at = page.put(determiner, tag)


PLAIN = frozenset({"the", "a", "every", "some", "any", "no"})
POINTING = {"this": ("this", "these"), "that": ("that", "those")}


def put_clause(page: EnglishLine, clause: Clause, head: NounPhrase | None = None, *, first: bool = False) -> None:
    """`head` is the noun phrase of a relative clause, and its subject if the clause has none."""
    at = clause.at
    if clause.please and not clause.pleading:
        at["please"] = page.put("please", "INTJ")
    if clause.together:
        at["let"] = page.put("let", "VERB")
        page.put("'s", "PRON", glued=True)
    if clause.time is not None and clause.time_first:
        put_adverb(page, clause, "time", clause.time)
        if first:
            page.comma()
    subject = clause.subject or head
    assert subject is not None, "a clause has a subject or a head"
    who = person(subject)
    if clause.asked:
        at["asked"] = page.put(clause.asked, "PRON" if clause.asked in {"what", "who"} else "ADV")
    if clause.question:
        put_auxiliary(page, clause, who)
    if clause.subject is not None and not (clause.command or clause.shared or clause.inverted):
        put_subject(page, clause.subject)
    if isinstance(clause.predicate, Adjective):
        put_state(page, clause, clause.predicate, who)
    else:
        put_verb(page, clause, clause.predicate, who)
    if clause.inverted:
        put_subject(page, subject)
    put_rest(page, clause)
    if clause.please and clause.pleading:
        page.comma()
        at["please"] = page.put("please", "INTJ")


def put_auxiliary(page: EnglishLine, clause: Clause, who: int) -> None:
    """did, does, will, was, has: at the beginning of a question or before a negation."""
    word: str
    if clause.modal not in {"", "want", "going"}:
        word = clause.modal
    elif clause.perfect:
        word = HAVE[who]
    else:
        being = isinstance(clause.predicate, Adjective) or clause.progressive or clause.modal == "going"
        forms = BE if being and clause.tense != "future" else DO
        word = forms[clause.tense][who]
    put_finite(page, clause, word)


def put_finite(page: EnglishLine, clause: Clause | Being, word: str) -> None:
    """An auxiliary, perhaps contracted: 'm, do + n't."""
    at = clause.at
    if not clause.contracted:
        at["tense"] = page.put(word, "AUX")
    elif clause.negation == "not" and word != "am":
        at["tense"] = page.put(CUT.get(word, word), "AUX")
        at["not"] = page.put("n't", "PART", glued=True)
    else:
        at["tense"] = page.put(CLITICS[word], "AUX", glued=True)


def put_tag(page: EnglishLine, clause: Clause | Being) -> list[int]:
    """…, aren't you; …, did he: the auxiliary again, denied if the clause is not, and the subject."""
    assert isinstance(clause, Clause), "only a clause has a tag"
    assert isinstance(clause.subject, Pronoun), "only a clause about a pronoun has a tag"
    page.comma()
    start, denied = len(page.tokens), clause.negation == ""
    again = replace(clause, negation="not" if denied else "", contracted=denied, at={})
    put_auxiliary(page, again, person(clause.subject))
    page.put(clause.subject.word, "PRON")
    return list(range(start, len(page.tokens)))


def put_between(page: EnglishLine, clause: Clause) -> None:
    """The words between the auxiliary and the predicate: not, never, often."""
    if clause.negation in {"not", "never"} and "not" not in clause.at:
        one_word = clause.modal == "can" and clause.negation == "not" and not clause.question  # cannot
        clause.at["not"] = page.put(clause.negation, "PART" if clause.negation == "not" else "ADV", glued=one_word)
    if clause.frequency is not None:
        clause.at["frequency"] = page.put(clause.frequency.english, "ADV")


def put_verb(page: EnglishLine, clause: Clause, verb: Verb, who: int) -> None:
    at = clause.at
    supported = clause.question or clause.negation == "not" or clause.tense == "future" or clause.progressive
    supported = supported or clause.perfect or clause.modal not in {"", "want"}
    if supported and not clause.question:
        put_auxiliary(page, clause, FIRST if clause.command else who)
    elif clause.tense == "present" and who != THIRD and verb.past == verb.english and not (supported or clause.command):
        clause.tense = "past"  # "they read" alone is the past
    put_between(page, clause)
    if clause.modal in {"want", "would", "going"}:
        form = LINKING.get(clause.modal) or ("want" if supported else WANT[clause.tense][who])
        at["verb"] = at["modal"] = page.put(form, "VERB")
        at.setdefault("tense", at["modal"])
        if not clause.wishing:
            at["to"] = page.put("to", "PART")
            at["verb"] = page.put(verb.english, "VERB")
    else:
        base = supported or clause.command or (clause.tense == "present" and who != 1)
        form = verb.english if base else verb.past if clause.tense == "past" else verb.third
        if clause.progressive:
            form = verb.progressive
        elif clause.perfect:
            form = verb.participle
        at["verb"] = page.put(form, "VERB")
        at["modal"] = at.setdefault("tense", at["verb"])
    at["particle"] = page.put(verb.particle, "ADP") if verb.particle else at["verb"]


def put_state(page: EnglishLine, clause: Clause, adjective: Adjective, who: int) -> None:
    at = clause.at
    if not clause.question:
        put_auxiliary(page, clause, who)
    put_between(page, clause)
    at["verb"] = page.put("be", "AUX") if clause.tense == "future" else at["tense"]
    if clause.degree is not None:
        at["degree"] = page.put(clause.degree.english, "ADV")
    if clause.than is None:
        at["adjective"] = page.put(adjective.english, "ADJ")
        if clause.also is not None:
            at["and"] = page.put("and", "CCONJ")
            page.put(clause.also.english, "ADJ")
        return
    *more, form = comparative(adjective.english)
    at["more"] = page.put("more", "ADV") if more else -1
    at["adjective"] = page.put(form, "ADJ")
    at["than"] = page.put("than", "ADP")
    put_noun_phrase(page, clause.than)


def put_being(page: EnglishLine, being: Being) -> None:
    """Subject, *to be*, complement and place; in a question *to be* comes first."""
    at, subject = being.at, being.subject
    asked = being.kind in {"where", "who"}
    if asked:
        at["asked"] = page.put(being.kind, "ADV" if being.kind == "where" else "PRON")
    plural = subject is None and being.complement is not None and being.complement.plural
    who = person(subject) if subject is not None else 2 if plural else 1
    word = "will" if being.tense == "future" else BE[being.tense][who]
    inverted = being.question or asked
    if inverted:
        put_finite(page, being, word)
    if subject is not None:
        put_subject(page, subject)
    elif being.kind == "there":
        at["there"] = page.put("there", "PRON")
    else:
        at["this"] = page.put(POINTING["that" if being.that else "this"][plural], "PRON")
    if not inverted:
        put_finite(page, being, word)
    if being.negation == "not" and "not" not in at:
        at["not"] = page.put("not", "PART")
    at["verb"] = page.put("be", "AUX") if being.tense == "future" else at["tense"]
    if being.complement is not None:
        put_noun_phrase(page, being.complement)
        if being.negation == "no":
            at["not"] = being.complement.at
    put_adverb(page, being, "place", being.place)
    put_adjuncts(page, being)


def put_rest(page: EnglishLine, clause: Clause) -> None:
    """Objects, then how, where and when."""
    if clause.recipient is not None and clause.dative:
        clause.at["recipient"] = put_complement(page, clause.recipient)
    if clause.object is not None:
        put_complement(page, clause.object)
        if clause.negation == "no":
            clause.at["not"] = clause.object.at
    if clause.recipient is not None and not clause.dative:
        clause.at["recipient"] = page.put("to", "ADP")
        put_complement(page, clause.recipient)
    put_adverb(page, clause, "manner", clause.manner)
    put_adverb(page, clause, "place", clause.place)
    put_adjuncts(page, clause)
    if not clause.time_first:
        put_adverb(page, clause, "time", clause.time)


def put_complement(page: EnglishLine, complement: Complement) -> int:
    """An object or a recipient; returns the position of its noun."""
    if isinstance(complement, NounPhrase):
        put_noun_phrase(page, complement)
        return complement.head
    complement.at = page.put(OBJECTIVE.get(complement.word, complement.word), "PRON")
    return complement.at


def put_adjuncts(page: EnglishLine, clause: Clause | Being) -> None:
    for adjunct in clause.adjuncts:
        adjunct.at = page.put(adjunct.preposition.english, "ADP")
        put_noun_phrase(page, adjunct.phrase)


def put_adverb(page: EnglishLine, clause: Clause | Being, role: str, adverb: Adverb | None) -> None:
    """`at` is the position of the first word."""
    if adverb is not None:
        clause.at[role] = len(page.tokens)
        for word, tag in zip(adverb.english.split(), adverb.tag.split(), strict=True):
            page.put(word, tag)
