"""A run is a folder: its settings, tokenizers, checkpoints and log. Nothing here imports torch.

RUN/settings.toml       as resolved; resuming reads only this
RUN/tokenizer/          one or two tokenizers
RUN/labels.tsv          the labels, for tagging and classification
RUN/words.tsv           the words of the training text, for tagging
RUN/checkpoints/step-N  see `regard.runs.checkpoint`
RUN/best                the name of the best checkpoint
RUN/log.jsonl           what happened
RUN/origin.json         where an imported model comes from
RUN/aligner.json        which attention shows the alignment, once computed
RUN/doubt.json          the calibration of doubt, once computed
RUN/calibration.json    the factor by which a forecaster's intervals are widened
RUN/faithful.json       which map is faithful, once measured
RUN/report.html         the last report
RUN/data/               the encoded corpus; made again when missing
RUN/engines/            the model converted for engines; see `regard.tasks.engines`
RUN/tensorboard/        event files, with --tensorboard

One run comes with the package; ``demo`` means that run wherever no folder has this name.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from regard.errors import ModelError, ResourceError, did_you_mean, quoted
from regard.files import is_leftover, locked, new_file
from regard.settings import Settings, load_settings

SETTINGS = "settings.toml"
LOOKS = 500  # attempts to lock a run that another process may only be testing
MANIFEST = "manifest.json"
BELONGS = "run.json"  # in a checkpoint: the run's settings and the hashes of its tokenizers
ORIGIN = "origin.json"
PARTS = (
    *(SETTINGS, "tokenizer", "labels.tsv", "words.tsv", "checkpoints", "best", "log.jsonl", "data", "tensorboard"),
    "calibration.json",
    *("aligner.json", "doubt.json", "faithful.json", "report.html", "engines", ORIGIN, "README.md", "scores.json"),
    "shortlist.safetensors",  # of version 0.1; nothing reads it any more
)
_STEP = re.compile(r"step-(\d{1,18})")
_FILE = re.compile(r"[\w-]{1,64}\.(json|safetensors)", re.ASCII)  # of a checkpoint
_MOST = 1 << 53  # steps, tokens, seconds
_HEADER = 1 << 22  # bytes of a safetensors file's header, which has a hundred for each tensor
_AXES = 8  # of a tensor
DEMO = "demo"  # the run that comes with the package
PACKAGED = Path(str(resources.files("regard"))) / DEMO


def packaged() -> Path:
    """The folder of the run that comes with the package. Nothing is ever written there."""
    return PACKAGED


def _runs_in(folder: Path) -> list[str]:
    """The names of the runs that stand in a folder itself, those apart that may not be read."""
    return sorted(path.parent.name for path in folder.glob(f"*/{SETTINGS}"))


def resolve(folder: Path) -> Path:
    """The folder itself, or that of the package's run for ``demo`` where there is no run of that name."""
    meant = folder == Path(DEMO) and not (folder / SETTINGS).exists() and (packaged() / SETTINGS).is_file()
    return packaged() if meant else folder


