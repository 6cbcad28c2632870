"""Hindi: the verb comes last, postpositions govern the oblique, and the perfective agrees with the object.

काली बिल्ली ने चूहे को खाया       the black cat ate the mouse     (को: the verb agrees with nothing)
भालू ने नाशपाती खाई               the bear ate the pear           (no marker: the verb agrees with the pear)
"""

from __future__ import annotations

from regard.fable.forms.hindi import NUMBERS
from regard.fable.lexicon import Adjective, Adverb, Noun, Tense, Verb
from regard.fable.phrases.line import Line
from regard.fable.syntax import (
    FIRST,
    PLURAL,
    UNSAID,
    Adjunct,
    Asked,
    Being,
    Clause,
    Complement,
    Conjunction,
    Coordination,
    Determiner,
    NounPhrase,
    Pronoun,
    Subject,
    Text,
    person,
)

DETERMINERS: dict[Determiner, str] = {
    "a": "एक",
    "one": "एक",
    "any": "कुछ",
    "every": "हर",
    "some": "कुछ",
    "several": "कई",
} | NUMBERS
# In the order direct masculine, other masculine, feminine.
POSSESSIVES: dict[Determiner, tuple[str, str, str]] = {
    "my": ("मेरा", "मेरे", "मेरी"),
    "your": ("आपका", "आपके", "आपकी"),
    "his": ("उसका", "उसके", "उसकी"),
    "her": ("उसका", "उसके", "उसकी"),
    "our": ("हमारा", "हमारे", "हमारी"),
    "their": ("उनका", "उनके", "उनकी"),
}
OWN = ("अपना", "अपने", "अपनी")
A_LITTLE = ("थोड़ा", "थोड़े", "थोड़ी")
# First direct, then oblique; in each, singular and plural.
THIS = (("यह", "ये"), ("इस", "इन"))
THAT = (("वह", "वे"), ("उस", "उन"))  # "the" before a relative clause: वह बिल्ली जो …
CONJUNCTIONS: dict[Conjunction, str] = {
    "and": "और",
    "but": "लेकिन",
    "because": "क्योंकि",
    "when": "जब",
    "while": "जबकि",
    "if": "अगर",
}
ANSWERING: dict[Conjunction, str] = {"because": "इसलिए", "when": "तब", "if": "तो"}  # before the second clause
# The marks of a subject: none, ने in the perfective, को with *must*, के पास with *have*.
PRONOUNS = {
    "i": {"": ("मैं",), "ने": ("मैंने",), "को": ("मुझे",), "के पास": ("मेरे", "पास")},
    "we": {"": ("हम",), "ने": ("हमने",), "को": ("हमें",), "के पास": ("हमारे", "पास")},
    "you": {"": ("आप",), "ने": ("आपने",), "को": ("आपको",), "के पास": ("आपके", "पास")},
    "they": {"": ("वे",), "ने": ("उन्होंने",), "को": ("उन्हें",), "के पास": ("उनके", "पास")},
    "who": {"": ("कौन",), "ने": ("किसने",), "को": ("किसे",), "के पास": ("किसके", "पास")},
}
HE = {"": ("वह",), "ने": ("उसने",), "को": ("उसे",), "के पास": ("उसके", "पास")}
# The object of a relative clause by its marker, [plural]; without a marker it is जो.
WHOM: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "": (("जो",), ("जो",)),
    "को": (("जिसे",), ("जिन्हें",)),
    "का": (("जिसका",), ("जिनका",)),
    "की": (("जिसकी",), ("जिनकी",)),
    "से": (("जिससे",), ("जिनसे",)),
    "पर": (("जिस", "पर"), ("जिन", "पर")),
}
# A pronoun as an object, by the marker of the verb; those with को are in PRONOUNS.
WITH_MARKER: dict[str, dict[str, tuple[str, ...]]] = {
    "का": {"i": ("मेरा",), "we": ("हमारा",), "you": ("आपका",), "they": ("उनका",)},
    "की": {"i": ("मेरी",), "we": ("हमारी",), "you": ("आपकी",), "they": ("उनकी",)},
    "से": {"i": ("मुझसे",), "we": ("हमसे",), "you": ("आपसे",), "they": ("उनसे",)},
    "पर": {"i": ("मुझ", "पर"), "we": ("हम", "पर"), "you": ("आप", "पर"), "they": ("उन", "पर")},
}
HIM = {"का": ("उसका",), "की": ("उसकी",), "से": ("उससे",), "पर": ("उस", "पर")}
# Whom or what a question is about, by the marker of the verb.
WHO = {"": ("किसे",), "को": ("किसे",), "का": ("किसका",), "की": ("किसकी",), "से": ("किससे",), "पर": ("किस", "पर")}
ASKED: dict[Asked, str] = {"where": "कहाँ", "when": "कब", "why": "क्यों", "how": "कैसे"}
SAID = {"say": ("कहा",), "ask": ("पूछा",), "answer": ("जवाब", "दिया")}
OPENERS = {"yes": "हाँ", "no": "नहीं"}
# In the order of person: मैं, वह, वे, हम, आप.
IS = ("हूँ", "है", "हैं", "हैं", "हैं")
# In the order of agreement.
WAS = ("था", "थे", "थी", "थीं")
WILL_BE = ("होगा", "होंगे", "होगी", "होंगी")
IS_NEEDED: dict[Tense, str] = {"present": "है", "past": "थी", "future": "होगी"}  # ज़रूरत is feminine
OBLIGED = frozenset({"must", "should"})
CAN = ("सकता", "सकते", "सकती", "सकती")
GOING_ON = ("रहा", "रहे", "रही", "रही")
WANTS = ("चाहता", "चाहते", "चाहती", "चाहती")
WOULD = ("चाहेगा", "चाहेंगे", "चाहेगी", "चाहेंगी")
ABOUT_TO = ("वाला", "वाले", "वाली", "वाली")
OF = ("का", "के", "की")


