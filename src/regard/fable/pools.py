"""Which words go together, computed once, so that a sentence is composed by picking from tuples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from regard.fable.dates import Calendar
from regard.fable.invented import ambiguous
from regard.fable.lexicon import TENSES, Adjective, Adverb, Lexicon, Noun, Phrase, Preposition, Tense, Verb, rows

FEELINGS = frozenset({"hungry", "thirsty", "hot", "cold"})  # I am hungry is a set phrase: j'ai faim
# Everyday verbs, the most frequent first.
EVERYDAY = (
    "love like want eat drink see know read buy watch find write look+for sleep go come work play live stay leave "
    "study learn make listen+to wait+for help take speak cook hate understand arrive travel walk wait visit open meet "
    "call like#person bring teach sing dance swim run hear close use wear sell lose return think talk laugh cry"
)
# What can be more or less so.
COMPARABLE = (
    "small big good bad old#person old#thing young beautiful long fat happy sad kind cruel brave lazy clever "
    "intelligent foolish honest rich poor strong weak proud curious jealous polite wise famous calm dangerous "
    "delicious fresh sweet bitter heavy expensive fragile precious useful dirty clean strange simple interesting "
    "boring funny dark deep warm ugly tall short#person short#thing wide thick thin high low soft hard noisy "
    "quiet bright easy difficult important healthy generous selfish friendly gentle serious stubborn careful "
    "clumsy crazy smart talented lucky popular elegant cute charming fast slow modern rare mysterious comfortable "
    "cheap"
)
LATELY = frozenset({"today", "recently", "again", "once", "twice"})  # goes with *has eaten*
Place = tuple[Preposition, tuple[Noun, ...]]


@dataclass(frozen=True, slots=True)
class Acts:
    """Verbs of a subject: without object, with one, and with a recipient, too."""

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
    """Everything that the author chooses from, as tuples."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.nouns = tuple(noun for noun in lexicon.nouns if "#" not in noun.name)
        self.humans = self.of("human")
        self.animals = self.of("animal")
        self.things = tuple(noun for noun in self.nouns if not noun.animate and "event" not in noun.classes)
        self.groups = {classes: acts(lexicon.verbs, classes) for classes in {noun.classes for noun in self.nouns}}
        self.acts = {noun: self.groups[noun.classes] for noun in self.nouns}
        self.human_acts = acts(lexicon.verbs, frozenset({"human"}))
        known = {verb.name: verb for verb in lexicon.verbs}
        self.everyday = acts((known[name] for name in EVERYDAY.split() if name in known), frozenset({"human"}))
        self.animal_acts = acts(lexicon.verbs, frozenset({"animal"}))
        self.patients = {verb: self.of(*verb.objects) for verb in lexicon.verbs}
        self.doers = {verb: self.of(*verb.subjects) for verb in lexicon.verbs}
        self.tools = {verb: tuple(lexicon.noun(name) for name in verb.tools) for verb in lexicon.verbs}
        self.undergone = {noun: undergone(lexicon.verbs, noun.classes) for noun in self.nouns}
        self.qualities = {noun: qualities(lexicon.adjectives, noun.classes) for noun in lexicon.nouns}
        self.owners = {noun: self.of(owner_class(noun)) for noun in lexicon.nouns}
        self.bearers = {
            adjective: tuple(noun for noun in self.nouns if not noun.classes.isdisjoint(adjective.classes))
            for adjective in lexicon.adjectives
            if adjective.name in COMPARABLE.split()
        }
        self.belongings = frozenset(noun for noun in lexicon.nouns if owner_class(noun) == "human")
        self.calendar = Calendar(lexicon)
        self.plainest = next(verb for verb in lexicon.verbs if not verb.particle)
        self.read_names()
        self.read_everyday()
        self.read_prepositions()
        self.read_adverbs()

    def of(self, *classes: str) -> tuple[Noun, ...]:
        """The unambiguous nouns of any of these classes."""
        return tuple(noun for noun in self.nouns if not noun.classes.isdisjoint(classes))

    def commonest(self, verbs: tuple[Verb, ...]) -> tuple[Verb, ...]:
        """Those that are no states, the everyday verbs first."""
        everyday = {*self.everyday.alone, *self.everyday.upon}
        return tuple(sorted((verb for verb in verbs if verb.imperfect is None), key=lambda verb: verb not in everyday))

    def read_names(self) -> None:
        """Names have the verbs and adjectives of people."""
        people = qualities(self.lexicon.adjectives, frozenset({"human"}))
        undergone_by_people = undergone(self.lexicon.verbs, frozenset({"human"}))
        for name in self.lexicon.names:
            self.acts[name] = self.human_acts
            self.qualities[name] = people
            self.undergone[name] = undergone_by_people

    def read_everyday(self) -> None:
        """Things that people have, things with a place, questions and commands."""
        for verb in (self.lexicon.have, self.lexicon.need, *self.lexicon.weather):
            self.patients[verb] = tuple(
                noun for noun in self.of(*verb.objects) if noun.has_plural or not noun.countable
            )
            self.tools[verb] = ()
        self.unsaid = {
            verb: tuple(noun for noun in self.of(*verb.objects) if noun.has_plural or not noun.countable)
            for verb in self.patients
        }
        self.placed = tuple(
            noun for noun in self.nouns if noun.animate or not noun.classes.isdisjoint(("thing", "food", "drink"))
        )
        jobs = {row["english"]: row["article"] == "-" for row in rows("jobs")}
        self.jobs = {
            (feminine, bare): tuple(
                noun
                for noun in self.humans
                if jobs.get(noun.name) == bare and noun.feminine_french == noun.feminine_hindi == feminine
            )
            for feminine in (False, True)
            for bare in (False, True)
        }
        self.asked: dict[str, dict[Acts, tuple[Verb, ...]]] = {
            asked: {
                group: askable(group, asked)
                for group in (self.human_acts, self.everyday, self.animal_acts, *self.groups.values())
            }
            for asked in ("what", "who", "upon", "alone")
        }
        self.commands = self.commonest(self.human_acts.alone)
        self.upon_commands = self.commonest(self.human_acts.upon)
        self.upon_people = tuple(verb for verb in self.upon_commands if "human" in verb.objects and not verb.particle)
        self.errands = tuple(
            verb for verb in (*self.human_acts.upon, *self.human_acts.giving) if verb.imperfect is None
        )

        self.moods = frozenset(
            adjective for adjective in self.lexicon.adjectives if adjective.reason and adjective.english not in FEELINGS
        )
        self.lands = tuple(place.noun for place in self.lexicon.places if place.inside.french != ("au",))
        self.landed = frozenset((*self.humans, *(noun for noun in self.nouns if noun.name == "capital")))
        self.towns = tuple(place.noun for place in self.lexicon.places if place.inside.french == ("à",))
        self.phrases: dict[int, tuple[Phrase, ...]] = {}
        for phrase in self.lexicon.phrases:
            self.phrases[phrase.size] = (*self.phrases.get(phrase.size, ()), phrase)
        self.puzzling = ambiguous(self.lexicon.verbs, self.lexicon.adjectives)

    def read_prepositions(self) -> None:
        """By their meaning: with whom, where, where to, when."""
        places: dict[str, Place] = {
            preposition.english: (preposition, self.of(*preposition.classes))
            for preposition in self.lexicon.prepositions
        }
        self.tool_preposition = places["with"][0]
        self.company = (places["with"], places["without"])
        self.locations = tuple(places[name] for name in ("in", "in", "on", "under", "near", "behind", "beside"))
        self.surroundings = tuple(places[name] for name in ("near", "behind", "beside"))
        self.directions = (places["toward"],)
        self.destinations = (places["to"],)
        self.events = tuple(places[name] for name in ("during", "after", "before"))

    def read_adverbs(self) -> None:
        kinds: dict[str, list[Adverb]] = {}
        for adverb in self.lexicon.adverbs:
            kinds.setdefault(adverb.kind, []).append(adverb)
        self.manners = tuple(kinds["manner"])
        self.place_adverbs = tuple(kinds["place"])
        self.homeward = (*kinds.get("home", ()), *self.place_adverbs)
        self.degrees = tuple(kinds["degree"])
        self.denied_degrees = tuple(adverb for adverb in self.degrees if adverb.english != "rather")
        self.times: dict[Tense, tuple[Adverb, ...]] = {tense: in_tense(kinds["time"], tense) for tense in TENSES}
        self.lately = tuple(adverb for adverb in kinds["time"] if adverb.english in LATELY)
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


