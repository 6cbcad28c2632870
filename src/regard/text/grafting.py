"""New pieces for the vocabulary of a trained model, added at its end, so that no id changes."""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, pairwise

from regard.errors import SettingsError
from regard.text.foreign import SentencePieceTokenizer, joined
from regard.text.subwords import SPACE, SubwordTokenizer, open_model, piece_scores
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import SPECIAL_TOKENS, UNK, Tokenizer, Vocabulary
from regard.text.words import CharacterTokenizer, SpaceTokenizer, WordTokenizer

FEWEST = 2  # how often a new piece must occur
MANY = 0.1  # share of a vocabulary's pieces that the other side's sentencepiece model does not have
Word = tuple[str, ...]  # its pieces
Pair = tuple[str, str]


def graft_both(tokenizers: Tokenizers, source: Iterable[str], target: Iterable[str], count: int) -> Tokenizers:
    """Tokenizers with at most `count` more pieces each, learned from the texts of both sides."""
    if tokenizers.source is tokenizers.target:
        both = graft(tokenizers.source, chain(source, target), count)
        return replace(tokenizers, source=both, target=both)
    if tokenizers.joint:
        raise SettingsError(f"train.graft = {count}: two tokenizers share one vocabulary, which cannot grow; use 0")
    return replace(
        tokenizers, source=graft(tokenizers.source, source, count), target=graft(tokenizers.target, target, count)
    )


def graft(tokenizer: Tokenizer, lines: Iterable[str], count: int) -> Tokenizer:
    """The tokenizer with at most `count` more pieces: the most frequent words or characters that it does not know, or
    the next merges of byte-pair encoding."""
    match tokenizer:
        case WordTokenizer() | SpaceTokenizer() | CharacterTokenizer():
            if tokenizer.vocabulary.seen < tokenizer.size:
                raise SettingsError(f"train.graft = {count}: the vocabulary ends with words from a vector file; use 0")
            return replace(tokenizer, vocabulary=_with_unknown(tokenizer, lines, count))
        case SubwordTokenizer() | SentencePieceTokenizer():
            scores = piece_scores(open_model(tokenizer.model))
            new = _merges(Counter(_words(tokenizer, lines, scores)), scores, count)
            model = tokenizer.model + b"".join(piece_entry(piece, score) for piece, score in new.items())
            if isinstance(tokenizer, SentencePieceTokenizer):
                return replace(tokenizer, model=model, vocabulary=tokenizer.vocabulary.extended(new))
            return replace(tokenizer, model=model)
        case _:
            raise SettingsError(
                f"train.graft = {count}: a tokenizer of kind '{tokenizer.kind}' cannot get more pieces; use 0"
            )


def origins(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """For each new piece, the ids of the old pieces that it was cut into before."""
    pieces = [new.token(number) for number in range(old.size, new.size)]
    if not isinstance(old, SubwordTokenizer | SentencePieceTokenizer):
        return [[UNK] for _ in pieces]
    scores = piece_scores(open_model(old.model))
    cut = _cut_by_merges if _ranks(scores) else _cut_by_probability
    return [[old.id(part) for part in cut(piece, scores)] for piece in pieces]


def recut_targets(tokenizers: Tokenizers) -> Tokenizers:
    """Tokenizers that cut a target into the pieces that the model writes, if both sides have one sentencepiece model
    that lacks many of these pieces.

    OPUS-MT has a sentencepiece model for each side and one vocabulary for both; packages of Argos keep only the
    source's model, because translating needs no other. A vocabulary begins with its most frequent pieces, so that the
    nth has a probability of about 1 / n (Zipf), which is enough for a unigram model.
    """
    tokenizer = tokenizers.source
    if tokenizer is not tokenizers.target or not isinstance(tokenizer, SentencePieceTokenizer):
        return tokenizers
    model = open_model(tokenizer.model)
    ordinary = piece_scores(model)
    special = {model.id_to_piece(number) for number in range(model.get_piece_size())} - ordinary.keys()
    ranked = enumerate(tokenizer.vocabulary.tokens[len(SPECIAL_TOKENS) :], 1)
    pieces = {piece: rank for rank, piece in ranked if piece not in tokenizer.control and piece not in special}
    if _ranks(ordinary) or sum(piece not in ordinary for piece in pieces) < MANY * len(pieces):
        return tokenizers
    scores = {piece: -math.log(rank * math.log(len(pieces))) for piece, rank in pieces.items()}
    return replace(tokenizers, target=replace(tokenizer, model=_respelled(tokenizer.model, scores)))


def _respelled(model: bytes, scores: Mapping[str, float]) -> bytes:
    """A sentencepiece model with other ordinary pieces."""
    processor, number, kept = open_model(model), 0, list[bytes]()
    special = processor.is_byte, processor.is_control, processor.is_unknown
    for field, chunk in _fields(model):
        if field != 1 or any(kind(number) for kind in special):
            kept.append(chunk)
        number += field == 1
    return b"".join((*kept, *(piece_entry(piece, score) for piece, score in scores.items())))


def _fields(data: bytes) -> Iterable[tuple[int, bytes]]:
    """The fields of a protocol buffer whose fields are all messages, by number."""
    at = 0
    while at < len(data):
        begin, (key, at) = at, _read_varint(data, at)
        length, at = _read_varint(data, at)
        at += length
        yield key >> 3, data[begin:at]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at


def _with_unknown(
    tokenizer: WordTokenizer | SpaceTokenizer | CharacterTokenizer, lines: Iterable[str], count: int
) -> Vocabulary:
    known = tokenizer.vocabulary
    unknown = Counter(piece for line in lines for piece in tokenizer.pieces(line) if piece not in known)
    new = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))[:count]
    return Vocabulary(known.tokens + tuple(piece for piece, _ in new), known.counts + tuple(times for _, times in new))


