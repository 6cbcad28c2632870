"""fable, the built-in corpus: an endless, seeded stream of sentence pairs with gold alignments and labels.

Sentence i of a seed has its own random stream, so that it does not depend on how many were drawn before it, and is the
same for every target language. A hash of the English words says which split a sentence belongs to: whatever the seed
and the length, no sentence can be in two splits.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import accumulate, islice
from random import Random
from typing import Literal, get_args

from regard.errors import SettingsError, did_you_mean
from regard.fable.author import Author
from regard.fable.lexicon import Noun, Verb, load
from regard.fable.pools import Pools
from regard.fable.sentence import LANGUAGES, Language, ParallelSentence, compose, draft
from regard.fable.typography import normal

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SHORTEST, LONGEST = 1, 80
RARER = {1: 0.15, 2: 0.4, 3: 0.7, 4: 0.85}  # the frequency of short sentences; that of longer ones is 1
TWENTIETHS: dict[Split, int] = {"train": 18, "valid": 1, "test": 1}
SPLIT_OF: tuple[Split, ...] = tuple(split for split, share in TWENTIETHS.items() for _ in range(share))
STREAMS = 1 << 40  # how many sentences a seed has


def generate(
    language: Language,
    *,
    count: int,
    split: Split = "train",
    seed: int = 1,
    minimum_words: int = SHORTEST,
    maximum_words: int = 20,
    start: int = 0,
    riddles: float = 0.0,
    unknown: float = 0.0,
) -> Iterator[ParallelSentence]:
    """`count` pairs of a split, from number `start` on, of lengths spread evenly over the range asked for.

    Sentences of less than five words are rarer than the others. `riddles` is the share of clauses with a pronoun whose
    noun only the adjective tells, `unknown` the share of sentences with an invented word.
    """
    check_language(language)
    if split not in SPLITS:
        raise SettingsError(f"split = {split!r}: fable has no such split; {did_you_mean(split, SPLITS)}")
    check_lengths(minimum_words, maximum_words)
    for name, value in (("count", count), ("seed", seed), ("start", start)):
        if value < 0:
            raise SettingsError(f"{name} = {value}: must not be negative; 0 or more would be right")
    most = capacity(maximum_words) * TWENTIETHS[split] // len(SPLIT_OF)
    if count > most:
        raise SettingsError(
            f"count = {count:,}: fable is sure of only {most:,} different sentences of {maximum_words} words "
            f"in {split}; fewer, or a larger maximum_words, would be right"
        )
    for name, share, what in (("riddles", riddles, "clauses"), ("unknown", unknown, "sentences")):
        if not 0 <= share <= 1:
            raise SettingsError(f"{name} = {share}: is a share of {what}; 0 to 1 would be right")
    lengths = range(minimum_words, maximum_words + 1)
    return stream(language, split, seed, range(start, start + count), lengths, riddles, unknown)


def stream(  # noqa: PLR0917
    language: Language, split: Split, seed: int, numbers: range, lengths: range, riddles: float, unknown: float
) -> Iterator[ParallelSentence]:
    """Draw for each number until the English belongs to the split; only then translate."""
    chance = Random()
    author = Author(pools(), chance.random, riddles, unknown)
    shares = list(accumulate(RARER.get(length, 1.0) for length in lengths))
    for number in numbers:
        chance.seed(seed * STREAMS + number)
        while True:
            text = author.text(lengths[bisect(shares, chance.random() * shares[-1])])
            page = draft(text)
            if split_of(page.source) == split and (text.phrase is not None or not is_set(page.tokens, page.tags)):
                break
        yield compose(text, language, page)


def pronoun_riddles(count: int) -> list[ParallelSentence]:
    """Pairs of English and French outside the training split, in which *it* stands for one of two nouns of different
    gender, and only the adjective says for which: half of them for the first noun, then half for the second."""
    chance = Random(7)
    author = Author(pools(), chance.random)
    kept: dict[bool, list[ParallelSentence]] = {True: [], False: []}
    while min(map(len, kept.values())) < count // 2:
        author.used.clear()
        text = author.reference(9 + int(3 * chance.random()), "past", riddle=True)
        if text is None:
            continue
        eater, eaten = text.clauses[0].subject, text.clauses[0].object  # type: ignore[union-attr]
        sentence = compose(text, "fr")
        tells = eater.noun.feminine_french != eaten.noun.feminine_french and not eater.plural  # type: ignore[union-attr]
        if tells and sentence.tags.count("NOUN") == 2 and split_of(sentence.source) != "train":
            ((_, meant),) = sentence.referents
            kept[meant == eater.head].append(sentence)  # type: ignore[union-attr]
    return [sentence for group in kept.values() for sentence in islice(group, count // 2)]


def split_of(source: str) -> Split:
    """The only split this sentence can be in, on every machine. Set phrases are in the training split."""
    form = normal(source)
    if form in set_phrases():
        return "train"
    return SPLIT_OF[int.from_bytes(blake2b(form.encode(), digest_size=8).digest(), "big") % len(SPLIT_OF)]


@cache
def set_phrases() -> frozenset[str]:
    """The set phrases without an open place, in their normal form."""
    return frozenset(
        normal(" ".join(phrase.english).replace(" '", "'").replace(" n't", "n't"))
        for phrase in load().phrases
        if not phrase.slot
    )


@cache
def frames() -> frozenset[tuple[str, ...]]:
    """The set phrases with their slots open: no other sentence may have such a form."""
    return frozenset(frame(phrase.english, phrase.tags) for phrase in load().phrases)


def frame(tokens: Sequence[str], tags: Sequence[str]) -> tuple[str, ...]:
    """The tokens without marks, names and numbers."""
    kept = zip(tokens, tags, strict=True)
    return tuple(tag if tag in {"PROPN", "NUM"} else token.lower() for token, tag in kept if tag != "PUNCT")


def is_set(tokens: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether a composed sentence has the form of a set phrase, whose translation is another."""
    return len(tokens) <= 8 and frame(tokens, tags) in frames()


