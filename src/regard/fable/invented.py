"""Invented names, nouns and adjectives, made of syllables, which the translation copies.

A model with a vocabulary of words reads them as unknown, and so learns to copy unknown words.
"""

from __future__ import annotations

from collections.abc import Callable

from regard.fable.dates import pick
from regard.fable.lexicon import Adjective, Noun, Verb, proper
from regard.fable.syntax import UNSAID, Being, Clause, NounPhrase, Pronoun, Text, phrases

_ONSETS = "b bl br d dr f fl g gl gr j k kl kr l m n p pl pr r s sk sl sn sp st t tr v w z"
ONSETS = (*_ONSETS.split(), "")
VOWELS = ("a", "e", "i", "o", "u", "ai", "ee", "oo", "a", "e", "i", "o")
CODAS = ("n", "l", "r", "k", "t", "m", "nd", "rk", "sk", "lt", "p", "b", "d", "g", "ck", "mp", "x", "", "")
ENDINGS = ("ov", "ski", "enko", "dol", "mar", "wick", "son", "ini", "ez", "ak")
# French, Hindi, and whether a woman; with and without a full stop.
TITLES = {
    title + stop: forms
    for title, forms in {
        "Mr": ("M.", "श्री", False),
        "Dr": ("le docteur", "डॉ.", False),
        "Mrs": ("Mme", "श्रीमती", True),
        "Ms": ("Mme", "सुश्री", True),
    }.items()
    for stop in ("", ".")
}


def invent(text: Text, draw: Callable[[], float], puzzling: frozenset[object]) -> bool:
    """Put an invented word in place of a noun, a name or an adjective, if the sentence has one that can be replaced.

    `puzzling` are the verbs and adjectives with several senses, between which only known nouns decide.
    """
    choices = [(clause, phrase) for clause in text.clauses for phrase in replaceable(clause, puzzling)]
    if not choices:
        return False
    clause, phrase = pick(choices, draw)
    known = isinstance(clause, Clause) or clause.kind != "there"  # not "there is Mr Brown"
    if phrase.noun.proper:
        name = word(draw, "name")
        phrase.noun = proper(name, name, name, feminine=phrase.noun.feminine_french, human=True)
    elif phrase.adjectives and draw() < 0.4:
        phrase.adjectives = (*phrase.adjectives[:-1], adjective(word(draw, "adjective")))
    elif known and is_plain(phrase) and draw() < 0.8:
        titles = [title for title, (*_, woman) in TITLES.items() if woman == phrase.noun.feminine_french]
        phrase.noun = titled(pick(titles, draw), word(draw, "name"))
        phrase.determiner, phrase.own = "", False
    elif not phrase.noun.human:
        phrase.noun = thing(word(draw, "noun"))
        if phrase.determiner == "some" and not phrase.plural:
            phrase.determiner = "the"
    else:
        return False
    return True


def is_plain(phrase: NounPhrase) -> bool:
    """One person without adjectives or owner, who may be replaced by Mr Brown."""
    return phrase.noun.human and not phrase.plural and not phrase.adjectives and phrase.owner is None


def replaceable(clause: Clause | Being, puzzling: frozenset[object]) -> list[NounPhrase]:
    """The noun phrases whose noun no other word of the sentence depends on."""
    predicate = clause.predicate if isinstance(clause, Clause) else None
    all_phrases = phrases(clause)
    if predicate in puzzling or any("#" in phrase.noun.name for phrase in all_phrases):
        return []
    if isinstance(clause.subject, Pronoun) and clause.subject.referent is not None:
        return []
    if isinstance(clause, Being) and clause.kind in {"job", "noun"}:
        return []
    fixed = {id(adjunct.phrase) for adjunct in clause.adjuncts}
    possessive = isinstance(clause.subject, NounPhrase) and any(phrase.own for phrase in all_phrases)
    return [
        phrase
        for phrase in all_phrases
        if id(phrase) not in fixed
        and phrase.determiner not in UNSAID
        and phrase.relative is None
        and not (possessive and phrase is clause.subject)
        and puzzling.isdisjoint(phrase.adjectives)
    ]


def word(draw: Callable[[], float], kind: str) -> str:
    """Two or three syllables, rarely the same word twice."""
    made = "".join(pick(part, draw) for _ in range(2) for part in (ONSETS, VOWELS, CODAS))
    if kind == "name":
        made += pick(ENDINGS, draw) if draw() < 0.5 else ""
        return made.capitalize()
    return made + pick(("ish", "y", "ous", "ic") if kind == "adjective" else ("", "", "et", "le", "o"), draw)


def thing(made: str) -> Noun:
    """Masculine, and not a person."""
    plural = made + "s"
    return Noun(
        name=made,
        english=(made, plural),
        french=(made, plural),
        feminine_french=False,
        hindi=(made, plural),
        oblique=(made, plural),
        feminine_hindi=False,
        classes=frozenset(),
    )


def titled(title: str, name: str) -> Noun:
    french, hindi, feminine = TITLES[title]
    return proper(f"{title} {name}", f"{french} {name}", f"{hindi} {name}", feminine=feminine, human=True)


def adjective(made: str) -> Adjective:
    """After its noun in French, and without inflection."""
    return Adjective(
        name=made,
        english=made,
        french=(made, made, made, made),
        french_before_vowel=made,
        before=False,
        hindi=(made, made, made),
    )


def ambiguous(verbs: tuple[Verb, ...], adjectives: tuple[Adjective, ...]) -> frozenset[object]:
    """The verbs and adjectives whose English has several senses."""
    groups: dict[tuple[str, ...], list[object]] = {}
    for verb in verbs:
        groups.setdefault((verb.english, verb.particle), []).append(verb)
    for entry in adjectives:
        groups.setdefault((entry.english,), []).append(entry)
    return frozenset(entry for group in groups.values() if len(group) > 1 for entry in group)
