"""The languages of all runs here: who translates what, and what tells a text's language."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from regard.errors import RegardError
from regard.run import SETTINGS, Run, steps
from regard.serve.detect import Detector, Letters
from regard.serve.languages import Languages, languages_of
from regard.serve.library import Library
from regard.settings import Settings
from regard.text.tokenizers import Tokenizers


def settings_at(path: Path) -> Settings:
    """The settings of a run, read once for each time they were written."""
    return _settings(path, (path / SETTINGS).stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _settings(path: Path, changed: int) -> Settings:
    del changed
    return Run.open(path).settings


def pairs(library: Library) -> dict[Languages, str]:
    """Which run translates which languages: of several the first, those named at the start before those in a folder."""
    found: dict[Languages, str] = {}
    for name, path in library.runs().items():
        try:
            languages = languages_of(settings_at(path))
        except (RegardError, OSError):  # a run that cannot be read translates nothing
            continue
        if languages is not None and languages not in found and steps(path / "checkpoints"):
            found[languages] = name
    return found


def detector(library: Library, known: Iterable[tuple[Languages, str]]) -> Detector:
    """What the vocabularies of these runs can tell."""
    paths = [(languages, library.path(run) / "tokenizer") for languages, run in known]
    return _detector(tuple((languages, path, path.stat().st_mtime_ns) for languages, path in paths))


@lru_cache(maxsize=4)
def _detector(known: tuple[tuple[Languages, Path, int], ...]) -> Detector:
    found: dict[str, Letters] = {}
    for languages, path, _ in known:
        tokenizers = Tokenizers.load(path)
        for code, tokenizer in ((languages.source, tokenizers.source), (languages.target, tokenizers.target)):
            found.setdefault(code, Letters()).learn(tokenizer)
    return Detector(found)