def write(text: Text) -> Line:
    """The sentence in Hindi; its English must be written before."""
    line = Line(commas=bool(text.mark))
    if text.speech is not None:
        put_speech(line, *text.speech, text.speech_at, reported=text.reported)
    start = len(line.words)
    if text.phrase is not None:
        line.put_linked(text.phrase.hindi, text.phrase.hindi_links, text.phrase_at)
    if text.opener:
        line.put(OPENERS[text.opener], text.opener_at)
        line.comma()
    if text.fronted:
        line.put(CONJUNCTIONS[text.conjunctions[0]], text.at[0])
    for number, clause in enumerate(text.clauses):
        if number and text.fronted:
            line.comma()
            line.put(ANSWERING[text.conjunctions[0]], text.at[0])
        elif number:
            conjunction = text.conjunctions[number - 1]
            if conjunction == "but":
                line.comma()
            line.put(CONJUNCTIONS[conjunction], text.at[number - 1])
        if isinstance(clause, Being):
            put_being(line, clause)
        else:
            put_clause(line, clause, after=text.clauses[number - 1] if number else None)
    if text.tag:
        line.comma()
        line.put_all(("है", "ना"), *text.tag_at)
    if text.quoted:
        line.words[start] = '"' + line.words[start]
    return line


def put_speech(line: Line, speaker: Subject, said: str, at: int, *, reported: bool) -> None:
    """राजा ने कहा, "…, or: राजा ने कहा कि …"""
    put_subject(line, speaker, "ने")
    line.put_all(SAID[said], at)
    if reported:
        line.put("कि", at + 1)
    else:
        line.comma()


def agreement(subject: Subject) -> int:
    """Twice the gender plus the number: the index into every table of four forms."""
    if isinstance(subject, NounPhrase):
        return 2 * subject.noun.feminine_hindi + subject.plural
    if isinstance(subject, Coordination):
        return 2 * (subject.first.noun.feminine_hindi and subject.second.noun.feminine_hindi) + 1
    if subject.referent is not None:
        return agreement(subject.referent)
    return {"she": 2, "they": 1, "we": 1, "you": 1}.get(subject.word, 0)


