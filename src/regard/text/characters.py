"""Characters and bytes: the smallest vocabularies, the longest sequences, every text back exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Literal

from regard.text.special import SPECIAL_TOKENS, UNK
from regard.text.tokenizer import SILENT, Tokenizer, describe, without_surrogates
from regard.text.vocabulary import Vocabulary
from regard.text.words import NO_BREAK, VOCABULARY

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_FIRST_BYTE: Final = len(SPECIAL_TOKENS)
_BYTE_TOKENS = (*SPECIAL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256)))
_BYTE_IDS = {token: number for number, token in enumerate(_BYTE_TOKENS)}


@dataclass(frozen=True)
class CharacterTokenizer(Tokenizer):
    """One piece for each Unicode character that the corpus holds."""

    vocabulary: Vocabulary
    kind: Literal["character"] = field(default="character", init=False)

    @classmethod
    def learn(cls, lines: Iterable[str], *, size: int | None = None, minimum: int = 1) -> CharacterTokenizer:
        """Count the characters of a stream of lines."""
        return cls(Vocabulary.count(chain.from_iterable(lines), size=size, minimum=minimum))

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        return list(text)

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(text)

    def decode(self, ids: Iterable[int]) -> str:
        printed = (number for number in ids if number not in SILENT)
        return "".join(_UNKNOWN if number == UNK else self.vocabulary.token(number) for number in printed)

    def token(self, number: int) -> str:
        return self.vocabulary.token(number)

    def id(self, piece: str) -> int:
        return self.vocabulary.id(piece)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return _words_of_characters(pieces)

    def files(self) -> dict[str, bytes]:
        return describe(self.kind) | {VOCABULARY: self.vocabulary.to_bytes()}


@dataclass(frozen=True)
class ByteTokenizer(Tokenizer):
    """The 256 bytes of UTF-8: nothing to learn, and nothing is ever unknown."""

    kind: Literal["byte"] = field(default="byte", init=False)

    @property
    def size(self) -> int:
        return len(_BYTE_TOKENS)

    def pieces(self, text: str) -> list[str]:
        return [_BYTE_TOKENS[number] for number in self.encode(text)]

    def encode(self, text: str) -> list[int]:
        return [byte + _FIRST_BYTE for byte in without_surrogates(text).encode()]

    def decode(self, ids: Iterable[int]) -> str:
        printed = (number for number in ids if number not in SILENT)
        data = b"".join(bytes([number - _FIRST_BYTE]) if number != UNK else _UNKNOWN.encode() for number in printed)
        return data.decode("utf-8", "replace")

    def token(self, number: int) -> str:
        return _BYTE_TOKENS[number]

    def id(self, piece: str) -> int:
        return _BYTE_IDS.get(piece, UNK)

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        data = bytes(self.id(piece) - _FIRST_BYTE for piece in pieces)
        characters = data.decode("utf-8", "surrogateescape")  # a stray byte stays one character
        words = _words_of_characters(characters)
        widths = (len(character.encode("utf-8", "surrogateescape")) for character in characters)
        return [word for word, width in zip(words, widths, strict=True) for _ in range(width)]

    def files(self) -> dict[str, bytes]:
        return describe(self.kind)


def _words_of_characters(characters: Iterable[str]) -> list[int]:
    """A space belongs to the word before it, and leading spaces to the first word."""
    word, inside, words = -1, False, []
    for character in characters:
        solid = not character.isspace() or character in NO_BREAK
        word += not inside and solid
        inside = solid
        words.append(max(word, 0))
    return words
