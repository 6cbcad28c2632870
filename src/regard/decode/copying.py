"""Words that a vocabulary does not have go from the source to the output as they are written."""

from __future__ import annotations

from collections.abc import Sequence

from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import UNK
from regard.text.words import JOINER, MARKS, WordTokenizer, raised


def unknown_words(tokenizers: Tokenizers, source: str) -> dict[int, str]:
    """What each <unk> of a source stands for: by the place of its piece, the word as it is written."""
    ids, pieces = tokenizers.source.encode(source), tokenizers.source.pieces(source)
    marks = ["", *(piece if piece in MARKS else "" for piece in pieces)]
    target = tokenizers.target
    if (
        isinstance(target, WordTokenizer) and target.case == "mark"
    ):  # the model says by marks which begin with a capital
        marks = [""] * len(marks)
    return {place: _written(pieces[place], marks[place]) for place, number in enumerate(ids) if number == UNK}


def _written(piece: str, mark: str) -> str:
    """A word by itself; a mark of punctuation stays glued to what is before it."""
    bare = piece.removeprefix(JOINER) or piece
    return raised(mark, bare) if any(map(str.isalnum, bare)) else piece


def copied(tokenizers: Tokenizers, tokens: Sequence[int], words: Sequence[str]) -> str:
    """The text of tokens with these words in the place of each <unk>; where there are too few, it is left out."""
    target, rest = tokenizers.target, iter(words)
    assert isinstance(target, WordTokenizer)
    pieces = (next(rest, "") if token == UNK else target.token(token) for token in tokens)
    return target.join(piece for piece in pieces if piece)


def copied_in_order(tokenizers: Tokenizers, source: str, tokens: Sequence[int]) -> str:
    """The first <unk> is the first unknown word of the source, and so on: for models that look at nothing."""
    return copied(tokenizers, tokens, list(unknown_words(tokenizers, source).values()))
