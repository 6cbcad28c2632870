"""Texts in, texts out: sentences, pieces, batches of like length, the search, and outputs in the order of the texts.

    text → sentences, as they are read → parts that fit → ids → sorted batches → search → ids → text

Order is kept, what is between sentences stays as it is, and no output depends on the other texts of a call.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

import torch
from torch.nn.utils.rnn import pad_sequence

from regard.decode.cancel import check_cancelled
from regard.decode.constraints import Constraint, Forbidden, Minimum, NoRepeat, Prefix, Terms, required, terms_in
from regard.decode.engines.engine import Searcher
from regard.decode.options import SLACK, Options
from regard.decode.rules import Beam
from regard.decode.scoring import utilities
from regard.decode.search import Ensemble, Hypothesis, SearchListener, of_like_length, search
from regard.errors import DataError, SettingsError
from regard.models.generator import EncoderDecoder
from regard.nn.embeddings import longest_sequence
from regard.text.reading import Passage, is_unspaced, read, whole
from regard.text.sentences import Cut
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import Vectors
from regard.text.vocabulary import PAD, UNK
from regard.text.words import CAPITALS, JOINER, MARKS, NO_BREAK, WordTokenizer, lowered, raised, space_words

BUDGET = 8192  # source tokens times hypotheses in one batch
CPU_BUDGET = 4096  # on a CPU, whose caches are smaller
MORE_WAYS = 50  # searches of a batch, each with more spellings of the forbidden words, before it gives up
_FULL_STOPS = "。！？」』）"  # after which scripts without spaces have none

# Sentences longer than a model can take are cut at the best boundary, never truncated: at clauses first, then between
# words; only a single word that is too long is cut inside.

Length = Callable[[str], int]  # of a text, in pieces

_CUTS = (
    re.compile(r"(?<=[,;:—、，；])(?=\s)|(?<=[、，；])"),
    re.compile(r"(?=\s)"),
)


def split(text: str, length: Length, longest: int) -> list[str]:
    """The sentence in parts of at most ``longest`` pieces each, as few as their boundaries allow; one if it fits."""
    return [part.strip() for part in _split(text, length, longest, 0) if part.strip()]


def _split(text: str, length: Length, longest: int, level: int) -> list[str]:
    if length(text) <= longest:
        return [text]
    if level == len(_CUTS):
        return _halves(text, length, longest)
    parts: list[str] = []
    fits = 0  # pieces in the last part
    for unit in _CUTS[level].split(text):
        size = length(unit)
        if size > longest:
            parts += _split(unit, length, longest, level + 1)
            fits = longest
        elif parts and fits + size <= longest:
            parts[-1] += unit
            fits += size
        else:
            parts.append(unit)
            fits = size
    return parts


def _halves(text: str, length: Length, longest: int) -> list[str]:
    """Something without a single space in it."""
    if length(text) <= longest or len(text) == 1:
        return [text]
    middle = len(text) // 2
    return [*_halves(text[:middle], length, longest), *_halves(text[middle:], length, longest)]


@dataclass(frozen=True)
class Part:
    """A sentence, or the part of a long one that goes through the model at once, and what was written for it."""

    source: str  # as it was read
    tokens: tuple[int, ...] = ()  # without <end>
    text: str = ""  # the same as text
    sentence: int = 0  # of the text, from 0
    source_word: int = 0  # number of its first word in the text
    target_word: int = 0  # and in the output
    number: int = 0  # of the text, from which its random numbers follow
    first: bool = True  # whether the output begins here
    begins: bool = True  # and whether that of the sentence does
    capitals: tuple[str, ...] = ()  # words never seen that are written in capitals, and may be read without


@dataclass(frozen=True)
class Output:
    """One translation of a text."""

    text: str
    log_probability: float
    score: float  # what the rule, or the risk, compares outputs by
    parts: tuple[Part, ...] = field(default=(), repr=False)  # none for a sentence that was left as it is


Find = Callable[[list[int], list[Constraint]], list[list[Hypothesis]]]  # the outputs of some rows
Copy = Callable[[Sequence[Part]], list[str]]  # the texts of parts, with source words in the place of <unk>


@dataclass(frozen=True)
class TextSearch:
    """Searches for the outputs of texts, with a model and its tokenizers."""

    searcher: Searcher
    tokenizers: Tokenizers
    device: torch.device
    longest: int = 1000  # source pieces that go through the model at once
    copy: Copy | None = None  # finds the source word of each <unk>; None: unknown words are copied in order
    plain: bool = False  # whether capitals and quotation marks are read as those of the built-in corpus (`read`)

    @property
    def model(self) -> EncoderDecoder | Ensemble:
        return self.searcher.model

    @cached_property
    def most(self) -> int | None:
        """Tokens that the model can read or write, where it has only so many positions."""
        return longest_sequence(self.model)

    def __call__(
        self,
        texts: Sequence[str],
        options: Options,
        *,
        numbers: Sequence[int] | None = None,
        budget: int | None = None,
        listener: SearchListener | None = None,
    ) -> list[list[Output]]:
        """Each text's outputs, best first. Sampling draws by the ``numbers`` of the texts, else by 0, 1, ….

        A ``listener`` gets every step of the search.
        """
        passages = [self.read(text) for text in texts]
        known = range(len(texts)) if numbers is None else numbers
        parts = [self._parts(passage, number) for number, passage in zip(known, passages, strict=True)]
        training = self.model.training
        if training:  # `eval` visits every module, which takes as long as a short text
            self.model.eval()
        budget = budget or (CPU_BUDGET if self.device.type == "cpu" else BUDGET)
        try:
            outputs = iter(self._search_all(list(chain(*parts)), options, budget, listener))
        finally:
            if training:
                self.model.train()
        return [
            _joined_ranks(passage, [next(outputs) for _ in several], options)
            for passage, several in zip(passages, parts, strict=True)
        ]

    def read(self, text: str) -> Passage:
        """The text in sentences, with the words that the run has never seen."""
        if isinstance(self.tokenizers.source, Vectors):
            return whole(text)
        return read(text, self.tokenizers.known, plain=self.plain)

    def parts(self, text: str) -> list[str]:
        """The sentences of a text that go through the model, long ones in parts; none of an empty text."""
        return [part.source for part in self._parts(self.read(text), 0)]

    def check_whole(self, text: str) -> None:
        """Refuse, before any pass, a sentence that would go through the model in parts."""
        if (count := len(parts := self.parts(text))) > 1:
            first = ", ".join(repr(part[:30]) for part in parts[:3])
            raise DataError(
                f"text: goes through the model in {count} parts, {first}; only one pass is shown, so give one of them"
            )

    def _parts(self, passage: Passage, number: int) -> list[Part]:
        encode, parts = self.tokenizers.source.encode, list[Part]()
        vectors = isinstance(self.tokenizers.source, Vectors)  # a picture is read as a whole
        around = len(self.tokenizers.framed(()))  # <end> is read too
        longest = self.longest if self.most is None else min(self.longest, self.most - around)
        for sentence, ((start, _), reading) in enumerate(zip(passage.cut.spans, passage.readings, strict=True)):
            if reading.left:
                continue
            word = word_at(passage.text, start)
            capitals = tuple(each.word for each in reading.unknown if lowered(each.word)[0] == CAPITALS)
            texts = [reading.text] if vectors else split(reading.text, lambda part: len(encode(part)), longest)
            for place, text in enumerate(texts):
                where = Part(
                    text, sentence=sentence, source_word=word, number=number, first=not parts, begins=not place
                )
                parts.append(replace(where, capitals=capitals))
                word += len(space_words(text))
        return parts

    # From parts to outputs

    def _search_all(
        self, parts: list[Part], options: Options, budget: int, listener: SearchListener | None
    ) -> list[list[Output]]:
        """One list for each part. Only where a source has unknown words to copy, <unk> may be written."""
        results: list[list[Output]] = [[] for _ in parts]
        sources = [self.tokenizers.read(part.source) for part in parts]
        copies = self.copies(options)
        unknown = [copies and UNK in source for source in sources]
        for with_unknown in sorted(set(unknown)):
            rows = [row for row in range(len(parts)) if unknown[row] == with_unknown]
            wanted = replace(options, rule=replace(options.rule, unknown=True)) if with_unknown else options
            own = [parts[row] for row in rows], [sources[row] for row in rows]
            required = _Requirements(self.tokenizers, wanted, *own, self.most)
            for row, hypotheses in zip(rows, self._search_alike(required, budget, listener), strict=True):
                results[row] = [self._output(parts[row], each) for each in hypotheses]
        return self._copied(results) if any(unknown) else results

    def copies(self, options: Options) -> bool:
        """Whether unknown words are copied: where both vocabularies are of words, unless it is switched off."""
        sides = self.tokenizers.source, self.tokenizers.target
        able = all(isinstance(side, WordTokenizer) for side in sides)
        if options.copy_unknown and not able:
            kind = next(side.kind for side in sides if not isinstance(side, WordTokenizer))
            raise SettingsError(
                f"copy_unknown: a vocabulary of kind '{kind}' spells every word; "
                "only a vocabulary of words leaves some unknown"
            )
        return able and options.copy_unknown is not False

    def _copied(self, results: list[list[Output]]) -> list[list[Output]]:
        """Source words in the place of each <unk>."""
        parts = [each.parts[0] for outputs in results for each in outputs if UNK in each.parts[0].tokens]
        copy = self.copy or (lambda parts: [copied_in_order(self.tokenizers, part, part.tokens) for part in parts])
        texts = iter(copy(parts) if parts else [])

        def renamed(output: Output) -> Output:
            if UNK not in output.parts[0].tokens:
                return output
            text = next(texts)
            return replace(output, text=text, parts=(replace(output.parts[0], text=text),))

        return [[renamed(each) for each in outputs] for outputs in results]

    def _search_alike(
        self, required: _Requirements, budget: int, listener: SearchListener | None
    ) -> list[list[Hypothesis]]:
        """The outputs of the engine and, for parts that it leaves, of our own search."""
        left = list(range(len(required.parts)))
        results: dict[int, list[Hypothesis]] = {}
        if listener is None:
            check_cancelled()
            if self.searcher.serves(required.options):
                results = self._without_forbidden(left, required, partial(self._ask, required, budget))
                left = [row for row in left if not results[row]]
        lengths = [len(required.sources[row]) for row in left]
        for group in of_like_length(lengths, budget // required.options.rule.rows):
            rows = [left[place] for place in group]
            results |= self._without_forbidden(rows, required, partial(self._search, required, listener))
        return [results[row] for row in range(len(required.parts))]

    def _ask(
        self, required: _Requirements, budget: int, rows: list[int], constraints: list[Constraint]
    ) -> list[list[Hypothesis]]:
        """The engine's outputs of some rows; none for what it leaves to our own search."""
        assert self.searcher.engine is not None
        return self.searcher.engine.search(
            [required.sources[row] for row in rows],
            [required.limits[row] for row in rows],
            required.options.rule,
            budget,
            constraints=constraints,
            numbers=[required.parts[row].number for row in rows],
        )

    def _search(
        self,
        required: _Requirements,
        listener: SearchListener | None,
        rows: list[int],
        constraints: list[Constraint],
    ) -> list[list[Hypothesis]]:
        """The outputs of some rows, searched as one batch."""
        rule = required.options.rule
        writer = self.searcher.writer(rule)
        sources = [torch.tensor(required.sources[row]) for row in rows]
        with torch.inference_mode():
            first, state = writer.start(pad_sequence(sources, batch_first=True, padding_value=PAD).to(self.device))
        return search(
            writer,
            first,
            state,
            torch.tensor([required.limits[row] for row in rows], device=self.device),
            rule=rule,
            constraints=constraints,
            numbers=[required.parts[row].number for row in rows],
            listener=listener,
        )

    def _without_forbidden(self, rows: list[int], required: _Requirements, find: Find) -> dict[int, list[Hypothesis]]:
        """Find the outputs of some rows, and again of those that spell a forbidden word in a new way."""
        forbidden = set(required.forbidden)
        results: dict[int, list[Hypothesis]] = {}
        for _ in range(MORE_WAYS):
            found = find(rows, required.constraints(rows, forbidden, self.device))
            results.update(zip(rows, found, strict=True))
            more = {row: ways for row in rows if (ways := required.slips(results[row], row))}
            if not more:
                return results
            forbidden |= {way for ways in more.values() for way in ways}
            rows = list(more)
        raise DataError(
            f"forbidden = {required.options.forbidden}: the model finds ever new ways to write this; forbid other words"
        )

    def _output(self, part: Part, hypothesis: Hypothesis) -> Output:
        text = self.tokenizers.target.decode(hypothesis.tokens)
        written = replace(part, tokens=tuple(hypothesis.tokens), text=text)
        return Output(text, hypothesis.log_probability, hypothesis.score, (written,))


