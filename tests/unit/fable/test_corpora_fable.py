"""The stream: lengths, splits, seeds, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from random import Random

import pytest

from regard.errors import RegardError, SettingsError
from regard.fable import ParallelSentence, capacity, generate, split_of, typography
from regard.fable.author import Author
from regard.fable.corpus import is_set, noun_phrases, pools, set_phrases
from regard.fable.lexicon import Lexicon, Noun, load
from regard.fable.phrases import french, hindi
from regard.fable.pools import Pools
from regard.fable.sentence import draft
from regard.fable.syntax import Clause, NounPhrase, Pronoun
from regard.fable.typography import normal
from regard.settings import load_settings
from regard.tasks.corpus import materials
from regard.text.words import JOINER, split_words


@pytest.fixture(scope="module")
def sample() -> list[ParallelSentence]:
    return list(generate("fr", count=20_000, seed=5, minimum_words=5, maximum_words=20))


def test_almost_no_sentence_comes_twice(sample: list[ParallelSentence]) -> None:
    distinct = len({sentence.source for sentence in sample})
    assert 1 - distinct / len(sample) < 0.05


def words(sentence: ParallelSentence) -> list[str]:
    """The target's, between spaces: no-break spaces divide nothing."""
    return sentence.target.split(" ")


def test_lengths_are_spread_evenly(sample: list[ParallelSentence]) -> None:
    lengths = Counter(len(sentence.source.split()) for sentence in sample)
    assert sorted(lengths) == list(range(5, 21))
    assert min(lengths.values()) > 0.8 * len(sample) / 16


def test_a_sentence_has_the_length_that_was_drawn() -> None:
    chance = Random(2)
    author = Author(pools(), chance.random, 0.1, 0.1)
    for _ in range(12_000):
        size = 1 + int(10 * chance.random())
        assert len(draft(author.text(size)).source.split()) == size


def test_the_shortest_sentences_are_rarer() -> None:
    lengths = Counter(len(one.source.split()) for one in generate("fr", count=8_000, maximum_words=8))
    assert sorted(lengths) == list(range(1, 9))
    assert lengths[1] < lengths[2] < lengths[3] < lengths[5]
    assert lengths[1] < 0.05 * lengths.total()


def forms(texts: Iterable[str]) -> set[str]:
    """The different words of texts, without numbers in digits."""
    pieces = (piece.removeprefix(JOINER) for text in texts for piece in split_words(text.lower()))
    return {piece for piece in pieces if not piece[0].isdigit()}


def test_the_vocabularies_stay_small(sample: list[ParallelSentence]) -> None:
    assert 2_000 < len(forms(sentence.source for sentence in sample)) < 3_000
    assert len(forms(sentence.target for sentence in sample)) < 5_500
    assert len(forms(sentence.target for sentence in generate("hi", count=5_000, seed=5))) < 4_500


def test_every_sentiment_is_common(sample: list[ParallelSentence]) -> None:
    counts = Counter(sentence.sentiment for sentence in sample)
    assert min(counts["negative"], counts["neutral"], counts["positive"]) > 0.2 * len(sample)


def test_what_it_stands_for_changes_its_gender(sample: list[ParallelSentence]) -> None:
    """Pronouns with an antecedent are common, and both genders are."""
    pronouns: Counter[str] = Counter()
    for sentence in sample:
        target_words = words(sentence)
        for pronoun, _ in sentence.referents:
            assert sentence.source.lower().split()[pronoun] in {"it", "they"}
            (target,) = {there for here, there in sentence.alignment if here == pronoun}
            pronouns[target_words[target].lower()] += 1
    assert pronouns["qu'il"] > 500
    assert pronouns["qu'elle"] > 300
    assert pronouns["qu'elles"] > 50


