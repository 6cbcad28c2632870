"""Which model a folder, a file or an archive contains, and which reader reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from regard.convert import ctranslate2, fairseq, huggingface, marian_files, marian_native
from regard.convert.foreign import Foreign
from regard.convert.package import Package, is_archive, read_json, unpacked
from regard.errors import ModelError
from regard.runs.archive import CONTENTS
from regard.runs.folder import SETTINGS

_DEEPEST = 6  # folders below the one that was given
_GENERIC = {"model", "models", "checkpoint", "checkpoints", "data"}  # no names for a model
_KNOWN = "CTranslate2, Argos, Hugging Face (Marian, M2M-100, NLLB, mBART, BART), Marian and fairseq"

Reader = Callable[[Package], Foreign]
Candidate = tuple[Package, Reader]  # a model, and its reader


@contextmanager
def opened(what: Path, part: str | None = None, languages: str = "") -> Iterator[Candidate]:
    """The only model, or the one of several that ``part`` names; ``languages`` chooses two of a model with many."""
    if not what.exists():
        raise ModelError(f"{what}: does not exist; check the name")
    file = None if what.is_dir() or is_archive(what) else what
    if what.name in huggingface.WEIGHTS:
        file = what.with_name(huggingface.CONFIG)
    with unpacked(what.parent if file is not None else what) as root:
        found = dict(_candidates(root, file))
        if part is not None:
            found = {name: each for name, each in found.items() if part in (name, each[0].name)}
        if len(found) != 1:
            raise ModelError(_which(what, root, found, part))
        package, read = next(iter(found.values()))
        yield replace(package, languages=languages or package.languages), read


def _which(what: Path, root: Path, found: dict[str, Candidate], part: str | None) -> str:
    if any((root / name).is_file() for name in (SETTINGS, CONTENTS)):
        return f"{what}: is a run of Regard already; regard runs import reads its archive"
    if found:
        return f"{what}: contains {len(found)} models; choose one with --part: {', '.join(found)}"
    named = f" called {part}" if part is not None else ""
    return f"{what}: no model{named} in a known format; known are {_KNOWN}"


def _candidates(root: Path, file: Path | None) -> Iterator[tuple[str, Candidate]]:
    """Every model in a folder and its subfolders by its path; of a file, only that one."""
    for folder in [root] if file is not None else _folders(root, _DEEPEST):
        for path, read in _models(folder):
            if file is None or path == file:
                place = path.parent if path.name in (ctranslate2.MODEL, "config.json") else path
                yield place.relative_to(root).as_posix(), (_package(path, root), read)


def _folders(folder: Path, deep: int) -> Iterator[Path]:
    yield folder
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()) if deep else ()
    for path in inside:
        if not path.name.startswith("."):
            yield from _folders(path, deep - 1)


def _models(folder: Path) -> Iterator[tuple[Path, Reader]]:
    """The models in a folder itself, recognised by their files."""
    if (folder / ctranslate2.MODEL).is_file():
        yield folder / ctranslate2.MODEL, ctranslate2.read
    elif huggingface.is_model(folder):
        yield folder / huggingface.CONFIG, huggingface.read
    for path in sorted(folder.glob("*.pt")):
        if path.is_file() and fairseq.has_dictionaries(path):
            yield path, fairseq.read
    for path in sorted((*folder.glob("*.npz"), *folder.glob("*.bin"))):
        if path.is_file() and path.name != ctranslate2.MODEL and marian_files.is_model(path):
            yield path, marian_native.read


def _package(path: Path, root: Path) -> Package:
    folder, languages = path.parent, ""
    around = [place for place in (folder, *folder.parents) if place.is_relative_to(root)]
    argos = next((place for place in around[:2] if (place / "metadata.json").is_file()), None)
    if argos is not None:
        about = read_json(argos / "metadata.json")
        codes = about.get("from_code"), about.get("to_code")
        languages = "-".join(map(str, codes)) if all(codes) else ""
    names = (place.name for place in around if place.name not in _GENERIC)
    name = next(names, folder.name) or path.stem
    return Package(path, _plain(name), argos or folder, root, languages)


def _plain(name: str) -> str:
    """A valid name for a run."""
    return re.sub(r"[^\w.-]+", "-", name.removesuffix(".unpacked")).strip("-.")[:80] or "imported"
