"""Marian's own files, ``.npz`` and ``.bin``, and the YAML inside and beside them.

A ``.bin`` is u64 version (1), u64 count; for each tensor u64 length of its name, kind of number, rank, bytes; then
names (NUL-ended), sizes (i32), u64 bytes to skip, data. A matrix (in, out) that is kept in 8 bits is transposed,
except for embeddings, and is followed by one float32 m: ``W = q / m``. ``special:model.yml`` has the settings.
"""

from __future__ import annotations

import math
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from regard.errors import ModelError

CONFIG: Final = "special:model.yml"
_SIGN = struct.pack("<Q", 1)  # how a .bin begins: its version
_KINDS = {0x404: "<f4", 0x402: "<f2", 0x408: "<f8", 0x101: "<i1", 0x4101: "<i1"}  # by number; the last is intgemm8
_INTGEMM8 = 0x4101
_BROKEN = (  # errors of a damaged ZIP archive or array
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
    *(ValueError, TypeError, KeyError, SyntaxError, EOFError, OSError, NotImplementedError, RuntimeError),
)
_SWELLS = 100  # how many times its size an .npz may unpack to
_MOST = 1 << 16  # tensors in a file
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "a": "\a", "b": "\b", "v": "\v", "f": "\f"}
_ESCAPES |= {"N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}
Entry = TypeVar("Entry")


def is_model(path: Path) -> bool:
    """Whether this is a file of Marian's, by its first bytes or, of an ``.npz``, by its members."""
    if path.suffix == ".bin":
        with path.open("rb") as file:
            return file.read(8) == _SIGN and CONFIG.encode() in file.read(1 << 20)
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{CONFIG}.npy" in archive.namelist()
    except _BROKEN:
        return False


class _Tensor(NamedTuple):
    shape: tuple[int, ...]
    kind: int
    first: int  # byte
    bytes: int


class _File(Generic[Entry]):
    """The tensors of a file by their names, read lazily."""

    path: Path
    entries: dict[str, Entry]
    names: list[str]

    def rename(self, table: Mapping[str, str]) -> None:
        self.entries = {table.get(name, name): entry for name, entry in self.entries.items()}
        self.names = list(self.entries)

    def entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise ModelError(f"{self.path}: {name}: is missing; is the file complete, and a translation model?")
        return self.entries[name]


class Binary(_File[_Tensor]):
    """A ``.bin`` file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.stat().st_size:
            raise ModelError(f"{path}: is empty; copy it again")
        self._data: Any = np.memmap(path, np.uint8, "r")
        try:
            self.entries = dict(self._read())
        except (struct.error, UnicodeDecodeError, ValueError):
            raise ModelError(f"{path}: is incomplete, damaged or no model of Marian; copy it again") from None
        self.names = list(self.entries)

    def _read(self) -> Iterator[tuple[str, _Tensor]]:
        version, count = struct.unpack_from("<2Q", self._data)
        if version != 1 or count > _MOST:
            raise ModelError(f"{self.path}: version {version}, {count:,} tensors: only version 1 is read")
        place, headers = 16, []
        for _ in range(count):
            headers.append(struct.unpack_from("<4Q", self._data, place))
            place += 32
        names, shapes = [], []
        for length, *_ in headers:
            names.append(self._bytes(place, length).rstrip(b"\0").decode())
            place += length
        for _, _, rank, _ in headers:
            shapes.append(struct.unpack(f"<{rank}i", self._bytes(place, 4 * rank)))
            place += 4 * rank
        place += 8 + struct.unpack_from("<Q", self._data, place)[0]
        for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
            self._bytes(place, size, read=False)
            yield name, _Tensor(shape, kind, place, size)
            place += size

    def _bytes(self, first: int, count: int, *, read: bool = True) -> bytes:
        if first + count > len(self._data):
            raise struct.error
        return self._data[first : first + count].tobytes() if read else b""

    def text(self, name: str) -> str:
        found = self.entry(name)
        return self._bytes(found.first, found.bytes).rstrip(b"\0").decode("utf-8", "replace")

    def shape(self, name: str) -> tuple[int, ...]:
        return self.entry(name).shape

    def kind(self, name: str) -> str:
        kind = self.entry(name).kind
        if kind not in _KINDS:
            packed = "packed for one kind of processor" if kind & 0x800 or kind > _INTGEMM8 else "not known"
            raise ModelError(
                f"{self.path}: {name[:100]}: numbers of kind {kind:#x}, {packed}; read are float32, float16, intgemm8"
            )
        return _KINDS[kind]

    def tensor(self, name: str) -> Tensor:
        found, kind = self.entry(name), self.kind(name)
        size = math.prod(found.shape)
        quantized = found.kind == _INTGEMM8
        needed = size * np.dtype(kind).itemsize + 4 * quantized
        if min(found.shape, default=0) < 0 or needed > found.bytes:
            raise ModelError(f"{self.path}: {name[:100]} = {found.shape}: its numbers do not fill it; is it damaged?")
        numbers = np.frombuffer(self._bytes(found.first, needed), kind, size)
        if not quantized:
            return torch.from_numpy(numbers.astype(np.float32)).reshape(found.shape)
        (multiplier,) = struct.unpack_from("<f", self._bytes(found.first + size, 4))
        whole = torch.from_numpy(numbers.astype(np.float32)).div_(multiplier)
        return whole.reshape(found.shape) if "Wemb" in name else whole.reshape(found.shape[::-1]).T


class Archive(_File[zipfile.ZipInfo]):
    """An ``.npz`` file: a ZIP archive of numpy's arrays. Nothing in it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        except _BROKEN:
            raise ModelError(f"{path}: is incomplete, damaged or no .npz; copy it again") from None
        whole = sum(entry.file_size for entry in self.entries.values())
        if whole > _SWELLS * path.stat().st_size or len(self.entries) > _MOST:
            raise ModelError(f"{path}: unpacks to {whole:,} bytes in {len(self.entries):,} arrays; a model is smaller")
        self.names = list(self.entries)

    def text(self, name: str) -> str:
        return self._array(name).tobytes().rstrip(b"\0").decode("utf-8", "replace")

    def shape(self, name: str) -> tuple[int, ...]:
        return self._open(name, lambda _file, shape, _kind: shape)

    def kind(self, name: str) -> str:
        return self._open(name, lambda _file, _shape, kind: kind.str)

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self._array(name).astype(np.float32))

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        def numbers(file: Any, shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
            return np.frombuffer(file.read(math.prod(shape) * kind.itemsize), kind).reshape(shape)

        return self._open(name, numbers)

    def _open(self, name: str, then: Callable[[Any, tuple[int, ...], np.dtype[Any]], Any]) -> Any:
        entry = self.entry(name)
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(entry) as file:
                version = npy.read_magic(file)
                header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                shape, columns, kind = header(file)
                if columns or kind.hasobject or math.prod(shape) * kind.itemsize > entry.file_size:
                    raise ValueError
                return then(file, shape, kind)
        except _BROKEN:
            raise ModelError(
                f"{self.path}: {name[:100]}: is not an array of numbers, or damaged; copy the file again"
            ) from None


# YAML


def parse(text: str, where: str) -> dict[str, str | list[str]]:
    """The subset of YAML in Marian's settings: ``name: value``, and lists of values."""
    found: dict[str, str | list[str]] = {}
    name = ""
    for line in text.splitlines():
        bare = line.split(" #")[0].strip()
        if not bare or bare.startswith("#"):
            continue
        if bare.startswith("- ") or bare == "-":
            values = found.get(name)
            if not isinstance(values, list):
                values = found[name] = []
            values.append(unquoted(bare[1:].strip()))
        elif ":" in bare:
            name, _, value = bare.partition(":")
            inside = value.strip()
            if inside.startswith("[") and inside.endswith("]"):
                found[name] = [unquoted(each.strip()) for each in inside[1:-1].split(",") if each.strip()]
            else:
                found[name] = unquoted(inside)
        else:
            raise ModelError(f"{where}: {bare[:60]!r}: not a setting of Marian's; is the file damaged?")
    return found


def unquoted(text: str) -> str:
    """A scalar of YAML: plain, in single quotes, or in double ones with escapes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|.)", _character, text[1:-1])
    return text


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)


def pieces_of(text: str, where: str) -> list[str]:
    """A vocabulary in YAML, a number for each piece; a long piece follows ``?``, with its number after ``:``."""
    numbers: dict[int, str] = {}
    waiting: str | None = None
    for line in text.split("\n"):
        row = line.rstrip("\r")
        if not row.strip():
            continue
        if row.startswith("? "):
            waiting = row[2:]
            continue
        piece, _, number = (waiting, ":", row[1:]) if waiting is not None and row[0] == ":" else row.rpartition(":")
        waiting = None
        if not number.strip().isdecimal() or len(number) > 12 or int(number) in numbers:
            raise ModelError(f"{where}: {row[:60]!r}: not a piece and its number; is the file damaged?")
        numbers[int(number)] = unquoted(piece)
    if sorted(numbers) != list(range(len(numbers))) or not numbers:
        raise ModelError(f"{where}: its {len(numbers):,} pieces are not numbered consecutively from 0")
    return [numbers[number] for number in range(len(numbers))]


class Config:
    """The settings of a model, with Marian's defaults."""

    def __init__(self, values: Mapping[str, str | list[str]], where: str) -> None:
        self.values, self.where = values, where

    def text(self, name: str, default: str) -> str:
        found = self.values.get(name, default)
        if not isinstance(found, str):
            raise ModelError(f"{self.where}: {name} = {found}: must be one value")
        return found

    def number(self, name: str) -> int:
        found = self.text(name, "")
        if not found.isdecimal() or len(found) > 6:
            raise ModelError(f"{self.where}: {name} = {found or 'nothing'}: must be a number of a Transformer")
        return int(found)

    def flag(self, name: str) -> bool:
        return self.text(name, "false") == "true"

    def levels(self, side: str, depth: int) -> list[str]:
        """The number of the weights of each layer: layers of a decoder may share weights."""
        tied = self.values.get("transformer-tied-layers", []) if side == "decoder" else []
        if not isinstance(tied, list) or (tied and len(tied) != depth):
            raise ModelError(
                f"{self.where}: transformer-tied-layers = {tied}: must name one for each of {depth} layers"
            )
        return tied or [str(level + 1) for level in range(depth)]
