"""French: agreement, the place of the adjective, compound past, negation around the verb, elision."""

from __future__ import annotations

from regard.fable.forms.french import (
    BEFORE_VOWEL,
    CONTRACTED,
    ELIDING,
    NUMBERS,
    Finite,
    agreeing,
    begins_with_vowel,
    imperfect,
    meet,
)
from regard.fable.lexicon import Adjective, Adverb, Tense, Verb
from regard.fable.phrases.line import Line
from regard.fable.syntax import (
    GENERIC,
    PLURAL,
    THIRD,
    UNSAID,
    Asked,
    Being,
    Clause,
    Conjunction,
    Coordination,
    Determiner,
    Modal,
    NounPhrase,
    Person,
    Pronoun,
    Subject,
    Text,
    person,
)

# In the order of agreement: masculine, masculine plural, feminine, feminine plural.
DETERMINERS: dict[Determiner, tuple[str, str, str, str]] = {
    "the": ("le", "les", "la", "les"),
    "a": ("un", "un", "une", "une"),
    "one": ("un", "un", "une", "une"),
    "this": ("ce", "ces", "cette", "ces"),
    "that": ("ce", "ces", "cette", "ces"),
    "my": ("mon", "mes", "ma", "mes"),
    "your": ("votre", "vos", "votre", "vos"),
    "his": ("son", "ses", "sa", "ses"),
    "her": ("son", "ses", "sa", "ses"),
    "our": ("notre", "nos", "notre", "nos"),
    "their": ("leur", "leurs", "leur", "leurs"),
    "every": ("chaque",) * 4,
    "some": ("quelques",) * 4,
    "several": ("plusieurs",) * 4,
} | {number: (word,) * 4 for number, word in NUMBERS.items()}
CONJUNCTIONS: dict[Conjunction, tuple[str, ...]] = {
    "and": ("et",),
    "but": ("mais",),
    "because": ("parce", "que"),
    "when": ("quand",),
    "while": ("tandis", "que"),
    "if": ("si",),
}
# In the order of person: je, il, ils, nous, vous.
AVOIR: dict[Tense, Finite] = {
    "past": ("avais", "avait", "avaient", "avions", "aviez"),
    "present": ("ai", "a", "ont", "avons", "avez"),
}
ETRE: dict[Tense, Finite] = {
    "past": ("étais", "était", "étaient", "étions", "étiez"),
    "present": ("suis", "est", "sont", "sommes", "êtes"),
    "future": ("serai", "sera", "seront", "serons", "serez"),
}
MODALS: dict[Modal, Finite] = {
    "can": ("peux", "peut", "peuvent", "pouvons", "pouvez"),
    "could": ("pouvais", "pouvait", "pouvaient", "pouvions", "pouviez"),
    "must": ("dois", "doit", "doivent", "devons", "devez"),
    "should": ("devrais", "devrait", "devraient", "devrions", "devriez"),
    "want": ("veux", "veut", "veulent", "voulons", "voulez"),
    "would": ("voudrais", "voudrait", "voudraient", "voudrions", "voudriez"),
    "going": ("vais", "va", "vont", "allons", "allez"),
}
PAST_MODALS: dict[Modal, Finite] = {
    "want": ("voulais", "voulait", "voulaient", "voulions", "vouliez"),
    "going": ("allais", "allait", "allaient", "allions", "alliez"),
}
THERE: dict[Tense, str] = {"past": "avait", "present": "a", "future": "aura"}
# The pronoun of an object and of a recipient, before the verb; behind a command *moi* for *me*.
DIRECT: dict[Person, str] = {"i": "me", "you": "vous", "he": "le", "she": "la", "it": "le", "we": "nous", "they": "les"}
INDIRECT = DIRECT | {"he": "lui", "she": "lui", "it": "lui", "they": "leur"}
BETTER = {"good": agreeing("meilleur", "meilleure"), "bad": agreeing("pire", "pire")}
PRONOUNS = {"i": "je", "we": "nous", "you": "vous", "who": "qui"}
NEGATIONS = {"not": "pas", "never": "jamais", "no": "pas"}
ASKED: dict[Asked, str] = {"who": "qui", "where": "où", "when": "quand", "why": "pourquoi", "how": "comment"}
SAID = {"say": "dit", "ask": "demandé", "answer": "répondu"}
OPENERS = {"yes": "oui", "no": "non"}
SENSITIVE = ELIDING | {"si"} | BEFORE_VOWEL.keys() | {first for first, _ in CONTRACTED}
QUOTE = "«"  # glued to what follows it when the line is joined


