"""The rows of a task, from the user's files or from the built-in corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol

from regard.data.encoding import Examples, RowEncoder
from regard.data.lines import Progress
from regard.data.readers import Corpus, format_of
from regard.data.shards import Shards, prepare, prepare_corpus
from regard.data.tables import Row
from regard.errors import DataError, SettingsError, quoted
from regard.fable.corpus import Split, check_language, generate
from regard.fable.sentence import Language, ParallelSentence
from regard.settings import DataSettings, Extent, Settings
from regard.tasks.load import task_of
from regard.tasks.predictor import Rows
from regard.text.vectors import inlined, parse

REMEMBERED = 200_000  # rows of the built-in corpus that are kept in memory, some 40 MB
VALID = 1000  # sentences of the built-in corpus to validate on, and rows of the user's that are held out at the most
EVERY = 20  # one row of so many is held out
FEW = 20  # rows: with fewer none is held out, and validation uses training rows
MEASURED = 20_000  # rows whose characters are counted; the others are taken to be alike

# The largest hash among the rows held out, their number, and the number of all rows; -1 and 0 if there are too few
HeldOut = tuple[int, int, int]


class Material(Rows, Protocol):
    """Rows of text that can be read many times."""

    def encode(self, encoder: RowEncoder, folder: Path, progress: Progress | None = None) -> Examples:
        """The same as numbers, stored in a folder."""


@dataclass(frozen=True)
class Files:
    """The user's own files, all rows or a part: those held out for validation, or the others."""

    corpus: Corpus
    part: Literal["", "train", "valid"] = ""
    vectors: bool = False  # the source is vectors, or the name of a file beside the corpus that holds them

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        rows = self._rows(names)
        if not self.vectors:
            return rows
        folder = Path(self.corpus.paths[0]).parent
        return ((line, (inlined(row[0], folder), *row[1:])) for line, row in rows)

    def _rows(self, names: Sequence[str]) -> Iterator[Row]:
        if not self.part:
            return self.corpus.rows(names)
        last, _, _ = self.held_out(names)
        if last < 0:
            return islice(self.corpus.rows(names), VALID if self.part == "valid" else None)
        wanted = self.part == "valid"
        return (row for row in self.corpus.rows(names) if (_key(row[1][0]) <= last) is wanted)

    def encode(self, encoder: RowEncoder, folder: Path, progress: Progress | None = None) -> Shards:
        rows = self.rows(encoder.names) if self.part or self.vectors else None
        return prepare_corpus(self.corpus, encoder, folder, rows=rows, part=self.part, progress=progress)

    def held_out(self, names: Sequence[str]) -> HeldOut:
        """Which rows are held out for validation; computed once unless the files change.

        They are chosen by a hash of their first column: always the same rows, and all rows of the same text, so that
        training sees none of the texts.
        """
        stamps = tuple(_stamp(path) for path in self.corpus.paths if format_of(path) != "hub")
        return _hold_out(self.corpus, tuple(names), stamps)


def _stamp(path: str) -> tuple[int, int]:
    """Time and size of a file, which show whether it has changed."""
    try:
        found = Path(path).stat()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror}); check the name") from None
    return found.st_mtime_ns, found.st_size


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.strip().encode(), digest_size=8).digest())