def test_constructions_have_their_share(sample: list[ParallelSentence]) -> None:
    sources = [f" {normal(sentence.source)} " for sentence in sample]
    for word, least in {
        " that ": 2_000,
        " not ": 1_500,
        " will ": 2_500,
        " bank ": 30,
        " never ": 100,
        " you ": 700,
        " we ": 700,
        " have ": 300,
        " has ": 100,
        " there is | there are | there was ": 200,
        " want to | wants to | wanted to ": 100,
        " can ": 60,
        " must ": 60,
        " who ": 200,
        " what ": 100,
        " where ": 300,
        " why ": 100,
        " please ": 100,
        " do you | do they | do we ": 100,
        " i love | you love | we love | they love ": 30,
        " need | needs ": 100,
        " is going | are going | am going | is eating | are eating | am eating ": 30,
        " said ": 200,
        "'s ": 500,
        " my | your | his | her | our | their ": 3_000,
        " me | him | them ": 300,
        " gave me | gave him | gave her | told me | told him | gave them ": 5,
        " was eating | was reading | were going | was sleeping | was running ": 5,
        " has eaten | have seen | has never | have never | has seen ": 30,
        " than ": 100,
        " if ": 200,
        " could | should ": 60,
        " i will | we will | you will ": 150,
        " sleep | sleeps ": 100,
        " can sleep | want to sleep | must sleep | going to sleep | could sleep ": 10,
        " would like ": 15,
        " going to ": 200,
        " let's ": 60,
        " have no | has no | had no | are no | is no ": 60,
        " any ": 25,
        " those ": 100,
        " aren't you | are not you | did not he | do not they | will not we ": 10,
        " on monday | in may | last week | at five o'clock ": 20,
    }.items():
        assert sum(any(one in source for one in word.split("|")) for source in sources) > least, word
    assert sum("est-ce qu" in sentence.target.lower() for sentence in sample) > 800


def test_most_is_written_with_care_and_some_without(sample: list[ParallelSentence]) -> None:
    """Capital and mark on one side are capital and mark on the other."""
    kinds: Counter[str] = Counter()
    for sentence in sample:
        marked = sentence.source[-1] in '.?!"'
        assert marked == (sentence.target[-1] in ".?!»"), sentence
        letters = [letter for letter in sentence.source if letter.isalpha()]
        if len(letters) > 1 and all(letter.isupper() for letter in letters):
            assert sentence.target == sentence.target.upper()
            kinds["capitals"] += 1
        elif sentence.source[0].islower():
            assert sentence.target[0].islower(), sentence
            kinds["careless" if not marked else "lower"] += 1
        else:
            kinds["careful" if marked else "title"] += 1
    shares = {kind: count / len(sample) for kind, count in kinds.items()}
    assert shares["careful"] > 0.75
    assert 0.12 < shares["careless"] < 0.2
    assert 0.01 < shares["capitals"] < 0.03


def test_contractions_and_full_forms_are_both_common(sample: list[ParallelSentence]) -> None:
    text = " ".join(sentence.source for sentence in sample).lower()
    for short, full in (("didn't", "did not"), ("won't", "will not"), ("i'll", "i will"), ("isn't", "is not")):
        assert text.count(f" {short} ") > 20, short
        assert text.count(f" {full} ") > 20, full


def test_a_sentence_and_its_careless_twin_are_in_the_same_split() -> None:
    careful = "I don't know the king, but he'll come!"
    assert normal(careful) == "i do not know the king but he will come"
    assert split_of(careful) == split_of("i do not know the king but he will come")
    assert normal("Mary's cat can't sleep; it's tired...") == "mary's cat can not sleep; it is tired"
    assert normal("WE CANNOT GO") == "we can not go"


def test_set_phrases_are_for_learning() -> None:
    """None is held out: nobody can guess them. With a name in it, one can be."""
    assert {split_of(text) for text in ("Good morning.", "thank you very much", "You're welcome.")} == {"train"}
    assert {split_of(f"My name is {name.name}.") for name in load().names} == {"train", "valid", "test"}
    for split in ("valid", "test"):
        for sentence in generate("fr", count=100, split=split, maximum_words=3):
            assert normal(sentence.source) not in set_phrases()


