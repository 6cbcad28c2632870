"""How a word is written, for models that read its letters: nothing to learn, and no word is unknown.

Letters are the bytes of UTF-8, numbered as in `ByteTokenizer`, between `<start>` and `<end>`, so that a model
can tell the beginning and the end of a word from its middle.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from regard.text.casing import MARKS
from regard.text.characters import ByteTokenizer
from regard.text.special import END, PAD, START, UNK
from regard.text.tokenizer import Tokenizer

LETTERS: Final = ByteTokenizer().size  # different letters, special ones included


@lru_cache(maxsize=1 << 16)
def spell(piece: str, places: int) -> tuple[int, ...]:
    """A piece's letters in exactly `places` numbers. Of a long one the middle is left out: endings tell most."""
    letters = [START, *ByteTokenizer().encode(piece), END]
    if len(letters) > places:
        letters = letters[: places // 2] + letters[-((places + 1) // 2) :]
    return (*letters, *[PAD] * (places - len(letters)))


def word_ids(tokenizer: Tokenizer, word: str) -> list[int]:
    """The pieces of one word, of which there is always one: a word that leaves none is unknown."""
    return tokenizer.encode(word) or [UNK]


def own_piece(tokenizer: Tokenizer, word: str) -> int:
    """Which piece of a word stands for it: the first that is no mark of a capital."""
    if getattr(tokenizer, "case", "keep") != "mark":
        return 0
    pieces = tokenizer.pieces(word)
    return next((place for place, piece in enumerate(pieces) if piece.lstrip("▁") not in ("", *MARKS)), 0)


def word_letters(tokenizer: Tokenizer, word: str, places: int) -> list[int]:
    """The letters of those pieces, end to end."""
    pieces = tokenizer.pieces(word) or [word]
    return [letter for piece in pieces for letter in spell(piece, places)]
