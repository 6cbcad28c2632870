"""Bytes to lines: plain, gzip or zstd, cut at `\n` alone; errors name the file and the line."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast

from regard.errors import DataError, optional, quoted

_CHARACTERS = 1 << 24  # a block with more ends with the row that exceeds it
Progress = Callable[[int, int | None], None]  # how many are done, and of how many if that is known
Numbered = TypeVar("Numbered", bound=tuple[Any, ...])


def in_blocks(rows: Iterable[Numbered], size: int = 8192) -> Iterator[list[Numbered]]:
    """Lists of `size` rows each (a number and its texts), fewer if they are very long."""
    block: list[Numbered] = []
    characters = 0
    for row in rows:
        block.append(row)
        characters += sum(map(len, row[1]))
        if len(block) == size or characters > _CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block


LONGEST_LINE = 1 << 20  # bytes: a small packed file may unpack to one line of gigabytes
PACKED = (".gz", ".zst", ".zstd")
_DOCUMENTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"%PDF-")  # how they begin: of today's offices, of older ones, PDF
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # its byte-order marks; no UTF-8 text begins with them

ProblemKind = Literal["encoding", "format", "mismatch"]


@dataclass(frozen=True, slots=True)
class CorpusProblem:
    """Something wrong with a corpus, and where: a strict reader raises it, a lenient one reports it."""

    kind: ProblemKind
    path: str
    line: int
    message: str
    hint: str = ""  # a command that helps


Complain = Callable[[CorpusProblem], None]


def refuse(problem: CorpusProblem) -> None:
    """The strict way, and the default: raise. If a callback returns instead, reading goes on."""
    raise DataError(problem.message, hint=problem.hint)


def ignore(problem: CorpusProblem) -> None:
    """The lenient way: read what can be read."""
    del problem


def open_bytes(path: str | Path) -> IO[bytes]:
    """Open a file for reading, and unpack it if its name ends as that of a packed file."""
    path = Path(path)
    try:
        match path.suffix.lower():
            case ".gz":
                return cast("IO[bytes]", gzip.open(path, "rb"))
            case ".zst" | ".zstd":
                unpack = optional("zstandard", str(path)).ZstdDecompressor().stream_reader
                return io.BufferedReader(unpack(path.open("rb"), closefd=True))
            case _:
                return path.open("rb")
    except OSError as problem:
        reason = "stdin is not read here" if str(path) == "-" else problem.strerror
        raise DataError(f"{path}: cannot be read ({reason}); check the name") from problem


@contextmanager
def packing(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Where to write the content of a file: it is packed if the name ends as that of a packed file, without a time, so
    that the same content gives the same bytes."""
    match path.suffix.lower():
        case ".gz" | ".tgz":
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                yield cast("IO[bytes]", packed)
        case ".zst" | ".zstd":
            compressor = optional("zstandard", str(path)).ZstdCompressor()
            with compressor.stream_writer(file, closefd=False) as packed:
                yield packed
        case _:
            yield file


def read_lines(path: str | Path, complain: Complain = refuse) -> Iterator[str]:
    """The lines of a UTF-8 file without their ends (`\\n` or `\\r\\n`).

    U+2028, form feeds and other characters at which `str.splitlines` cuts are part of the text: cutting there would
    leave the sides of a corpus with different numbers of lines. A byte-order mark at the start is removed.
    """
    with open_bytes(path) as file:
        number = 0
        try:
            for number, data in enumerate(iter(partial(file.readline, LONGEST_LINE + 2), b""), start=1):
                text = data.removesuffix(b"\n").removesuffix(b"\r")
                if len(text) <= LONGEST_LINE:
                    yield _decode(text, path, number, complain)
                    continue
                message = f"{path} line {number}: longer than {LONGEST_LINE:,} bytes; cut or drop it"
                complain(CorpusProblem("format", str(path), number, message))
                rest = data
                while rest and not rest.endswith(b"\n"):
                    rest = file.readline(LONGEST_LINE)
                yield ""
        except damage(path) as problem:
            raise DataError(f"{path} line {number + 1}: the file is cut short or damaged ({problem})") from problem


def _decode(data: bytes, path: str | Path, number: int, complain: Complain) -> str:
    if number == 1:
        data = data.removeprefix(b"\xef\xbb\xbf")
        if data.startswith(_DOCUMENTS):
            raise DataError(f"{path}: a document, a spreadsheet or a zip file, not plain text; save it as .txt or .tsv")
        if data.startswith(UTF_16):
            hint = f"iconv -f UTF-16 -t UTF-8 {quoted(path)} > {quoted(f'{path}.utf8')}"
            complain(CorpusProblem("encoding", str(path), 1, f"{path}: is UTF-16; convert it to UTF-8", hint))
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        byte = f"byte 0x{data[problem.start]:02x} at column {problem.start + 1}"
        message = f"{path} line {number}: not UTF-8 ({byte}); convert the file, or drop such lines with data clean"
        complain(CorpusProblem("encoding", str(path), number, message))
        return data.decode(errors="replace")


def read_chunks(path: str | Path, size: int) -> Iterator[bytes]:
    """The unpacked contents of a file, `size` bytes at a time."""
    with open_bytes(path) as file:
        try:
            while chunk := file.read(size):
                yield chunk
        except damage(path) as problem:
            raise DataError(f"{path}: the file is cut short or damaged ({problem})") from problem


def damage(path: str | Path) -> tuple[type[Exception], ...]:
    """What reading a damaged file may raise."""
    if Path(path).suffix.lower() in (".zst", ".zstd"):
        return EOFError, OSError, optional("zstandard", str(path)).ZstdError
    return EOFError, OSError, zlib.error