@cache
def pools() -> Pools:
    return Pools(load())


def capacity(words: int) -> int:
    """How many different sentences of so many words there are at least.

    Only the simplest kind is counted, *the black cat ate the mouse*: noun phrase, verb in the past, noun phrase. Of
    more than nine words there are at least as many as of nine.
    """
    return _capacity(min(words, 9))


@cache
def _capacity(words: int) -> int:
    if words < 5:  # "Mary slept", and for one word "Run!"
        return len(pools().commands) * (len(pools().lexicon.names) if words > 1 else 1)
    return sum(
        phrase_pairs(verb, first, words - first - 1 - bool(verb.particle))
        for verb in pools().lexicon.verbs
        if verb.objects and not verb.recipients
        for first in (2, 3, 4)
    )


def phrase_pairs(verb: Verb, first: int, second: int) -> int:
    """Subjects of `first` words times objects of `second` words, never the same noun for both."""
    doers = {noun: noun_phrases(noun, first) for noun in pools().doers[verb]}
    patients = {noun: noun_phrases(noun, second) for noun in pools().patients[verb]}
    same = sum(many * patients.get(noun, 0) for noun, many in doers.items())
    return sum(doers.values()) * sum(patients.values()) - same


def noun_phrases(noun: Noun, size: int) -> int:
    """How many ways there are to say the noun with `size - 2` adjectives."""
    qualities = pools().qualities[noun]
    adjectives = {2: 1, 3: len(qualities.all), 4: len(qualities.before) * len(qualities.after)}
    determiners = (5 if noun.countable else 3) + 7 * noun.has_plural
    return adjectives.get(size, 0) * determiners


def check_language(language: str) -> None:
    if language not in LANGUAGES:
        raise SettingsError(
            f"language = {language!r}: fable has no such target language; {did_you_mean(language, LANGUAGES)}"
        )


def check_lengths(minimum_words: int, maximum_words: int) -> None:
    for name, value in (("minimum_words", minimum_words), ("maximum_words", maximum_words)):
        if not SHORTEST <= value <= LONGEST:
            raise SettingsError(
                f"{name} = {value}: fable has no sentences of this length; {SHORTEST} to {LONGEST} would be right"
            )
    if minimum_words > maximum_words:
        raise SettingsError(
            f"minimum_words = {minimum_words}: is more than maximum_words = {maximum_words}; "
            f"at most {maximum_words} would be right"
        )
