"""Subwords by sentencepiece: byte-pair encoding and the unigram model, with byte fallback and sampling.

Sennrich et al. 2016 (BPE), Kudo 2018 (unigram, subword regularisation), Provilkov et al. 2020 (BPE-dropout).
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from random import Random
from typing import Final, Literal

import sentencepiece

from regard.errors import DataError, ModelError
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, START, UNK, Tokenizer, without_surrogates
from regard.text.words import MARKS, Case, mark_words, space_words, unmark_words

SubwordKind = Literal["bpe", "unigram"]
SPACE: Final = "▁"  # sentencepiece's mark for a space before a piece
MODEL: Final = "sentencepiece.model"
SAMPLING: Final[dict[SubwordKind, float]] = {"bpe": 0.1, "unigram": 0.2}

_LONGEST_LINE = 1 << 16  # bytes; sentencepiece skips longer lines, and by default even a long sentence
_THREADS = 4  # fixed: sums over threads are ordered sums, so another number could learn another model
_QUIET = 5  # above sentencepiece's FATAL
_MARKED = tuple(SPACE + mark for mark in MARKS)
_CANDIDATES = 32  # ways to cut one word that unigram sampling chooses from


@dataclass(frozen=True)
class SubwordTokenizer(Tokenizer):
    """A sentencepiece model. No text is unknown: a character it never saw is spelled in bytes.

    There is no Unicode normalisation, but a run of whitespace becomes one space, and so does the mark "▁" itself.
    `sampling` is the strength of `sample`: for BPE the probability that a merge is left out, for unigram the exponent α
    of the probabilities (a small α is more random). `case` is explained in `regard.text.words`.
    """

    kind: SubwordKind
    model: bytes = field(repr=False)
    sampling: float
    case: Case = "keep"

    @classmethod
    def learn(
        cls,
        kind: SubwordKind,
        lines: Iterable[str],
        *,
        size: int,
        coverage: float = 0.9999,
        sentences: int = 1_000_000,
        seed: int = 0,
        case: Case = "keep",
    ) -> SubwordTokenizer:
        """Learn from a stream of lines, of which at most `sentences`, drawn at random, are kept in memory.

        There are at most `size` pieces: fewer if the text has no more, and more if its characters need them.
        `coverage` is the share of the corpus's characters that get a piece of their own; the rest are bytes.
        """
        chosen = draw(lines, sentences, Random(seed))
        symbols = _MARKED if case == "mark" else ()
        model = _train(kind, [_prepared(line, case) for line in chosen], size, coverage, symbols)
        return cls(kind, model, SAMPLING[kind], case)

    @property
    def size(self) -> int:
        return self._processor.get_piece_size()

    def pieces(self, text: str) -> list[str]:
        return self._processor.encode(_prepared(text, self.case), out_type=str)

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(_prepared(text, self.case))

    def sample(self, text: str, random: Random) -> list[int]:
        """Cut each word at random. All randomness comes from `random`, so that a training run can be repeated:
        sentencepiece's own sampling has a generator that cannot be reset."""
        words = [SPACE + word for word in _prepared(text, self.case).split(" ") if word]
        return [number for word in words for number in self._sample_word(word, random)]

    def resample(self, ids: Sequence[int], random: Random) -> list[int]:
        """One word, given in its pieces, cut at random; a special token stays as it is."""
        if any(number <= UNK for number in ids):
            return list(ids)
        return self._sample_word(SPACE + self._processor.decode(list(ids)).removeprefix(" "), random)

    def begins_word(self, number: int) -> bool:
        """Whether a piece is the first of a word, or a special token."""
        return number <= UNK or self.token(number).startswith(SPACE)

    def _sample_word(self, word: str, random: Random) -> list[int]:
        """A word after its space, cut at random; a mark for capitals is one piece."""
        if self.case == "mark" and word in _MARKED:
            return [self.id(word)]
        return self._drop_merges(word, random) if self.kind == "bpe" else self._choose(word, random)

    def decode(self, ids: Iterable[int]) -> str:
        text: str = self._processor.decode([number for number in ids if number >= UNK])
        return " ".join(unmark_words(text.split(" "))) if self.case == "mark" else text

    def token(self, number: int) -> str:
        return self._processor.id_to_piece(number)

    def id(self, piece: str) -> int:
        return self._processor.piece_to_id(piece)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return word_of_spaced(pieces, marks=_MARKED if self.case == "mark" else ())

    def details(self) -> dict[str, object]:
        return {"sampling": self.sampling} | ({"case": self.case} if self.case != "keep" else {})

    def files(self) -> dict[str, bytes]:
        return super().files() | {MODEL: self.model}

    @cached_property
    def _processor(self) -> sentencepiece.SentencePieceProcessor:
        return open_model(self.model)

    @cached_property
    def _scores(self) -> dict[str, float]:
        return piece_scores(self._processor)

    def _spell(self, piece: str) -> list[int]:
        """The id of a piece, or the ids of its bytes."""
        if piece in self._scores:
            return [self.id(piece)]
        return [self.id(f"<0x{byte:02X}>") for byte in piece.encode()]

    def _drop_merges(self, word: str, random: Random) -> list[int]:
        """BPE-dropout: at every step each possible merge is left out with probability `sampling`."""
        pieces, score = list(word), self._scores.get
        merges = [score(left + right, -math.inf) for left, right in pairwise(pieces)]
        while True:
            best, at = -math.inf, -1
            for index, value in enumerate(merges):
                if value > best and random.random() >= self.sampling:
                    best, at = value, index
            if at < 0:
                return [number for piece in pieces for number in self._spell(piece)]
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            del merges[at]
            if at > 0:
                merges[at - 1] = score(pieces[at - 1] + pieces[at], -math.inf)
            if at < len(merges):
                merges[at] = score(pieces[at] + pieces[at + 1], -math.inf)

    def _choose(self, word: str, random: Random) -> list[int]:
        """Unigram sampling: a segmentation x of the word with probability proportional to P(x)^α. Words are scored
        independently, so sampling word by word is the same as sampling a sentence."""
        segmentations, weights = self._segmentations(word)
        return random.choices(segmentations, weights)[0]

    @cached_property
    def _segmentations(self) -> Callable[[str], tuple[list[list[int]], list[float]]]:
        """The best segmentations of a word with their weights, cached for frequent words."""

        def segment(word: str) -> tuple[list[list[int]], list[float]]:
            ways = self._processor.nbest_encode(word.removeprefix(SPACE), nbest_size=_CANDIDATES)
            scores = [sum(self._processor.get_score(number) for number in way) for way in ways]
            return ways, [math.exp(self.sampling * (score - max(scores))) for score in scores]

        return lru_cache(maxsize=1 << 16)(segment)


