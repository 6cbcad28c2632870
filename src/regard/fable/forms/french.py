"""French plurals, feminines, participles and finite verbs, by rule; and elision and contraction of two words."""

from __future__ import annotations

from typing import NamedTuple

from regard.fable.forms.english import NUMERALS

VOWELS = frozenset("aeiouyàâäéèêëîïôöùûüœæh")
# No elision before these: le hibou, le haut mur, le yaourt, de Yuki, de onze rois.
_ASPIRATED = (
    "hibou hiboux héros hamster hamsters hérisson hérissons haricot haricots hache haches honte hontes haut "
    "hauts haute hautes yaourt yaourts yuki hindi hindis huit onze"
)
ASPIRATED = frozenset(_ASPIRATED.split())
ELIDING = frozenset({"le", "la", "de", "que", "je", "ne", "me"})
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}
IRREGULAR_FIRST = {"va": "vais", "veut": "veux", "peut": "peux", "combat": "combats", "met": "mets"}

# Where *nous* has another stem than *ils*: boivent but buvons, voient but voyons, viennent but venons.
_STEMS = "boiv:buv çoiv:cev oiv:ev oi:oy ui:uy ienn:en prenn:pren meur:mour meuv:mouv peuv:pouv veul:voul quièr:quér"
STEMS = dict(pair.split(":") for pair in _STEMS.split())
IRREGULAR = {"faire": ("faisons", "faites"), "dire": ("disons", "dites"), "aller": ("allons", "allez")}
_NUMBERS = (
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf vingt trente quarante cinquante soixante quatre-vingts"
)
NUMBERS = dict(zip(NUMERALS, _NUMBERS.split(), strict=True))
Finite = tuple[str, str, str, str, str]


class FrenchVerbForms(NamedTuple):
    """Finite forms are in the order *je*, *il*, *ils*, *nous*, *vous*; participles in the order of agreement."""

    infinitive: str
    present: Finite
    future: Finite
    participle: tuple[str, str, str, str]


def begins_with_vowel(word: str) -> bool:
    """Whether the word before it elides: l'ours, l'homme, but le hibou."""
    return word[0].lower() in VOWELS and word.lower() not in ASPIRATED


def noun_plural(singular: str) -> str:
    """gâteau → gâteaux, cheval → chevaux, ours → ours, chat → chats."""
    if singular.endswith(("s", "x", "z")):
        return singular
    if singular.endswith("al"):
        return singular[:-2] + "aux"
    return singular + ("x" if singular.endswith(("au", "eu")) else "s")


def feminine(masculine: str) -> str:
    """heureux → heureuse, cruel → cruelle, triste → triste, noir → noire."""
    if masculine.endswith("e"):
        return masculine
    if masculine.endswith("x"):
        return masculine[:-1] + "se"
    return masculine + ("le" if masculine.endswith("el") else "e")


def adjective_plural(singular: str) -> str:
    """beau → beaux, loyal → loyaux, gris → gris; unlike nouns, bleu → bleus."""
    if singular.endswith(("s", "x")):
        return singular
    if singular.endswith("al"):
        return singular[:-2] + "aux"
    return singular + ("x" if singular.endswith("eau") else "s")


def agreeing(masculine: str, feminine_form: str) -> tuple[str, str, str, str]:
    """Masculine, masculine plural, feminine, feminine plural."""
    return masculine, adjective_plural(masculine), feminine_form, adjective_plural(feminine_form)


def verb(infinitive: str, parts: tuple[str, str, str, str] | None = None) -> FrenchVerbForms:
    """All forms from the principal parts: *il* and *ils* in the present, future stem, participle."""
    singular, plural, future, participle = parts or regular_parts(infinitive)
    return FrenchVerbForms(
        infinitive=infinitive,
        present=(first_person(singular), singular, plural, *we_and_you(infinitive, plural)),
        future=(future + "ai", future + "a", future + "ont", future + "ons", future + "ez"),
        participle=agreeing(participle, participle + "e"),
    )


def we_and_you(infinitive: str, plural: str) -> tuple[str, str]:
    """mangeons, mangez; buvons, buvez: from the infinitive in -er, else from the form of *ils*."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive]
    if infinitive.endswith("er"):
        stem = infinitive[:-2]
        return softened(stem) + "ons", stem + "ez"
    stem = plural.removesuffix("ent")
    for ending, other in STEMS.items():
        if stem.endswith(ending):
            stem = stem.removesuffix(ending) + other
            break
    return stem + "ons", stem + "ez"


def softened(stem: str) -> str:
    """A stem that keeps its sound before o and a: mangeons, lançons."""
    if stem.endswith("g"):
        return stem + "e"
    return stem[:-1] + "ç" if stem.endswith("c") else stem


def imperfect(forms: FrenchVerbForms) -> Finite:
    """connaissons → connaissais, connaissait, connaissaient …: the past of states."""
    stem = forms.present[3].removesuffix("ons")
    hard = forms.present[4].removesuffix("ez") if forms.present[4].endswith("ez") else stem
    return stem + "ais", stem + "ait", stem + "aient", hard + "ions", hard + "iez"


def regular_parts(infinitive: str) -> tuple[str, str, str, str]:
    """The three conjugations: manger, choisir, vendre."""
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        return stem + "e", stem + "ent", infinitive, stem + "é"
    if infinitive.endswith("ir"):
        return stem + "it", stem + "issent", infinitive, stem + "i"
    return stem, stem + "ent", infinitive[:-1], stem + "u"


def first_person(third: str) -> str:
    """je mange, je vois, je vends, je connais, from the form of *il*; je vais and je veux are irregular."""
    if third in IRREGULAR_FIRST:
        return IRREGULAR_FIRST[third]
    if third.endswith("e"):
        return third
    if third.endswith("ît"):
        return third[:-2] + "is"
    return third[:-1] + "s" if third.endswith("t") else third + "s"


def meet(first: str, second: str) -> tuple[str, ...]:
    """Two neighbours as they are written: le ours → l'ours, de le roi → du roi, ce arbre → cet arbre."""
    contracted = CONTRACTED.get((first, second))
    if contracted is not None:
        return (contracted,)
    if first in ELIDING and begins_with_vowel(second):
        return (first[:-1] + "'" + second,)
    if first == "si" and second in {"il", "ils"}:
        return ("s'" + second,)
    if first in BEFORE_VOWEL and begins_with_vowel(second):
        return BEFORE_VOWEL[first], second
    return first, second
