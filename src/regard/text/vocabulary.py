"""A vocabulary numbers the tokens it knows; a tokenizer cuts text into them, whatever they are."""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Final, Literal, Protocol, get_args

from regard.errors import DataError, ModelError, SettingsError
from regard.files import new_file, new_folder

# The four special tokens. They come first in every vocabulary, so that their ids are constants.

PAD: Final = 0  # fills a row up to the length of its longest batch-mate; never attended, never scored
START: Final = 1  # what a decoder reads before it has written anything
END: Final = 2  # what a decoder writes when it is done
UNK: Final = 3  # stands for a token outside the vocabulary

SPECIAL_TOKENS: Final = ("<pad>", "<start>", "<end>", "<unk>")  # by id


# A vocabulary numbers the tokens it knows. It never changes once made.

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}  # of the characters that TSV itself uses
_PLAIN = {escaped: plain for plain, escaped in _ESCAPES.items()}
_ESCAPE = str.maketrans(_ESCAPES)
_ESCAPED = re.compile(r"\\[\\tnr]")
_DIGITS = 18  # of a count


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id, with how often each was seen. `Vocabulary(("a", "b"))` numbers exactly those tokens.

    With the special tokens in front, an unknown token is `<unk>`; without them it is an error.
    """

    tokens: tuple[str, ...]
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.counts:
            object.__setattr__(self, "counts", (0,) * len(self.tokens))
        if len(self.counts) != len(self.tokens):
            raise DataError(f"counts = {len(self.counts)} numbers: one is needed for each of {len(self)} tokens")
        if len(self._ids) != len(self.tokens):
            twice = next(token for token, times in Counter(self.tokens).items() if times > 1)
            raise DataError(f"tokens = {twice!r}: appears twice; every token has one id")

    @classmethod
    def count(
        cls,
        tokens: Iterable[str],
        *,
        minimum: int = 1,
        size: int | None = None,
        special: bool = True,
        always: tuple[str, ...] = (),
    ) -> Vocabulary:
        """Count a stream of tokens; keep those seen `minimum` times, at most `size`, most frequent first.

        Ties are broken by the token itself, so that the same corpus always gives the same ids. The tokens of `always`
        are kept in any case and come first; one that was never seen counts once.
        """
        first = (*(SPECIAL_TOKENS if special else ()), *always)
        if size is not None and size <= len(first):
            raise SettingsError(f"size = {size}: leaves no room for a token; at least {len(first) + 1} would do")
        seen = Counter(tokens)
        ordered = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        kept = [(token, times) for token, times in ordered if times >= minimum and token not in first]
        kept = kept if size is None else kept[: size - len(first)]
        special_counts = tuple(max(seen[token], int(token in always)) for token in first)
        return cls(first + tuple(token for token, _ in kept), special_counts + tuple(times for _, times in kept))

    def extended(self, tokens: Iterable[str]) -> Vocabulary:
        """The same with more tokens at the end. Their count is zero, which tells them from those that were seen."""
        more = tuple(token for token in dict.fromkeys(tokens) if token not in self._ids)
        return Vocabulary(self.tokens + more, self.counts + (0,) * len(more))

    @cached_property
    def seen(self) -> int:
        """How many ids come before the first one that `extended` added."""
        first = len(SPECIAL_TOKENS) if self.has_special else 0
        return next((place for place in range(first, len(self)) if not self.counts[place]), len(self))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def has_special(self) -> bool:
        """Whether the special tokens hold their fixed ids here."""
        return self.tokens[: len(SPECIAL_TOKENS)] == SPECIAL_TOKENS

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def id(self, token: str) -> int:
        """The id of a token; `<unk>` for one that is not here."""
        number = self._ids.get(token)
        if number is not None:
            return number
        if not self.has_special:
            raise DataError(f"token = {token!r}: not in the vocabulary, and it has no <unk> to stand for it")
        return UNK

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """The ids of a sequence of tokens."""
        if not self.has_special:
            return [self.id(token) for token in tokens]
        find = self._ids.get  # a whole corpus comes this way: no method call for each token
        return [find(token, UNK) for token in tokens]

    def token(self, number: int) -> str:
        """The token of an id."""
        return self.tokens[number]

    def to_bytes(self) -> bytes:
        """The vocabulary as UTF-8 text: one line per id, the token, a tab, its count."""
        rows = zip(self.tokens, self.counts, strict=True)
        return "".join(f"{token.translate(_ESCAPE)}\t{count}\n" for token, count in rows).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Vocabulary:
        """Read what `to_bytes` wrote; errors name the file as `where`."""
        tokens, counts = [], []
        for number, line in enumerate(decoded(data, where).split("\n")[:-1], start=1):
            token, tab, count = line.partition("\t")
            if not tab or not count.isdecimal() or len(count) > _DIGITS:
                raise ModelError(f"{where} line {number} = {line[:40]!r}: not 'token<TAB>count'; is the file damaged?")
            tokens.append(_ESCAPED.sub(lambda match: _PLAIN[match.group()], token))
            counts.append(int(count))
        try:
            return cls(tuple(tokens), tuple(counts))
        except DataError as problem:
            raise ModelError(f"{where}: {problem}; is the file damaged?") from problem

    def save(self, path: str | Path) -> None:
        """Write the vocabulary as a small TSV file that people can read and `sort` can sort."""
        with new_file(Path(path)) as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a vocabulary that `save` wrote."""
        return cls.from_bytes(Path(path).read_bytes(), str(path))


