"""The files of a model to import: folders, archives, licences and other texts, and tokenizers."""

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from regard.errors import ModelError, ResourceError
from regard.runs.archive import open_tar
from regard.runs.folder import Origin, digest
from regard.settings.schema import LANGUAGE
from regard.text.foreign import MergesTokenizer, SentencePieceTokenizer
from regard.text.grafting import recut_targets
from regard.text.tokenizers import PAIR, Frame, Tokenizers
from regard.text.vocabulary import Tokenizer, Vocabulary
from regard.text.words import SpaceTokenizer

LARGEST_TEXT: Final = 1 << 26  # bytes of a file that is read at once: vocabularies, settings, tokenizers
LONGEST: Final = 512  # pieces of a source at the most, unless positions set another limit
_LARGEST_NOTICE = 1 << 16
_NESTED = 2  # archives inside archives
_SWELLS, _SLACK = 100, 1 << 26  # by how much an archive may grow when unpacked: a factor, and bytes in any case
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
_SENTENCE = re.compile(r"^\w.*\blicen[cs]ed?\b.*$", re.IGNORECASE | re.MULTILINE)
_SENTENCEPIECE = ("sentencepiece.model", "sentencepiece.bpe.model", "spm.model", "spiece.model")
PLAIN = Frame()
_SIDES = ("source.spm", "target.spm")
_MERGES = ("bpe.model", "bpe.code", "bpe.codes", "bpecodes", "codes")


@dataclass(frozen=True)
class Package:
    """The files of a model, its name and its languages."""

    file: Path  # the weights, or the configuration that names them
    name: str
    root: Path  # the folder of texts and tokenizers: the file's own, or one above it
    outer: Path  # the folder that was given, whose texts may be about other things
    languages: str = ""

    @property
    def folder(self) -> Path:
        return self.file.parent

    def values(self, model: Mapping[str, Any], tokenizers: Tokenizers) -> dict[str, Any]:
        """The settings of the run, with those of the model."""
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
        """The origin of the model, with the texts of its folder and of the package that contained it."""
        inner = _notices(self.folder)
        apart = {} if self.folder == self.root else {f"{self.folder.name}/{name}": text for name, text in inner.items()}
        own = _notices(self.root) | apart
        around = {name: text for name, text in _notices(self.outer).items() if name not in own}
        licence = _licence(own) or (f"{line} (of the package that contained it)" if (line := _licence(around)) else "")
        beside = [path for path in sorted(self.folder.iterdir()) if path.is_file() and path.name not in inner]
        read = [path for path in beside if path == self.file or path.stat().st_size <= LARGEST_TEXT]
        hashes = tuple((path.name, digest(path)) for path in read)
        return Origin(format, self.name, licence, hashes, tuple((own | around).items()))


def _notices(folder: Path) -> dict[str, str]:
    """README, licences and similar texts of a folder and of the metadata folders of a wheel."""
    found = {}
    depth = [folder, *sorted(folder.glob("*.dist-info")), *sorted(folder.glob("*.dist-info/licenses"))]
    for path in (each for place in depth for each in sorted(place.iterdir())):
        if _NOTICE.fullmatch(path.name) and path.is_file() and path.stat().st_size <= _LARGEST_NOTICE:
            found[path.relative_to(folder).as_posix()] = path.read_bytes().decode("utf-8", "replace")
    return found


def _licence(notices: Mapping[str, str]) -> str:
    """The licence in one line: a field of that name, else the title of a licence, else a sentence about it."""
    titles = {"".join(text.split("\n\n")[:1]) for name, text in notices.items() if _LICENCE.match(Path(name).name)}
    found = [
        *(line[1] for text in notices.values() for line in _STATED.finditer(text)),
        *sorted(titles),
        *(line[0] for text in notices.values() for line in _SENTENCE.finditer(text)),
    ]
    return " ".join(found[0].split())[:300] if found else ""


