"""One side of a trace: ids, the pieces they spell, and the whitespace word that each piece is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from regard.errors import DataError
from regard.explain.answer import Answer, Hidden
from regard.text.known import is_unspaced
from regard.text.special import SPECIAL_TOKENS, UNK
from regard.text.subwords import SPACE
from regard.text.tokenizer import SILENT, Tokenizer
from regard.text.words import legible, space_words

OUTSIDE = -1  # the word of a special token
Rows = Sequence[int] | Sequence[Sequence[int]]  # ids, or each id followed by the letters it is written in
BYTES = ("byte", "byte-bpe")  # tokenizers whose pieces are parts of letters
_QUESTION_MARK = "<0x3F>"  # stands for <unk> among bytes, which have no piece of that name


@dataclass(frozen=True)
class Side(Answer):
    """One side of a trace: pieces and words."""

    ids: tuple[int, ...] = ()  # special tokens included
    pieces: Annotated[tuple[str, ...], Field(description="As the model reads them.")] = ()
    word_of: Annotated[
        tuple[int, ...], Field(description="For each piece the number of its word; -1 for special tokens.")
    ] = ()
    words: Annotated[tuple[str, ...], Field(description="At whitespace.")] = ()
    letters: Hidden[tuple[tuple[int, ...], ...]] = ()  # for each piece, where the model reads how it is written

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> Rows:
        """What the model reads: ids, with their letters where it takes them."""
        if not self.letters:
            return self.ids
        return [[number, *letters] for number, letters in zip(self.ids, self.letters, strict=True)]

    def pieces_of(self, word: int) -> list[int]:
        """The places of a word's pieces."""
        if not 0 <= word < len(self.words):
            raise DataError(f"word = {word}: there is no such word; words count from 0 to {len(self.words) - 1}")
        return [place for place, owner in enumerate(self.word_of) if owner == word]


def with_letters(rows: Rows) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The ids, and the letters of each where there are some."""
    ids = tuple(row if isinstance(row, int) else row[0] for row in rows)
    return ids, tuple(tuple(row[1:]) for row in rows if not isinstance(row, int) and len(row) > 1)


def spell(rows: Rows, tokenizer: Tokenizer | None = None, text: str | None = None, *, at_spaces: bool = False) -> Side:
    """The side that ids stand for, with their letters where they have some.

    With the ``text`` they came from, an unknown word shows as itself.
    Words are those of the text at whitespace, whatever the tokenizer; so word 3 of a trace is word 3 of a
    gold alignment. In a script without spaces, as in Chinese, each piece is a word, unless they are to be counted
    ``at_spaces`` all the same. Without a tokenizer each id is a word and is spelled as its number.
    """
    ids, letters = with_letters(rows)
    side = _spelled(ids, tokenizer, text)
    whole = at_spaces or tokenizer is None or tokenizer.kind in BYTES or not _is_unspaced(side)
    side = side if whole else apart(side, bare=SPACE)
    return replace(side, letters=letters) if letters else side


def _spelled(ids: tuple[int, ...], tokenizer: Tokenizer | None, text: str | None) -> Side:
    if tokenizer is None:
        return _numbers(ids)
    printed = [number for number in ids if number not in tokenizer.silent]
    pieces = [tokenizer.token(number) for number in printed]
    if text is not None and len(known := tokenizer.pieces(text)) == len(pieces):
        pieces = known
    named = [_QUESTION_MARK if tokenizer.kind == "byte" and piece == SPECIAL_TOKENS[UNK] else piece for piece in pieces]
    owners = tokenizer.word_of(named)
    words = space_words(tokenizer.decode(printed) if text is None else text)
    if owners and len(words) != owners[-1] + 1:  # a text that does not come back as it was, as after <unk>
        words = _decoded_apart(printed, owners, tokenizer)
    special = {number: tokenizer.token(number) for number in ids if number in tokenizer.silent - SILENT}
    return _with_special(ids, pieces, owners, words, special)


def _is_unspaced(side: Side) -> bool:
    """Whether most letters of its words of several pieces are of a script without spaces."""
    counts = Counter(owner for owner in side.word_of if owner != OUTSIDE)
    letters = [letter for word, count in counts.items() if count > 1 for letter in side.words[word]]
    return 2 * sum(map(is_unspaced, letters)) > len(letters)


def apart(side: Side, bare: str = "") -> Side:
    """Every piece as a word of its own; special tokens stay. A mark that stands ``bare`` belongs to the next piece."""
    owners, words, begun = list[int](), list[str](), False
    for piece, owner in zip(side.pieces, side.word_of, strict=True):
        if owner == OUTSIDE:
            owners.append(OUTSIDE)
            continue
        word = legible(piece).replace(bare, "") if bare else legible(piece)
        words = [*(words[:-1] if begun else words), word]
        owners.append(len(words) - 1)
        begun = piece == bare
    return replace(side, word_of=tuple(owners), words=tuple(words))


def _numbers(ids: tuple[int, ...]) -> Side:
    printed = [str(number) for number in ids if number not in SILENT]
    return _with_special(ids, printed, list(range(len(printed))), printed)


def _with_special(
    ids: tuple[int, ...],
    pieces: Sequence[str],
    owners: Sequence[int],
    words: Sequence[str],
    others: Mapping[int, str] = MappingProxyType({}),
) -> Side:
    """``others`` are special tokens besides those that every vocabulary has."""
    named = {**{number: SPECIAL_TOKENS[number] for number in SILENT}, **others}
    spelled, placed = iter(pieces), iter(owners)
    return Side(
        ids,
        tuple(named[number] if number in named else next(spelled) for number in ids),
        tuple(OUTSIDE if number in named else next(placed) for number in ids),
        tuple(words),
    )


def _decoded_apart(printed: Sequence[int], owners: Sequence[int], tokenizer: Tokenizer) -> list[str]:
    groups: list[list[int]] = [[] for _ in range(owners[-1] + 1)]
    for number, owner in zip(printed, owners, strict=True):
        groups[owner].append(number)
    return [tokenizer.decode(group).strip() for group in groups]