def open_model(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """A sentencepiece model, all of whose pieces can be read."""
    try:
        processor = sentencepiece.SentencePieceProcessor()
        processor.load(model_proto=model or b"\0")  # sentencepiece does not complain of an empty one
        for number in range(processor.get_piece_size()):
            processor.id_to_piece(number)
    except (RuntimeError, ValueError) as problem:  # a piece may not be UTF-8
        raise ModelError(f"{MODEL} = {len(model)} bytes: not a sentencepiece model; is it damaged?") from problem
    return processor


def piece_scores(processor: sentencepiece.SentencePieceProcessor) -> dict[str, float]:
    """The score of each ordinary piece: a log-probability or, in byte-pair encoding, a rank below zero."""
    special = processor.is_byte, processor.is_control, processor.is_unknown, processor.is_unused
    ordinary = (n for n in range(processor.get_piece_size()) if not any(kind(n) for kind in special))
    return {processor.id_to_piece(n): processor.get_score(n) for n in ordinary}


def word_of_spaced(pieces: Sequence[str], space: str = SPACE, marks: tuple[str, ...] = ()) -> list[int]:
    """The word of each piece, where the first piece of a word begins with `space`.

    A piece that is only a mark, of space or case, belongs to the next word, and at the end to the last one.
    """
    word, words, bare = -1, [], False
    for piece in pieces:
        word += word < 0 or (piece.startswith(space) and not bare)
        bare = not piece.strip(space) or piece in marks
        words.append(word)
    return [max(0, min(owner, word - 1)) for owner in words] if bare else words


def plain(text: str) -> str:
    """Text as sentencepiece gets it: single spaces, and characters that UTF-8 can hold."""
    return " ".join(space_words(without_surrogates(text).replace(SPACE, " ")))


def _prepared(text: str, case: Case) -> str:
    """The same, with marks for capitals if the tokenizer has them."""
    return plain(text) if case == "keep" else " ".join(mark_words(space_words(plain(text))))


def draw(lines: Iterable[str], count: int, random: Random) -> list[str]:
    """At most `count` lines of a stream, each with the same probability, in one pass (reservoir sampling)."""
    stream = iter(lines)
    kept = list(islice(stream, count))
    for seen, line in enumerate(stream, start=count + 1):
        index = int(random.random() * seen)
        if index < count:
            kept[index] = line
    return kept


def _train(kind: SubwordKind, lines: list[str], size: int, coverage: float, symbols: tuple[str, ...]) -> bytes:
    """Run sentencepiece's trainer with this size or, if that is too small, with the smallest that works."""
    try:
        return _train_exactly(kind, lines, size, coverage, symbols)
    except RuntimeError as problem:
        if not (least := re.search(r"required_chars\. \d+ vs (\d+)", str(problem))):
            message = f"{kind}: sentencepiece cannot learn from this text; it says: {problem}"
            if "sentences_.empty()" in str(problem):
                message = f"lines = 0: {kind} has nothing to learn from; give it text"
            raise DataError(message) from problem
    return _train_exactly(kind, lines, int(least[1]), coverage, symbols)


def _train_exactly(kind: SubwordKind, lines: list[str], size: int, coverage: float, symbols: tuple[str, ...]) -> bytes:
    """Train without output, with our special ids; a size that is too large for the text is reduced."""
    model = io.BytesIO()
    pad, start, end, unknown = SPECIAL_TOKENS
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=coverage,
        byte_fallback=True,
        normalization_rule_name="identity",
        max_sentence_length=_LONGEST_LINE,
        num_threads=_THREADS,
        minloglevel=_QUIET,
        user_defined_symbols=list(symbols),
        pad_id=PAD,
        bos_id=START,
        eos_id=END,
        unk_id=UNK,
        pad_piece=pad,
        bos_piece=start,
        eos_piece=end,
        unk_piece=unknown,
    )
    return model.getvalue()
