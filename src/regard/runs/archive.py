"""A run as one file: a tar archive that begins with the hashes of all files in it.

Packing the same run twice gives the same bytes. Unpacking trusts nothing: it refuses files that are no part of a run,
paths out of the folder, links, and files that are not what was packed. The folder appears only when all of it is there.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Literal, Self, cast

import numpy as np
from pydantic import Field
from safetensors.numpy import load_file, save

from regard import __version__
from regard.data.lines import packing
from regard.data.shards import open_shards
from regard.errors import ModelError, RegardError, ResourceError, SettingsError, failure, optional
from regard.files import new_file, new_folder
from regard.runs.card import CARD, SCORES, card
from regard.runs.folder import (
    BELONGS,
    MANIFEST,
    ORIGIN,
    SETTINGS,
    Run,
    belongs,
    best_checkpoint,
    load_progress,
    manifest,
    shapes,
    steps,
    used_weights,
    verify,
)
from regard.settings.reading import Frozen, read
from regard.text.tokenizers import Tokenizers

CONTENTS = "regard-run.json"
SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst")
_LARGEST_CONTENTS = 1 << 20
_LARGEST_HEADER = 1 << 16  # bytes of a long name or another header of a file
_LARGEST_TEXT = 1 << 26  # bytes of a file that is read whole: log, settings, vocabulary; weights have no limit
_BLOCK = 1 << 20
_PARTS = re.compile(
    r"settings\.toml|labels\.tsv|words\.tsv|aligner\.json|origin\.json|scores\.json|README\.md|best|log\.jsonl"
    r"|tokenizer(/[\w-]{1,64}){0,2}/[\w-]{1,64}\.(json|tsv|model|txt)"
    r"|checkpoints/step-\d{1,18}/[\w-]{1,64}\.(json|safetensors)",
    re.ASCII,
)


class Entry(Frozen):
    """One file of an archive."""

    size: Annotated[int, Field(ge=0)]
    sha256: str


class Contents(Frozen):
    """The list of the files of an archive."""

    regard: Literal[1]
    """The version of the format."""
    version: str
    """Of Regard, when it was packed."""
    name: str
    files: dict[str, Entry]

    @property
    def bytes(self) -> int:
        """Before compression."""
        return sum(entry.size for entry in self.files.values())

    @property
    def checkpoints(self) -> list[str]:
        return sorted({Path(name).parent.name for name in self.files if name.startswith("checkpoints/")})


# Verifying

State = Literal["whole", "damaged", "unknown"]  # unknown: there is no hash to compare with


def verify_run(folder: Path) -> Iterator[tuple[str, State, str]]:
    """Check every hash of a run: of each checkpoint, of the tokenizers, labels and settings that its weights belong to,
    and of the encoded corpus. Yields the name of each part, its state, and a note."""
    run = Run.open(folder)
    for path in steps(run.checkpoints):
        yield _part(f"checkpoints/{path.name}", partial(_is_whole, path))
    if steps(run.checkpoints):
        yield _part("tokenizer, labels, settings", partial(belongs, run, best_checkpoint(run)))
    for name in ("train", "valid"):
        if (run.data / name).is_dir():
            yield _part(f"data/{name}", partial(_is_encoded, run.data / name))


def _is_whole(path: Path) -> bool:
    verify(path)
    load_progress(path)
    return all(shapes(file) is not None for file in path.glob("*.safetensors"))


def _is_encoded(folder: Path) -> bool:
    open_shards(folder)  # raises if it is damaged
    return True


def _part(name: str, check: Callable[[], bool]) -> tuple[str, State, str]:
    try:
        known = check()
    except (RegardError, OSError) as problem:
        return name, "damaged", str(failure(problem) or problem)
    return (name, "whole", "") if known else (name, "unknown", "written by an older Regard, which kept no hashes")


# Packing


def pack(folder: Path, file: Path, *, everything: bool = False, half: bool = False) -> Contents:
    """Write a run's settings, tokenizers, labels, log and best weights into one file; returns its list of files.

    With `everything`, also what resuming needs: the whole of the best and of the newest checkpoint.
    With `half`, weights of 16 bits: half the size, for using the model alone.
    """
    if half and everything:
        raise SettingsError("half, everything: weights of 16 bits cannot be resumed from; choose one")
    if not file.name.endswith(SUFFIXES):
        raise SettingsError(f"FILE = {file}: not a kind of archive that is written here; use {', '.join(SUFFIXES)}")
    run = Run.open(folder)
    best = best_checkpoint(run)
    chosen = sorted({best, steps(run.checkpoints)[-1]}) if everything else [best]
    for path in chosen:
        _is_whole(path)
        belongs(run, path)
    with ExitStack() as stack:  # an open file stays whole, even if a training removes it
        parts: dict[str, IO[bytes]] = {"best": io.BytesIO(f"{best.name}\n".encode())}
        for path in _shared(run):
            parts[path.relative_to(run.folder).as_posix()] = stack.enter_context(path.open("rb"))
        parts[CARD] = io.BytesIO(card(run.folder).encode())
        parts["log.jsonl"] = io.BytesIO(run.log.read_bytes() if run.log.is_file() else b"")  # as it is now
        for path in chosen:
            hashes = {name: value for name, value in manifest(path).items() if everything or name in _needed(path)}
            for name in hashes:
                if half and name.endswith(".safetensors"):
                    parts[f"checkpoints/{path.name}/{name}"] = io.BytesIO(content := _halved(path / name))
                    hashes[name] = hashlib.sha256(content).hexdigest()
                else:
                    parts[f"checkpoints/{path.name}/{name}"] = stack.enter_context((path / name).open("rb"))
            parts[f"checkpoints/{path.name}/{MANIFEST}"] = io.BytesIO((json.dumps(hashes, indent=2) + "\n").encode())
        contents = _contents(run.folder.resolve().name, parts)
        _write(file, contents, parts)
    return contents


def _shared(run: Run) -> Iterator[Path]:
    """The files of a run that are not in a checkpoint."""
    yield run.folder / SETTINGS
    yield from (
        path
        for path in (run.labels, run.words, run.aligner, run.calibration, run.folder / ORIGIN, run.folder / SCORES)
        if path.is_file()
    )
    yield from sorted(path for path in run.tokenizer.rglob("*") if path.is_file())


def _needed(path: Path) -> set[str]:
    """The files of a checkpoint for using the model: the averaged weights where there are any."""
    return {"progress.json", BELONGS, used_weights(path).name}


def _halved(path: Path) -> bytes:
    """Weights in float16. Models that load them still compute in float32."""
    with np.errstate(over="ignore"):
        tensors = {name: array.astype(np.float16) for name, array in load_file(path).items()}
    for name, array in tensors.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}: {name} has numbers beyond 65,504, the largest of 16 bits; use --to archive")
    return save(tensors)


def _contents(name: str, parts: dict[str, IO[bytes]]) -> Contents:
    files = {}
    for path, part in sorted(parts.items()):
        sha256 = hashlib.file_digest(cast("Any", part), "sha256").hexdigest()
        files[path] = Entry(size=part.seek(0, io.SEEK_END), sha256=sha256)
        part.seek(0)
    return Contents(regard=1, version=__version__, name=name, files=files)


def _write(file: Path, contents: Contents, parts: dict[str, IO[bytes]]) -> None:
    first = (json.dumps(contents.model_dump(), indent=2) + "\n").encode()
    with (
        new_file(file) as target,
        packing(target, file) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        tar.addfile(_member(CONTENTS, len(first)), io.BytesIO(first))
        for name, entry in contents.files.items():
            tar.addfile(_member(name, entry.size), parts[name])


def _member(name: str, size: int) -> tarfile.TarInfo:
    """A plain file without owner and time: an archive's bytes depend on the run alone."""
    member = tarfile.TarInfo(name)
    member.size = size
    return member


