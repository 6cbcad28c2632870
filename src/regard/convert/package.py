"""What was given to be imported, opened: folders, archives inside archives, and the texts that came with a model."""

from __future__ import annotations

import errno
import gzip
import json
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from regard.errors import ModelError, ResourceError
from regard.runs.archive import open_tar
from regard.runs.folder import Origin, digest
from regard.settings.schema import LANGUAGE
from regard.text.tokenizers import Tokenizers

LARGEST_TEXT: Final = 1 << 26  # bytes of a file that is read whole: vocabularies, settings, tokenizers
LONGEST: Final = 512  # pieces of a source that go through at once, where positions set no other limit
_LARGEST_NOTICE = 1 << 16
_NESTED = 2  # archives inside archives
_SWELLS, _SLACK = 100, 1 << 26  # how many times its size an archive may unfold to, and how much in any case
_MEMBERS = 100_000
_BLOCK = 1 << 20
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
_ARCHIVES = (".argosmodel", ".whl", ".zip", ".tar", ".tar.gz", ".tgz")
_SKIPPED = (".py", ".pyc", ".so", ".pyd", ".dll")
_NOTICE = re.compile(r"(readme|licen[cs]e|copying|notice|model_?card)\b.*|metadata|pkg-info", re.IGNORECASE)
_STATED = re.compile(
    r"^(?:licen[cs]e(?:-expression)?:|classifier: licen[cs]e ::|spdx-license-identifier:)[ \t]*(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PAIR = re.compile(rf"{LANGUAGE}-{LANGUAGE}")  # what settings have for two languages
_LICENCE = re.compile("licen[cs]e|copying", re.IGNORECASE)
_TOLD = re.compile(r"^\w.*\blicen[cs]ed?\b.*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """A model's files, and what is known of them besides."""

    file: Path  # the weights, or the configuration that names them
    name: str
    root: Path  # where texts, languages and tokenizers may be too: the file's own folder, or one above it
    outer: Path  # what was given, whose texts may be about other things as well
    languages: str = ""

    @property
    def folder(self) -> Path:
        return self.file.parent

    def values(self, model: Mapping[str, Any], tokenizers: Tokenizers) -> dict[str, Any]:
        """The settings of the run, around those of the model."""
        source, longest = tokenizers.source, LONGEST
        if model.get("positions") == "learned":
            longest = min(longest, int(model["longest"]))
        size = max(source.size, tokenizers.target.size)
        return {
            "about": self.name,
            "model": dict(model),
            "text": {"tokenizer": source.kind, "size": size, "joint": tokenizers.joint},
            "data": {"languages": self.languages if _PAIR.fullmatch(self.languages) else "", "longest": longest},
        }

    def origin(self, format: str) -> Origin:
        """With the texts of the model's own folder and, after them, those of what it came in."""
        inner = _notices(self.folder)
        apart = {} if self.folder == self.root else {f"{self.folder.name}/{name}": text for name, text in inner.items()}
        own = _notices(self.root) | apart
        around = {name: text for name, text in _notices(self.outer).items() if name not in own}
        licence = _licence(own) or (f"{line} (of the package that it came in)" if (line := _licence(around)) else "")
        beside = [path for path in sorted(self.folder.iterdir()) if path.is_file() and path.name not in inner]
        read = [path for path in beside if path == self.file or path.stat().st_size <= LARGEST_TEXT]
        hashes = tuple((path.name, digest(path)) for path in read)
        return Origin(format, self.name, licence, hashes, tuple((own | around).items()))


def _notices(folder: Path) -> dict[str, str]:
    """README, licences and the like, from a folder and, in what a wheel held, the folders that have them."""
    found = {}
    depth = [folder, *sorted(folder.glob("*.dist-info")), *sorted(folder.glob("*.dist-info/licenses"))]
    for path in (each for place in depth for each in sorted(place.iterdir())):
        if _NOTICE.fullmatch(path.name) and path.is_file() and path.stat().st_size <= _LARGEST_NOTICE:
            found[path.relative_to(folder).as_posix()] = path.read_bytes().decode("utf-8", "replace")
    return found


def _licence(notices: Mapping[str, str]) -> str:
    """What the texts say in one line: a field of that name, else how a licence begins, else a sentence about it."""
    titles = {"".join(text.split("\n\n")[:1]) for name, text in notices.items() if _LICENCE.match(Path(name).name)}
    found = [
        *(line[1] for text in notices.values() for line in _STATED.finditer(text)),
        *sorted(titles),
        *(line[0] for text in notices.values() for line in _TOLD.finditer(text)),
    ]
    return " ".join(found[0].split())[:300] if found else ""


def read_json(path: Path, kind: type = dict) -> Any:
    """A JSON file of a foreign model, of this kind."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"{path}: not JSON ({problem}); is the file damaged?") from None
    if not isinstance(content, kind):
        raise ModelError(f"{path} = {str(content)[:40]}: not a JSON {'object' if kind is dict else 'list'}")
    return content


def read_bytes(path: Path) -> bytes:
    """A file that is read whole."""
    try:
        size = path.stat().st_size
        if size > LARGEST_TEXT:
            raise ModelError(f"{path}: has {size:,} bytes; {LARGEST_TEXT:,} are the most that are read of such a file")
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise ModelError(f"{path}: is not there; the model needs it") from None


# Archives


def is_archive(path: Path) -> bool:
    """Whether this is one that models come in; torch's own files are ZIP archives too, and are none of these."""
    return path.name.lower().endswith(_ARCHIVES) and path.is_file()


@contextmanager
def unfolded(path: Path) -> Iterator[Path]:
    """A folder itself; or what an archive holds, and archives in it, in a folder for a while."""
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="regard-import-") as place:
        target = Path(place) / path.name
        target.mkdir()
        _unfold(path, target, _NESTED)
        yield target


def _unfold(path: Path, target: Path, nested: int) -> None:
    most = _SWELLS * path.stat().st_size + _SLACK
    free = shutil.disk_usage(target).free
    zipped = zipfile.is_zipfile(path)
    total = 0
    with _whole(path):
        for number, (name, size, source) in enumerate(_zipped(path) if zipped else _tarred(path)):
            total += size
            if total > most or number >= _MEMBERS:
                raise ModelError(f"{path}: unfolds to more than {most:,} bytes or {_MEMBERS:,} files; that is no model")
            if total > free:
                raise ResourceError(f"{path}: unfolds to more than {free:,} bytes, which is all the room there is")
            _place(name, source, target, size, path)
    for inner in sorted(each for each in target.rglob("*") if nested and is_archive(each)):
        folder = inner.with_name(f"{inner.name}.unfolded")
        folder.mkdir()
        _unfold(inner, folder, nested - 1)
        inner.unlink()


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """What goes wrong in an archive is one line. A place in it that no file has is refused by the system, nameless."""
    try:
        yield
    except _DAMAGE as problem:
        raise ModelError(f"{path}: is cut short, damaged or locked ({problem}); copy it again") from None
    except OSError as problem:
        if problem.errno != errno.EINVAL and not isinstance(problem, gzip.BadGzipFile):
            raise
        raise ModelError(f"{path}: is damaged ({problem}); copy it again") from None


def _zipped(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and not member.filename.endswith(_SKIPPED):
                with archive.open(member) as source:
                    yield member.filename, member.file_size, source


def _tarred(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with open_tar(path) as archive:
        while (member := archive.next()) is not None:
            if member.isreg() and not member.name.endswith(_SKIPPED):
                source = archive.extractfile(member)
                assert source is not None  # it is a plain file
                yield member.name, member.size, source


def _place(name: str, source: IO[bytes], target: Path, size: int, path: Path) -> None:
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts or "\0" in name or "\\" in name:
        raise ModelError(f"{path}: {name[:100]!r}: would leave its folder; refused")
    place = target.joinpath(*inside.parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as copy:
        while block := source.read(_BLOCK):
            size -= len(block)
            if size < 0:
                raise ModelError(f"{path}: {name[:100]}: is longer than it says; the archive is damaged")
            copy.write(block)
