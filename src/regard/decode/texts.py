"""Texts in, texts out: sentences, pieces, batches of like length, the search, and everything back in its place.

    text → sentences, as they are read → parts that fit → ids → sorted batches → search → ids → text

Order is kept, what is between sentences stays as it is, and no text depends on which others it came with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import torch
from torch.nn.utils.rnn import pad_sequence

from regard.decode.cancel import check_cancelled
from regard.decode.constraints import Constraint, Forbidden, Minimum, NoRepeat, Prefix, Terms, required, terms_in
from regard.decode.copying import copied_in_order
from regard.decode.engines.engine import Searcher
from regard.decode.options import SLACK, Options
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
from regard.text.words import NO_BREAK, WordTokenizer, space_words

# Sentences that are longer than a model can take: cut at the best boundary, never truncated.
#
# Clauses first, then words; only a single word that is too long by itself is cut inside.

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


BUDGET = 8192  # source tokens times hypotheses in one batch
CPU_BUDGET = 4096  # on a CPU, where what does not fit into its caches costs more than another step
MORE_WAYS = 50  # ways to spell a forbidden word that are found out at the most
_FULL_STOPS = "。！？」』）"  # after which scripts without spaces have none


@dataclass(frozen=True)
class Part:
    """A sentence, or the part of a long one that went through the model at once, and what was written for it."""

    source: str  # as it was read
    tokens: tuple[int, ...] = ()  # without <end>
    text: str = ""  # what they say
    sentence: int = 0  # of the text, from 0
    source_word: int = 0  # which word of the text is its first
    target_word: int = 0  # and of the output
    number: int = 0  # of the text, which decides its chance
    first: bool = True  # whether the output begins here


@dataclass(frozen=True)
class Output:
    """One translation of a text."""

    text: str
    log_probability: float
    score: float  # what the rule, or the risk, compares outputs by
    parts: tuple[Part, ...] = ()  # of sentences that were left as they are there is none


Copy = Callable[[Sequence[Part]], list[str]]  # the texts of parts, with source words in the place of <unk>


@dataclass(frozen=True)
class TextSearch:
    """A model with its tokenizers."""

    searcher: Searcher
    tokenizers: Tokenizers
    device: torch.device
    longest: int = 1000  # source pieces that go through the model at once
    copy: Copy | None = None  # finds the source word of an <unk>; without, the first is the first unknown word's

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
        """Each text's outputs, best first. ``numbers`` are those of the texts, 0, 1, …, which decide their chance.

        A ``listener`` gets every step and every target piece.
        """
        passages = [self.read(text) for text in texts]
        named = range(len(texts)) if numbers is None else numbers
        parts = [self._parts(passage, number) for number, passage in zip(named, passages, strict=True)]
        training = self.model.training
        if training:  # else one visits every module for nothing, which short texts feel
            self.model.eval()
        budget = budget or (CPU_BUDGET if self.device.type == "cpu" else BUDGET)
        try:
            found = iter(self._search_all(list(chain(*parts)), options, budget, listener))
        finally:
            if training:
                self.model.train()
        return [
            _joined_ranks(passage, [next(found) for _ in several], options)
            for passage, several in zip(passages, parts, strict=True)
        ]

    def read(self, text: str) -> Passage:
        """The text in sentences, with what the run has never seen."""
        if isinstance(self.tokenizers.source, Vectors):
            return whole(text)
        return read(text, self.tokenizers.known)

    def parts(self, text: str) -> list[str]:
        """What goes through the model of a text: its sentences, long ones in parts; none of an empty one."""
        return [part.source for part in self._parts(self.read(text), 0)]

    def check_whole(self, text: str) -> None:
        """Refuse, before any pass, a sentence that would go through the model in parts."""
        if (count := len(self.parts(text))) > 1:
            raise DataError(
                f"text: goes through the model in {count} parts; only one pass is shown, so give one sentence"
            )

    def _parts(self, passage: Passage, number: int) -> list[Part]:
        encode, found = self.tokenizers.source.encode, list[Part]()
        around = len(self.tokenizers.framed(()))  # <end> is read too
        longest = self.longest if self.most is None else min(self.longest, self.most - around)
        for sentence, ((start, _), reading) in enumerate(zip(passage.cut.spans, passage.readings, strict=True)):
            if reading.left:
                continue
            word = word_at(passage.text, start)
            vectors = isinstance(self.tokenizers.source, Vectors)  # a picture is read as a whole
            pieces = [reading.text] if vectors else split(reading.text, lambda part: len(encode(part)), longest)
            for text in pieces:
                part = Part(text, sentence=sentence, source_word=word, number=number, first=not found)
                found.append(part)
                word += len(space_words(text))
        return found

    # From parts to outputs

    def _search_all(
        self, parts: list[Part], options: Options, budget: int, listener: SearchListener | None
    ) -> list[list[Output]]:
        """One list for each part. Where a source has words to copy, and only there, <unk> may be written."""
        results: list[list[Output]] = [[] for _ in parts]
        sources = [self.tokenizers.read(part.source) for part in parts]
        copies = self.copies(options)
        gaps = [copies and UNK in source for source in sources]
        unknown = replace(options, rule=replace(options.rule, unknown=True)) if any(gaps) else options
        for gap, wanted in ((False, options), (True, unknown)):
            rows = [row for row in range(len(parts)) if gaps[row] == gap]
            own = [parts[row] for row in rows], [sources[row] for row in rows]
            found = self._search_alike(*own, wanted, budget, listener)
            for row, outputs in zip(rows, found, strict=True):
                results[row] = outputs
        return self._copied(results) if any(gaps) else results

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
        copy = self.copy or (
            lambda parts: [copied_in_order(self.tokenizers, part.source, part.tokens) for part in parts]
        )
        texts = iter(copy(parts) if parts else [])

        def renamed(output: Output) -> Output:
            if UNK not in output.parts[0].tokens:
                return output
            text = next(texts)
            return replace(output, text=text, parts=(replace(output.parts[0], text=text),))

        return [[renamed(each) for each in outputs] for outputs in results]

    def _search_alike(
        self,
        parts: list[Part],
        sources: list[list[int]],
        options: Options,
        budget: int,
        listener: SearchListener | None,
    ) -> list[list[Output]]:
        """What the engine finds and, of the rest, what our own search does."""
        results: list[list[Output]] = [[] for _ in parts]
        left = list(range(len(parts)))
        if listener is None and left:
            check_cancelled()
            limits = _Requirements(self.tokenizers, options, parts).limits(sources, self.most)
            for row, outputs in enumerate(self.searcher.ask(sources, limits, options, budget)):
                results[row] = [self._output(parts[row], each) for each in outputs or []]
            left = [row for row in left if not results[row]]
        for places in of_like_length([len(sources[row]) for row in left], budget // options.rule.rows):
            group = [left[place] for place in places]
            required = _Requirements(self.tokenizers, options, [parts[row] for row in group])
            found = self._search([sources[row] for row in group], required, listener)
            for row, hypotheses in zip(group, found, strict=True):
                results[row] = [self._output(parts[row], each) for each in hypotheses]
        return results

    def _search(
        self, sources: list[list[int]], required: _Requirements, listener: SearchListener | None
    ) -> list[list[Hypothesis]]:
        """Search one batch; again, where a forbidden word was written in a way not thought of before."""
        source = pad_sequence([torch.tensor(row) for row in sources], batch_first=True, padding_value=PAD)
        source = source.to(self.device)
        limits = torch.tensor(required.limits(sources, self.most), device=self.device)
        results: list[list[Hypothesis]] = [[] for _ in sources]
        rows = list(range(len(sources)))
        forbidden: set[tuple[int, ...]] = set(required.forbidden)
        rule = required.options.rule
        writer = self.searcher.writer(rule)
        for _ in range(MORE_WAYS):
            with torch.inference_mode():
                first, state = writer.start(source[rows])
            found = search(
                writer,
                first,
                state,
                limits[rows],
                rule=rule,
                constraints=required.constraints(rows, sources, forbidden),
                numbers=[required.parts[row].number for row in rows],
                listener=listener,
            )
            for row, hypotheses in zip(rows, found, strict=True):
                results[row] = hypotheses
            more = {row: ways for row in rows if (ways := required.slips(results[row], row))}
            if not more:
                return results
            forbidden |= {way for ways in more.values() for way in ways}
            rows = list(more)
        raise DataError(
            f"forbidden = {required.options.forbidden}: the model finds ever new ways to write this; forbid other words"
        )

    def _output(self, part: Part, found: Hypothesis) -> Output:
        text = self.tokenizers.target.decode(found.tokens)
        written = replace(part, tokens=tuple(found.tokens), text=text)
        return Output(text, found.log_probability, found.score, (written,))


def _joined_ranks(passage: Passage, found: list[list[Output]], options: Options) -> list[Output]:
    """The outputs of a text from those of its parts: the best with the best, the second with the second."""
    ranked = [_by_risk(outputs) if options.risk else outputs for outputs in found]
    return [
        _joined(passage, [outputs[min(rank, len(outputs) - 1)] for outputs in ranked])
        for rank in range(max(map(len, ranked), default=1))
    ]


def _joined(passage: Passage, found: list[Output]) -> Output:
    """One output of a text: its sentences where they were, with what is between them."""
    written: list[list[str]] = [[] for _ in passage.readings]
    for output in found:
        written[output.parts[0].sentence].append(output.text)
    pairs = zip(written, passage.cut.sentences, passage.readings, strict=True)
    sentences = [sentence if reading.left else " ".join(filter(None, texts)) for texts, sentence, reading in pairs]
    whole = Cut(tuple(sentences), tuple(_gaps(passage.cut.between, sentences)))
    text, starts = whole.join(sentences), whole.spans
    parts: list[Part] = []
    words: dict[int, int] = {}  # of each sentence, its next word
    for output in found:
        part = output.parts[0]
        word = words.get(part.sentence, word_at(text, starts[part.sentence][0]))
        parts.append(replace(part, target_word=word))
        words[part.sentence] = word + len(space_words(output.text))
    score = sum(output.score for output in found) / max(1, len(found))
    return Output(text, sum(output.log_probability for output in found), score, tuple(parts))


def _gaps(between: Sequence[str], sentences: Sequence[str]) -> Iterator[str]:
    """What is between sentences; where that is nothing, as in Chinese, a space if both outputs have such."""
    for place, gap in enumerate(between):
        before, after = "".join(sentences[max(0, place - 1) : place]), "".join(sentences[place : place + 1])
        spaced = before and after and not (is_unspaced(before[-1]) or is_unspaced(after[0]) or after[0].isspace())
        yield " " if not gap and spaced and before[-1] not in _FULL_STOPS else gap


def word_at(text: str, place: int) -> int:
    """The number of the word that a place in a text is in, or before."""
    before = text[:place]
    inside = bool(before) and (not before[-1].isspace() or before[-1] in NO_BREAK)
    return len(space_words(before)) - inside


def _by_risk(samples: list[Output]) -> list[Output]:
    """The sample most like all others first; what was drawn twice is shown once."""
    agreement = utilities([sample.text for sample in samples])
    rated = {sample.text: replace(sample, score=score) for sample, score in zip(samples, agreement, strict=True)}
    return sorted(rated.values(), key=lambda sample: -sample.score)


class _Requirements:
    """What is asked of the outputs of one batch, in tokens."""

    def __init__(self, tokenizers: Tokenizers, options: Options, parts: list[Part]) -> None:
        self.options, self.parts = options, parts
        self._target = target = tokenizers.target
        self.prefix = required(target, "prefix", options.prefix) if options.prefix else []
        self.forbidden = [tuple(required(target, "forbidden", word)) for word in options.forbidden]
        self.begin = list(tokenizers.begin)
        self.prefixes = [self.begin + (self.prefix if part.first else []) for part in parts]
        sources = [part.source for part in parts]
        terms = terms_in(sources, options.glossary) if options.glossary else [[] for _ in sources]
        self.terms = [[required(target, "glossary", term) for term in each] for each in terms]

    def limits(self, sources: list[list[int]], most: int | None) -> list[int]:
        """Tokens at the most, ``<end>`` included; never so few that what must be there does not fit."""
        must = [len(self.begin + self.prefix) + sum(map(len, terms)) + 1 for terms in self.terms]
        usual = [int(self.options.longest * (len(source) - 1)) + SLACK + len(self.begin) for source in sources]
        limits = [max(pair) for pair in zip(usual, must, strict=True)]
        return limits if most is None else [min(limit, most) for limit in limits]

    def constraints(
        self, rows: list[int], sources: list[list[int]], forbidden: set[tuple[int, ...]]
    ) -> list[Constraint]:
        """For these of the batch's sentences."""
        found: list[Constraint] = []
        if self.options.shortest:
            found.append(Minimum([int(self.options.shortest * (len(sources[row]) - 1)) for row in rows]))
        if self.options.no_repeat:
            found.append(NoRepeat(self.options.no_repeat))
        if forbidden:
            found.append(Forbidden(forbidden))
        if any(self.terms[row] for row in rows):
            found.append(Terms([self.terms[row] for row in rows]))
        if self.begin or self.prefix:
            found.append(Prefix([self.prefixes[row] for row in rows], given=len(self.begin)))
        return found

    def slips(self, hypotheses: list[Hypothesis], row: int) -> set[tuple[int, ...]]:
        """Token sequences that spell a forbidden word otherwise than its tokenizer does: *for* + *bid*."""
        found = set()
        for word in self.options.forbidden:
            for hypothesis in hypotheses:
                if _has_word(self._target.decode(hypothesis.tokens), word):
                    found.add(self._shortest_with(word, hypothesis.tokens[len(self.prefixes[row]) :]))
        return found - {()}

    def _shortest_with(self, word: str, written: list[int]) -> tuple[int, ...]:
        """The fewest neighbouring tokens that have the word in them, of those behind the prefix that was asked for."""
        for size in range(1, len(written) + 1):
            for start in range(len(written) - size + 1):
                if _has_word(self._target.decode(written[start : start + size]), word):
                    return tuple(written[start : start + size])
        return ()


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