def bend(forms: tuple[str, str, str], noun: Noun, *, plural: bool, oblique: bool) -> str:
    """An adjective, मेरा or का beside its noun: -ा, -े or -ी."""
    if noun.feminine_hindi:
        return forms[2]
    return forms[1] if plural or oblique else forms[0]


def put_noun_phrase(line: Line, phrase: NounPhrase, *, oblique: bool, denied: bool = False) -> None:
    """The owner with का first, then determiner, adjectives and noun."""
    noun, plural = phrase.noun, phrase.plural
    if phrase.owner is not None:
        put_noun_phrase(line, phrase.owner, oblique=True)
        of = phrase.at if phrase.genitive else phrase.head + 1
        line.put(bend(OF, noun, plural=plural, oblique=oblique), of)
    if phrase.determiner != "no" and not (denied and phrase.determiner in {"a", "any"}):
        put_determiner(line, phrase, oblique=oblique)
    for offset, adjective in enumerate(phrase.adjectives, phrase.head - len(phrase.adjectives)):
        line.put_all(bend(adjective.hindi, noun, plural=plural, oblique=oblique).split(), offset)
    form = (noun.oblique if oblique else noun.hindi)[plural]
    for offset, word in enumerate(form.split() if noun.proper else (form,), phrase.head):
        line.put(word, offset)


def put_determiner(line: Line, phrase: NounPhrase, *, oblique: bool) -> None:
    """*The* has no word, except वह before a relative clause."""
    determiner, noun, plural = phrase.determiner, phrase.noun, phrase.plural
    if phrase.own:
        line.put(bend(OWN, noun, plural=plural, oblique=oblique), phrase.at)
    elif determiner in POSSESSIVES:
        line.put(bend(POSSESSIVES[determiner], noun, plural=plural, oblique=oblique), phrase.at)
    elif determiner in {"this", "that"}:
        line.put((THIS if determiner == "this" else THAT)[oblique][plural], phrase.at)
    elif determiner in {"some", "any"} and not noun.countable:
        line.put(bend(A_LITTLE, noun, plural=plural, oblique=oblique), phrase.at)
    elif determiner == "the":
        if phrase.relative is not None:
            line.put(THAT[oblique][plural], phrase.at)
    elif determiner and determiner not in UNSAID:
        line.put(DETERMINERS.get(determiner, determiner), phrase.at)


def is_ergative(clause: Clause) -> bool:
    """Whether the subject is marked with ने: in the perfective of ergative verbs."""
    verb = clause.predicate
    return (
        clause.tense == "past"
        and not clause.modal
        and not clause.progressive
        and isinstance(verb, Verb)
        and verb.ergative
        and verb.imperfect is None
    )


def subject_mark(clause: Clause) -> str:
    if clause.modal in OBLIGED or clause.predicate.name == "need":
        return "को"
    if isinstance(clause.predicate, Verb) and clause.predicate.name == "have":
        return "के पास"
    return "ने" if is_ergative(clause) else ""


def put_subject(line: Line, subject: Subject, mark: str = "", *linked: int) -> None:
    """The subject with its mark; के पास translates *have*, `linked`."""
    if isinstance(subject, Pronoun):
        first, *others = PRONOUNS.get(subject.word, HE)[mark]
        line.put(first, subject.at)
        line.put_all(others, *linked)
        return
    oblique = bool(mark)
    if isinstance(subject, NounPhrase):
        put_noun_phrase(line, subject, oblique=oblique)
    else:
        put_noun_phrase(line, subject.first, oblique=oblique)
        line.put("और", subject.at)
        put_noun_phrase(line, subject.second, oblique=oblique)
    line.put_all(mark.split(), *linked)
    if isinstance(subject, NounPhrase) and subject.relative is not None:
        put_relative(line, subject.relative, subject)


