"""Where a task's rows come from: the user's files or the built-in corpus, behind one face."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from regard.corpora.fable import Split, check_language, generate
from regard.corpora.sentence import Language, Sentence
from regard.data.encoding import Encoder
from regard.data.examples import Examples
from regard.data.readers import Corpus
from regard.data.shards import Progress, Shards, prepare, prepare_corpus
from regard.data.tables import Row
from regard.errors import SettingsError
from regard.settings import DataSettings, Settings

REMEMBERED = 200_000  # rows of the built-in corpus, some 40 MB
VALID = 1000  # sentences of the built-in corpus to validate on
COLUMNS = {
    "translate": ("source", "target"),
    "language": ("text",),
    "classify": ("text", "label"),
    "tag": ("words", "tags"),
}


class Material(Protocol):
    """Rows of text, as often as they are asked for."""

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        """Numbered rows with one text for each of the columns."""

    def encode(self, encoder: Encoder, folder: Path, progress: Progress | None = None) -> Examples:
        """The same as numbers, kept in a folder."""


@dataclass(frozen=True)
class Files:
    """The user's own files."""

    corpus: Corpus

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        return self.corpus.rows(names)

    def encode(self, encoder: Encoder, folder: Path, progress: Progress | None = None) -> Shards:
        return prepare_corpus(self.corpus, encoder, folder, progress=progress)


@dataclass(frozen=True)
class Fable:
    """A part of the built-in corpus."""

    language: Language
    split: Split
    count: int
    words: int
    riddles: float = 0.0
    unknown: float = 0.0

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        return iter(_drawn(self, tuple(names)) if self.count <= REMEMBERED else _draw(self, tuple(names)))

    def encode(self, encoder: Encoder, folder: Path, progress: Progress | None = None) -> Shards:
        fingerprint = hashlib.sha256(f"{self} {encoder.fingerprint()}".encode()).hexdigest()
        rows = self.rows(encoder.names)
        return prepare(rows, encoder, folder, fingerprint=fingerprint, total=self.count, progress=progress)


def _draw(fable: Fable, names: tuple[str, ...]) -> Iterator[Row]:
    sentences = generate(
        fable.language,
        count=fable.count,
        split=fable.split,
        maximum_words=fable.words,
        riddles=fable.riddles,
        unknown=fable.unknown,
    )
    for number, sentence in enumerate(sentences, start=1):
        yield number, tuple(_column(sentence, name) for name in names)


@lru_cache(maxsize=2)
def _drawn(fable: Fable, names: tuple[str, ...]) -> list[Row]:
    """The same, remembered: tokenizers are learned from the rows before these are encoded, and drawing takes time."""
    return list(_draw(fable, names))


def _column(sentence: Sentence, name: str) -> str:
    match name:
        case "target":
            return sentence.target
        case "tags":
            return " ".join(sentence.tags)
        case "label":
            return sentence.sentiment
        case "words":  # as many as there are tags
            return " ".join(sentence.tokens)
        case _:  # source, text
            return sentence.source


def materials(settings: Settings) -> tuple[Material, Material]:
    """The training and the validation rows that the settings name."""
    data = settings.data
    if data.corpus.startswith("fable"):
        return _fable(data, "train", data.pairs), _fable(data, "valid", VALID)
    return _files(settings, "", "training"), _files(settings, "valid_", "validation")


def _fable(data: DataSettings, split: Split, count: int) -> Fable:
    _, _, language = data.corpus.partition(":")
    check_language(language)
    return Fable(language, split, count, data.words, data.riddles, data.unknown)  # type: ignore[arg-type]


def _files(settings: Settings, prefix: str, purpose: str) -> Files:
    data, names = settings.data, COLUMNS[settings.task]
    corpus, *sides = (getattr(data, f"{prefix}{name}") for name in ("corpus", "source", "target"))
    given = tuple(side for side in sides if side)
    if bool(corpus) == bool(given):
        problem = "is given in two ways" if corpus else "is missing"
        wanted = f"data.{prefix}source" + (f" and data.{prefix}target" if len(names) == 2 else "")
        hint = "regard train PRESET --source FILE --target FILE --valid-source FILE --valid-target FILE"
        raise SettingsError(
            f"data: the {purpose} corpus {problem}; give {wanted}, or data.{prefix}corpus alone",
            hint="" if corpus or len(names) == 1 else hint,
        )
    columns = tuple(column.strip() for column in data.columns.split(",")) if data.columns else ()
    return Files(Corpus((corpus,) if corpus else given, columns if corpus else ()))