def _joined_ranks(passage: Passage, parts: list[list[Output]], options: Options) -> list[Output]:
    """The outputs of a text from those of its parts: the best with the best, the second with the second."""
    searched = isinstance(options.rule, Beam)
    ranked = [_by_risk(each) if options.risk else _different(each) if searched else each for each in parts]
    if not options.prefix:  # which may begin with a small letter
        ranked = [[_begun(passage, output) for output in outputs] for outputs in ranked]
    return [
        _joined(passage, [outputs[min(rank, len(outputs) - 1)] for outputs in ranked])
        for rank in range(max(map(len, ranked), default=1))
    ]


def _begun(passage: Passage, output: Output) -> Output:
    """The output of a part with a capital, where its sentence or quotation begins with one: *"I am tired," said the
    girl.* A run that reads *I am tired,* by itself cannot see that."""
    part = output.parts[0]
    if not (part.begins and passage.readings[part.sentence].begins and output.text[:1].islower()):
        return output
    text = output.text[0].upper() + output.text[1:]
    return replace(output, text=text, parts=(replace(part, text=text),))


def _different(outputs: list[Output]) -> list[Output]:
    """The outputs of a beam, without those that are the same text as a better one in other pieces."""
    found = dict[str, Output]()
    for output in outputs:
        found.setdefault(output.text, output)
    return list(found.values())