# Unpacking


def unpack(file: Path, out: Path | None = None) -> Run:
    """Unpack the run of an archive into a folder, by default `runs/NAME`."""
    with open_tar(file) as tar:
        contents = _read_contents(tar, file)
        folder = out or Path("runs") / contents.name
        if folder.exists() or folder.is_symlink():
            raise ModelError(f"{folder}: is there already; choose another --out")
        total, free = contents.bytes, _free(folder)
        if total > free:
            raise ResourceError(f"{file}: takes {total:,} bytes, and {folder} has room for {free:,}; make room first")
        with new_folder(folder) as beside:
            missing = contents.files.keys() - _extract(tar, contents, beside, file)
            if missing:
                raise ModelError(f"{file}: is half an archive: {min(missing)} is missing; copy it again")
            _check(beside, file)
    return Run.open(folder)


@contextmanager
def open_tar(file: Path) -> Iterator[tarfile.TarFile]:
    """A tar stream, compressed or not by its first bytes; whatever is wrong with it raises a ModelError."""
    damage: tuple[type[Exception], ...] = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error)
    try:
        raw = file.open("rb")
    except OSError as problem:
        raise ModelError(f"{file}: cannot be read ({problem.strerror}); check the name") from None
    with raw:
        stream, magic = cast("IO[bytes]", raw), raw.read(4)
        raw.seek(0)
        if magic[:2] == b"\x1f\x8b":
            stream = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        elif magic == b"\x28\xb5\x2f\xfd":
            zstandard = optional("zstandard", str(file))
            damage = (*damage, zstandard.ZstdError)
            stream = zstandard.ZstdDecompressor().stream_reader(raw)
        try:
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:
                yield tar
        except damage as problem:
            raise ModelError(f"{file}: is cut short, damaged or no archive ({problem}); copy it again") from None