def write(text: Text) -> Line:
    """The sentence in French; its English must be written before."""
    line = Line(commas=bool(text.mark), reported=text.reported)
    if text.speech is not None:
        put_speech(line, *text.speech, text.speech_at, reported=text.reported)
    if text.phrase is not None:
        line.put_linked(text.phrase.french, text.phrase.french_links, text.phrase_at)
    if text.opener:
        line.put(OPENERS[text.opener], text.opener_at)
        line.comma()
    if text.fronted:
        line.put_all(CONJUNCTIONS[text.conjunctions[0]], text.at[0])
    for number, clause in enumerate(text.clauses):
        if number and text.fronted:
            line.comma()
        elif number:
            conjunction = text.conjunctions[number - 1]
            if conjunction == "but":
                line.comma()
            line.put_all(CONJUNCTIONS[conjunction], text.at[number - 1])
        if isinstance(clause, Being):
            put_being(line, clause)
        else:
            put_clause(line, clause, first=not number and not text.fronted)
    if text.tag:
        line.comma()
        line.put_all(("n'est-ce", "pas"), *text.tag_at)
    return join(line)


def put_speech(line: Line, speaker: Subject, said: str, at: int, *, reported: bool) -> None:
    """le roi a dit : « …, or: le roi a dit que …"""
    put_subject(line, speaker)
    line.put(AVOIR["present"][person(speaker)], at)
    line.put(SAID[said] + "\u00a0:" * (not reported), at)
    if reported:
        line.put("que", at + 1)
    else:
        line.put(QUOTE)


def join(line: Line) -> Line:
    """Elide and contract neighbours, from right to left: *de le ours* becomes *de l'ours*, and not *du ours*."""
    joined = Line()
    words, links = joined.words, joined.sources
    for word, sources in zip(reversed(line.words), reversed(line.sources), strict=True):
        if word == QUOTE:
            words[-1] = f"{QUOTE}\u202f{words[-1]}"
            continue
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
    if isinstance(subject, Coordination):
        return 2 * (subject.first.noun.feminine_french and subject.second.noun.feminine_french) + 1
    if subject.referent is not None:
        return agreement(subject.referent)
    return {"she": 2, "they": 1, "we": 1}.get(subject.word, 0)


def pronoun(subject: Pronoun) -> str:
    return PRONOUNS.get(subject.word) or ("il", "ils", "elle", "elles")[agreement(subject)]


def put_subject(line: Line, subject: Subject) -> None:
    if isinstance(subject, NounPhrase):
        put_noun_phrase(line, subject)
    elif isinstance(subject, Pronoun):
        line.put(pronoun(subject), subject.at)
    else:
        put_noun_phrase(line, subject.first)
        line.put("et", subject.at)
        put_noun_phrase(line, subject.second)


def put_noun_phrase(line: Line, phrase: NounPhrase, *, denied: bool = False, needed: bool = False) -> None:
    """le petit chat noir: small adjectives before the noun, the others after it.

    `denied`: pas *de* chat; `needed`: after *besoin de*, which is not said twice.
    """
    index = 2 * phrase.noun.feminine_french + phrase.plural
    noun = phrase.noun.french[phrase.plural]
    put_determiner(line, phrase, index, denied=denied, needed=needed)
    after: list[tuple[str, int]] = []
    for offset, adjective in enumerate(phrase.adjectives, phrase.head - len(phrase.adjectives)):
        form = adjective.french[index]
        if not adjective.before:
            after.append((form, offset))
        elif index == 0 and begins_with_vowel(noun):
            line.put(adjective.french_before_vowel, offset)
        else:
            line.put(form, offset)
    put_noun(line, phrase, noun)
    for form, offset in after:
        line.put(form, offset)
    if phrase.owner is not None:
        line.put("de", phrase.at if phrase.genitive else phrase.head + 1)
        put_noun_phrase(line, phrase.owner)
    if phrase.relative is not None:
        put_relative(line, phrase.relative, phrase)


