"""What must hold of the tables for the grammar to be right."""

from __future__ import annotations

from unicodedata import is_normalized

import pytest

from regard.fable.corpus import pools
from regard.fable.forms.french import ASPIRATED
from regard.fable.lexicon import Context, load

LEXICON = load()
LIKE_ITS_PAST = {"read", "cut", "hit"}  # verbs whose present must show by other means, see tables/verbs.tsv
AMBIGUOUS = sorted({context.word.english[0] for context in LEXICON.contexts})


def test_there_are_at_least_twelve_hundred_and_fifty_content_words() -> None:
    words = {noun.english[0] for noun in LEXICON.nouns} | {verb.english for verb in LEXICON.verbs}
    words |= {each.english for each in (*LEXICON.adjectives, *LEXICON.adverbs)}
    assert len(words) >= 1250


def test_names_are_unique() -> None:
    for entries in (LEXICON.nouns, LEXICON.verbs, LEXICON.adjectives):
        names = [entry.name for entry in entries]
        assert len(names) == len(set(names))


def test_every_class_that_is_asked_for_has_a_noun() -> None:
    known = frozenset().union(*(noun.classes for noun in LEXICON.nouns))
    asked = frozenset().union(
        *(adjective.classes for adjective in LEXICON.adjectives),
        *(preposition.classes for preposition in LEXICON.prepositions),
        *(verb.subjects | verb.objects | verb.recipients for verb in LEXICON.verbs),
    )
    assert asked <= known


def test_every_noun_takes_an_adjective_on_either_side_and_a_reason() -> None:
    for noun in LEXICON.nouns:
        qualities = pools().qualities[noun]
        assert qualities.before, noun.name
        assert qualities.after, noun.name
        assert len(qualities.reasons) > 2, noun.name


def test_no_english_form_hides_a_second_meaning() -> None:
    """A past like its present or a plural like its singular would leave tense or number to guess."""
    for verb in LEXICON.verbs:
        assert verb.past != verb.third
        assert (verb.past == verb.english) == (verb.english in LIKE_ITS_PAST), verb.english
    for noun in LEXICON.nouns:
        assert not noun.has_plural or noun.english[0] != noun.english[1]


def test_no_adjective_has_two_senses_for_one_noun() -> None:
    for noun in LEXICON.nouns:
        qualities = pools().qualities[noun]
        assert len(qualities.words) == len(qualities.all), noun.name


def test_no_verb_has_two_senses_for_one_object() -> None:
    for verb in LEXICON.verbs:
        for other in LEXICON.verbs:
            if verb is not other and verb.english == other.english and verb.particle == other.particle:
                assert verb.objects.isdisjoint(other.objects)


@pytest.mark.parametrize("word", AMBIGUOUS)
def test_the_company_of_an_ambiguous_word_settles_its_sense(word: str) -> None:
    company: dict[str, set[str]] = {}
    for context in LEXICON.contexts:
        if context.word.english[0] == word:
            company.setdefault(context.word.name, set()).update(nouns_of(context))
    first, second = company.values()
    assert first.isdisjoint(second)


def test_ambiguous_words_appear_only_in_their_contexts() -> None:
    plain = {noun.english[0] for noun in pools().nouns}
    assert plain.isdisjoint(AMBIGUOUS)
    assert {"bank", "bat", "seal", "crane", "letter", "nail", "spring"} == set(AMBIGUOUS)


def nouns_of(context: Context) -> set[str]:
    return {noun.name for noun in (*context.subjects, *context.objects)}


def test_all_words_are_normalised() -> None:
    for noun in LEXICON.nouns:
        for word in (*noun.french, *noun.hindi, *noun.oblique):
            assert is_normalized("NFC", word), word
    for verb in LEXICON.verbs:
        for word in (*verb.french.present, *verb.hindi.perfective, *verb.prefix):
            assert is_normalized("NFC", word), word


SILENT = frozenset(
    {"homme", "hommes", "histoire", "histoires", "horloge", "horloges", "hôpital", "hôpitaux", "hôtel", "hôtels"}
    | {"hiver", "hivers", "hyène", "hyènes", "herbe", "herbes", "heure", "heures", "huile", "huiles", "hirondelle"}
    | {"hirondelles", "hippopotame", "hippopotames", "hélicoptère", "hélicoptères", "habitude", "habitudes"}
)


def test_every_french_h_is_decided() -> None:
    """A new word in h must be put on one side or the other: l'homme, le hibou."""
    words = {word for noun in LEXICON.nouns for word in noun.french}
    words |= {word for adjective in LEXICON.adjectives for word in adjective.french if adjective.before}
    assert {word for word in words if word.startswith("h")} <= SILENT | ASPIRATED
    assert SILENT.isdisjoint(ASPIRATED)
    assert {word for word in words if word.startswith("y")} == {"yeux", "yaourt", "yaourts"}


def test_no_french_and_no_hindi_noun_has_two_genders() -> None:
    for language in ("french", "hindi"):
        genders: dict[str, bool] = {}
        for noun in LEXICON.nouns:
            word = noun.french[0] if language == "french" else noun.hindi[0]
            feminine = noun.feminine_french if language == "french" else noun.feminine_hindi
            assert genders.setdefault(word, feminine) == feminine, word


def test_every_noun_and_every_french_adjective_is_one_word() -> None:
    """A space inside would shift the words that an alignment counts."""
    for noun in LEXICON.nouns:
        for word in (*noun.english, *noun.french, *noun.hindi, *noun.oblique):
            assert len(word.split()) == 1, word
    for adjective in LEXICON.adjectives:
        for word in adjective.french:
            assert len(word.split()) == 1, word


def test_a_word_of_two_parts_of_speech_is_told_apart_by_its_place() -> None:
    """A noun follows a determiner or an adjective, a verb never does; each new pair must be thought about."""
    nouns = {word for noun in LEXICON.nouns for word in noun.english[: 1 + noun.has_plural]}
    verbs = {word for verb in LEXICON.verbs for word in (verb.english, verb.past, verb.third)}
    adjectives = {adjective.english for adjective in LEXICON.adjectives}
    adverbs = {adverb.english for adverb in LEXICON.adverbs}
    assert nouns & verbs == {"dream", "dreams", "leaves", "plant", "plants", "watch", "watches"}
    assert adjectives & verbs == {"clean", "closed", "injured", "lost", "married", "open", "surprised"}
    assert adjectives & adverbs == {"fast"}
    assert nouns.isdisjoint(adjectives | adverbs)
    assert verbs.isdisjoint(adverbs)