@cache
def _hold_out(corpus: Corpus, names: tuple[str, ...], _stamp: tuple[tuple[int, int], ...]) -> HeldOut:
    """The texts with the smallest hashes: one row in twenty, and a thousand at the most."""
    counts: dict[int, int] = {}  # rows by hash, of the smallest hashes so far
    largest, rows = 1 << 64, 0
    for _, row in corpus.rows(names):
        rows += 1
        if (key := _key(row[0])) <= largest:
            counts[key] = counts.get(key, 0) + 1
            if len(counts) > 4 * VALID:
                counts = dict(sorted(counts.items())[:VALID])
                largest = max(counts)
    wanted, last, count = min(VALID, max(1, rows // EVERY)), -1, 0
    for key, found in sorted(counts.items()) if rows >= FEW else ():
        if count and count + found > wanted:
            break
        last, count = key, count + found
    return (last, count, rows) if 2 * count <= rows else (-1, 0, rows)


def extent(material: Material, settings: Settings) -> Extent:
    """How many rows, characters and different letters there are, and how many vectors where the source is vectors."""
    kind, source = task_of(settings.task), settings.text.source
    names, vectors = kind.columns, source.kind == "vectors"
    letters, characters, count, seen = set[str](), 0, 0, 0
    for _, row in islice(material.rows(names), MEASURED):
        texts = row[vectors : kind.texts]
        letters.update(*texts)
        characters, seen = characters + sum(map(len, texts)), seen + 1
        count += len(parse(row[0], source.patch, source.bands)[0]) if vectors else 0
    rows = seen if seen < MEASURED else _count(material, names)
    return Extent(rows, characters * rows // max(1, seen), len(letters), count * rows // max(1, seen))


def _count(material: Material, names: Sequence[str]) -> int:
    if isinstance(material, Fable):
        return material.count
    if isinstance(material, Files) and material.part:
        _, count, rows = material.held_out(names)
        return rows - count
    return sum(1 for _ in material.rows(names))


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

    def encode(self, encoder: RowEncoder, folder: Path, progress: Progress | None = None) -> Shards:
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
    """The same, kept in memory: rows are read for the tokenizers and again to be encoded, and drawing takes time."""
    return list(_draw(fable, names))


def _column(sentence: ParallelSentence, name: str) -> str:
    match name:
        case "target":
            return sentence.target
        case "links":
            return " ".join(f"{source}-{target}" for source, target in sentence.alignment)
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
    if data.is_built_in:
        return _fable(data, "train", data.pairs), _fable(data, "valid", VALID)
    train = _files(settings, "", "training")
    if not any((data.valid_corpus, data.valid_source, data.valid_target)):
        both = replace(train, part="train"), replace(train, part="valid")
    else:
        both = train, _files(settings, "valid_", "validation")
    kind = task_of(settings.task)
    return kind.material(both[0], settings), kind.material(both[1], settings)


def general_material(settings: Settings) -> Material | None:
    """The general test set that the settings name, if any."""
    data = settings.data
    if not data.general:
        return None
    first, *others = data.general
    if not others and first.startswith("fable:"):
        return _fable(data.model_copy(update={"corpus": first}), "valid", VALID)
    return Files(Corpus(data.general, () if others else columns_of(data)))


def columns_of(data: DataSettings) -> tuple[str, ...]:
    """The columns that the settings choose; none where they do not."""
    return tuple(column.strip() for column in data.columns.split(",")) if data.columns else ()


def _fable(data: DataSettings, split: Split, count: int) -> Fable:
    _, _, language = data.corpus.partition(":")
    check_language(language)
    return Fable(language, split, count, data.words, data.riddles, data.unknown)  # type: ignore[arg-type]


def _files(settings: Settings, prefix: str, purpose: str) -> Files:
    data, names = settings.data, task_of(settings.task).columns
    corpus, *sides = (getattr(data, f"{prefix}{name}") for name in ("corpus", "source", "target"))
    given = tuple(side for side in sides if side)
    if bool(corpus) == bool(given):
        problem = "is given in two ways" if corpus else "is missing"
        wanted = f"data.{prefix}source" + (f" and data.{prefix}target" if len(names) == 2 else "")
        hint = "regard train --source FILE --target FILE"
        raise SettingsError(
            f"data: the {purpose} corpus {problem}; give {wanted}, or data.{prefix}corpus alone",
            hint="" if corpus or len(names) == 1 else hint,
        )
    if settings.task == "translate" and len(given) == 1 and format_of(given[0]) == "text":
        side, other = ("source", "target") if sides[0] else ("target", "source")
        raise SettingsError(
            f"data.{prefix}{side} = {given[0]}: is one side of a corpus; give data.{prefix}{other}, or task=language",
            hint=f"regard train --source {quoted(given[0])} task=language" if not prefix else "",
        )
    columns = columns_of(data) if corpus or settings.task == "forecast" else ()
    return Files(Corpus((corpus,) if corpus else given, columns), vectors=settings.text.source.kind == "vectors")