def put_noun(line: Line, phrase: NounPhrase, noun: str) -> None:
    """A name may be several words, and one more than in English: le docteur Brown."""
    words = noun.split() if phrase.noun.proper else [noun]
    more = len(words) - len(phrase.noun.english[0].split())
    for number, word in enumerate(words):
        line.put(word, phrase.head + max(0, number - more))


def put_determiner(line: Line, phrase: NounPhrase, index: int, *, denied: bool, needed: bool) -> None:
    determiner = phrase.determiner
    if determiner in UNSAID:
        put_unsaid(line, phrase, index, denied=denied, needed=needed)
    elif determiner in {"a", "any", "no"} and denied:
        line.put("de", phrase.at)
    elif needed and is_amount(phrase):
        pass  # besoin d'eau, besoin de livres
    elif determiner == "any" and phrase.plural:
        before = bool(phrase.adjectives) and phrase.adjectives[0].before
        line.put("de" if before else "des", phrase.at)  # de vieux livres, des livres
    elif is_amount(phrase):
        line.put_all(("de", DETERMINERS["the"][index]), phrase.at)
    elif determiner:
        forms = DETERMINERS.get(determiner)
        line.put(forms[index] if forms else determiner, phrase.at)


def is_amount(phrase: NounPhrase) -> bool:
    """some water, any water, any books: *de* and an article, or only *de*"""
    return phrase.determiner == "any" or (phrase.determiner == "some" and not phrase.noun.countable)


def put_unsaid(line: Line, phrase: NounPhrase, index: int, *, denied: bool, needed: bool) -> None:
    """English has no word for these: la musique, les chats in general; du pain, des livres, (pas) de pain."""
    if phrase.determiner == GENERIC:
        line.put(DETERMINERS["the"][index], phrase.head)
    elif denied:
        line.put("de", phrase.head)
    elif not needed:
        line.put_all(("des",) if phrase.plural else ("de", DETERMINERS["the"][index]), phrase.head)


def put_relative(line: Line, clause: Clause, head: NounPhrase) -> None:
    """*qui* if the head is the subject, *que* if it is the object."""
    if clause.aside:
        line.comma()
    line.put("qui" if clause.subject is None else "que", clause.at["that"])
    put_clause(line, clause, head)
    if clause.aside:
        line.comma()


def put_clause(line: Line, clause: Clause, head: NounPhrase | None = None, *, first: bool = False) -> None:
    """A question is a statement after *est-ce que*."""
    put_question(line, clause)
    if clause.time_first:
        put_adverb(line, clause, "time", clause.time)
        if first:
            line.comma()
    subject = clause.subject or head
    assert subject is not None, "a clause has a subject or a head"
    if clause.subject is not None and not (clause.command or clause.shared or clause.inverted):
        put_subject(line, clause.subject)
    if isinstance(clause.predicate, Adjective):
        put_state(line, clause, clause.predicate, subject)
    else:
        put_verb(line, clause, clause.predicate, subject, head)
    if clause.inverted:
        put_subject(line, subject)
    put_rest(line, clause)
    if clause.please:
        line.comma()
        line.put_all(("s'il", "vous", "plaît"), clause.at["please"])


def put_question(line: Line, clause: Clause | Being) -> None:
    """est-ce que, qu'est-ce que, où est-ce que …"""
    asked = clause.asked if isinstance(clause, Clause) else ""
    if asked == "what":
        line.put("qu'est-ce", clause.at["asked"])
        line.put("que", clause.at["tense"])
        return
    if asked:
        line.put(ASKED[asked], clause.at["asked"])
    if clause.question:
        line.put_all(("est-ce", "que"), clause.at["tense"])


