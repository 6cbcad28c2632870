"""Sentences that must come out exactly so, built from grammar objects by hand."""

from __future__ import annotations

from collections.abc import Callable
from unicodedata import normalize

import pytest

from regard.fable.lexicon import Tense, load
from regard.fable.sentence import LANGUAGES, Language, ParallelSentence, compose
from regard.fable.syntax import (
    Adjunct,
    Clause,
    Coordination,
    Determiner,
    NounPhrase,
    Person,
    Pronoun,
    Text,
)

LEXICON = load()
ADJECTIVES = {adjective.name: adjective for adjective in LEXICON.adjectives}
ADVERBS = {adverb.english: adverb for adverb in LEXICON.adverbs}
Build = Callable[[], Text]


def np(noun: str, *adjectives: str, determiner: Determiner = "the", plural: bool = False) -> NounPhrase:
    return NounPhrase(
        LEXICON.noun(noun),
        determiner,
        plural,
        tuple(ADJECTIVES[adjective] for adjective in adjectives),
    )


def doing(subject: NounPhrase | Coordination | Pronoun | None, verb: str, thing: NounPhrase | None = None) -> Clause:
    return Clause(subject, LEXICON.verb(verb), object=thing)


def being(subject: NounPhrase | Coordination | Pronoun | None, adjective: str, tense: Tense = "past") -> Clause:
    return Clause(subject, ADJECTIVES[adjective], tense)


def with_clause(head: NounPhrase, clause: Clause) -> NounPhrase:
    head.relative = clause
    return head


def say(build: Build, language: Language) -> ParallelSentence:
    """Trees remember where their words stand, so each language gets a fresh one."""
    return compose(build(), language)


def black_cat() -> Text:
    return Text([doing(np("cat", "black"), "eat#prey", np("mouse"))])


def because(eater: str, eaten: str, adjective: str, *, eater_meant: bool) -> Text:
    agent, theme = np(eater), np(eaten)
    pronoun = Pronoun("it", agent if eater_meant else theme)
    return Text([doing(agent, "eat", theme), being(pronoun, adjective)], ["because"])


def test_the_black_cat_ate_the_mouse() -> None:
    sentence = say(black_cat, "fr")
    assert sentence.source == "the black cat ate the mouse"
    assert sentence.target == "le chat noir a mangé la souris"
    assert sentence.alignment == ((0, 0), (1, 2), (2, 1), (3, 3), (3, 4), (4, 5), (5, 6))
    assert sentence.tags == ("DET", "ADJ", "NOUN", "VERB", "DET", "NOUN")
    assert sentence.sentiment == "neutral"


def test_the_black_cat_ate_the_mouse_in_hindi() -> None:
    sentence = say(black_cat, "hi")
    assert sentence.target == "काली बिल्ली ने चूहे को खाया"
    assert sentence.alignment == ((1, 0), (2, 1), (3, 5), (5, 3))


@pytest.mark.parametrize(
    ("eaten", "adjective", "eater_meant", "french", "hindi"),
    [
        (
            "honey",
            "hungry",
            True,
            "l'ours a mangé le miel parce qu'il était affamé",
            "भालू ने शहद खाया क्योंकि वह भूखा था",
        ),
        (
            "honey",
            "delicious",
            False,
            "l'ours a mangé le miel parce qu'il était délicieux",
            "भालू ने शहद खाया क्योंकि वह स्वादिष्ट था",
        ),
        (
            "pear",
            "hungry",
            True,
            "l'ours a mangé la poire parce qu'il était affamé",
            "भालू ने नाशपाती खाई क्योंकि वह भूखा था",
        ),
        (
            "pear",
            "delicious",
            False,
            "l'ours a mangé la poire parce qu'elle était délicieuse",
            "भालू ने नाशपाती खाई क्योंकि वह स्वादिष्ट थी",
        ),
    ],
)
def test_it_is_the_bear_or_what_the_bear_ate(
    eaten: str, adjective: str, eater_meant: bool, french: str, hindi: str
) -> None:
    for language, target in (("fr", french), ("hi", hindi)):
        sentence = compose(because("bear", eaten, adjective, eater_meant=eater_meant), language)
        assert sentence.source == f"the bear ate the {eaten} because it was {adjective}"
        assert sentence.target == target
        assert sentence.referents == ((6, 1 if eater_meant else 4),)