class _Member(tarfile.TarInfo):
    """A file of a foreign archive. Tar reads long names and other headers into memory before they can be checked."""

    def _proc_member(self, archive: tarfile.TarFile) -> Self:
        """Every version of Python calls this between a header and what follows it."""
        if self.type in _REMARKS and self.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes; {_LARGEST_HEADER:,} are the most")
        return cast("Self", super()._proc_member(archive))  # type: ignore[misc]


_REMARKS = frozenset((*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE))


def _read_contents(tar: tarfile.TarFile, file: Path) -> Contents:
    """The first file of an archive, which lists all others."""
    member = tar.next()
    if member is None or member.name != CONTENTS or not member.isreg() or member.size > _LARGEST_CONTENTS:
        raise ModelError(f"{file}: is not a run: it does not begin with {CONTENTS}; regard runs export makes one")
    try:
        contents = read(Contents, json.loads(_bytes_of(tar, member).read()), f"{file}: {CONTENTS}")
    except (SettingsError, ValueError, RecursionError) as problem:
        raise ModelError(f"{file}: {CONTENTS} is damaged ({problem})") from None
    if not re.fullmatch(r"\w[\w. -]{0,99}", contents.name):
        raise ModelError(f"{file}: name = {contents.name!r}: not a name for a run; it was not written here")
    return contents


def _extract(tar: tarfile.TarFile, contents: Contents, folder: Path, file: Path) -> set[str]:
    """Write the files of an archive; returns their names."""
    done: set[str] = set()
    while (member := tar.next()) is not None:
        _check_member(member, contents, done, file)
        entry, target = contents.files[member.name], folder / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        source, digest = _bytes_of(tar, member), hashlib.sha256()
        with target.open("wb") as copy:
            while block := source.read(_BLOCK):
                digest.update(block)
                copy.write(block)
        if digest.hexdigest() != entry.sha256:
            raise ModelError(f"{file}: {member.name}: is not what was packed; the archive is damaged, copy it again")
        done.add(member.name)
    return done


def _check_member(member: tarfile.TarInfo, contents: Contents, done: set[str], file: Path) -> None:
    name = member.name
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ModelError(f"{file}: {name}: would leave the run's folder; refused")
    if not member.isreg():
        raise ModelError(f"{file}: {name}: is a link, a folder or a device; an archive holds plain files alone")
    if not _PARTS.fullmatch(name):
        raise ModelError(f"{file}: {name}: is no part of a run; text, JSON and safetensors are taken, never a pickle")
    if member.size > _LARGEST_TEXT and not name.endswith(".safetensors"):
        raise ModelError(f"{file}: {name}: has {member.size:,} bytes; {_LARGEST_TEXT:,} are the most that are taken")
    if name not in contents.files or name in done:
        raise ModelError(f"{file}: {name}: is not in {CONTENTS}, or is there twice; the archive was changed")
    if member.size != contents.files[name].size:
        raise ModelError(f"{file}: {name}: has {member.size:,} bytes, not {contents.files[name].size:,}; copy it again")


def _bytes_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    source = tar.extractfile(member)
    assert source is not None  # it is a plain file
    return source


def _check(folder: Path, file: Path) -> None:
    """Refuse an unpacked folder whose settings, tokenizers or weights cannot be used."""
    try:
        run = Run.open(folder)
        Tokenizers.load(run.tokenizer)
        verify(best := best_checkpoint(run))
        belongs(run, best)
        for weights in best.glob("*.safetensors"):
            shapes(weights)
    except (ModelError, SettingsError) as problem:
        line = str(problem).replace(f"{folder}/", "").replace(str(folder), "the run")
        raise ModelError(f"{file}: {line}") from None


def _free(folder: Path) -> int:
    """Free bytes on the disk of a folder that does not exist yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    return shutil.disk_usage(there).free