def _joined(passage: Passage, outputs: list[Output]) -> Output:
    """One output of a text: its sentences where they were, with what is between them."""
    written: list[list[str]] = [[] for _ in passage.readings]
    for output in outputs:
        written[output.parts[0].sentence].append(output.text)
    pairs = zip(written, passage.cut.sentences, passage.readings, strict=True)
    sentences = [sentence if reading.left else " ".join(filter(None, texts)) for texts, sentence, reading in pairs]
    whole = Cut(tuple(sentences), tuple(_gaps(passage.cut.between, sentences)))
    text, starts = whole.join(sentences), whole.spans
    parts: list[Part] = []
    words: dict[int, int] = {}  # the number of each sentence's next word
    for output in outputs:
        part = output.parts[0]
        word = words.get(part.sentence, word_at(text, starts[part.sentence][0]))
        parts.append(replace(part, target_word=word))
        words[part.sentence] = word + len(space_words(output.text))
    score = sum(output.score for output in outputs) / max(1, len(outputs))
    return Output(text, sum(output.log_probability for output in outputs), score, tuple(parts))


def _gaps(between: Sequence[str], sentences: Sequence[str]) -> Iterator[str]:
    """What is between sentences; a space where that is nothing, as in Chinese, and both outputs have spaces."""
    for place, gap in enumerate(between):
        before, after = "".join(sentences[max(0, place - 1) : place]), "".join(sentences[place : place + 1])
        spaced = before and after and not (is_unspaced(before[-1]) or is_unspaced(after[0]) or after[0].isspace())
        yield " " if not gap and spaced and before[-1] not in _FULL_STOPS else gap


