"""Reading torch's files without executing them: an unpickler that constructs nothing but tensors.

A pickle is a program. This unpickler knows three names: ``_rebuild_tensor_v2``, ``OrderedDict`` and kinds of storage;
anything else that a file names becomes `Inert`, which keeps its state as data and does nothing. Numbers are read when a
tensor is asked for, not while the program runs.
"""

from __future__ import annotations

import errno
import io
import math
import mmap
import pickle
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

from torch import Tensor

from regard.convert.foreign import item_size, tensor_of
from regard.convert.package import LARGEST_TEXT
from regard.errors import ModelError

_KINDS = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "<u1",
}
_MAGIC = 0x1950A86A20F9469CFC6C  # the first number of torch's older files, before ZIP archives
_PLAIN = (str, int, float, bool, bytes, type(None))


class Inert:
    """Stands for any object that a pickle would construct: its name and its state."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.state: object = None

    def __call__(self, *_: object) -> Inert:
        return Inert(self.name)

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        """Nothing is kept."""

    def append(self, value: object) -> None:
        """Nothing is kept."""

    extend = append
    add = append


class Record(dict[Any, Any]):
    """A dictionary with plain keys only: hashing nested keys may take for ever."""

    def __setitem__(self, key: object, value: object) -> None:
        if isinstance(key, _PLAIN):
            super().__setitem__(key, value)

    def __call__(self, *_: object) -> Record:
        return Record()

    def __setstate__(self, state: object) -> None:
        """The state of an OrderedDict, torch's versions, is ignored."""


@dataclass(frozen=True)
class _Storage:
    key: str
    kind: str
    count: int


class _Kind:
    """The kind of a storage, by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a kind of storage has no state")


@dataclass(frozen=True)
class LazyTensor:
    """A tensor whose numbers are still in the file."""

    source: TorchFile = field(repr=False)
    storage: _Storage
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a tensor has no state")

    def read(self) -> Tensor:
        flat = self.source.numbers(self.storage)
        return flat.as_strided(self.shape, self.strides, self.first).clone()


class PickledTensors:
    """The named tensors of a file, read lazily."""

    def __init__(self, content: Mapping[Any, object]) -> None:
        self._found = {str(name): each for name, each in content.items() if isinstance(each, LazyTensor)}
        self.names = list(self._found)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._found[name].shape

    def tensor(self, name: str) -> Tensor:
        return self._found[name].read().float()


class _Rebuild:
    """``_rebuild_tensor_v2(storage, first, shape, strides, …)``."""

    def __init__(self, source: TorchFile) -> None:
        self.source = source

    def __call__(self, *arguments: object) -> LazyTensor:
        storage, first, shape, strides = arguments[:4]
        numbers = [first, *cast("tuple[int, ...]", shape), *cast("tuple[int, ...]", strides)]
        if not isinstance(storage, _Storage) or not all(type(each) is int and each >= 0 for each in numbers):
            raise pickle.UnpicklingError("an invalid tensor")
        shape, strides = tuple(cast("tuple[int, ...]", shape)), tuple(cast("tuple[int, ...]", strides))
        last = cast("int", first) + sum((size - 1) * step for size, step in zip(shape, strides, strict=True) if size)
        if (count := math.prod(list(shape))) > storage.count or (count and last >= storage.count):
            raise pickle.UnpicklingError("a tensor larger than its storage")
        return LazyTensor(self.source, storage, cast("int", first), shape, strides)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("a function has no state")


class _Unpickler(pickle._Unpickler):  # in Python: the one in C allocates memory by numbers in the file
    """Runs the program of a pickle, in which every name becomes one of our classes."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: Any, source: TorchFile) -> None:
        super().__init__(file, encoding="latin-1")
        self.source = source

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch._utils" and name == "_rebuild_tensor_v2":
            return _Rebuild(self.source)
        if module == "collections" and name == "OrderedDict":
            return Record()
        if module == "torch" and name in _KINDS:
            return _Kind(_KINDS[name])
        return Inert(f"{module}.{name}")

    def get_extension(self, code: int) -> None:
        self.append(Inert(f"extension {code}"))  # type: ignore[attr-defined]

    def persistent_load(self, pid: Any) -> _Storage:
        word, kind, key, _, count, *_ = pid
        if word != "storage" or not isinstance(kind, _Kind) or type(count) is not int or count < 0:
            raise pickle.UnpicklingError("an invalid storage")
        return self.source.storage(_Storage(str(key), kind.kind, count))

    def _empty(self) -> None:
        self.append(Record())  # type: ignore[attr-defined]

    def _filled(self) -> None:
        items, made = self.pop_mark(), Record()  # type: ignore[attr-defined]
        for key, value in zip(items[::2], items[1::2], strict=True):
            made[key] = value
        self.append(made)  # type: ignore[attr-defined]

    def _set(self) -> None:
        self.append(Inert("set"))  # type: ignore[attr-defined]

    def _frozen(self) -> None:
        self.pop_mark()  # type: ignore[attr-defined]
        self._set()

    def _new(self) -> None:
        """Construct an object: classes are `Inert` or `Record`, and are called."""
        arguments, made = self.stack.pop(), self.stack.pop()  # type: ignore[attr-defined]
        self.append(made(*arguments))  # type: ignore[attr-defined]

    def _new_named(self) -> None:
        self.stack.pop()  # type: ignore[attr-defined]
        self._new()

    def _instance(self) -> None:
        self.pop_mark()  # type: ignore[attr-defined]
        self._set()


