"""The author draws sentences of exactly the length asked for, and how they are written down."""

from __future__ import annotations

from collections.abc import Callable

from regard.fable.clauses import BACKGROUND, TENSES
from regard.fable.context import ContextComposer
from regard.fable.determiners import (
    DEFINITE,
    FREE,
    GROUPS,
    ONE,
    SOME,
    beside,
    nobodys,
    possessor,
)
from regard.fable.forms import french, hindi
from regard.fable.forms.english import NUMERALS
from regard.fable.invented import invent
from regard.fable.lexicon import Noun, Tense, Verb
from regard.fable.pools import Pools
from regard.fable.syntax import (
    Adjunct,
    Asked,
    Being,
    Clause,
    Conjunction,
    Kind,
    NounPhrase,
    Person,
    Pronoun,
    Subject,
    Text,
)

SHORTEST_CLAUSE, LONGEST_CLAUSE = 4, 16
EVERYDAY, LONGEST_EVERYDAY = 0.45, 9  # the share of sentences about I and you, mostly in the present; their length
TIMES: tuple[Tense, ...] = ("present",) * 6 + ("past",) * 2 + ("future",) * 4
TRIES = 4  # at a riddle: many pairs of nouns make none
SET_PHRASES = {1: 0.75, 2: 0.6, 3: 0.5, 4: 0.35, 5: 0.15, 6: 0.05}  # their share by length
CONJUNCTIONS: dict[Tense, tuple[Conjunction, ...]] = {
    "past": ("and", "and", "but", "because", "when", "while"),
    "present": ("and", "and", "but", "because", "when", "while", "if"),
    "future": ("and", "and", "but", "while", "if"),
}
FRONTED = frozenset({"because", "when", "if"})  # may begin a sentence of two clauses
TAGS = 0.03  # the share of sentences of two to five words that say who said something
WEATHER = 0.15  # the share of short clauses after *if*, *when* and *because* that are about rain or snow
SHARED = 0.35  # the share of clauses after *and* and *but* whose subject is not said again
ASKED: tuple[Asked, ...] = ("what", "what", "who", "where", "where", "why", "why", "when", "how")
SPOKEN_TO: tuple[Person, ...] = ("you", "you", "you", "they", "he", "she", "we", "i")  # who is asked, or asked about
SELVES: tuple[Person, ...] = ("i", "he", "he", "she", "she", "you")  # who can have a job
ANYBODY: tuple[Person, ...] = ("i", "i", "he", "she", "we", "you", "they")
PARTNERS: tuple[Person, ...] = ("you", "you", "he", "she", "we", "they")  # whom a tag is about
TAGGED = 0.03  # the share of everyday sentences with *aren't you* or the like
PLACED = 0.06  # the share of everyday sentences that say where somebody is
NONE = 0.12  # the share of *have* and *there is* with *no*
TOGETHER = 0.25  # the share of commands with *let's*