def put_doer(line: Line, clause: Clause, subject: Subject, after: Clause | Being | None) -> None:
    """The subject with its mark; one that English does not say again is a pronoun if it has a mark, or if that of the
    clause before is no nominative: राजा सोया और उसने सेब खाया, राजा को सोना चाहिए और वह दौड़ता है."""
    mark = subject_mark(clause)
    if isinstance(clause.predicate, Verb) and clause.predicate.impersonal:
        return
    if not clause.shared:
        put_subject(line, subject, mark, *((clause.at["verb"],) if mark == "के पास" else ()))
    elif mark or (isinstance(after, Clause) and subject_mark(after) in {"को", "के पास"}):
        line.put_all(again(subject)[mark])


def again(subject: Subject) -> dict[str, tuple[str, ...]]:
    """The pronoun of a subject that English does not say again, by its mark."""
    if isinstance(subject, Pronoun):
        return PRONOUNS.get(subject.word, HE)
    return PRONOUNS["they"] if person(subject) == PLURAL else HE


def put_relative(line: Line, clause: Clause, head: NounPhrase) -> None:
    """जो, जिसने, जिसे, जिसका …: in the case of the head inside the clause."""
    if clause.subject is not None:
        assert isinstance(clause.predicate, Verb), "only a verb has an object"
        line.put_all(WHOM[marker(clause.predicate, head)][head.plural], clause.at["that"])
    elif is_ergative(clause):
        line.put(("जिसने", "जिन्होंने")[head.plural], clause.at["that"])
    elif clause.modal in OBLIGED:
        line.put_all(WHOM["को"][head.plural], clause.at["that"])
    else:
        line.put("जो", clause.at["that"])
    put_clause(line, clause, head)


def marker(verb: Verb, phrase: Subject) -> str:
    """The mark of the object: that of the verb, or को after a pronoun, a person or a definite animal."""
    if verb.marker:
        return verb.marker
    if not isinstance(phrase, NounPhrase):
        return "को"
    return "को" if phrase.noun.human or (phrase.noun.animate and phrase.definite) else ""


def put_opening(line: Line, clause: Clause) -> None:
    """कृपया, आइए, क्या"""
    if clause.please:
        line.put("कृपया", clause.at["please"])
    if clause.together:
        line.put("आइए", clause.at["let"])
    if clause.question and not clause.asked:
        line.put("क्या", clause.at["tense"])


def put_clause(
    line: Line, clause: Clause, head: NounPhrase | None = None, *, after: Clause | Being | None = None
) -> None:
    """Subject, time, place, recipient, object, manner, verb; then a relative clause of the object. `after` is the
    clause before."""
    put_opening(line, clause)
    if clause.time_first:
        put_adverb(line, clause, "time", clause.time)
    subject = clause.subject or head
    assert subject is not None, "a clause has a subject or a head"
    if clause.subject is not None and not clause.command:
        put_doer(line, clause, clause.subject, after)
    if not clause.time_first:
        put_adverb(line, clause, "time", clause.time)
    put_adverb(line, clause, "frequency", clause.frequency)
    if clause.asked in ASKED:
        line.put(ASKED[clause.asked], clause.at["asked"])
    for adjunct in clause.adjuncts:
        put_adjunct(line, adjunct)
    put_adverb(line, clause, "place", clause.place)
    if clause.negation == "never":
        line.put("कभी", clause.at["not"])
    if isinstance(clause.predicate, Adjective):
        put_state(line, clause, clause.predicate, subject)
    elif clause.predicate.name in {"have", "need"}:
        put_having(line, clause, clause.predicate)
    else:
        put_action(line, clause, clause.predicate, subject, head)
    if isinstance(clause.object, NounPhrase) and clause.object.relative is not None:
        put_relative(line, clause.object.relative, clause.object)


def put_having(line: Line, clause: Clause, verb: Verb) -> None:
    """मेरे पास एक बिल्ली है: the thing that one has is the subject."""
    thing = clause.object
    assert isinstance(thing, NounPhrase), "have and need have an object"
    if verb.name == "need":
        put_needing(line, clause, verb, thing)
        return
    put_noun_phrase(line, thing, oblique=False, denied=bool(clause.negation))
    put_is(line, clause, thing)