def read_json(path: Path, kind: type = dict) -> Any:
    """Read a JSON file, whose content must be of this type."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"{path}: not JSON ({problem}); is the file damaged?") from None
    if not isinstance(content, kind):
        raise ModelError(f"{path} = {str(content)[:40]}: not a JSON {'object' if kind is dict else 'list'}")
    return content


def read_bytes(path: Path) -> bytes:
    """Read a file, unless it is too large."""
    try:
        size = path.stat().st_size
        if size > LARGEST_TEXT:
            raise ModelError(f"{path}: has {size:,} bytes; {LARGEST_TEXT:,} is the limit for such a file")
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise ModelError(f"{path}: is missing; the model needs it") from None


# The tokenizer beside a model, if the model's own file does not have it


def tokenizers_of(
    package: Package, source: Sequence[str], target: Sequence[str], *, joint: bool, frame: Frame = PLAIN
) -> Tokenizers:
    """Tokenizers for two vocabularies in our order: of Regard, sentencepiece or subword-nmt, else by spaces."""
    places = (package.folder, package.root)
    if own := next((place / "tokenizer" for place in places if (place / "tokenizer" / PAIR).is_file()), None):
        return _own(own, source, target)
    first = _tokenizer(_found(places, (_SIDES[0], *_SENTENCEPIECE)), _found(places, _MERGES), source)
    if joint and not _found(places, _SIDES[1:]):
        return recut_targets(Tokenizers(first, first, frame=frame))
    second = _tokenizer(_found(places, (_SIDES[1], *_SENTENCEPIECE)), _found(places, _MERGES), target)
    return Tokenizers(first, second, frame=frame)


def _found(places: Sequence[Path], names: Sequence[str]) -> Path | None:
    return next((place / name for place in places for name in names if (place / name).is_file()), None)


def _tokenizer(sentencepiece: Path | None, merges: Path | None, pieces: Sequence[str]) -> Tokenizer:
    vocabulary = Vocabulary(tuple(pieces))
    if sentencepiece is not None:
        return SentencePieceTokenizer(vocabulary, model=read_bytes(sentencepiece))
    if merges is not None:
        return MergesTokenizer(vocabulary, codes=read_text(merges))
    return SpaceTokenizer(vocabulary)


def read_text(path: Path) -> str:
    """Read a text file."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as problem:
        raise ModelError(f"{path}: not UTF-8 ({problem.reason}); is the file damaged?") from None


def _own(folder: Path, source: Sequence[str], target: Sequence[str]) -> Tokenizers:
    """The tokenizers that `regard runs export` wrote beside the model."""
    tokenizers = Tokenizers.load(folder)
    for tokenizer, pieces in ((tokenizers.source, source), (tokenizers.target, target)):
        if [tokenizer.token(number) for number in range(tokenizer.size)] != list(pieces):
            raise ModelError(
                f"{folder}: has other pieces than the vocabulary of the model; use the tokenizer of this model"
            )
    return tokenizers


# Archives


def is_archive(path: Path) -> bool:
    """Whether this is an archive of a model; torch's own files, which are ZIP archives, too, are not."""
    return path.name.lower().endswith(_ARCHIVES) and path.is_file()


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A folder; or an archive, and archives in it, unpacked into a temporary folder."""
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="regard-import-") as place:
        target = Path(place) / path.name
        target.mkdir()
        _unpack(path, target, _NESTED)
        yield target


def _unpack(path: Path, target: Path, nested: int) -> None:
    most = _SWELLS * path.stat().st_size + _SLACK
    free = shutil.disk_usage(target).free
    zipped = zipfile.is_zipfile(path)
    total = 0
    with _whole(path):
        for number, (name, size, source) in enumerate(_zipped(path) if zipped else _tarred(path)):
            total += size
            if total > most or number >= _MEMBERS:
                raise ModelError(
                    f"{path}: unpacks to more than {most:,} bytes or {_MEMBERS:,} files; too much for a model"
                )
            if total > free:
                raise ResourceError(f"{path}: unpacks to more than {free:,} bytes, which is all the free space")
            _place(name, source, target, size, path)
    for inner in sorted(each for each in target.rglob("*") if nested and is_archive(each)):
        folder = inner.with_name(f"{inner.name}.unpacked")
        folder.mkdir()
        _unpack(inner, folder, nested - 1)
        inner.unlink()


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged archive into one line. A seek beyond its end is an OSError with EINVAL."""
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
        raise ModelError(f"{path}: {name[:100]!r}: would be outside of the folder; not unpacked")
    place = target.joinpath(*inside.parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as copy:
        while block := source.read(_BLOCK):
            size -= len(block)
            if size < 0:
                raise ModelError(f"{path}: {name[:100]}: is longer than its header says; the archive is damaged")
            copy.write(block)