def put_being(line: Line, being: Being) -> None:
    at, subject = being.at, being.subject
    whole = at["tense"], at["verb"]
    if being.kind in {"where", "who"}:
        assert subject is not None, "a question where or who somebody is has a subject"
        line.put("où" if being.kind == "where" else "qui", at["asked"])
        verb = ETRE[being.tense][person(subject)]
        if isinstance(subject, Pronoun):
            line.put(f"{verb}-{pronoun(subject)}", *whole, subject.at)
        else:
            line.put(verb, *whole)
            put_subject(line, subject)
        return
    put_question(line, being)
    if being.kind == "there":
        put_there(line, being)
    elif subject is None:
        put_this(line, being, at["this"])
    elif being.kind == "noun" and isinstance(subject, Pronoun) and subject.word in {"he", "she"}:  # c'est un héros
        put_this(line, being, subject.at)
    else:
        put_subject(line, subject)
        put_finite(line, being, ETRE[being.tense][person(subject)], *whole)
    if being.complement is not None and being.kind == "job":  # il est médecin
        complement = being.complement
        line.put(complement.noun.french[complement.plural], complement.at, complement.head)
    elif being.complement is not None:
        put_noun_phrase(line, being.complement, denied=being.kind == "there" and bool(being.negation))
    put_adverb(line, being, "place", being.place)
    put_adjuncts(line, being)


def put_there(line: Line, being: Being) -> None:
    """il y a, il n'y a pas de"""
    at = being.at
    line.put("il", at["there"])
    if being.negation:
        line.put("ne", at["not"])
    line.put("y", at["there"])
    line.put(THERE[being.tense], at["tense"], at["verb"])
    if being.negation:
        line.put("pas", at["not"])


def put_this(line: Line, being: Being, this: int) -> None:
    """c'est, ce sont, ce n'est pas"""
    at, complement = being.at, being.complement
    verb = ETRE[being.tense][PLURAL if complement is not None and complement.plural else THIRD]
    if being.negation or not begins_with_vowel(verb):
        line.put("ce", this)
        put_finite(line, being, verb, at["tense"], at["verb"])
    else:
        line.put("c'" + verb, this, at["tense"], at["verb"])


def put_finite(line: Line, clause: Clause | Being, word: str, *sources: int) -> None:
    """The finite verb, between the two halves of a negation."""
    if clause.negation:
        line.put("ne", clause.at["not"])
    if isinstance(clause, Clause) and (not clause.modal or clause.wishing):
        put_clitic(line, clause)
    line.put(word, *sources)
    if clause.negation:
        line.put(NEGATIONS[clause.negation], clause.at["not"])
    if isinstance(clause, Clause):
        put_adverb(line, clause, "frequency", clause.frequency)


def clitic(clause: Clause) -> tuple[str, set[int]] | None:
    """The pronoun that stands at the verb, and its English tokens: le, lui."""
    if isinstance(clause.object, Pronoun):
        return DIRECT[clause.object.word], {clause.object.at}
    if isinstance(clause.recipient, Pronoun):
        return INDIRECT[clause.recipient.word], {clause.recipient.at, clause.at["recipient"]}
    return None


def put_clitic(line: Line, clause: Clause) -> None:
    if (found := clitic(clause)) is not None:
        word, sources = found
        line.put(word, *sources)


def put_command(line: Line, clause: Clause, form: str, whole: tuple[int, ...]) -> None:
    """aidez-moi, but ne m'aidez pas"""
    found = clitic(clause)
    if found is None or clause.negation:
        put_finite(line, clause, form, *whole)
        return
    word, sources = found
    line.put(f"{form}-{'moi' if word == 'me' else word}", *whole, *sources)