def test_nothing_is_composed_that_reads_like_a_set_phrase() -> None:
    assert is_set(("I", "live", "in", "Rome", "."), ("PRON", "VERB", "ADP", "PROPN", "PUNCT"))
    assert not is_set(("I", "slept", "in", "Rome", "."), ("PRON", "VERB", "ADP", "PROPN", "PUNCT"))


def test_invented_words_are_copied_and_hardly_ever_repeated() -> None:
    known = {word.strip('.,!?"').lower() for one in generate("fr", count=20_000) for word in one.source.split()}
    invented: Counter[str] = Counter()
    sentences = list(generate("hi", count=600, unknown=1.0))
    for sentence in sentences:
        new = {token for token in sentence.tokens if token.lower() not in known and token[0].isalpha()}
        shown = {token for token in new if token in sentence.target}
        invented.update(shown)
    assert invented.total() > 0.9 * len(sentences)
    assert invented.most_common(1)[0][1] <= 2
    assert list(generate("fr", count=50)) == list(generate("fr", count=50, unknown=0.0))
    with pytest.raises(SettingsError, match=r"unknown = -0\.1: is a share of sentences; 0 to 1 would be right"):
        generate("fr", count=1, unknown=-0.1)


def test_what_is_invented_in_the_settings_reaches_the_corpus() -> None:
    settings = load_settings("transformer-tiny", "data.corpus='fable:fr'", "data.pairs=50", "data.unknown=0.7")
    rows = [row for _, row in materials(settings)[0].rows(("source", "words", "tags"))]
    expected = list(generate("fr", count=50, unknown=0.7))
    assert rows == [(one.source, " ".join(one.tokens), " ".join(one.tags)) for one in expected]


@pytest.mark.parametrize(
    ("subject", "verb", "thing"),
    [
        ("cat", "eat#prey", "mouse"),
        ("bear", "eat", "honey"),
        ("bear", "eat", "pear"),
        ("man", "see", "astronomer"),
    ],
)
def test_the_author_may_draw_the_sentences_of_the_mission(subject: str, verb: str, thing: str) -> None:
    words = load()
    assert words.noun(subject) in pools().doers[words.verb(verb)]
    assert words.noun(thing) in pools().patients[words.verb(verb)]


def test_the_author_may_see_with_a_telescope() -> None:
    see = load().verb("see")
    assert pools().tools[see] == (load().noun("telescope"),)


def test_only_the_bear_is_hungry_and_only_the_honey_delicious() -> None:
    bear, honey = (pools().qualities[load().noun(name)] for name in ("bear", "honey"))
    assert "hungry" in bear.words - honey.words
    assert "delicious" in honey.words - bear.words


def test_millions_of_sentences_exist() -> None:
    """Counted, not guessed: subjects times verbs times objects, all different in English."""
    assert capacity(5) > 10_000_000
    assert capacity(6) > 1_000_000_000
    assert capacity(80) >= capacity(9) > capacity(6)


def test_the_count_of_short_sentences_is_right_for_one_verb() -> None:
    """`capacity` against sentences written out: all that *sing* can say in five words."""
    sing = load().verb("sing")
    small = [noun for noun in pools().doers[sing] if noun.name in {"king", "crow", "mother"}]
    singular, plural = (
        ("the", "a", "this", "my", "every"),
        ("the", "these", "my", "two", "three", "some", "several"),
    )
    subjects = {
        f"{determiner} {noun.english[number]}"
        for noun in small
        for number, determiners in enumerate((singular, plural))
        for determiner in determiners
        if noun.has_plural or not number
    }
    assert sum(noun_phrases(noun, 2) for noun in small) == len(subjects)


def test_a_seed_gives_the_same_sentences_in_every_process() -> None:
    program = (
        "import sys\n"
        "from regard.fable import generate\n"
        "from hashlib import blake2b\n"
        "assert not {'torch', 'numpy'} & sys.modules.keys()\n"
        "text = '|'.join(s.source + s.target for s in generate('hi', count=50, seed=3))\n"
        "print(blake2b(text.encode(), digest_size=8).hexdigest())"
    )
    here = "|".join(sentence.source + sentence.target for sentence in generate("hi", count=50, seed=3))
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        assert ran.stdout.strip() == blake2b(here.encode(), digest_size=8).hexdigest()