def test_elision_links_article_and_noun_to_one_word() -> None:
    sentence = compose(because("bear", "honey", "hungry", eater_meant=True), "fr")
    assert {(0, 0), (1, 0)} <= set(sentence.alignment)
    assert {(5, 5), (5, 6), (6, 6)} <= set(sentence.alignment)  # because ↔ parce qu'il, it ↔ qu'il


def at_the_bank(subject: str, verb: str, thing: str, sense: str) -> Text:
    clause = doing(np(subject), verb, np(thing))
    clause.adjuncts = (Adjunct(LEXICON.preposition("near"), np(sense)),)
    return Text([clause])


def test_the_two_banks() -> None:
    money = say(lambda: at_the_bank("thief", "hide", "money", "bank#money"), "fr")
    river = say(lambda: at_the_bank("fisherman", "see", "fish", "bank#river"), "fr")
    assert money.source == "the thief hid the money near the bank"
    assert money.target == "le voleur a caché l'argent près de la banque"
    assert river.source == "the fisherman saw the fish near the bank"
    assert river.target == "le pêcheur a vu le poisson près de la rive"


def test_the_two_banks_in_hindi() -> None:
    money = say(lambda: at_the_bank("thief", "hide", "money", "bank#money"), "hi")
    river = say(lambda: at_the_bank("fisherman", "see", "fish", "bank#river"), "hi")
    assert money.target == "चोर ने बैंक के पास पैसा छिपाया"
    assert river.target == "मछुआरे ने किनारे के पास मछली को देखा"


def telescope() -> Text:
    clause = doing(np("man"), "see", np("astronomer"))
    clause.adjuncts = (Adjunct(LEXICON.preposition("with"), np("telescope", determiner="a")),)
    return Text([clause])


def test_the_man_saw_the_astronomer_with_a_telescope() -> None:
    assert say(telescope, "fr").source == "the man saw the astronomer with a telescope"
    assert say(telescope, "fr").target == "l'homme a vu l'astronome avec un télescope"
    assert say(telescope, "hi").target == "आदमी ने एक दूरबीन से खगोलशास्त्री को देखा"


def told(clause: Clause, **changes: object) -> Text:
    for name, value in changes.items():
        setattr(clause, name, value)
    return Text([clause])


def person(word: Person) -> Pronoun:
    return Pronoun(word)


