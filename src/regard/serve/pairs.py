"""The languages of all runs: which run translates which pair, and detecting the language of a text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

from regard.errors import SettingsError
from regard.runs import listing
from regard.runs.folder import SETTINGS, Run, is_occupied
from regard.runs.listing import Summary
from regard.serve import detect
from regard.serve.library import Library
from regard.settings import Settings
from regard.settings.languages import Languages
from regard.text.tokenizers import Tokenizers


def settings_at(path: Path) -> Settings:
    """The settings of a run, read once for each time they were written."""
    return _settings(path, (path / SETTINGS).stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _settings(path: Path, changed: int) -> Settings:
    del changed
    return Run.open(path).settings


def check_text(library: Library, run: str, *texts: str, where: str = "text") -> None:
    """Refuse texts that are too long for a run; one that reads vectors may be sent the contents of a file."""
    long = any(len(text) > library.limits.text for text in texts)
    vectors = long and settings_at(library.path(run)).text.source.kind == "vectors"
    library.limits.check(texts, where, vectors=vectors)


def summary_at(path: Path, name: str) -> Summary:
    """The summary of a run, made again only when something of the run has changed."""
    try:
        return _summary(path, name, _stamps(path))
    except _UnreadableError as unreadable:
        return unreadable.summary


def _stamps(path: Path) -> tuple[object, ...]:
    """A value that changes when the summary of a run would change."""
    changed = (_stamp(path / each) for each in (SETTINGS, "log.jsonl", "best", "checkpoints"))
    return (*changed, _is_trained(path))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        seen = path.stat()
    except OSError:  # missing, or not readable
        return None
    return seen.st_mtime_ns, seen.st_size


def _is_trained(path: Path) -> bool:
    """Whether the run is being trained now, which no file says."""
    try:
        return is_occupied(path)
    except OSError:  # a run of another user; its summary says so
        return False


class _UnreadableError(Exception):
    """Raised, and so not cached: a run that cannot be read now is tried again the next time."""

    def __init__(self, summary: Summary) -> None:
        super().__init__(summary.note)
        self.summary = summary


@lru_cache(maxsize=256)
def _summary(path: Path, name: str, changed: tuple[object, ...]) -> Summary:
    del changed
    found = listing.summarise(path, name)
    if found.state == "unreadable":
        raise _UnreadableError(found)
    return found


Purpose: TypeAlias = tuple[str, str, bool]


def purpose(summary: Summary) -> Purpose:
    """What a run is for: its task, its languages, and whether it reads vectors. Runs that share it stand in for each
    other."""
    return summary.task, summary.languages, summary.vectors


def best_runs(library: Library) -> dict[Purpose, str]:
    """The default run of each purpose.

    It is a pinned one, else one that was named at the start, else one of the folder; of several the best
    (`runs.best_first`).
    """
    known: dict[Purpose, list[Summary]] = {}
    for name, path in library.runs().items():
        if listing.is_usable(found := summary_at(path, name)):
            known.setdefault(purpose(found), []).append(found)
    return {what: _first(library, several) for what, several in known.items()}


def _first(library: Library, several: Sequence[Summary]) -> str:
    if len(several) == 1:  # nearly always, and every translation asks
        return several[0].name
    ranked = [each.name for each in listing.best_first(several)]
    return min(ranked, key=lambda name: (name not in library.pinned, name not in library.named))


def pairs(library: Library) -> dict[Languages, str]:
    """Which run translates which languages."""
    found = best_runs(library).items()
    return {Languages.of(codes): run for (task, codes, _), run in found if task == "translate" and codes}


_seen: WeakKeyDictionary[Library, tuple[object, dict[Languages, str]]] = WeakKeyDictionary()


async def current_pairs(library: Library) -> dict[Languages, str]:
    """`pairs`, read in a thread. Where all runs were named, they are few: there it is first checked whether one has
    changed, because waiting for a thread takes longer while a model is working."""
    if library.folder is not None:
        return await asyncio.to_thread(pairs, library)
    runs = library.runs()
    now = {name: _stamps(path) for name, path in runs.items()}
    known = _seen.get(library)
    if known is not None and known[0] == now:
        return known[1]

    def read() -> tuple[dict[Languages, str], bool]:
        return pairs(library), all(summary_at(path, name).state != "unreadable" for name, path in runs.items())

    found, readable = await asyncio.to_thread(read)
    if readable:
        _seen[library] = now, found
    return found


def check_pins(library: Library) -> None:
    """Refuse pinned runs that do not exist, and two for the same task and languages."""
    known: dict[Purpose, str] = {}
    for name in library.pinned:
        what = purpose(summary_at(library.path(name), name))
        if what in known:
            raise SettingsError(
                f"serve.pin = {known[what]}, {name}: are for the same task and languages; pin one of them"
            )
        known[what] = name


def detector(library: Library, known: Iterable[tuple[Languages, str]]) -> Callable[[str], list[detect.Detection]]:
    """A detector of languages by the vocabularies of these runs."""
    paths = [(languages, library.path(run) / "tokenizer") for languages, run in known]
    return _detector(tuple((languages, path, path.stat().st_mtime_ns) for languages, path in paths))


@lru_cache(maxsize=4)
def _detector(known: tuple[tuple[Languages, Path, int], ...]) -> Callable[[str], list[detect.Detection]]:
    found: dict[str, detect.Letters] = {}
    for languages, path, _ in known:
        tokenizers = Tokenizers.load(path)
        for code, tokenizer in ((languages.source, tokenizers.source), (languages.target, tokenizers.target)):
            found.setdefault(code, detect.Letters()).learn(tokenizer)
    return detect.detector(found)