def _ranks(scores: Mapping[str, float]) -> bool:
    """Whether scores are the ranks of merges, not log-probabilities."""
    return all(score == int(score) for score in scores.values())


def _words(
    tokenizer: SubwordTokenizer | SentencePieceTokenizer, lines: Iterable[str], scores: Mapping[str, float]
) -> Iterable[Word]:
    """The words of a text as sequences of ordinary pieces; other pieces end a word."""
    for line in lines:
        word: list[str] = []
        for piece in tokenizer.pieces(line):
            if word and (piece.startswith(SPACE) or piece not in scores):
                yield tuple(word)
                word = []
            if piece in scores:
                word.append(piece)
        if word:
            yield tuple(word)


def _merges(words: Counter[Word], scores: Mapping[str, float], count: int) -> dict[str, float]:
    """The pieces that byte-pair encoding would learn next, with scores that let the model use them."""
    ranks, lowest = _ranks(scores), min(scores.values(), default=0.0)
    total = sum(len(word) * times for word, times in words.items())
    pairs, where = Counter[Pair](), defaultdict[Pair, set[Word]](set)
    for word, times in words.items():
        for pair in pairwise(word):
            pairs[pair] += times
            where[pair].add(word)
    new: dict[str, float] = {}
    while pairs and len(new) < count:
        pair, times = max(pairs.items(), key=lambda item: (item[1], item[0]))
        if times < FEWEST:
            break
        piece = "".join(pair)
        if piece not in scores and piece not in new:
            known = sum(new.get(part, scores.get(part, lowest)) for part in pair)
            new[piece] = lowest - 1 - len(new) if ranks else max(math.log(times / total), known + 1e-3)
        for word in list(where[pair]):
            _replace(word, tuple(joined(word, pair)), words, pairs, where)
        pairs.pop(pair, None)
    return new


def _replace(
    word: Word, shorter: Word, words: Counter[Word], pairs: Counter[Pair], where: dict[Pair, set[Word]]
) -> None:
    """Count a word in its shorter form, after a merge."""
    times = words.pop(word)
    for pair in pairwise(word):
        pairs[pair] -= times
        where[pair].discard(word)
    words[shorter] += times
    for pair in pairwise(shorter):
        pairs[pair] += times
        where[pair].add(shorter)


def piece_entry(piece: str, score: float, kind: int = 1) -> bytes:
    """A piece as an entry of sentencepiece's file, a protocol buffer whose first field is the list of pieces: appended
    to a file, it becomes the last piece. Kind 1 is an ordinary piece."""
    text = piece.encode()
    entry = b"\x0a" + _varint(len(text)) + text + b"\x15" + struct.pack("<f", score)
    entry += b"\x18" + _varint(kind) if kind != 1 else b""
    return b"\x0a" + _varint(len(entry)) + entry


def message(number: int, values: Mapping[int, int | bytes]) -> bytes:
    """A field of a protocol buffer that is a message of numbers and texts."""
    inside = b""
    for field, value in values.items():
        if isinstance(value, bytes):
            inside += _varint(field << 3 | 2) + _varint(len(value)) + value
        else:
            inside += _varint(field << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(inside)) + inside


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _cut_by_merges(piece: str, scores: Mapping[str, float]) -> list[str]:
    """As byte-pair encoding does: merge the two neighbours with the best score first."""
    parts = list(piece)
    while True:
        joint = [scores.get(left + right, -math.inf) for left, right in pairwise(parts)]
        if not joint or (best := max(joint)) == -math.inf:
            return parts
        at = joint.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def _cut_by_probability(piece: str, scores: Mapping[str, float]) -> list[str]:
    """The most probable cut; a character that is no piece costs more than the rarest piece."""
    lowest = min(scores.values(), default=0.0) - 10
    best: list[tuple[float, int]] = [(0.0, 0)]  # of the first n characters: the score, and where the last part begins
    for end in range(1, len(piece) + 1):
        parts = ((begin, piece[begin:end]) for begin in range(end))
        best.append(
            max(
                (best[begin][0] + scores.get(part, lowest), begin)
                for begin, part in parts
                if part in scores or len(part) == 1
            )
        )
    cut, end = list[str](), len(piece)
    while end:
        begin = best[end][1]
        cut.append(piece[begin:end])
        end = begin
    return cut[::-1]