@dataclass(frozen=True)
class Progress:
    """How far a training is. Plain numbers."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float | None = None  # the best value of the metric so far, higher is better
    best_step: int = 0
    stale: int = 0  # validations since the best
    judged: int = 0  # the last step whose validation counted; averages of the last checkpoints use such steps
    since_step: int = 0  # where the present schedule began: not at 0 in a run that was given more time or steps
    since_seconds: float = 0.0
    general: float | None = None  # the loss on the general test set, if there is one, before the first step


@dataclass(frozen=True)
class Run:
    """A run folder that exists."""

    folder: Path
    settings: Settings = field(repr=False)

    @classmethod
    def create(cls, folder: Path, settings: Settings) -> Run:
        """Begin a run. A folder that holds a run already is left alone, unless it is this one, not yet trained."""
        if (folder / SETTINGS).exists():
            if not steps(folder / "checkpoints") and load_settings(folder / SETTINGS) == settings:
                return cls(folder, settings)
            raise ModelError(
                f"{folder}: holds a run already; continue it with regard train --resume {quoted(folder)}, "
                "or choose another --out"
            )
        cls.check_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder, settings).write()

    @staticmethod
    def check_free(folder: Path) -> None:
        """Refuse a place where something else than a run is."""
        if folder.exists() and (not folder.is_dir() or any(not is_leftover(path.name) for path in folder.iterdir())):
            raise ModelError(f"{folder}: is there already and is not a run; choose another --out")

    def write(self) -> Run:
        """Write the settings into the folder."""
        with new_file(self.folder / SETTINGS) as file:
            file.write(self.settings.to_toml().encode())
        return self

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run in a folder; ``demo`` is known everywhere."""
        folder = resolve(folder)
        if (folder / SETTINGS).is_file():
            return cls(folder, load_settings(folder / SETTINGS))
        if folder.exists():
            inside = _runs_in(folder)
            advice = f"name a run in it: {folder / inside[0]}" if inside else "regard train makes one"
            hint = f"regard runs ls {quoted(folder)}" if inside else ""
            raise ModelError(f"{folder}: is not a run: it has no settings.toml; {advice}", hint=hint)
        beside = _runs_in(folder.parent)
        hint = f"regard runs ls {quoted(folder.parent)}" if beside else ""
        plain = folder == Path(folder.name)  # a name alone may mean `demo`, or a run in the usual folder
        usual = [f"runs/{name}" for name in _runs_in(Path("runs"))] if plain else []
        known = [*beside, *usual, *([DEMO] if plain and (packaged() / SETTINGS).is_file() else [])]
        near = did_you_mean(folder.name, known) if known else "regard train makes one"
        if not plain:  # the name alone would be another, or none
            near = near.replace("did you mean '", f"did you mean '{folder.parent}{os.sep}")
        if f"runs/{folder.name}" in usual:
            near = f"did you mean 'runs/{folder.name}'?"
        if folder.name == DEMO and folder != packaged():
            near = "regard demo trains one; the name demo alone is the run that comes with Regard"
        raise ModelError(f"{folder}: no such folder; {near}", hint=hint)

    @property
    def is_packaged(self) -> bool:
        """Whether it comes with the package."""
        return self.folder == packaged()

    @property
    def place(self) -> str:
        """Its name in a command."""
        return DEMO if self.is_packaged else str(self.folder)

    @property
    def cache(self) -> Path:
        """The folder for files that are computed from a run: its own or, if that is read-only, one in the user's cache.

        The latter is named after the weights, so that two runs never share it.
        """
        if not self.is_packaged and os.access(self.folder, os.W_OK):
            return self.folder
        user = Path(os.environ.get("XDG_CACHE_HOME", ""))
        base = user if user.is_absolute() else Path.home() / ".cache"
        return base / "regard" / f"{self.folder.resolve().name}-{digest(best_checkpoint(self) / MANIFEST)[:16]}"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer"

    @property
    def labels(self) -> Path:
        return self.folder / "labels.tsv"

    @property
    def calibration(self) -> Path:
        return self.folder / "calibration.json"

    @property
    def aligner(self) -> Path:
        return self.folder / "aligner.json"

    @property
    def words(self) -> Path:
        return self.folder / "words.tsv"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def log(self) -> Path:
        return self.folder / "log.jsonl"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def engines(self) -> Path:
        return self.cache / "engines"


# Checkpoints, without their tensors


