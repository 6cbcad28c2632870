"""A corpus encoded once, stored on disk as plain numbers, and mapped into memory rather than loaded.

A folder holds `manifest.json` and, for each column, `NAME.numbers` (2 or 4 bytes each, little-endian, rows
end to end) and `NAME.offsets` (8 bytes: where each row begins, and the end). It appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from regard.data.encoding import Column, EncodedChunk, Examples, Ragged, RowEncoder, encode_rows, number_type
from regard.data.lines import Progress, in_blocks
from regard.data.readers import Corpus, format_of
from regard.data.tables import Row
from regard.errors import DataError
from regard.files import new_folder
from regard.text.vocabulary import UNK

VERSION = 1
MANIFEST = "manifest.json"
Amount = Annotated[int, Field(ge=0, lt=1 << 62)]
_CHUNK = 4096  # rows encoded at a time
_BLOCK = 1 << 22  # bytes hashed at a time


@dataclass(frozen=True)
class ColumnSummary:
    """The sizes and checksums of a column."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    size: Amount  # all numbers are smaller
    numbers: Amount
    longest: Amount
    unknown: Amount
    checksums: tuple[Amount, Amount]  # of the numbers and the offsets

    @property
    def unknown_share(self) -> float:
        """The share of `<unk>` among the numbers."""
        return self.unknown / self.numbers if self.numbers else 0.0


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` says about a prepared corpus."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    version: Amount
    fingerprint: str
    rows: Amount
    columns: dict[Column, ColumnSummary]


@dataclass(frozen=True)
class Shards(Examples):
    """Examples mapped from a folder: only what is being read is in memory."""

    manifest: Manifest
    mapped: tuple[mmap.mmap, ...]

    def release(self) -> None:
        """Unmap the pages read so far: they stay in the cache of the system, not in the memory of this process."""
        for memory in self.mapped:
            if hasattr(mmap, "MADV_DONTNEED"):
                memory.madvise(mmap.MADV_DONTNEED)


def fingerprint(corpus: Corpus, encoder: RowEncoder) -> str:
    """Changes if the bytes of the corpus, the columns or the encoder change. Of a dataset on the hub only the name
    counts."""
    digest = hashlib.sha256(json.dumps([VERSION, encoder.fingerprint(), corpus.columns]).encode())
    for path in corpus.paths:
        kind = format_of(path)
        digest.update(f"\n{path if kind == 'hub' else kind}\n".encode())
        for block in () if kind == "hub" else _blocks(Path(path)):
            digest.update(block)
    return digest.hexdigest()


def prepare_corpus(
    corpus: Corpus,
    encoder: RowEncoder,
    folder: str | Path,
    *,
    rows: Iterable[Row] | None = None,
    part: str = "",
    processes: int = 1,
    progress: Progress | None = None,
) -> Shards:
    """Encode a corpus into a folder, or open the folder if it already contains just that.

    ``rows`` are those of the corpus that are wanted, if not all are, and ``part`` names the selection.
    """
    try:
        return prepare(
            corpus.rows(encoder.names) if rows is None else rows,
            encoder,
            folder,
            fingerprint=fingerprint(corpus, encoder) + part,
            processes=processes,
            progress=progress,
        )
    except DataError as problem:
        if str(problem).startswith("line "):  # the encoder knows the line, but not the file
            raise DataError(f"{corpus.paths[-1]} {problem}") from problem
        raise


def prepare(
    rows: Iterable[Row],
    encoder: RowEncoder,
    folder: str | Path,
    *,
    fingerprint: str = "",
    total: int | None = None,
    processes: int = 1,
    progress: Progress | None = None,
) -> Shards:
    """Encode any stream of rows. A folder with the same (non-empty) fingerprint is opened instead.

    At most a few thousand rows are in memory. Several processes encode whole chunks; they are started by *spawn*, so
    that a script needs `if __name__ == "__main__":`.
    """
    folder, done = Path(folder), 0
    with suppress(DataError):  # a folder that is missing or damaged is written again
        if fingerprint:
            known = open_shards(folder)
            sizes = {name: column.size for name, column in known.manifest.columns.items()}
            if known.manifest.fingerprint == fingerprint and sizes == dict(encoder.sizes):
                return known
    with new_folder(folder) as beside:
        with ExitStack() as files:
            writers = [_ColumnWriter(beside, name, size, files) for name, size in encoder.sizes.items()]
            for chunk in _encode_chunks(rows, encoder, processes):
                for writer, column in zip(writers, chunk, strict=True):
                    writer.write(column)
                done += len(chunk[0][1])
                if progress is not None:
                    progress(done, total)
        columns = {writer.name: writer.summary() for writer in writers}
        manifest = Manifest(VERSION, fingerprint, done, columns)
        (beside / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
    return open_shards(folder)


class _ColumnWriter:
    """Appends chunks to the two files of a column, and counts for its summary."""

    def __init__(self, folder: Path, name: Column, size: int, files: ExitStack) -> None:
        self.name, self.size = name, size
        self._numbers = files.enter_context((folder / f"{name}.numbers").open("wb"))
        self._offsets = files.enter_context((folder / f"{name}.offsets").open("wb"))
        self._end, self._longest, self._unknown, self._checksums = 0, 0, 0, [0, 0]
        self._append(1, np.zeros(1, dtype="<i8"))

    def write(self, chunk: EncodedChunk) -> None:
        numbers, lengths = chunk
        self._append(0, numbers)
        self._append(1, (self._end + np.cumsum(lengths)).astype("<i8"))
        self._end += len(numbers)
        self._longest = max(self._longest, int(lengths.max(initial=0)))
        if self.name in ("source", "target"):
            self._unknown += int(np.count_nonzero(numbers == UNK))

    def _append(self, place: int, numbers: NDArray[Any]) -> None:
        data = numbers.tobytes()
        (self._numbers, self._offsets)[place].write(data)
        self._checksums[place] = zlib.crc32(data, self._checksums[place])

    def summary(self) -> ColumnSummary:
        first, second = self._checksums
        return ColumnSummary(self.size, self._end, self._longest, self._unknown, (first, second))


def _encode_chunks(rows: Iterable[Row], encoder: RowEncoder, processes: int) -> Iterator[list[EncodedChunk]]:
    """Encoded chunks in order, a few at a time."""
    chunks = in_blocks(rows, _CHUNK)
    if processes <= 1:
        for chunk in chunks:
            yield encode_rows(encoder, chunk)
        return
    waiting: deque[Future[list[EncodedChunk]]] = deque()
    with ProcessPoolExecutor(processes, get_context("spawn"), _remember, (encoder,)) as pool:
        for chunk in chunks:
            waiting.append(pool.submit(_encode_here, chunk))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_here: dict[str, RowEncoder] = {}  # the encoder of a worker process, sent once rather than with every chunk


def _remember(encoder: RowEncoder) -> None:
    _here["encoder"] = encoder


def _encode_here(rows: Sequence[Row]) -> list[EncodedChunk]:
    return encode_rows(_here["encoder"], rows)


def open_shards(folder: str | Path, *, verify: bool = True) -> Shards:
    """Open a prepared corpus. Sizes are always checked; checksums too (about a second for each gigabyte)."""
    folder = Path(folder)
    manifest = _read_manifest(folder / MANIFEST)
    columns: dict[Column, Ragged] = {}
    mapped: list[mmap.mmap] = []
    for name, summary in manifest.columns.items():
        numbers = "numbers", number_type(summary.size), summary.numbers
        offsets = "offsets", np.dtype("<i8"), manifest.rows + 1
        arrays = []
        for (part, kind, count), checksum in zip((numbers, offsets), summary.checksums, strict=True):
            path = folder / f"{name}.{part}"
            _check(path, count * kind.itemsize, checksum if verify else None)
            array, memory = _map(path, kind)
            arrays.append(array)
            mapped += memory
        columns[name] = Ragged(*arrays)
    return Shards(columns, manifest, tuple(mapped))


def _read_manifest(path: Path) -> Manifest:
    try:
        manifest = TypeAdapter(Manifest).validate_json(path.read_bytes())
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror}); prepare the corpus first") from problem
    except ValidationError as problem:
        wrong = problem.errors()[0]["msg"]
        raise DataError(f"{path}: not the manifest of a prepared corpus ({wrong}); prepare it again") from problem
    if manifest.version != VERSION:
        raise DataError(f"{path}: version = {manifest.version}: this Regard reads {VERSION}; prepare it again")
    return manifest


def _check(path: Path, size: int, checksum: int | None) -> None:
    actual = path.stat().st_size if path.exists() else 0
    if actual != size:
        raise DataError(f"{path}: {actual:,} bytes: should be {size:,}; prepare the corpus again")
    if checksum is not None:
        value = 0
        for block in _blocks(path):
            value = zlib.crc32(block, value)
        if value != checksum:
            raise DataError(f"{path}: contents differ from the manifest; the file is damaged, prepare it again")


def _map(path: Path, kind: np.dtype[Any]) -> tuple[NDArray[Any], list[mmap.mmap]]:
    """A file as an array, and its mapping; an empty file cannot be mapped."""
    if path.stat().st_size == 0:
        return np.zeros(0, kind), []
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(memory, kind), [memory]


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror}); check the name") from problem