for _code, _method in {
    pickle.EMPTY_DICT: _Unpickler._empty,
    pickle.DICT: _Unpickler._filled,
    pickle.EMPTY_SET: _Unpickler._set,
    pickle.FROZENSET: _Unpickler._frozen,
    pickle.NEWOBJ: _Unpickler._new,
    pickle.NEWOBJ_EX: _Unpickler._new_named,
    pickle.OBJ: _Unpickler._instance,
}.items():
    _Unpickler.dispatch[_code[0]] = _method


class TorchFile:
    """A file that ``torch.save`` wrote, in either of its two formats."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        self._places: dict[str, tuple[int, int]] = {}  # of storages in the old format: first byte, count
        self._sizes: dict[str, int] = {}  # of their numbers, in bytes
        with self._complaining():
            if zipfile.is_zipfile(path):
                self._zip = zipfile.ZipFile(path)
                self.content = self._program()
            else:
                self.content = self._programs()

    def storage(self, named: _Storage) -> _Storage:
        """Register a storage that the program names."""
        self._sizes[named.key] = item_size(named.kind)
        return named

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        """Turn any error in a foreign program into one line."""
        try:
            yield
        except ModelError:
            raise
        except Exception as problem:
            if isinstance(problem, OSError) and problem.errno != errno.EINVAL:  # EINVAL: a seek outside of the file
                raise
            reason = f"{type(problem).__name__}: {problem}"[:100]
            line = (
                f"{self.path}: is damaged, or needs more than tensors and plain values ({reason}); it was not executed"
            )
            raise ModelError(line) from None

    def _program(self) -> object:
        assert self._zip is not None
        names = [name for name in self._zip.namelist() if name.count("/") <= 1 and name.endswith("data.pkl")]
        if len(names) != 1:
            raise ModelError(f"{self.path}: is a ZIP archive without data.pkl; not a file of torch")
        self._prefix = names[0].removesuffix("data.pkl")
        return _Unpickler(io.BytesIO(self._member("data.pkl", LARGEST_TEXT)), self).load()

    def _member(self, name: str, most: int) -> bytes:
        """A member of the archive; torch never compresses it."""
        assert self._zip is not None
        entry = self._zip.getinfo(self._prefix + name)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > min(most, self.path.stat().st_size):
            raise ModelError(f"{self.path}: {entry.filename[:100]}: is compressed, or too large; not a file of torch")
        return self._zip.read(entry)

    def _programs(self) -> object:
        """The old format: five pickles, then for each storage its size and its numbers."""
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if _Unpickler(data, self).load() != _MAGIC:
                raise ModelError(f"{self.path}: is not a file of torch")
            _version, _system, content, keys = (_Unpickler(data, self).load() for _ in range(4))
            for key in keys:
                place = data.tell()
                (count,) = struct.unpack("<q", data.read(8))
                size = self._sizes.get(str(key), 0)
                if not 0 <= count * size <= len(data) - place - 8 or not size:
                    raise ModelError(f"{self.path}: is cut short; copy it again")
                self._places[str(key)] = place + 8, count
                data.seek(place + 8 + count * size)
        return content

    def numbers(self, storage: _Storage) -> Tensor:
        """All numbers of a storage."""
        with self._complaining():
            wanted = storage.count * item_size(storage.kind)
            data = self._old(storage, wanted) if self._zip is None else self._member(f"data/{storage.key}", wanted)
            if len(data) != wanted:
                raise ModelError(f"{self.path}: storage {storage.key[:60]}: {len(data):,} bytes instead of {wanted:,}")
            return tensor_of(data, storage.kind)

    def _old(self, storage: _Storage, wanted: int) -> bytes:
        first, count = self._places[storage.key]
        if count != storage.count:
            raise ModelError(f"{self.path}: storage {storage.key[:60]}: {count:,} numbers instead of {storage.count:,}")
        with self.path.open("rb") as file:
            file.seek(first)
            return file.read(wanted)