def test_a_seed_gives_the_same_sentences_for_ever() -> None:
    """A change of grammar or tables may change this line; a change of machine or Python may not."""
    first = next(generate("fr", count=1, seed=1))
    assert first.source == "Where is my spy?"
    assert first.target == "Où est mon espion\u202f?"


def test_sentence_number_n_does_not_depend_on_those_before_it() -> None:
    whole = list(generate("fr", count=30, seed=2))
    assert list(generate("fr", count=10, seed=2, start=20)) == whole[20:]


def test_both_languages_translate_the_same_english() -> None:
    into_french, into_hindi = (list(generate(language, count=50, split="test")) for language in ("fr", "hi"))
    for one, other in zip(into_french, into_hindi, strict=True):
        assert (one.source, one.tags, one.sentiment, one.referents) == (
            other.source,
            other.tags,
            other.sentiment,
            other.referents,
        )


def test_seeds_differ() -> None:
    one, other = ({sentence.source for sentence in generate("fr", count=200, seed=seed)} for seed in (1, 2))
    assert len(one & other) < 5


def test_no_sentence_is_in_two_splits() -> None:
    """Short sentences, other seeds: the same English can come up again, and then in the same split."""
    for split in ("train", "valid", "test"):
        for sentence in generate("fr", count=100, split=split, seed=9, maximum_words=6):
            assert split_of(sentence.source) == split


def test_the_split_of_a_sentence_is_fixed_for_ever() -> None:
    assert split_of("the black cat ate the mouse") == "train"
    assert split_of("the king slept") == "train"


def test_the_stream_is_lazy() -> None:
    endless = generate("fr", count=10_000_000)
    assert len(list(islice(endless, 3))) == 3


# ── One English sentence, one translation ───────────────────────────────────────────────────────────


def few_words() -> Lexicon:
    """So few words that the same English is drawn again and again by different ways."""
    lexicon = load()
    nouns = "man woman king queen player friend owl bear mouse honey pear chair house bridge war village"
    nouns += " bat#animal bat#sport"
    verbs = "eat eat#prey see push love sleep fall run give look+for help"
    adjectives = "small good bad old#person old#thing black tired hungry sad delicious cold dirty"
    adjectives += " strange boring beautiful wet"
    adverbs = "slowly here today yesterday tomorrow often very rather"
    bats = [context for context in lexicon.contexts if context.word.english[0] == "bat"]
    return replace(
        lexicon,
        nouns=tuple(noun for noun in lexicon.nouns if noun.name in nouns.split()),
        verbs=tuple(replace(verb, tools=()) for verb in lexicon.verbs if verb.name in verbs.split()),
        adjectives=tuple(entry for entry in lexicon.adjectives if entry.name in adjectives.split()),
        adverbs=tuple(adverb for adverb in lexicon.adverbs if adverb.english in adverbs.split()),
        contexts=tuple(replace(bat, subjects=shared(bat.subjects, nouns)) for bat in bats),
    )


def shared(nouns: tuple[Noun, ...], names: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns if noun.name in names.split())


@pytest.mark.parametrize(
    ("words", "count", "longest", "repeated"),
    [(load(), 30_000, 6, 5_000), (few_words(), 25_000, 8, 8_000)],
    ids=["all words", "few words"],
)
def test_the_same_english_always_has_the_same_translation(
    words: Lexicon, count: int, longest: int, repeated: int
) -> None:
    chance = Random(4)
    author = Author(Pools(words), chance.random, 0.1, 0.1)
    known: dict[str, tuple[str, ...]] = {}
    for _ in range(count):
        text = author.text(1 + int(chance.random() * longest))
        page = draft(text)
        if text.phrase is None and is_set(page.tokens, page.tags):
            continue
        lines = (("fr", french.write(text)), ("hi", hindi.write(text)))
        targets = tuple(typography.target(line, text, language) for language, line in lines)
        assert known.setdefault(page.source, targets) == targets, page.source
    assert count - len(known) > repeated  # the test has seen many sentences again


