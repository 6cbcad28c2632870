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
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, START, UNK, Tokenizer, describe, without_surrogates
from regard.text.words import MARKS, Case, mark_words, space_words, unmark_words

SubwordKind = Literal["bpe", "unigram"]
SPACE: Final = "▁"  # sentencepiece's mark: this piece had a space before it
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

    Text is taken as it is (no Unicode normalisation), but runs of whitespace are one space, and so is the
    mark "▁" itself. `sampling` is the strength of `sample`: for BPE the probability that a merge is left
    out, for unigram the exponent α on the probabilities (small is wild). With `case` "mark" a capital is a word of its
    own before its word, see `regard.text.words`.
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
        """Learn from a stream of lines, of which at most `sentences`, drawn evenly, are kept in memory.

        There are at most `size` pieces: fewer where the text has no more, and more where its characters need them.
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
        """Cut each word at random. Only `random` decides, so a training run can be repeated.

        (sentencepiece can sample by itself, but from a generator that cannot be set back.)
        """
        cut = self._drop_merges if self.kind == "bpe" else self._choose
        words = [SPACE + word for word in _prepared(text, self.case).split(" ") if word]
        symbols = _MARKED if self.case == "mark" else ()
        return [number for word in words for number in ([self.id(word)] if word in symbols else cut(word, random))]

    def decode(self, ids: Iterable[int]) -> str:
        text: str = self._processor.decode([number for number in ids if number >= UNK])
        return " ".join(unmark_words(text.split(" "))) if self.case == "mark" else text

    def token(self, number: int) -> str:
        return self._processor.id_to_piece(number)

    def id(self, piece: str) -> int:
        return self._processor.piece_to_id(piece)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return word_of_spaced(pieces, marks=_MARKED if self.case == "mark" else ())

    def files(self) -> dict[str, bytes]:
        details = {"sampling": self.sampling} | ({"case": self.case} if self.case != "keep" else {})
        return describe(self.kind, details) | {MODEL: self.model}

    @cached_property
    def _processor(self) -> sentencepiece.SentencePieceProcessor:
        return open_model(self.model)

    @cached_property
    def _scores(self) -> dict[str, float]:
        """The score of each ordinary piece: a merge's rank, or a log-probability."""
        processor = self._processor
        ordinary = (n for n in range(self.size) if not (n <= UNK or processor.is_byte(n)))
        return {processor.id_to_piece(n): processor.get_score(n) for n in ordinary}

    def _spell(self, piece: str) -> list[int]:
        """The id of a piece, or those of its bytes where it has none."""
        if piece in self._scores:
            return [self.id(piece)]
        return [self.id(f"<0x{byte:02X}>") for byte in piece.encode()]

    def _drop_merges(self, word: str, random: Random) -> list[int]:
        """BPE-dropout: at every step each possible merge is overlooked with probability `sampling`."""
        pieces, scores = list(word), self._scores
        while True:
            best, place = -math.inf, -1
            for index, (left, right) in enumerate(pairwise(pieces)):
                score = scores.get(left + right, -math.inf)
                if score > best and random.random() >= self.sampling:
                    best, place = score, index
            if place < 0:
                return [number for piece in pieces for number in self._spell(piece)]
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]

    def _choose(self, word: str, random: Random) -> list[int]:
        """Unigram sampling: a segmentation x of the word with probability proportional to P(x)^α.

        The unigram model scores words independently, so choosing word by word is choosing sentences.
        """
        segmentations, weights = self._segmentations(word)
        return random.choices(segmentations, weights)[0]

    @cached_property
    def _segmentations(self) -> Callable[[str], tuple[list[list[int]], list[float]]]:
        """The best ways to cut a word with their weights, remembered for the words that come most often."""

        def segment(word: str) -> tuple[list[list[int]], list[float]]:
            ways = self._processor.nbest_encode(word.removeprefix(SPACE), nbest_size=_CANDIDATES)
            scores = [sum(self._processor.get_score(number) for number in way) for way in ways]
            return ways, [math.exp(self.sampling * (score - max(scores))) for score in scores]

        return lru_cache(maxsize=1 << 16)(segment)

    def __getstate__(self) -> dict[str, object]:
        """Only the fields travel to another process; what is derived from them is derived there."""
        return {"kind": self.kind, "model": self.model, "sampling": self.sampling, "case": self.case}


def open_model(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """A sentencepiece model, all of whose pieces can be read."""
    try:
        processor = sentencepiece.SentencePieceProcessor()
        processor.load(model_proto=model or b"\0")  # an empty one would be passed over
        for number in range(processor.get_piece_size()):
            processor.id_to_piece(number)
    except (RuntimeError, ValueError) as problem:  # a piece may not be UTF-8
        raise ModelError(f"{MODEL} = {len(model)} bytes: not a sentencepiece model; is it damaged?") from problem
    return processor


def word_of_spaced(pieces: Sequence[str], space: str = SPACE, marks: tuple[str, ...] = ()) -> list[int]:
    """For each piece its word, where a word begins with a mark of space.

    A bare mark, of space or case, belongs to the word that follows, and at the end to the word before.
    """
    word, words, bare = -1, [], False
    for piece in pieces:
        word += word < 0 or (piece.startswith(space) and not bare)
        bare = not piece.strip(space) or piece in marks
        words.append(word)
    return [max(0, min(owner, word - 1)) for owner in words] if bare else words


def plain(text: str) -> str:
    """Text as sentencepiece is given it: single spaces, and characters that UTF-8 can hold."""
    return " ".join(space_words(without_surrogates(text).replace(SPACE, " ")))


def _prepared(text: str, case: Case) -> str:
    """The same, with marks for capitals where the tokenizer has them."""
    return plain(text) if case == "keep" else " ".join(mark_words(space_words(plain(text))))


def draw(lines: Iterable[str], count: int, random: Random) -> list[str]:
    """At most `count` lines of a stream, each with the same chance, in one pass (reservoir sampling)."""
    stream = iter(lines)
    kept = list(islice(stream, count))
    for seen, line in enumerate(stream, start=count + 1):
        place = int(random.random() * seen)
        if place < count:
            kept[place] = line
    return kept


def _train(kind: SubwordKind, lines: list[str], size: int, coverage: float, symbols: tuple[str, ...]) -> bytes:
    """Run sentencepiece's trainer, with the size asked for or else the smallest that works."""
    try:
        return _train_exactly(kind, lines, size, coverage, symbols)
    except RuntimeError as problem:
        if not (least := re.search(r"required_chars\. \d+ vs (\d+)", str(problem))):
            raise _explain(kind, str(problem)) from problem
    return _train_exactly(kind, lines, int(least[1]), coverage, symbols)


def _train_exactly(kind: SubwordKind, lines: list[str], size: int, coverage: float, symbols: tuple[str, ...]) -> bytes:
    """Quietly, with our special ids; of a size that the text has no pieces for it takes what there is."""
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


def _explain(kind: SubwordKind, complaint: str) -> DataError:
    """sentencepiece's complaint in our words."""
    if "sentences_.empty()" in complaint:
        return DataError(f"lines = 0: {kind} has nothing to learn from; give it text")
    return DataError(f"{kind}: sentencepiece cannot learn from this text; it says: {complaint}")