SENTENCES: list[tuple[Build, str, str, str]] = [
    (
        lambda: told(doing(with_clause(np("dog"), doing(np("cat", "black"), "see")), "arrive")),
        "the dog that the black cat saw arrived",
        "le chien que le chat noir a vu est arrivé",
        "वह कुत्ता जिसे काली बिल्ली ने देखा पहुँचा",
    ),
    (
        lambda: told(doing(np("dog"), "see", with_clause(np("mouse"), doing(np("bear"), "eat#prey")))),
        "the dog saw the mouse that the bear ate",
        "le chien a vu la souris que l'ours a mangée",
        "कुत्ते ने उस चूहे को देखा जिसे भालू ने खाया",
    ),
    (
        lambda: told(doing(with_clause(np("girl", plural=True), doing(None, "leave")), "return")),
        "the girls that left returned",
        "les filles qui sont parties sont revenues",
        "वे लड़कियाँ जो निकलीं लौटीं",
    ),
    (
        lambda: told(doing(np("cat"), "eat", np("pear", plural=True)), negation="not"),
        "the cat did not eat the pears",
        "le chat n'a pas mangé les poires",
        "बिल्ली ने नाशपातियाँ नहीं खाईं",
    ),
    (
        lambda: told(doing(np("owl"), "help", np("friend", determiner="my")), tense="future"),
        "the owl will help my friend",
        "le hibou aidera mon ami",
        "उल्लू मेरे दोस्त की मदद करेगा",
    ),
    (
        lambda: told(doing(np("queen"), "love", np("king", "old#person")), tense="present"),
        "the queen loves the old king",
        "la reine aime le vieux roi",
        "रानी बूढ़े राजा से प्यार करती है",
    ),
    (
        lambda: told(doing(person("she"), "love", np("astronomer", "old#person", determiner="a"))),
        "she loved an old astronomer",
        "elle aimait un vieil astronome",
        "वह एक बूढ़े खगोलशास्त्री से प्यार करती थी",
    ),
    (
        lambda: told(doing(person("i"), "buy", np("house", "new", "white", determiner="a"))),
        "I bought a new white house",
        "j'ai acheté une nouvelle maison blanche",
        "मैंने एक नया सफ़ेद घर ख़रीदा",
    ),
    (
        lambda: told(doing(np("merchant"), "give", np("ring", "beautiful", determiner="a")), recipient=np("princess")),
        "the merchant gave a beautiful ring to the princess",
        "le marchand a donné une belle bague à la princesse",
        "व्यापारी ने राजकुमारी को एक सुंदर अँगूठी दी",
    ),
    (
        lambda: told(doing(np("man"), "show", np("map")), recipient=np("child", plural=True), question=True),
        "did the man show the map to the children",
        "est-ce que l'homme a montré la carte aux enfants",
        "क्या आदमी ने बच्चों को नक़्शा दिखाया",
    ),
    (
        lambda: told(
            doing(np("child", plural=True), "look+for", np("key", determiner="this")),
            tense="present",
            frequency=ADVERBS["often"],
        ),
        "the children often look for this key",
        "les enfants cherchent souvent cette clé",
        "बच्चे अक्सर यह चाबी ढूँढते हैं",
    ),
    (
        lambda: told(doing(Coordination(np("girl"), np("queen")), "come"), time=ADVERBS["yesterday"], time_first=True),
        "yesterday the girl and the queen came",
        "hier la fille et la reine sont venues",
        "कल लड़की और रानी आईं",
    ),
    (
        lambda: told(doing(Coordination(np("boy"), np("queen")), "see", np("bird", determiner="a"))),
        "the boy and the queen saw a bird",
        "le garçon et la reine ont vu un oiseau",
        "लड़के और रानी ने एक चिड़िया देखी",
    ),
    (
        lambda: told(being(np("horse", "white", plural=True, determiner="this"), "tired"), negation="never"),
        "these white horses were never tired",
        "ces chevaux blancs n'étaient jamais fatigués",
        "ये सफ़ेद घोड़े कभी थके हुए नहीं थे",
    ),
    (
        lambda: told(being(np("apple"), "ripe", "future"), time=ADVERBS["tomorrow"]),
        "the apple will be ripe tomorrow",
        "la pomme sera mûre demain",
        "सेब कल पका हुआ होगा",
    ),
    (
        lambda: told(doing(np("nurse", plural=True), "work"), adjuncts=hospital()),
        "the nurses worked in the hospital of the island",
        "les infirmières ont travaillé dans l'hôpital de l'île",
        "नर्सों ने द्वीप के अस्पताल में काम किया",
    ),
]


def hospital() -> tuple[Adjunct, ...]:
    place = np("hospital")
    place.owner = np("island")
    return (Adjunct(LEXICON.preposition("in"), place),)


@pytest.mark.parametrize(("build", "english", "french", "hindi"), SENTENCES, ids=[row[1] for row in SENTENCES])
def test_a_sentence_comes_out_as_a_native_would_type_it(build: Build, english: str, french: str, hindi: str) -> None:
    assert say(build, "fr").source == english
    assert say(build, "fr").target == french
    assert say(build, "hi").target == normalize("NFC", hindi)


def test_negation_is_linked_to_both_its_halves() -> None:
    sentence = say(SENTENCES[3][0], "fr")  # the cat did not eat … → le chat n'a pas mangé …
    assert {(2, 2), (3, 2), (3, 3), (4, 4)} <= set(sentence.alignment)


def test_the_postposition_is_linked_to_its_preposition() -> None:
    sentence = say(telescope, "hi")
    assert sentence.target.split()[4] == "से"
    assert (5, 4) in sentence.alignment
    assert not any(target in {1, 6} for _, target in sentence.alignment)  # ने and को translate nothing


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: told(doing(np("king"), "help", np("thief"))), "positive"),
        (lambda: told(doing(np("king"), "help", np("thief")), negation="not"), "negative"),
        (lambda: told(being(np("king"), "cruel")), "negative"),
        (lambda: told(being(np("king"), "cruel"), negation="never"), "positive"),
        (lambda: told(doing(np("king", "cruel"), "help", np("thief"))), "neutral"),
        (lambda: told(doing(np("king"), "see", with_clause(np("thief"), doing(None, "lie")))), "negative"),
    ],
)
def test_negation_turns_the_sentiment_round(build: Build, expected: str) -> None:
    for language in LANGUAGES:
        assert say(build, language).sentiment == expected