def put_needing(line: Line, clause: Clause, verb: Verb, thing: NounPhrase) -> None:
    """मुझे चाबी की ज़रूरत है: to me is need of the key."""
    put_noun_phrase(line, thing, oblique=True)
    line.put(verb.marker)
    line.put_all(verb.prefix, clause.at["verb"])
    if clause.negation:
        line.put("नहीं", clause.at["not"])
    line.put(IS_NEEDED[clause.tense], clause.at["tense"])


def put_is(line: Line, clause: Clause | Being, subject: Subject) -> None:
    """है, था or होगा, with नहीं before it."""
    at, index = clause.at, agreement(subject)
    if clause.negation:
        line.put("नहीं", at["not"])
    if clause.tense == "present":
        line.put(IS[person(subject)], at["tense"], at["verb"])
    elif clause.tense == "past":
        line.put(WAS[index], at["tense"], at["verb"])
    else:
        first = person(subject) == FIRST
        line.put("होऊँगा" if first else WILL_BE[index], at["tense"], at["verb"])


def put_being(line: Line, being: Being) -> None:
    """All words before है; what there is comes after its place."""
    at, complement = being.at, being.complement
    if being.question:
        line.put("क्या", at["tense"])
    if being.subject is not None:
        put_subject(line, being.subject)
    elif being.kind == "this":
        assert complement is not None, "this is something"
        line.put((THAT if being.that else THIS)[0][complement.plural], at["this"])
    for adjunct in being.adjuncts:
        put_adjunct(line, adjunct)
    put_adverb(line, being, "place", being.place)
    if being.kind in {"where", "who"}:
        line.put("कहाँ" if being.kind == "where" else "कौन", at["asked"])
    if complement is not None and being.kind == "job":
        line.put(complement.noun.hindi[complement.plural], complement.at, complement.head)
    elif complement is not None:
        denied = being.kind == "there" and bool(being.negation)
        put_noun_phrase(line, complement, oblique=False, denied=denied)
    subject = being.subject or complement
    assert subject is not None, "to be has a subject or a complement"
    put_is(line, being, subject)


def put_adjunct(line: Line, adjunct: Adjunct) -> None:
    """*With* is से before a tool, के साथ before company."""
    put_noun_phrase(line, adjunct.phrase, oblique=True)
    tool = adjunct.preposition.english == "with" and not adjunct.phrase.noun.animate
    line.put_all(("से",) if tool else adjunct.preposition.hindi, adjunct.at)


def put_action(line: Line, clause: Clause, verb: Verb, subject: Subject, head: NounPhrase | None) -> None:
    at = clause.at
    if clause.recipient is not None:
        put_complement(line, clause.recipient, "को", at["recipient"])
    if verb.marker in OF:  # nothing comes between लड़की की and मदद
        put_adverb(line, clause, "manner", clause.manner)
    if clause.object is not None:
        put_complement(line, clause.object, marker(verb, clause.object))
    elif clause.asked == "what":
        line.put("क्या", at["asked"])
    elif clause.asked == "who":
        line.put_all(WHO[verb.marker], at["asked"])
    if verb.marker not in OF:
        put_adverb(line, clause, "manner", clause.manner)
    line.put_all(verb.prefix, at["verb"], at["particle"])
    if clause.negation and clause.modal not in {"want", "would", "going"}:
        line.put("मत" if clause.command else "नहीं", at["not"])
    patient = clause.object or (head if clause.subject else None)
    if clause.modal:
        put_modal(line, clause, verb, subject, patient)
    else:
        put_finite(line, clause, verb, subject, patient)


def put_complement(line: Line, complement: Complement, mark: str, *linked: int) -> None:
    """An object or a recipient with its mark, which is a part of a pronoun: राजा को, मुझे, मेरी."""
    if isinstance(complement, NounPhrase):
        put_noun_phrase(line, complement, oblique=bool(mark))
        line.put_all((mark,) if mark else (), *linked)
    elif mark == "को":
        line.put_all(PRONOUNS.get(complement.word, HE)[mark], complement.at, *linked)
    else:
        line.put_all(WITH_MARKER[mark].get(complement.word, HIM[mark]), complement.at)