def decoded(data: bytes, where: str | Path) -> str:
    """The text of a file that belongs to a model."""
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise ModelError(f"{where}: not UTF-8 ({problem.reason}); is the file damaged?") from problem


# What every tokenizer can do, whatever its pieces are: words, subwords, characters or bytes.

LearnedKind = Literal["word", "space", "character", "byte", "bpe", "unigram"]
ForeignKind = Literal["sentencepiece", "subword-nmt", "byte-bpe"]  # came with a model from elsewhere
Kind = LearnedKind | ForeignKind | Literal["vectors"]  # vectors are not cut from text: `regard.text.vectors`
LEARNED, FOREIGN = get_args(LearnedKind), get_args(ForeignKind)
DESCRIPTION, VOCABULARY = "tokenizer.json", "vocabulary.tsv"
SILENT = frozenset((PAD, START, END))

_SURROGATES = re.compile("[\ud800-\udfff]")


class Tokenizer(Protocol):
    """Text to ids and back. The special ids of `regard.text.vocabulary` are the same in every tokenizer.

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

    def details(self) -> dict[str, object]:
        """What `tokenizer.json` says beside the kind."""
        return {}

    def files(self) -> dict[str, bytes]:
        """The files of a folder from which `regard.text.load` makes the same tokenizer."""
        return {DESCRIPTION: (json.dumps({"kind": self.kind, **self.details()}, indent=2) + "\n").encode()}

    @property
    def silent(self) -> frozenset[int]:
        """The ids that leave nothing in a text."""
        return SILENT

    def sample(self, text: str, random: Random) -> list[int]:
        """The text cut in another way, for training; `encode` where there is only one way."""
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

    def __getstate__(self) -> dict[str, object]:
        """Other processes get the fields alone: cached properties are computed there anew."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class VocabularyTokenizer(Tokenizer):
    """A tokenizer whose pieces have the ids of a vocabulary; other pieces are `<unk>`."""

    vocabulary: Vocabulary

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(self.pieces(text))

    def token(self, number: int) -> str:
        return self.vocabulary.token(number)

    def id(self, piece: str) -> int:
        return self.vocabulary.id(piece)

    def files(self) -> dict[str, bytes]:
        return super().files() | {VOCABULARY: self.vocabulary.to_bytes()}


def without_surrogates(text: str) -> str:
    """Text that UTF-8 can hold: half a surrogate pair, which JSON may contain, becomes U+FFFD."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
