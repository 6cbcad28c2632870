"""Texts in, texts out: pieces, batches of like length, the search, and everything back in its place.

    text → parts that fit → ids → sorted batches → search → ids → text

Order is kept, an empty text stays empty, and no text depends on which others it came with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.decode.constraints import Constraint, Forbidden, Minimum, NoRepeat, Prefix, Terms
from regard.decode.engine import Engine
from regard.decode.ensemble import Ensemble
from regard.decode.fused import Fused
from regard.decode.grouping import of_like_length
from regard.decode.options import SLACK, Options
from regard.decode.risk import utilities
from regard.decode.rules import Beam
from regard.decode.search import Hypothesis, Listener, Meanwhile, nothing, search
from regard.decode.shortlist import Candidates, Shortlist
from regard.decode.split import split
from regard.errors import DataError
from regard.models.encoder_decoder import EncoderDecoder
from regard.text.special import END, PAD, UNK
from regard.text.tokenizers import Tokenizers

BUDGET = 8192  # source tokens times hypotheses in one batch
CPU_BUDGET = 4096  # on a CPU, where what does not fit into its caches costs more than another step
MORE_WAYS = 50  # ways to spell a forbidden word that are found out at the most


@dataclass(frozen=True)
class Part:
    """A source, or the part of a long one that went through the model at once, and what was written for it."""

    source: str
    tokens: tuple[int, ...]  # without <end>


@dataclass(frozen=True)
class Output:
    """One translation of a text."""

    text: str
    log_probability: float
    score: float  # what the rule, or the risk, compares outputs by
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class TextSearch:
    """A model with its tokenizers."""

    model: EncoderDecoder | Ensemble
    tokenizers: Tokenizers
    device: torch.device
    longest: int = 1000  # source pieces that go through the model at once
    most: int | None = None  # target tokens that the model can write, where it has only so many positions
    fused: Fused | None = None  # the same model, laid out for speed
    engine: Engine | None = None  # who searches instead, where it can
    shortlist: Shortlist | None = None  # which target pieces may be written, where nobody names or hears of others

    def __call__(
        self,
        texts: Sequence[str],
        options: Options,
        *,
        first: int = 0,
        budget: int | None = None,
        listener: Listener | None = None,
        meanwhile: Meanwhile = nothing,
    ) -> list[list[Output]]:
        """Each text's outputs, best first. ``first`` is the number of the first text, which decides its chance.

        Whoever has a ``listener`` hears of every step and of every target piece. ``meanwhile`` is called at every step
        of our own search and before each batch; what it raises ends the search.
        """
        parts = [self.parts(text) for text in texts]
        flat = [part for several in parts for part in several]
        numbers = [first + number for number, several in enumerate(parts) for _ in several]
        training = self.model.training
        self.model.eval()
        budget = budget or (CPU_BUDGET if self.device.type == "cpu" else BUDGET)
        try:
            found = iter(self._search_all(flat, options, numbers, budget, listener=listener, meanwhile=meanwhile))
        finally:
            self.model.train(training)
        return [self._join([next(found) for _ in several], options) for several in parts]

    def parts(self, text: str) -> list[str]:
        """The text, or its parts where it is longer than the model can take; none of an empty one."""
        encode = self.tokenizers.source.encode
        return split(text, lambda part: len(encode(part)), self.longest) if text.strip() else []

    # From parts to outputs

    def _search_all(
        self,
        texts: list[str],
        options: Options,
        numbers: list[int],
        budget: int,
        *,
        listener: Listener | None,
        meanwhile: Meanwhile,
    ) -> list[list[Output]]:
        """One list for each part, whatever batch it was in."""
        sources = [[*self.tokenizers.source.encode(text), END] for text in texts]
        results: list[list[Output]] = [[] for _ in texts]
        left = list(range(len(texts)))
        if listener is None:
            meanwhile()
            left = self._let_engine_search(texts, sources, options, budget, results)
        for places in of_like_length([len(sources[row]) for row in left], budget // options.rule.rows):
            group = [left[place] for place in places]
            wishes = _Wishes(self.tokenizers, options, [texts[row] for row in group])
            chosen, named = [sources[row] for row in group], [numbers[row] for row in group]
            found = self._search(chosen, wishes, named, listener=listener, meanwhile=meanwhile)
            for row, hypotheses in zip(group, found, strict=True):
                results[row] = [self._output(texts[row], each) for each in hypotheses]
        return results

    def _let_engine_search(
        self,
        texts: list[str],
        sources: list[list[int]],
        options: Options,
        budget: int,
        results: list[list[Output]],
    ) -> list[int]:
        """Fill in what the engine finds; returns the numbers of the texts that are left to our own search."""
        every = list(range(len(texts)))
        if self.engine is None or self.engine.refuses(options) or not isinstance(options.rule, Beam):
            return every
        limits = _Wishes(self.tokenizers, options, texts).limits(sources, self.most)
        for row, found in enumerate(self.engine.search(sources, limits, options.rule, budget)):
            results[row] = [self._output(texts[row], each) for each in found or []]
        return [row for row in every if not results[row]]

    def _search(
        self,
        sources: list[list[int]],
        wishes: _Wishes,
        numbers: list[int],
        *,
        listener: Listener | None,
        meanwhile: Meanwhile,
    ) -> list[list[Hypothesis]]:
        """Search one batch; again, where a forbidden word was written in a way not thought of before."""
        source = pad_sequence([torch.tensor(row) for row in sources], batch_first=True, padding_value=PAD)
        source = source.to(self.device)
        limits = torch.tensor(wishes.limits(sources, self.most), device=self.device)
        results: list[list[Hypothesis]] = [[] for _ in sources]
        rows = list(range(len(sources)))
        forbidden: set[tuple[int, ...]] = set(wishes.forbidden)
        rule = wishes.options.rule
        writer, candidates = self._writer(source, wishes, listener)
        for _ in range(MORE_WAYS):
            with torch.inference_mode():
                first, state = writer.start(source[rows])
            found = search(
                writer,
                first,
                state,
                limits[rows],
                rule=rule,
                constraints=wishes.constraints(rows, sources, forbidden),
                numbers=[numbers[row] for row in rows],
                listener=listener,
                meanwhile=meanwhile,
            )
            for row, hypotheses in zip(rows, found, strict=True):
                results[row] = hypotheses if candidates is None else [candidates.spell(each) for each in hypotheses]
            more = {row: ways for row in rows if (ways := wishes.slips(results[row]))}
            if not more:
                return results
            forbidden |= {way for ways in more.values() for way in ways}
            rows = list(more)
        raise DataError(
            f"forbidden = {wishes.options.forbidden}: the model finds ever new ways to write this; forbid other words"
        )

    def _writer(
        self, source: Tensor, wishes: _Wishes, listener: Listener | None
    ) -> tuple[EncoderDecoder | Ensemble | Fused, Candidates | None]:
        """Who writes, and which tokens, if not all. Coverage looks inside, which the fused form does not let it."""
        rule = wishes.options.rule
        if self.fused is None or rule.coverage_penalty:
            return self.model, None
        short = isinstance(rule, Beam) and listener is None and not wishes.names_tokens
        if self.shortlist is None or not short:
            return self.fused, None
        candidates = self.shortlist.candidates(source)
        return self.fused.among(candidates), candidates

    def _output(self, source: str, found: Hypothesis) -> Output:
        text = self.tokenizers.target.decode(found.tokens)
        return Output(text, found.log_probability, found.score, (Part(source, tuple(found.tokens)),))

    def _join(self, parts: list[list[Output]], options: Options) -> list[Output]:
        """The outputs of a text from those of its parts: the best with the best, the second with the second."""
        if not parts:
            return [Output("", 0.0, 0.0)]
        ranked = [_by_risk(outputs) if options.risk else outputs for outputs in parts]
        count = max(map(len, ranked))
        return [_joined([outputs[min(rank, len(outputs) - 1)] for outputs in ranked]) for rank in range(count)]


def _joined(parts: list[Output]) -> Output:
    if len(parts) == 1:
        return parts[0]
    return Output(
        " ".join(part.text for part in parts if part.text),
        sum(part.log_probability for part in parts),
        sum(part.score for part in parts) / len(parts),
        tuple(piece for part in parts for piece in part.parts),
    )


def _by_risk(samples: list[Output]) -> list[Output]:
    """The sample most like all others first; what was drawn twice is shown once."""
    agreement = utilities([sample.text for sample in samples])
    rated = {sample.text: replace(sample, score=score) for sample, score in zip(samples, agreement, strict=True)}
    return sorted(rated.values(), key=lambda sample: -sample.score)


class _Wishes:
    """What is asked of the outputs of one batch, in tokens."""

    def __init__(self, tokenizers: Tokenizers, options: Options, texts: list[str]) -> None:
        self.options = options
        self._target = tokenizers.target
        self.prefix = self._encode("prefix", options.prefix) if options.prefix else []
        self.forbidden = [tuple(self._encode("forbidden", word)) for word in options.forbidden]
        terms = [options.glossary.find(text) if options.glossary else [] for text in texts]
        self.terms = [[self._encode("glossary", term) for term in each] for each in terms]

    @property
    def names_tokens(self) -> bool:
        """Whether certain tokens are asked for or forbidden, by their ids."""
        return bool(self.prefix or self.forbidden or any(self.terms))

    def _encode(self, where: str, text: str) -> list[int]:
        tokens = self._target.encode(text)
        if not tokens or UNK in tokens:
            raise DataError(f"{where} = {text!r}: has pieces that this model's vocabulary does not; use other words")
        return tokens

    def limits(self, sources: list[list[int]], most: int | None) -> list[int]:
        """Tokens at the most, ``<end>`` included; never so few that what must be there does not fit."""
        must = [len(self.prefix) + sum(map(len, terms)) + 1 for terms in self.terms]
        usual = [int(self.options.longest * (len(source) - 1)) + SLACK for source in sources]
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
        if self.prefix:
            found.append(Prefix([self.prefix] * len(rows)))
        return found

    def slips(self, hypotheses: list[Hypothesis]) -> set[tuple[int, ...]]:
        """Token sequences that spell a forbidden word otherwise than its tokenizer does: *for* + *bid*."""
        found = set()
        for word in self.options.forbidden:
            for hypothesis in hypotheses:
                if _has_word(self._target.decode(hypothesis.tokens), word):
                    found.add(self._shortest_with(word, hypothesis.tokens))
        return found - {()}

    def _shortest_with(self, word: str, tokens: list[int]) -> tuple[int, ...]:
        """The fewest neighbouring tokens that have the word in them, outside the prefix that was asked for."""
        written = tokens[len(self.prefix) :]
        for size in range(1, len(written) + 1):
            for start in range(len(written) - size + 1):
                if _has_word(self._target.decode(written[start : start + size]), word):
                    return tuple(written[start : start + size])
        return ()


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