def put_verb(line: Line, clause: Clause, verb: Verb, subject: Subject, head: NounPhrase | None) -> None:
    at, who = clause.at, person(subject)
    whole = (at["tense"], at["verb"], at["particle"])
    if clause.modal:
        forms = (PAST_MODALS if clause.tense == "past" else MODALS).get(clause.modal, MODALS[clause.modal])
        put_finite(line, clause, forms[who], at["tense"], at["modal"], at.get("to", at["modal"]))
        if not clause.wishing:
            put_clitic(line, clause)
            line.put(verb.french.infinitive, *whole[1:])
    elif clause.command:
        put_command(line, clause, verb.french.present[who], (at.get("let", at["verb"]), *whole))
    elif clause.tense == "present":
        put_finite(line, clause, verb.french.present[who], *whole)
    elif clause.tense == "future":
        put_finite(line, clause, verb.french.future[who], *whole)
    elif verb.imperfect is not None or clause.progressive:
        put_finite(line, clause, (verb.imperfect or imperfect(verb.french))[who], *whole)
    else:
        auxiliary = (ETRE if verb.with_etre else AVOIR)["past" if line.reported else "present"]  # avait mangé
        put_finite(line, clause, auxiliary[who], at["tense"])
        line.put(verb.french.participle[participle_agreement(clause, verb, subject, head)], *whole[1:])


def participle_agreement(clause: Clause, verb: Verb, subject: Subject, head: NounPhrase | None) -> int:
    """With être it agrees with the subject, with avoir with an object before it: la souris qu'il a mangée, il les a
    mangés."""
    if verb.with_etre:
        return agreement(subject)
    if isinstance(clause.object, Pronoun):
        return agreement(clause.object)
    return agreement(head) if head is not None and clause.subject is not None else 0


def put_state(line: Line, clause: Clause, adjective: Adjective, subject: Subject) -> None:
    put_finite(line, clause, ETRE[clause.tense][person(subject)], clause.at["tense"], clause.at["verb"])
    at, index = clause.at, agreement(subject)
    put_adverb(line, clause, "degree", clause.degree)
    if clause.than is None:
        line.put(adjective.french[index], at["adjective"])
        if clause.also is not None:
            line.put("et", at["and"])
            line.put(clause.also.french[index], at["and"] + 1)
        return
    if adjective.name in BETTER:
        line.put(BETTER[adjective.name][index], at["adjective"])
    else:
        line.put("plus", at["more"] if at["more"] >= 0 else at["adjective"])
        line.put(adjective.french[index], at["adjective"])
    line.put("que", at["than"])
    put_noun_phrase(line, clause.than)


def put_rest(line: Line, clause: Clause) -> None:
    """Objects, then how, where and when, in the English order; pronouns stand at the verb."""
    if isinstance(clause.object, NounPhrase):
        complement = clause.predicate.complement if isinstance(clause.predicate, Verb) else ()
        needed = bool(complement)
        for word in complement:
            said = needed and word == "de" and is_amount(clause.object)
            line.put(word, clause.at["verb"], *((clause.object.at,) if said else ()))
        put_noun_phrase(line, clause.object, denied=bool(clause.negation) and not needed, needed=needed)
    if isinstance(clause.recipient, NounPhrase):
        line.put("à", clause.at["recipient"])
        put_noun_phrase(line, clause.recipient)
    put_adverb(line, clause, "manner", clause.manner)
    put_adverb(line, clause, "place", clause.place)
    put_adjuncts(line, clause)
    if not clause.time_first:
        put_adverb(line, clause, "time", clause.time)


def put_adjuncts(line: Line, clause: Clause | Being) -> None:
    for adjunct in clause.adjuncts:
        line.put_all(adjunct.preposition.french, adjunct.at)
        put_noun_phrase(line, adjunct.phrase)


def put_adverb(line: Line, clause: Clause | Being, role: str, adverb: Adverb | None) -> None:
    if adverb is not None:
        line.put_linked(adverb.french, adverb.french_links, range(clause.at[role], clause.at[role] + 3))
