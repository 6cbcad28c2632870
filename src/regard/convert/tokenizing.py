"""The tokenizer beside a model, where the model's own file says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.convert.package import Package, read_bytes
from regard.errors import ModelError
from regard.text.foreign import MergesTokenizer, SentencePieceTokenizer
from regard.text.grafting import recut_targets
from regard.text.tokenizers import PAIR, Frame, Tokenizers
from regard.text.vocabulary import Tokenizer, Vocabulary
from regard.text.words import SpaceTokenizer

_SENTENCEPIECE = ("sentencepiece.model", "sentencepiece.bpe.model", "spm.model", "spiece.model")
PLAIN = Frame()
_SIDES = ("source.spm", "target.spm")
_MERGES = ("bpe.model", "bpe.code", "bpe.codes", "bpecodes", "codes")


def tokenizers_of(
    package: Package, source: Sequence[str], target: Sequence[str], *, joint: bool, frame: Frame = PLAIN
) -> Tokenizers:
    """Of two vocabularies by our ids: Regard's files, sentencepiece's, subword-nmt's; else what is between spaces."""
    places = (package.folder, package.root)
    if own := next((place / "tokenizer" for place in places if (place / "tokenizer" / PAIR).is_file()), None):
        return _own(own, source, target)
    first = _tokenizer(_found(places, (_SIDES[0], *_SENTENCEPIECE)), _found(places, _MERGES), source)
    if joint and not _found(places, _SIDES[1:]):
        return recut_targets(Tokenizers(first, first, frame=frame))
    second = _tokenizer(_found(places, (_SIDES[1], *_SENTENCEPIECE)), _found(places, _MERGES), target)
    return Tokenizers(first, second, frame=frame)


def _found(places: Sequence[Path], names: Sequence[str]) -> Path | None:
    return next((place / name for place in places for name in names if (place / name).is_file()), None)


def _tokenizer(sentencepiece: Path | None, merges: Path | None, pieces: Sequence[str]) -> Tokenizer:
    vocabulary = Vocabulary(tuple(pieces))
    if sentencepiece is not None:
        return SentencePieceTokenizer(vocabulary, model=read_bytes(sentencepiece))
    if merges is not None:
        return MergesTokenizer(vocabulary, codes=read_text(merges))
    return SpaceTokenizer(vocabulary)


def read_text(path: Path) -> str:
    """A file of text."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as problem:
        raise ModelError(f"{path}: not UTF-8 ({problem.reason}); is the file damaged?") from None


def _own(folder: Path, source: Sequence[str], target: Sequence[str]) -> Tokenizers:
    """What `regard runs export` put beside the model."""
    tokenizers = Tokenizers.load(folder)
    for tokenizer, pieces in ((tokenizers.source, source), (tokenizers.target, target)):
        if [tokenizer.token(number) for number in range(tokenizer.size)] != list(pieces):
            raise ModelError(
                f"{folder}: has other pieces than the vocabulary of the model; they do not belong together"
            )
    return tokenizers