def put_modal(line: Line, clause: Clause, verb: Verb, subject: Subject, patient: Complement | None) -> None:
    """खोल सकता है; खोलना चाहता है, खोलना चाहेगा, खोलने वाला है; खोलना चाहिए, in which the infinitive agrees with the
    object."""
    at, index = clause.at, agreement(subject)
    doing, being_able = (at["verb"], at["particle"]), (at["tense"], at["modal"], at.get("to", at["modal"]))
    if clause.modal in OBLIGED:
        line.put(verb.hindi.infinitive[perfective_agreement(verb, patient)], *doing)
        line.put("चाहिए", *being_able)
        return
    able = clause.modal in {"can", "could"}
    if not clause.wishing:
        line.put(verb.hindi.root if able else verb.hindi.infinitive[clause.modal == "going"], *doing)
    if clause.modal == "going":
        line.put(ABOUT_TO[index], *being_able)
    if clause.negation and not able:
        line.put("नहीं", at["not"])
    if clause.modal == "would":
        line.put("चाहूँगा" if person(subject) == FIRST else WOULD[index], *being_able)
        return
    if clause.modal != "going":
        line.put((CAN if able else WANTS)[index], *being_able)
    line.put(WAS[index] if clause.tense == "past" else IS[person(subject)], *being_able)


def put_finite(line: Line, clause: Clause, verb: Verb, subject: Subject, patient: Complement | None) -> None:
    """खाया; खाया है; करता था for a state; खाता है; खा रहा है, खा रहा था; खाएगा; खाइए."""
    at, index, forms = clause.at, agreement(subject), verb.hindi
    whole = at["tense"], at["verb"], at["particle"]
    if is_ergative(clause) or verb.impersonal:
        index = perfective_agreement(verb, patient)
    if clause.together:
        line.put(forms.future[1].removesuffix("गे"), *whole)  # the subjunctive: खाएँ
    elif clause.command:
        line.put(forms.polite, *whole)
    elif clause.tense == "future":
        line.put(forms.first_future if person(subject) == FIRST else forms.future[index], *whole)
    elif clause.progressive:
        line.put_all((forms.root, GOING_ON[index]), *whole[1:])
        line.put(WAS[index] if clause.tense == "past" else IS[person(subject)], at["tense"])
    elif clause.perfect:
        line.put(forms.perfective[min(index, 2)], *whole[1:])
        line.put(("है", "हैं")[index % 2] if is_ergative(clause) else IS[person(subject)], at["tense"])
    elif clause.tense == "past" and verb.imperfect is None:
        line.put(forms.perfective[index], *whole)
    else:
        line.put(forms.habitual[index], *whole[1:])
        line.put(WAS[index] if clause.tense == "past" else IS[person(subject)], at["tense"])


def perfective_agreement(verb: Verb, patient: Complement | None) -> int:
    """With the noun inside the verb, or an object without a marker; otherwise masculine singular."""
    if verb.inner:
        return 2 * (verb.inner == "f")
    return agreement(patient) if patient is not None and not marker(verb, patient) else 0


def put_state(line: Line, clause: Clause, adjective: Adjective, subject: Subject) -> None:
    if clause.than is not None:
        put_noun_phrase(line, clause.than, oblique=True)
        line.put("से", clause.at["than"])
        if clause.at["more"] >= 0:
            line.put("ज़्यादा", clause.at["more"])
    put_adverb(line, clause, "degree", clause.degree)
    index = min(agreement(subject), 2)
    line.put_all(adjective.hindi[index].split(), clause.at["adjective"])
    if clause.also is not None:
        line.put("और", clause.at["and"])
        line.put_all(clause.also.hindi[index].split(), clause.at["and"] + 1)
    put_is(line, clause, subject)


def put_adverb(line: Line, clause: Clause | Being, role: str, adverb: Adverb | None) -> None:
    if adverb is not None:
        line.put_linked(adverb.hindi, adverb.hindi_links, range(clause.at[role], clause.at[role] + 3))
