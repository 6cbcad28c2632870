"""What every tokenizer can do, whatever its pieces are: words, subwords, characters or bytes."""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Literal, Protocol, get_args

from regard.files import new_folder
from regard.text.special import END, PAD, START

LearnedKind = Literal["word", "space", "character", "byte", "bpe", "unigram"]
ForeignKind = Literal["sentencepiece", "subword-nmt", "byte-bpe"]  # came with a model from elsewhere
Kind = LearnedKind | ForeignKind
LEARNED, FOREIGN = get_args(LearnedKind), get_args(ForeignKind)
DESCRIPTION = "tokenizer.json"
SILENT = frozenset((PAD, START, END))

_SURROGATES = re.compile("[\ud800-\udfff]")


class Tokenizer(Protocol):
    """Text to ids and back. The special ids of `regard.text.special` are the same in every tokenizer.

    `decode(encode(text))` is `text` again: exactly for characters and bytes, and with every run of
    whitespace as one space for words and subwords; a no-break space is kept. Nothing here adds `<start>` or `<end>`.
    """

    kind: Kind

    @property
    @abstractmethod
    def size(self) -> int:
        """How many ids there are, special ones included."""

    @abstractmethod
    def pieces(self, text: str) -> list[str]:
        """The text as pieces, spelled as `token` spells them."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The text as ids, without special tokens (but for `<unk>`)."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. `<pad>`, `<start>` and `<end>` leave nothing, `<unk>` a visible mark."""

    @abstractmethod
    def token(self, number: int) -> str:
        """The piece of an id."""

    @abstractmethod
    def id(self, piece: str) -> int:
        """The id of a piece; `<unk>` for one that is not known."""

    @abstractmethod
    def word_of(self, pieces: Sequence[str]) -> list[int]:
        """For each piece of a text, the number of the whitespace word it is in: folds pieces into words."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """Everything there is to know about this tokenizer, as the files of its folder."""

    @property
    def silent(self) -> frozenset[int]:
        """The ids that leave nothing in a text."""
        return SILENT

    def sample(self, text: str, random: Random) -> list[int]:
        """Another way to cut the same text, for training; the usual way where there is only one."""
        del random
        return self.encode(text)

    def fingerprint(self) -> str:
        """Changes when, and only when, the tokenizer does."""
        digest = hashlib.sha256()
        for name, data in sorted(self.files().items()):
            digest.update(f"{name} {len(data)}\n".encode() + data)
        return digest.hexdigest()

    def save(self, folder: str | Path) -> None:
        """Write a folder that `regard.text.load` reads."""
        with new_folder(Path(folder)) as beside:
            for name, data in self.files().items():
                (beside / name).write_bytes(data)


def describe(kind: Kind, details: Mapping[str, float | str | list[str]] = MappingProxyType({})) -> dict[str, bytes]:
    """The small JSON file that says which tokenizer a folder holds."""
    return {DESCRIPTION: (json.dumps({"kind": kind, **details}, indent=2) + "\n").encode()}


def without_surrogates(text: str) -> str:
    """Text that UTF-8 can hold: half a surrogate pair, which JSON can smuggle in, becomes U+FFFD."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