def word_at(text: str, place: int) -> int:
    """The number of the word at a place in a text, or of the next one."""
    before = text[:place]
    inside = bool(before) and (not before[-1].isspace() or before[-1] in NO_BREAK)
    return len(space_words(before)) - inside


def _by_risk(samples: list[Output]) -> list[Output]:
    """The samples, the one most like all others first; a text that was drawn twice is listed once."""
    agreement = utilities([sample.text for sample in samples])
    rated = {sample.text: replace(sample, score=score) for sample, score in zip(samples, agreement, strict=True)}
    return sorted(rated.values(), key=lambda sample: -sample.score)


class _Requirements:
    """What the options ask of the outputs of some parts, in tokens."""

    def __init__(
        self,
        tokenizers: Tokenizers,
        options: Options,
        parts: list[Part],
        sources: list[list[int]],
        most: int | None,  # positions of the model, if they are limited
    ) -> None:
        self.options, self.parts, self.sources = options, parts, sources
        self._target = target = tokenizers.target
        self.prefix = required(target, "prefix", options.prefix) if options.prefix else []
        self.forbidden = [tuple(required(target, "forbidden", word)) for word in options.forbidden]
        self.begin = list(tokenizers.begin)
        self.prefixes = [self.begin + (self.prefix if part.first else []) for part in parts]
        terms = terms_in([part.source for part in parts], options.glossary or {})
        self.terms = [[required(target, "glossary", term) for term in each] for each in terms]
        self.limits = [
            min(self._limit(*pair), sys.maxsize if most is None else most)
            for pair in zip(sources, self.terms, strict=True)
        ]

    def _limit(self, source: list[int], terms: list[list[int]]) -> int:
        """Tokens at the most, ``<end>`` included; always enough for prefix and terms."""
        usual = int(self.options.longest * (len(source) - 1)) + SLACK + len(self.begin)
        return max(usual, len(self.begin + self.prefix) + sum(map(len, terms)) + 1)

    def constraints(self, rows: list[int], forbidden: set[tuple[int, ...]], device: torch.device) -> list[Constraint]:
        """The constraints of some of the parts."""
        found: list[Constraint] = []
        if self.options.shortest:
            least = [int(self.options.shortest * (len(self.sources[row]) - 1)) for row in rows]
            found.append(Minimum(least, device))
        if self.options.no_repeat:
            found.append(NoRepeat(self.options.no_repeat))
        if forbidden:
            found.append(Forbidden(forbidden, device))
        if any(self.terms[row] for row in rows):
            found.append(Terms([self.terms[row] for row in rows], device))
        if self.begin or self.prefix:
            found.append(Prefix([self.prefixes[row] for row in rows], len(self.begin), device))
        return found

    def slips(self, hypotheses: list[Hypothesis], row: int) -> set[tuple[int, ...]]:
        """Token sequences that spell a forbidden word in another way than its tokenizer: *for* + *bid*."""
        found = set()
        for word in self.options.forbidden:
            for hypothesis in hypotheses:
                if _has_word(self._target.decode(hypothesis.tokens), word):
                    found.add(self._shortest_with(word, hypothesis.tokens[len(self.prefixes[row]) :]))
        return found - {()}

    def _shortest_with(self, word: str, written: list[int]) -> tuple[int, ...]:
        """The fewest neighbouring tokens after the required prefix that contain the word."""
        for size in range(1, len(written) + 1):
            for start in range(len(written) - size + 1):
                if _has_word(self._target.decode(written[start : start + size]), word):
                    return tuple(written[start : start + size])
        return ()


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