# ── Refusals ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"language": "de"}, "language = 'de': fable has no such target language; known: fr, hi"),
        ({"split": "training"}, "split = 'training': fable has no such split; did you mean 'train'?"),
        ({"count": -1}, "count = -1: must not be negative; 0 or more would be right"),
        ({"seed": -4}, "seed = -4: must not be negative; 0 or more would be right"),
        ({"start": -4}, "start = -4: must not be negative; 0 or more would be right"),
        (
            {"minimum_words": 12, "maximum_words": 8},
            "minimum_words = 12: is more than maximum_words = 8; at most 8 would be right",
        ),
        (
            {"minimum_words": 0},
            "minimum_words = 0: fable has no sentences of this length; 1 to 80 would be right",
        ),
        (
            {"maximum_words": 99},
            "maximum_words = 99: fable has no sentences of this length; 1 to 80 would be right",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(arguments: dict[str, object], message: str) -> None:
    asked: dict[str, object] = {"language": "fr", "count": 1, **arguments}
    with pytest.raises(SettingsError) as caught:
        generate(**asked)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_more_sentences_than_there_are_is_refused() -> None:
    most = capacity(5) // 20
    generate("fr", count=most, split="valid", maximum_words=5)
    with pytest.raises(RegardError, match=r"^count = .* different sentences of 5 words in valid; fewer, or a larger"):
        generate("fr", count=most + 1, split="valid", maximum_words=5)


def test_in_a_riddle_only_the_adjective_tells_and_both_nouns_are_as_likely() -> None:
    chance = Random(3)
    author, meant = Author(pools(), chance.random), Counter[str]()
    while meant.total() < 400:
        author.used.clear()
        text = author.reference(9 + int(3 * chance.random()), "past", riddle=True)
        if text is None:
            continue
        clause, because = text.clauses
        assert isinstance(clause, Clause)
        assert isinstance(because, Clause)
        assert isinstance(clause.subject, NounPhrase)
        assert isinstance(because.subject, Pronoun)
        assert clause.object is not None
        phrases = {"eater": clause.subject, "eaten": clause.object}
        assert clause.subject.plural == clause.object.plural
        assert not any(phrase.noun.human for phrase in phrases.values())
        fitting = [name for name, phrase in phrases.items() if because.predicate in pools().qualities[phrase.noun].all]
        assert len(fitting) == 1
        assert phrases[fitting[0]] is because.subject.referent
        meant[fitting[0]] += 1
    assert 0.3 < meant["eater"] / meant.total() < 0.7


def test_riddles_are_a_share_beside_those_there_are_and_keep_all_promises() -> None:
    plain, more = (
        list(generate("fr", count=500, split="valid", riddles=share, maximum_words=15)) for share in (0.0, 0.6)
    )
    assert sum(len(one.referents) for one in more) > 1.5 * sum(len(one.referents) for one in plain)
    assert plain == list(generate("fr", count=500, split="valid", maximum_words=15))
    assert all(split_of(one.source) == "valid" for one in more)
    assert set(range(2, 16)) <= {len(one.source.split()) for one in more} <= set(range(1, 16))
    with pytest.raises(SettingsError, match=r"riddles = 1\.5: is a share of clauses; 0 to 1 would be right"):
        generate("fr", count=1, riddles=1.5)


def test_riddles_of_the_settings_reach_the_corpus() -> None:
    settings = load_settings("transformer-tiny", "data.corpus='fable:fr'", "data.pairs=50", "data.riddles=0.7")
    rows = [row for _, row in materials(settings)[0].rows(("source",))]
    assert rows == [(one.source,) for one in generate("fr", count=50, riddles=0.7)]


def test_asking_for_nothing_gives_nothing() -> None:
    assert list(generate("fr", count=0, split="test")) == []