class Author(ContextComposer):
    """`riddles` is the share of clauses of the right length that are made riddles, beside those that come up anyway;
    `unknown` the share of sentences with an invented word."""

    def __init__(self, pools: Pools, draw: Callable[[], float], riddles: float = 0.0, unknown: float = 0.0) -> None:
        super().__init__(pools, draw)
        self.riddles = riddles
        self.unknown = unknown

    # ── Sentences ──────────────────────────────────────────────────────────────────────────────────

    def text(self, size: int) -> Text:
        """A sentence of exactly `size` words."""
        self.used.clear()
        text = self.speaking(size) if size >= 6 and self.draw() < 0.04 else self.sentence(size)
        if self.unknown and self.draw() < self.unknown:
            for _ in range(TRIES):
                if invent(text, self.draw, self.pools.puzzling):
                    break
                text = self.sentence(size)
        self.dress(text)
        return text

    def sentence(self, size: int) -> Text:
        """A set phrase, a question, a command, or one to many clauses in a row."""
        if self.draw() < SET_PHRASES.get(size, 0.0) and size in self.pools.phrases:
            return self.set_phrase(size)
        if SHORTEST_CLAUSE - 1 <= size <= LONGEST_EVERYDAY and self.draw() < EVERYDAY:
            return self.everyday(size)
        if 2 <= size <= 5 and self.draw() < TAGS:
            return self.tag(size)
        kind = self.draw()
        text: Text
        if 3 <= size <= LONGEST_CLAUSE and kind < 0.16:
            text = self.question(size)
        elif size == 1 or (size <= 12 and kind < 0.24):
            text = self.command(size)
        elif size < SHORTEST_CLAUSE:
            text = self.short(size)
        elif kind < 0.27 and size <= LONGEST_CLAUSE:
            text = self.pointing(size)
        elif kind < 0.285 and size > SHORTEST_CLAUSE:
            text = self.statements(size - 1)
            text.opener = "yes" if self.draw() < 0.5 else "no"
        else:
            text = self.statements(size)
        return text

    def dress(self, text: Text) -> None:
        """How it is written: mostly with a capital and a full stop, sometimes with neither, rarely all in capitals."""
        text.mark = text.mark or "."
        if text.mark == "." and self.draw() < 0.03:
            text.mark = "!" if self.draw() < 0.6 else "..."
        manner = self.draw()
        text.capital = manner < 0.80 or manner > 0.98 or text.quoted
        if text.quoted or manner < 0.79:
            return
        if manner < 0.95:
            text.mark = ""
        elif 0.97 < manner < 0.98:
            text.case, text.mark = "lower", ""
        elif manner > 0.98:
            text.case = "upper"

    def statements(self, size: int) -> Text:
        """One to many clauses in a row."""
        tense = self.pick(TENSES)
        first, *others = self.split(size)
        text = self.unit(first, tense)
        for words in others:
            conjunction = self.pick(CONJUNCTIONS[tense])
            if conjunction in {"and", "but"} and self.draw() < 0.15:
                tense = self.pick(TENSES)
            unit = self.second(text, words, conjunction, tense)
            if unit.conjunctions or conjunction in text.conjunctions[-1:]:  # not two reasons in a row
                conjunction = "and"
            text.conjunctions += [conjunction, *unit.conjunctions]
            text.clauses += unit.clauses
        plain = not any(isinstance(each.subject, Pronoun) and each.subject.referent for each in text.clauses)
        if len(text.clauses) == 2 and plain and text.conjunctions[0] in FRONTED and self.draw() < 0.4:
            text.fronted = True
            text.clauses.reverse()
        return text

    def second(self, text: Text, words: int, conjunction: Conjunction, tense: Tense) -> Text:
        """What follows the conjunction; after *if* it is in the present."""
        last = text.clauses[-1]
        if conjunction in {"and", "but"} and isinstance(last, Clause) and self.draw() < SHARED:
            shared = self.sharing(last, words, tense)
            if shared is not None:
                return Text([shared])
        tense = "present" if conjunction == "if" else tense
        if conjunction in FRONTED and words < 7 and self.draw() < WEATHER:
            return Text([self.weather(words, tense)])
        if conjunction in FRONTED and self.draw() < 2 * PLACED and words < 7:
            return Text([self.being(words, tense, personal=True)])
        return self.unit(words, tense)

    def split(self, size: int) -> list[int]:
        """Lengths of clauses that, with the conjunctions between them, have `size` words."""
        count = round((size + 1) / (6.0 + 10.0 * self.draw()))
        least, most = SHORTEST_CLAUSE + 1, LONGEST_CLAUSE + 1  # each with a conjunction
        count = max(-(-(size + 1) // most), min(count, (size + 1) // least), 1)
        lengths = []
        left = size + 1
        for others in range(count - 1, -1, -1):
            low, high = max(least, left - most * others), min(most, left - least * others)
            length = low + self.up_to(high - low)
            lengths.append(length - 1)
            left -= length
        return lengths

    def unit(self, size: int, tense: Tense) -> Text:
        """A clause, or two linked by a pronoun, or one with an ambiguous word."""
        if self.riddles and 9 <= size <= 15 and self.draw() < self.riddles:
            for _ in range(TRIES):
                if (riddle := self.reference(size, tense, riddle=True)) is not None:
                    return riddle
        kind = self.draw()
        special: Text | None = None
        if kind < 0.07:
            special = Text([self.having(size, tense)])
        elif kind < 0.17:
            special = Text([self.being(size, tense)])
        elif kind < 0.5 and 9 <= size <= 15:
            special = self.reference(size, tense)
        elif 0.5 <= kind < 0.64:
            special = self.ambiguous(size, tense)
        elif 0.64 <= kind < 0.7:
            special = self.twofold(size, tense)
        elif 0.7 <= kind < 0.72:
            special = Text([self.weather(size, tense)])
        return special or Text([self.clause(size, tense)])

    def twofold(self, size: int, tense: Tense) -> Text | None:
        """The cat ate the mouse and slept."""
        least = 1 + (tense == "future")  # will sleep
        if size < 3 + 2 * least:
            return None
        words = least + self.up_to(size - 3 - 2 * least)
        first = self.clause(size - 1 - words, tense)
        second = self.sharing(first, words, tense)
        return None if second is None else Text([first, second], ["and"])

    def weather(self, size: int, tense: Tense) -> Clause:
        """It rained in Paris yesterday."""
        verb = self.pick(self.pools.lexicon.weather)
        clause = Clause(Pronoun("it"), verb, tense)
        self.going_on(clause, verb, size - 1, clitic=tense == "present")
        self.complete(clause, size - 1 - self.least(clause), FREE)
        return clause

    # ── Everyday sentences ─────────────────────────────────────────────────────────────────────────

    def set_phrase(self, size: int) -> Text:
        """A greeting or an answer, perhaps with a name or a number that is drawn."""
        phrase = self.pick(self.pools.phrases[size])
        match phrase.slot:
            case "NAME":
                name = self.pick(self.pools.lexicon.names)
                phrase = phrase.filled(name.name, name.french[0], name.hindi[0])
            case "PLACE":
                town = self.pick(self.pools.towns)
                phrase = phrase.filled(town.name, town.french[0], town.hindi[0])
            case "WEEKDAY":
                row = self.pick(self.pools.lexicon.calendar["weekday"])
                phrase = phrase.filled(row["english"], row["french"], row["hindi"])
            case "HOUR" | "NUMBER" as slot:
                words, most = (NUMERALS[:11], 10) if slot == "HOUR" else (NUMERALS, 88)
                word = self.pick(words) if self.draw() < 0.5 else str(2 + self.up_to(most))
                phrase = phrase.filled(word, french.NUMBERS.get(word, word), hindi.NUMBERS.get(word, word))
        return Text([], phrase=phrase, mark=phrase.mark)

    def everyday(self, size: int) -> Text:
        """I love the sea, do you know Mary, what are you eating, we have a dog, I want to sleep, will you come."""
        tense = self.pick(TIMES)
        if (special := self.draw()) < PLACED + TAGGED:
            return self.placed(size, tense) if special < PLACED or size < 5 else self.tagged(size, tense)
        kind = self.draw() if size >= SHORTEST_CLAUSE else 1.0
        if kind < 0.12 and size > SHORTEST_CLAUSE:
            return Text([self.having(size, tense, question=True)], mark="?")
        if kind < 0.2:
            return Text([self.where(size, tense)], mark="?")
        if kind < 0.3 or (size < SHORTEST_CLAUSE and self.draw() < 0.1):
            return Text([self.having(size, tense)])
        if kind >= 0.6:
            return Text([self.personal(size, tense, question=False)])
        asked: Asked = self.pick(ASKED) if kind < 0.43 else ""
        person = self.pick(SPOKEN_TO)
        return Text([self.personal(size - bool(asked), tense, question=True, asked=asked, person=person)], mark="?")

    def placed(self, size: int, tense: Tense) -> Text:
        """I'm here, are they in the garden, we will be in Paris."""
        question = self.draw() < 0.3
        return Text([self.being(size, tense, question=question, personal=True)], mark="?" if question else "")

    def tagged(self, size: int, tense: Tense) -> Text:
        """You are tired, aren't you? He didn't sleep, did he?"""
        clause = self.personal(size - 2, tense, question=False, person=self.pick(PARTNERS))
        return Text([clause], tag=True, mark="?")

    def short(self, size: int) -> Text:
        """Two or three words: I slept, Mary laughed, I'm tired, the cat slept."""
        tense: Tense = "past" if self.draw() < 0.6 else "present"
        if size == 2 and self.draw() < 0.3:
            person, qualities = self.pick(SELVES), self.pools.qualities[self.pools.humans[0]].all
            adjective = self.pick([quality for quality in qualities if quality in self.pools.moods])
            return Text([Clause(Pronoun(person), adjective, "present", contracted=True)])
        return Text([self.clause(size, tense)])

    def question(self, size: int) -> Text:
        """Yes or no; who, what, where, when, why or how; where something is."""
        tense = self.pick(TENSES) if size > 5 else self.pick(TENSES[:15])
        kind = self.draw()
        clause: Clause | Being
        if kind < 0.15:
            clause = self.where(size, tense)
        elif kind < 0.3:
            clause = self.personal(size, tense, question=False, person="who")
        elif kind < 0.6 and size >= 6:
            clause = self.clause(size, tense, question=True, asked=self.pick(ASKED))
        elif kind < 0.7 and size >= 5:
            clause = self.being(size, tense, question=True)
        elif kind < 0.76 and size >= 6:
            clause = self.having(size, tense, question=True)
        elif size >= 4:
            clause = self.clause(size, tense, question=True)
        else:
            clause = self.where(size, tense)
        return Text([clause], mark="?")

    def command(self, size: int) -> Text:
        """Open the door! Please don't run. Let's go home."""
        together = size >= 2 and self.draw() < TOGETHER
        please = not together and size >= 3 and self.draw() < 0.3
        denied = not together and size - please >= 3 and self.draw() < 0.25
        contracted = denied and self.draw() < 0.5
        room = size - please - together - 2 * denied + contracted
        verb = self.fresh(self.pools.errands if room >= 6 else self.pools.upon_commands)
        if room == 2 and self.draw() < 0.8:  # help me
            verb = self.fresh(self.pools.upon_people)
        elif room < 3 + bool(verb.particle) or self.draw() < 0.15:
            verb = self.fresh(self.pools.commands)
        subject = Pronoun("we" if together else "you")
        clause = Clause(subject, verb, "present", command=True, please=please, contracted=contracted)
        clause.pleading = please and self.draw() < 0.4
        clause.negation = "not" if denied else ""
        least = 1 + bool(verb.particle) + 2 * bool(verb.objects) + 3 * bool(verb.recipients)
        self.complete(clause, room - least, beside(possessor(subject), DEFINITE))
        return Text([clause], mark="!" if self.draw() < 0.6 else ".")

    def somebody(self, size: int, tense: Tense) -> Subject:
        """A subject of so many words: a pronoun or a name, or a noun phrase about a person."""
        if size == 1:
            return self.name() if self.draw() < 0.4 else Pronoun(self.pick(SELVES))
        return self.noun_phrase(self.fresh(self.pools.humans), size, FREE, BACKGROUND[tense])

    def having(self, size: int, tense: Tense, *, question: bool = False) -> Clause:
        """I have a cat, the king doesn't need two houses, I need water."""
        lexicon = self.pools.lexicon
        verb = lexicon.need if size < SHORTEST_CLAUSE or self.draw() < 0.3 else lexicon.have
        clause = Clause(None, verb, tense, question=question)
        if size >= 5 and not question and self.draw() < 0.2:
            clause.negation, clause.contracted = "not", size == 5 or self.draw() < 0.5
        elif size < 5:
            clause.tense = "past" if tense == "past" else "present"
        room = size - self.least(clause)
        words = 1 if room < 2 or self.draw() < 0.5 else 2 + self.up_to(min(2, room - 2))
        clause.subject = self.somebody(words, tense) if self.draw() < 0.5 or words > 1 else Pronoun(self.pick(ANYBODY))
        self.furnish(clause, room - words)
        return clause

    def furnish(self, clause: Clause, spare: int) -> None:
        """The object of *have* or *need*, and perhaps a place."""
        assert isinstance(clause.predicate, Verb), "to have is a verb"
        noun = self.fresh(self.pools.patients[clause.predicate])
        assert clause.subject is not None, "a clause with have has a subject"
        mine = beside(possessor(clause.subject), DEFINITE if clause.negation else FREE)
        determiners = SOME if self.draw() < 0.8 else nobodys(mine)
        if spare < 0 or (clause.predicate is self.pools.lexicon.need and self.draw() < 0.3):
            clause.object = self.bare(clause.predicate)
            self.adverbials(clause, spare + 1, nobodys(mine))
            return
        extra = self.up_to(min(2, spare))
        clause.object = self.simple(noun, 2 + extra, determiners)
        self.ask_for_any(clause, clause.object)
        if clause.negation and clause.object.determiner not in {"a", "any", "the", "this"}:
            clause.object.determiner = "the"
        if not (clause.negation or clause.question) and clause.predicate.name == "have" and self.draw() < NONE:
            clause.negation = clause.object.determiner = "no"
        self.adverbials(clause, spare - extra, nobodys(mine))

    def where(self, size: int, tense: Tense) -> Being:
        """Where is Mary? Where was the key of the old house? Who is that man?"""
        tense = "past" if tense == "past" else "present"
        room = size - 2
        human = self.draw() < 0.4
        kind: Kind = "who" if (human or room == 1) and self.draw() < 0.4 else "where"
        nouns = self.pools.humans if human else self.pools.placed
        subject: Subject
        if room == 1:
            subject = self.name() if self.draw() < 0.5 else Pronoun(self.pick(ANYBODY))
        else:
            subject = self.noun_phrase(self.fresh(nouns), room, DEFINITE, "past")
        return Being(kind, subject, tense=tense)

    def pointing(self, size: int) -> Text:
        """This is a house; those are my books."""
        being = Being("this", that=self.draw() < 0.5)
        being.question = size >= 4 and self.draw() < 0.15
        room = size - 2
        if not being.question and room >= 3 and self.draw() < 0.2:
            being.negation, being.contracted = "not", self.draw() < 0.5
            room -= not being.contracted
        nouns = [self.pick(self.pools.nouns) for _ in range(4)]
        noun = self.fresh([noun for noun in nouns if noun.countable] or self.pools.humans)
        being.complement = self.noun_phrase(noun, room, POINTED)
        if being.that and not being.negation and not being.complement.plural and not being.question:
            being.contracted = False
        return Text([being], mark="?" if being.question else "")

    def being(self, size: int, tense: Tense, *, question: bool = False, personal: bool = False) -> Being:
        """He is a doctor, the cat is in the garden, there is a cat; `personal`: I'm here, we are in Paris."""
        kind = 0.5 if personal else self.draw()
        tense = "past" if size < 5 and tense == "future" else tense
        if kind < 0.3:
            return self.job(size, tense, question=question)
        being = Being("place" if kind < 0.65 else "there", tense=tense, question=question)
        room = size - 1 - (tense == "future") - (being.kind == "there")
        if room >= (4 if being.kind == "place" and not personal else 3) and not question and self.draw() < 0.15:
            being.negation = "not"
            room -= 1
        if being.kind == "there" and not (question or being.negation) and self.draw() < NONE:
            being.negation = "no"
        if personal or (being.kind == "place" and self.draw() < 0.2):
            being.subject = Pronoun(self.pick(ANYBODY))
        short = tense != "past" and isinstance(being.subject, Pronoun)
        if not question and (short or being.negation == "not" or (being.kind == "there" and tense == "present")):
            being.contracted = self.draw() < 0.5
            room += being.contracted
        self.place(being, room)
        return being

    def place(self, being: Being, room: int) -> None:
        """Divide the words between what is somewhere and the place."""
        there = being.kind == "there"
        if isinstance(being.subject, Pronoun):
            sizes = [room - 1]
        else:
            sizes = [size for size in (2, 3, 3, 4, 4, 5, 6) if room - size >= (2 if there or size > 2 else 1)]
        adjunct = 0 if there and (not sizes or self.draw() < 0.3) else self.pick(sizes)
        words = room - adjunct
        determiners = nobodys(FREE)
        if adjunct == 1:
            being.place = self.common(self.pools.place_adverbs)
        elif adjunct == 2:
            town = self.fresh(self.pools.lexicon.places)
            being.adjuncts = (Adjunct(town.inside, NounPhrase(town.noun, "")),)
        elif adjunct:
            being.adjuncts = (self.adjunct(self.pick(self.pools.locations), adjunct, determiners),)
        noun = self.fresh(self.pools.placed)
        if there:
            being.complement = self.indefinite(noun, words)
            self.ask_for_any(being, being.complement)
            if being.negation == "no":
                being.complement.determiner = "no"
        elif isinstance(being.subject, Pronoun):
            return
        elif words == 1:
            being.subject = self.name()
        else:
            definite = DEFINITE if being.negation else FREE
            being.subject = self.noun_phrase(noun, words, definite, BACKGROUND[being.tense])

    def ask_for_any(self, clause: Clause | Being, thing: NounPhrase) -> None:
        """Do you have any cats? There isn't any milk."""
        if thing.determiner == "some" and (clause.negation == "not" or (clause.question and self.draw() < 0.8)):
            thing.determiner = "any"

    def indefinite(self, noun: Noun, words: int) -> NounPhrase:
        """a cat; two cats of the king, some water"""
        if words <= 4:
            return self.simple(noun, words, SOME)
        return self.owned(noun, 2 + self.up_to(min(2, words - 5)), words, SOME)

    def job(self, size: int, tense: Tense, *, question: bool) -> Being:
        """He is a doctor, the young woman will be a queen, he was a hero."""
        being = Being("job" if self.draw() < 0.7 else "noun", tense=tense, question=question)
        room = size - 3 - (tense == "future")
        if room >= 2 and not question and self.draw() < 0.2:
            being.negation = "not"
            room -= 1
        clitic = tense != "past" and not being.negation and room == 0
        if not question and (clitic or (being.negation and self.draw() < 0.5)):
            being.contracted = True
            room += 1
        subject = self.somebody(room, tense) if room else Pronoun(self.pick(SELVES))
        while isinstance(subject, NounPhrase) and subject.noun.name in GROUPS:
            subject = self.somebody(room, tense)
        being.subject = subject
        if isinstance(subject, NounPhrase):
            subject.plural = False
            subject.determiner = subject.determiner if subject.determiner in ONE else "the"
            feminine = subject.noun.feminine_french
        else:
            feminine = isinstance(subject, Pronoun) and subject.word == "she"
        being.complement = NounPhrase(self.fresh(self.pools.jobs[feminine, being.kind == "job"]), "a")
        return being

    def tag(self, size: int) -> Text:
        """What stands beside a quotation: said the king, she asked."""
        verbs = self.pools.lexicon.speech
        clause = Clause(self.somebody(size - 1, "past"), self.pick((*verbs, *verbs[:1])))
        clause.inverted = isinstance(clause.subject, NounPhrase) and self.draw() < 0.7
        return Text([clause])

    def speaking(self, size: int) -> Text:
        """The king said, "The cat ate the mouse." Or: The king said that the cat ate the mouse."""
        reported = size >= 7 and self.draw() < 0.4
        words = 1 + self.up_to(min(2, size - 5 - 2 * reported))
        subject: Subject
        if words == 1:
            subject = self.name() if self.draw() < 0.5 else Pronoun(self.pick(ANYBODY))
        else:
            subject = self.simple(self.fresh(self.pools.humans), words, FREE)
        if reported:
            text = self.statements(size - words - 2)
            text.speech, text.reported = (subject, "say"), True
            return text
        text = self.sentence(size - words - 1)
        text.speech = subject, "ask" if text.mark == "?" else "answer" if text.opener else "say"
        return text


POINTED = nobodys(FREE)._replace(
    singular=("a",) * 5 + ("the", "my", "your", "his", "her", "our", "their"),
    plural=("my", "your", "his", "her", "our", "their", "the", "the"),
)