def askable(acts: Acts, asked: str) -> tuple[Verb, ...]:
    """Verbs for a question: about the object (*what*, *who*), or about time, place, reason and manner, with an object
    (`upon`) or without (`alone`)."""
    if asked == "alone":
        return acts.alone
    verbs = [verb for verb in acts.upon if "#" not in verb.name]
    if asked == "what":
        return tuple(verb for verb in verbs if not verb.marker and not verb.objects <= {"human", "animal", "pet"})
    if asked == "who":
        return tuple(verb for verb in verbs if "human" in verb.objects)
    return tuple(verbs)


def undergone(verbs: Iterable[Verb], classes: frozenset[str]) -> tuple[Verb, ...]:
    """Verbs that can have it as their object: without recipient and particle."""
    fitting = (verb for verb in verbs if not verb.objects.isdisjoint(classes))
    return tuple(verb for verb in fitting if not verb.recipients and not verb.particle)


def qualities(adjectives: Iterable[Adjective], classes: frozenset[str]) -> Qualities:
    fitting = tuple(adjective for adjective in adjectives if not adjective.classes.isdisjoint(classes))
    return Qualities(
        before=tuple(adjective for adjective in fitting if adjective.before),
        after=tuple(adjective for adjective in fitting if not adjective.before),
        all=fitting,
        reasons=tuple(adjective for adjective in fitting if adjective.reason),
        words=frozenset(adjective.english for adjective in fitting),
    )


def owner_class(noun: Noun) -> str:
    """The class of its owners: the brother of the king, the king of the island, the roof of the house."""
    kinds = noun.classes
    if "kin" in kinds:
        return "human"
    if "fixture" in kinds:
        return "building"
    wild = not kinds.isdisjoint(("human", "beast", "nature", "realm"))
    return "realm" if wild or ("event" in kinds and "feast" not in kinds) else "human"
