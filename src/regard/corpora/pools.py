"""Which words go together, worked out once so that composing a sentence is a matter of picking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from regard.corpora.lexicon import TENSES, Adjective, Adverb, Lexicon, Noun, Preposition, Tense, Verb

Place = tuple[Preposition, tuple[Noun, ...]]


@dataclass(frozen=True, slots=True)
class Acts:
    """What somebody can do: alone, to something, and with something to somebody."""

    alone: tuple[Verb, ...]
    upon: tuple[Verb, ...]
    giving: tuple[Verb, ...]


@dataclass(frozen=True, slots=True)
class Qualities:
    """The adjectives of a noun: by their side in French, all, those that give a reason, and their English."""

    before: tuple[Adjective, ...]
    after: tuple[Adjective, ...]
    all: tuple[Adjective, ...]
    reasons: tuple[Adjective, ...]
    words: frozenset[str]


class Pools:
    """Every choice the author can face, as a tuple to pick from."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.nouns = tuple(noun for noun in lexicon.nouns if "#" not in noun.name)
        self.humans = self.of("human")
        self.animals = self.of("animal")
        self.things = tuple(noun for noun in self.nouns if not noun.animate and "event" not in noun.classes)
        self.acts = {noun: acts(lexicon.verbs, noun.classes) for noun in self.nouns}
        self.human_acts = acts(lexicon.verbs, frozenset({"human"}))
        self.animal_acts = acts(lexicon.verbs, frozenset({"animal"}))
        self.patients = {verb: self.of(*verb.objects) for verb in lexicon.verbs}
        self.doers = {verb: self.of(*verb.subjects) for verb in lexicon.verbs}
        self.tools = {verb: tuple(lexicon.noun(name) for name in verb.tools) for verb in lexicon.verbs}
        self.undergone = {noun: undergone(lexicon.verbs, noun) for noun in self.nouns}
        self.qualities = {noun: qualities(lexicon.adjectives, noun) for noun in lexicon.nouns}
        self.owners = {noun: self.of(owner_class(noun)) for noun in lexicon.nouns}
        self.read_prepositions()
        self.read_adverbs()

    def of(self, *classes: str) -> tuple[Noun, ...]:
        """The unambiguous nouns of any of these classes."""
        return tuple(noun for noun in self.nouns if not noun.classes.isdisjoint(classes))

    def read_prepositions(self) -> None:
        """By what they tell: with whom, where, whither, when."""
        places: dict[str, Place] = {
            preposition.english: (preposition, self.of(*preposition.classes))
            for preposition in self.lexicon.prepositions
        }
        self.tool_preposition = places["with"][0]
        self.company = (places["with"], places["without"])
        self.locations = tuple(places[name] for name in ("in", "in", "on", "under", "near", "behind", "beside"))
        self.surroundings = tuple(places[name] for name in ("near", "behind", "beside"))
        self.directions = (places["toward"],)
        self.events = tuple(places[name] for name in ("during", "after", "before"))

    def read_adverbs(self) -> None:
        kinds: dict[str, list[Adverb]] = {}
        for adverb in self.lexicon.adverbs:
            kinds.setdefault(adverb.kind, []).append(adverb)
        self.manners = tuple(kinds["manner"])
        self.place_adverbs = tuple(kinds["place"])
        self.degrees = tuple(kinds["degree"])
        self.denied_degrees = tuple(adverb for adverb in self.degrees if adverb.english != "rather")
        self.times: dict[Tense, tuple[Adverb, ...]] = {tense: in_tense(kinds["time"], tense) for tense in TENSES}
        self.frequencies: dict[Tense, tuple[Adverb, ...]] = {
            tense: in_tense(kinds["frequency"], tense) for tense in TENSES
        }


def in_tense(adverbs: Iterable[Adverb], tense: Tense) -> tuple[Adverb, ...]:
    return tuple(adverb for adverb in adverbs if tense in adverb.tenses)


def acts(verbs: Iterable[Verb], classes: frozenset[str]) -> Acts:
    able = [verb for verb in verbs if not verb.subjects.isdisjoint(classes)]
    return Acts(
        alone=tuple(verb for verb in able if not verb.objects),
        upon=tuple(verb for verb in able if verb.objects and not verb.recipients),
        giving=tuple(verb for verb in able if verb.recipients),
    )


def undergone(verbs: Iterable[Verb], noun: Noun) -> tuple[Verb, ...]:
    """What can be done to it in one word: not giving, which asks for a recipient, nor looking *for* it."""
    fitting = (verb for verb in verbs if not verb.objects.isdisjoint(noun.classes))
    return tuple(verb for verb in fitting if not verb.recipients and not verb.particle)


def qualities(adjectives: Iterable[Adjective], noun: Noun) -> Qualities:
    fitting = tuple(adjective for adjective in adjectives if not adjective.classes.isdisjoint(noun.classes))
    return Qualities(
        before=tuple(adjective for adjective in fitting if adjective.before),
        after=tuple(adjective for adjective in fitting if not adjective.before),
        all=fitting,
        reasons=tuple(adjective for adjective in fitting if adjective.reason),
        words=frozenset(adjective.english for adjective in fitting),
    )


def owner_class(noun: Noun) -> str:
    """Whose it is: the brother of the king, the king of the island, the roof of the house."""
    kinds = noun.classes
    if "kin" in kinds:
        return "human"
    if "fixture" in kinds:
        return "building"
    wild = not kinds.isdisjoint(("human", "beast", "nature", "realm"))
    return "realm" if wild or ("event" in kinds and "feast" not in kinds) else "human"