# Words that a vocabulary does not have are copied from the source to the output as they are written.


def unknown_words(tokenizers: Tokenizers, part: Part) -> dict[int, str]:
    """What each <unk> of a source stands for: the word as it is written, by the place of its piece."""
    ids, pieces = tokenizers.source.encode(part.source), tokenizers.source.pieces(part.source)
    marks = ["", *(piece if piece in MARKS else "" for piece in pieces)]
    target = tokenizers.target
    if isinstance(target, WordTokenizer) and target.case == "mark":  # the model writes marks for capitals itself
        marks = [""] * len(marks)
    found = {place: _written(pieces[place], marks[place]) for place, number in enumerate(ids) if number == UNK}
    capitals = {word.lower(): word for word in part.capitals}
    return {place: capitals.get(word.lower(), word) for place, word in found.items()}


def _written(piece: str, mark: str) -> str:
    """A word by itself; a punctuation mark keeps the joiner that ties it to what is before it."""
    bare = piece.removeprefix(JOINER) or piece
    return raised(mark, bare) if any(map(str.isalnum, bare)) else piece


def copied(tokenizers: Tokenizers, tokens: Sequence[int], words: Sequence[str]) -> str:
    """The text of tokens with these words in the place of each <unk>; where there are too few, it is left out."""
    target, rest = tokenizers.target, iter(words)
    assert isinstance(target, WordTokenizer)
    pieces = (next(rest, "") if token == UNK else target.token(token) for token in tokens)
    return target.join(piece for piece in pieces if piece)


def copied_in_order(tokenizers: Tokenizers, part: Part, tokens: Sequence[int]) -> str:
    """The first <unk> becomes the first unknown word of the source, and so on: for models without attention."""
    return copied(tokenizers, tokens, list(unknown_words(tokenizers, part).values()))