def steps(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first. One that a crash left half-written has another name."""
    found = [path for path in folder.glob("step-*") if _STEP.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=step_of)


def step_of(path: Path) -> int:
    """The number of a checkpoint."""
    return int(path.name.removeprefix("step-"))


def _first(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def best_checkpoint(run: Run) -> Path:
    """The checkpoint that validation found best, else the newest."""
    pointer = run.folder / "best"
    if pointer.is_file() and _STEP.fullmatch(name := _first(pointer, 100).decode("ascii", "replace").strip()):
        path = run.checkpoints / name
        if path.is_dir():
            return path
    found = steps(run.checkpoints)
    if not found:
        raise ModelError(
            f"{run.folder}: has no checkpoint yet; train it first: regard train --resume {quoted(run.folder)}"
        )
    return found[-1]


def named_checkpoint(run: Run, name: str) -> Path:
    """A checkpoint by its name, which must be one of those that exist: a path is refused."""
    known = {path.name: path for path in steps(run.checkpoints)}
    if name not in known:
        raise ModelError(f"checkpoint = {name[:100]}: run {run.folder.name} has none; {did_you_mean(name, known)}")
    return known[name]


def belonging(run: Run) -> dict[str, Any]:
    """The settings and the hashes of the tokenizers and labels that the weights of a run are trained with. Read when a
    training begins: later changes in the folder do not affect it."""
    return {"settings": _meaning(run.settings), "files": _shared(run.folder)}


def seal(path: Path, belonging: Mapping[str, object] | None) -> None:
    """Write what the weights of a checkpoint belong to, if that is known, and the hash of each of its files."""
    if belonging is not None:
        (path / BELONGS).write_text(json.dumps(belonging, indent=2) + "\n", encoding="utf-8")
    hashes = {file.name: digest(file) for file in sorted(path.iterdir()) if file.name != MANIFEST}
    (path / MANIFEST).write_text(json.dumps(hashes, indent=2) + "\n", encoding="utf-8")


def _shared(folder: Path) -> dict[str, str]:
    """The hashes of tokenizers and labels."""
    files = [*(folder / "tokenizer").rglob("*"), folder / "labels.tsv", folder / "words.tsv"]
    return {path.relative_to(folder).as_posix(): digest(path) for path in sorted(files) if path.is_file()}


def _meaning(settings: Settings) -> dict[str, Any]:
    """The settings that the weights depend on. The place of the text and the way to train may change."""
    values = settings.model_dump(mode="json")
    chosen = {name: values[name] for name in ("task", "pool", "model", "text")}
    chosen["model"].pop("vectors")  # they are in the weights
    return {**chosen, "data": {"longest": settings.data.longest}}


def belongs(run: Run, path: Path) -> bool:
    """Refuse tokenizers, labels or settings that are not those of a checkpoint; False for a checkpoint of an older
    version, which has no hashes of them."""
    try:
        known = json.loads((path / BELONGS).read_bytes())
        files, settings = dict(known["files"]), flat(known["settings"])
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"{path / BELONGS}: is damaged; the checkpoint cannot be trusted") from None
    here, now = _shared(run.folder), flat(_meaning(run.settings))
    for name, expected in files.items():
        if here.get(name) != expected:
            state = "is not what the weights were trained with" if name in here else "is missing"
            raise ModelError(f"{run.folder / name}: {state}; take it from a copy of the run")
    for name in settings.keys() & now.keys():
        if now[name] != settings[name]:
            line = f"{name} = {now[name]}: the weights were trained with {settings[name]}; put that back"
            raise ModelError(f"{run.folder / SETTINGS}: {line}")
    return True


def flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Settings by their dotted names."""
    dotted: dict[str, Any] = {}
    for name, value in values.items():
        dotted |= flat(value, f"{before}{name}.") if isinstance(value, dict) else {f"{before}{name}": value}
    return dotted


def verify(path: Path) -> None:
    """Check every file of a checkpoint against the hashes in its manifest."""
    for name, expected in manifest(path).items():
        file = path / name
        if not file.is_file() or digest(file) != expected:
            raise ModelError(f"{file}: is not what was written; the checkpoint is damaged")


def manifest(path: Path) -> dict[str, str]:
    """The hash of every file of a checkpoint, by its name."""
    try:
        hashes = json.loads((path / MANIFEST).read_bytes())
        if not all(_FILE.fullmatch(name) for name in hashes):  # a path out of the folder is refused
            raise ValueError
        return {name: str(expected) for name, expected in hashes.items()}
    except (FileNotFoundError, ValueError, AttributeError, TypeError, RecursionError):
        raise ModelError(f"{path / MANIFEST}: missing or damaged; the checkpoint cannot be trusted") from None


def load_progress(path: Path) -> Progress:
    """The progress of the training when a checkpoint was written."""
    try:
        values = json.loads((path / "progress.json").read_bytes())
        progress = Progress(**values)
        if not _is_plain(progress):
            raise ValueError
    except (FileNotFoundError, ValueError, TypeError, RecursionError):
        raise ModelError(f"{path / 'progress.json'}: missing or damaged; the checkpoint cannot be trusted") from None
    return progress


def _is_plain(progress: Progress) -> bool:
    """Whether all numbers are in the range of a training's."""
    values: dict[str, object] = dict(asdict(progress))
    tested = values.pop("best"), values.pop("general")
    times = values.pop("seconds"), values.pop("since_seconds")
    plain = all(type(each) is int and 0 <= each < _MOST for each in values.values())
    plain = plain and all(isinstance(each, int | float) and 0 <= each < _MOST for each in times)
    return plain and all(
        each is None or isinstance(each, float) or (isinstance(each, int) and abs(each) < _MOST) for each in tested
    )


def shapes(path: Path) -> dict[str, list[int]]:
    """The shape of every tensor in a safetensors file, by name, from its header alone.

    A header whose tensors do not fit into the file is refused before memory is taken for them.
    """
    try:
        with path.open("rb") as file:
            size, room = int.from_bytes(file.read(8), "little"), path.stat().st_size - 8
            if size > min(_HEADER, room):
                raise ValueError
            header = json.loads(file.read(size))
        header.pop("__metadata__", None)
        return {name: _shape(entry, room - size) for name, entry in header.items()}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise ModelError(f"{path}: is not a safetensors file, or a damaged one") from None


def _shape(entry: Any, room: int) -> list[int]:
    """The shape of a tensor, if its numbers, of one to eight bytes each, fit into the ``room`` of the file."""
    shape, (begin, end) = list(entry["shape"]), entry["data_offsets"]
    numbers = (*shape, begin, end)
    if len(shape) > _AXES or not all(type(number) is int and 0 <= number <= _MOST for number in numbers):
        raise ValueError
    if not (math.prod(shape) <= end - begin <= 8 * math.prod(shape) and end <= room):
        raise ValueError
    return shape


def used_weights(path: Path) -> Path:
    """The file of a checkpoint with the weights to use: the averaged ones where there are any."""
    average = path / "average.safetensors"
    return average if average.exists() and shapes(average) else path / "weights.safetensors"


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Locks


@contextmanager
def occupied(folder: Path) -> Iterator[None]:
    """Lock a run for the time of a training, so that no two processes write into it.

    The lock is the system's and ends with the process, however that ends. On a file system without locks there is none.
    """
    for _ in range(LOOKS):
        with locked(folder) as free:
            if free is not False:
                yield
                return
        if is_occupied(folder):
            break
        time.sleep(0.01)  # another process may just be testing the lock
    raise ResourceError(f"{folder}: is being trained by another process; wait for it, or stop it first")


def is_occupied(folder: Path) -> bool:
    """Whether a process is training this run."""
    with locked(folder, shared=True) as free:
        return free is False


# Where an imported model comes from: ``origin.json`` in its run


@dataclass(frozen=True)
class Origin:
    """What an import was made of. A licence that is not stated is empty, never guessed."""

    format: str  # such as CTranslate2 6, int8
    name: str  # what the model was called
    licence: str = ""  # in one line, as the model's own files say it
    files: tuple[tuple[str, str], ...] = ()  # what was read, with its SHA-256
    notices: tuple[tuple[str, str], ...] = ()  # texts that came with the model: its licence, its README

    def __str__(self) -> str:
        """In one line."""
        return f"{self.name}, {self.format}; licence: {self.licence or 'not stated'}"

    def save(self, folder: Path) -> None:
        """Into the folder of a run."""
        values = asdict(self) | {"files": dict(self.files), "notices": dict(self.notices)}
        with new_file(folder / ORIGIN) as file:
            file.write((json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())


def origin_of(folder: Path) -> Origin | None:
    """The origin of the run in a folder; None for one that was trained by Regard from the beginning."""
    try:
        values = json.loads((folder / ORIGIN).read_bytes())
        texts = {name: str(values[name]) for name in ("format", "name", "licence")}
        pairs = {name: tuple((str(a), str(b)) for a, b in values[name].items()) for name in ("files", "notices")}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"{folder / ORIGIN}: is damaged; take it from a copy of the run") from None
    return Origin(texts["format"], texts["name"], texts["licence"], pairs["files"], pairs["notices"])
