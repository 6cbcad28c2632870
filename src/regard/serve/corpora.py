"""Corpora that were sent to the studio. They stay on this machine, in the folder ``corpora`` among the runs.

    corpora/NAME/train.source, train.target       two parallel files
    corpora/NAME/train.tsv                        or one file with all columns (csv, jsonl, parquet, tmx, conllu)
    corpora/NAME/train.text                       or text alone, for language models

The same with ``valid`` and ``test``; ``.gz`` or ``.zst`` may follow. Files of other names are neither written nor read.
``names.json`` has the names that the files had before, which tell the languages. Deleted corpora go to ``.trash``.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Annotated, Any, BinaryIO, Literal, get_args

from pydantic import Field

from regard.data.encoding import PairEncoder
from regard.data.readers import Corpus, languages_in_header
from regard.errors import DataError, ModelError, ResourceError, SettingsError, did_you_mean
from regard.explain.answer import Answer
from regard.fable.sentence import Language
from regard.files import new_file, read_object, write_object
from regard.runs.listing import NAME, put_away, put_back, trashed
from regard.serve.limits import KindError
from regard.settings.languages import Languages, named_in
from regard.tasks.corpus import Fable

Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
FORMS = ("source", "target", "text", "tsv", "csv", "jsonl", "parquet", "tmx", "conllu")
FILE = re.compile(rf"({'|'.join(PARTS)})\.({'|'.join(FORMS)})(\.gz|\.zst)?")
BUILT_IN = {f"fable:{language}": language for language in get_args(Language)}
MOST = 200  # corpora
CHECKED = "check.json"
NAMES = "names.json"
State = Literal["built in", "incomplete", "unchecked", "clean", "findings"]


@dataclass(frozen=True)
class CorpusSummary(Answer):
    """The summary of a corpus."""

    name: Annotated[str, Field(examples=["fable:fr"])]
    about: str
    pairs: Annotated[
        int | None, Field(description="For training; null until the corpus was checked, or if they are unlimited.")
    ]
    languages: Annotated[dict[str, str] | None, Field(examples=[{"source": "en", "target": "fr"}])]
    bytes: int
    state: State
    parts: Annotated[dict[str, list[str]], Field(examples=[{"train": ["train.source", "train.target"]}])]
    names: Annotated[
        dict[str, str], Field(description="What files were called.", examples=[{"train.source": "news.en"}])
    ] = field(default_factory=dict)
    built_in: bool = False


class Corpora:
    """The corpora of a folder, and the built-in ones."""

    def __init__(self, folder: Path | None = None, older: Path | None = None) -> None:
        """``older`` is another folder whose corpora are read, too; new ones are not put there."""
        self._folder = folder
        self._older = older
        self._changing = threading.Lock()  # held while names are read and written

    @property
    def folder(self) -> Path:
        if self._folder is None:
            raise SettingsError("corpus: this server has no folder for corpora; start it with regard studio RUNS")
        return self._folder

    # Reading

    def all(self) -> list[CorpusSummary]:
        """All corpora, the built-in ones first."""
        built_in = [_fable_summary(name, language) for name, language in BUILT_IN.items()]
        return [*built_in, *(self.summary(name) for name in self.names())]

    def names(self) -> list[str]:
        return sorted(self._folders())

    def _folders(self) -> dict[str, Path]:
        """The folder of each corpus."""
        folders = [folder for folder in (self._older, self._folder) if folder is not None and folder.is_dir()]
        found = {path.name: path for folder in folders for path in folder.iterdir() if _is_corpus(path)}
        kept = self._folder
        return {name: path for name, path in found.items() if path.parent == kept or _has_files(path)}

    def path(self, name: str) -> Path:
        """The folder of a corpus. Only names of corpora are accepted, never a path."""
        folders = self._folders()
        if name not in folders:
            known = did_you_mean(name, [*BUILT_IN, *folders])
            raise ModelError(f"corpus = {name[:100]}: no such corpus here; {known}")
        return folders[name]

    def files(self, name: str, part: Part) -> tuple[Path, ...]:
        """One file with all columns, or source and target, in this order; empty if the part is missing."""
        found = [path for path in self.path(name).iterdir() if _is_part(path, part)]
        return tuple(sorted(found, key=lambda path: FORMS.index(_form(path.name))))

    def summary(self, name: str) -> CorpusSummary:
        path = self.path(name)
        parts: dict[str, list[str]] = {part: [file.name for file in self.files(name, part)] for part in PARTS}
        size = sum(file.stat().st_size for file in path.iterdir() if FILE.fullmatch(file.name))
        checked = self.checked(name)
        needed = [parts["train"], *([parts["valid"]] if parts["valid"] else [])]  # as `settings` has it
        whole = all(map(_is_whole, needed))
        state: State = "unchecked" if whole else "incomplete"
        if state == "unchecked" and checked is not None:
            state = "clean" if checked["clean"] else "findings"
        pairs = None if checked is None else checked["parts"].get("train", {}).get("pairs")
        shown = {part: files for part, files in parts.items() if files}
        languages = self.languages(name)
        codes = None if languages is None else asdict(languages)
        return CorpusSummary(name, "sent to this studio", pairs, codes, size, state, shown, self.called(name))

    def called(self, name: str) -> dict[str, str]:
        """The names of the files before they were sent."""
        found = read_object(self.path(name) / NAMES) or {}
        return {file: str(before) for file, before in found.items()}

    def languages(self, name: str) -> Languages | None:
        """The languages by the original names of the files, of the training part first, or by the header of a table."""
        called = self.called(name)
        parts = ([called.get(file.name, "") for file in self.files(name, part)] for part in PARTS)
        found = (named_in(*files) for files in parts if files and all(files))
        headers = (_in_header(file) for part in PARTS for file in self.files(name, part))
        return next((each for each in chain(found, headers) if each is not None), None)

    def settings(self, name: str) -> dict[str, str]:
        """The settings of ``data`` by which a training reads this corpus. Without a validation part the training holds
        some rows out itself."""
        if name in BUILT_IN:
            return {"corpus": name}
        languages = self.languages(name)
        found = {} if languages is None else {"languages": str(languages)}
        wanted: tuple[tuple[Part, str], ...] = (("train", ""), ("valid", "valid_"))
        for part, prefix in wanted:
            files = self.files(name, part)
            if not _is_whole([file.name for file in files]) and (files or part == "train"):
                raise DataError(self._missing(name, part, files))
            found |= {f"{prefix}{_setting(file.name)}": str(file.resolve()) for file in files}
        return found

    def test_files(self, name: str) -> tuple[str, ...]:
        """The files to test a run on that is not trained on this corpus: its test part, else another."""
        if name in BUILT_IN:
            return (name,)
        order: tuple[Part, ...] = ("test", "valid", "train")
        files: tuple[Path, ...] = next((found for part in order if (found := self.files(name, part))), ())
        if not files or not _is_whole([file.name for file in files]):
            raise DataError(self._missing(name, "test", files))
        return tuple(str(file.resolve()) for file in files)

    def _missing(self, name: str, part: str, files: Sequence[Path]) -> str:
        if files:
            other = "target" if _form(files[0].name) == "source" else "source"
            return f"corpus = {name}: {files[0].name} has no {part}.{other} beside it; add it"
        what = "to learn from" if part == "train" else "to test on"
        return (
            f"corpus = {name}: has no {part} part {what}; add {part}.source and {part}.target, or hold some pairs out"
        )

    def pairs(self, name: str, limit: int) -> tuple[list[str], list[str]]:
        """Sources and references of the test part, else of the validation part."""
        columns = PairEncoder.names
        if name in BUILT_IN:
            rows = Fable(BUILT_IN[name], "test", limit, 20).rows(columns)
        else:
            files = self.files(name, "test") or self.files(name, "valid")
            if not files:
                raise DataError(
                    f"corpus = {name}: has neither a test nor a validation part; add test.source, test.target"
                )
            rows = Corpus(tuple(map(str, files))).rows(columns)
        found = [(" ".join(row[0].split()), " ".join(row[1].split())) for _, row in islice(rows, limit)]
        return [source for source, _ in found], [target for _, target in found]

    # Changing

    @contextmanager
    def receive(self, name: str, file: str, called: str = "") -> Iterator[BinaryIO]:
        """A file of a corpus to write. It exists when the block ends without an error, and replaces the same part in
        another format. ``called`` is the name it had before."""
        if not NAME.fullmatch(name):
            raise SettingsError(
                f"corpus = {name[:100]}: not a name for a corpus; use letters, digits, '.', '_' and '-'"
            )
        if not FILE.fullmatch(file):
            forms = ", ".join(FORMS)
            raise KindError(f"file = {file[:100]}: not a file of a corpus; train, valid or test, then one of {forms}")
        if name not in self.names() and len(self.names()) >= MOST:
            raise ResourceError(f"corpus = {name}: there are {MOST} corpora, the limit; delete one")
        place = self._folders().get(name, self.folder / name)
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise SettingsError(f"corpus = {name}: a file or link has this name; choose another")
        try:
            with ExitStack() as stack:
                with self._changing:  # else another upload may remove the folder that was just made
                    opened = stack.enter_context(new_file(place / file))
                yield opened
        finally:
            with self._changing, suppress(OSError):  # not empty, or never made
                place.rmdir()
        with self._changing:
            for other in self.files(name, file.split(".", maxsplit=1)[0]):  # type: ignore[arg-type]
                if other.name != file and not _go_together(other.name, file):
                    other.unlink(missing_ok=True)
            (place / CHECKED).unlink(missing_ok=True)
            self._call(name, {**self.called(name), file: PurePath(called).name[:200]})

    def _call(self, name: str, names: dict[str, str]) -> None:
        there = {file.name for part in PARTS for file in self.files(name, part)}
        kept = {file: before for file, before in names.items() if file in there and before}
        if kept != self.called(name):
            write_object(self.path(name) / NAMES, kept)

    def delete(self, name: str) -> None:
        """Put a corpus into the trash."""
        if name in BUILT_IN:
            raise SettingsError(f"corpus = {name}: is built in and cannot be deleted")
        put_away(self.path(name))

    def restore(self, name: str) -> None:
        """Restore what was deleted last under this name."""
        if not NAME.fullmatch(name):
            raise ModelError(f"corpus = {name[:100]}: no such corpus in the trash")
        older = self._older is not None and name in trashed(self._older)
        put_back(self._older if older and self._older is not None else self.folder, name)

    def adopt(self, name: str, folder: Path) -> None:
        """Replace the training part by the parts into which it was split. Two files that were one table are called by
        its languages, which its name or its header said."""
        with self._changing:
            place, called = self.path(name), self.called(name)
            languages = self.languages(name)
            codes = {} if languages is None else asdict(languages)
            before = {form: f"train.{code}" for form, code in codes.items()}
            before |= {_form(file): name for file, name in called.items() if file.startswith("train.") and name}
            for old in self.files(name, "train"):
                old.unlink()
            for file in folder.iterdir():
                if FILE.fullmatch(file.name) and file.stat().st_size:
                    file.replace(place / file.name)
                    called[file.name] = before.get(_form(file.name), "")
            (place / CHECKED).unlink(missing_ok=True)
            self._call(name, called)

    # Checks

    def checked(self, name: str) -> dict[str, Any] | None:
        """The last check, if nothing has changed since."""
        found = read_object(self.path(name) / CHECKED) or {}
        return found if found.get("stamp") == self.stamp(name) else None

    def keep_check(self, name: str, found: dict[str, Any]) -> None:
        write_object(self.path(name) / CHECKED, {**found, "stamp": self.stamp(name)})

    def stamp(self, name: str) -> list[list[Any]]:
        """A value that changes when a file does."""
        if name in BUILT_IN:
            return []
        files = [file for part in PARTS for file in self.files(name, part)]
        return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A temporary folder beside the corpora."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=self.folder, prefix=".work."))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _fable_summary(name: str, language: Language) -> CorpusSummary:
    about = "generated, any number of sentences, with gold alignments"
    languages = {"source": "en", "target": language}
    return CorpusSummary(name, about, None, languages, 0, "built in", {}, built_in=True)


def _is_corpus(path: Path) -> bool:
    return bool(NAME.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()


def _has_files(path: Path) -> bool:
    return any(FILE.fullmatch(file.name) for file in path.iterdir())


def _is_part(path: Path, part: str) -> bool:
    found = FILE.fullmatch(path.name)
    return found is not None and found[1] == part and path.is_file() and not path.is_symlink()


def _form(file: str) -> str:
    return file.split(".")[1]


def _in_header(file: Path) -> Languages | None:
    """The languages that a table's header names; none where it cannot be read."""
    with suppress(DataError, ResourceError):
        return languages_in_header(str(file))
    return None


def _is_whole(files: Sequence[str]) -> bool:
    forms = [_form(file) for file in files]
    return forms == ["source", "target"] or (len(forms) == 1 and forms[0] not in ("source", "target"))


def _go_together(one: str, other: str) -> bool:
    return {_form(one), _form(other)} == {"source", "target"}


def _setting(file: str) -> str:
    """The setting that names this file: text alone is a source."""
    form = _form(file)
    return {"text": "source", "source": "source", "target": "target"}.get(form, "corpus")
