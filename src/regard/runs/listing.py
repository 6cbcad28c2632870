"""Many runs: those in a folder, the state of each, which is best; renaming, the trash and leftovers. Nothing here
imports torch.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from regard import files
from regard.errors import ModelError, SettingsError, did_you_mean, failure
from regard.files import remove
from regard.runs.folder import (
    ORIGIN,
    PARTS,
    SETTINGS,
    Progress,
    Run,
    best_checkpoint,
    is_occupied,
    load_progress,
    origin_of,
    packaged,
    resolve,
    shapes,
    steps,
)
from regard.runs.log import outline, read_log
from regard.settings import (
    ContextDecoderSettings,
    ModelSettings,
    RecurrentModel,
    Settings,
    TrainSettings,
    load_settings,
    preset_names,
)
from regard.settings.languages import languages_of

State = Literal["prepared", "running", "interrupted", "finished", "unreadable", "failed"]  # failed: before it was a run
TRASH = ".trash"  # beside the runs: the runs that were removed and can be restored
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TRASHED = re.compile(r"(.+)-(\d{8}-\d{6}(?:-\d+)?)")  # name, and the time of its removal
_DEEPEST = 4  # folders below the one that is searched
_LOWER = frozenset(("perplexity", "relative error"))  # scores that are better when lower


@dataclass(frozen=True)
class Summary:
    """The main facts about a run."""

    name: Annotated[str, Field(examples=["demo"])]
    folder: Annotated[str, Field(exclude=True)]  # no client learns paths of the server
    state: State
    note: Annotated[str, Field(description="What is wrong, where something is.")] = ""
    task: Annotated[str, Field(examples=["translate"])] = ""
    languages: Annotated[str, Field(description="From and into which it translates.", examples=["en-fr"])] = ""
    preset: Annotated[str, Field(description="Whose architecture it has; empty if no preset has it.")] = ""
    vectors: Annotated[bool, Field(description="Whether it reads numbers, pictures or sounds, and no text.")] = False
    architecture: Annotated[str, Field(description="In words.", examples=["GRU, 1 layer, width 256"])] = ""
    about: str = ""
    parameters: int | None = None
    steps: int = 0
    of_steps: int = 0
    time: Annotated[str, Field(description="The limit, where time is one.")] = ""
    loss: Annotated[float | None, Field(description="Of the best validation.")] = None
    score: float | None = None
    score_name: str = ""
    best_step: int = 0
    changed: Annotated[float, Field(description="Seconds since 1970.")] = 0.0
    bytes: int = 0
    origin: Annotated[str, Field(description="Of an imported model: what it was, and its licence.")] = ""
    built_in: Annotated[
        bool, Field(description="Whether its text is the built-in corpus, where scores come easily.")
    ] = False

    @property
    def state_word(self) -> str:
        """For people (docs/glossary.md); JSON keeps the word of version 0.1."""
        return "stopped" if self.state == "interrupted" else self.state


@dataclass(frozen=True)
class CheckpointSummary:
    """A checkpoint of a run."""

    name: str
    step: int
    bytes: int
    best: bool
    resumable: bool


@dataclass(frozen=True)
class RunDetails:
    """Everything that `regard runs show` prints about a run."""

    summary: Summary
    settings: dict[str, Any]
    progress: Progress
    losses: tuple[tuple[int, float], ...]  # of training, by step
    validations: tuple[tuple[int, float, float], ...]  # step, loss, score
    checkpoints: tuple[CheckpointSummary, ...]


def find(folder: Path) -> Iterator[Path]:
    """The run folders in a folder, by name; of a run, itself. Links are not followed."""
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such folder; regard train makes runs/PRESET, or what --out names")
    yield from _find(folder, _DEEPEST)


def _find(folder: Path, deep: int) -> Iterator[Path]:
    try:
        if (folder / SETTINGS).is_file():
            yield folder
            return
        inside = [path for path in sorted(folder.iterdir() if deep else ()) if _is_plain(path)]
    except PermissionError:  # of another user, and perhaps a run: it is listed as unreadable
        yield folder
        return
    for path in inside:
        yield from _find(path, deep - 1)


def _is_plain(path: Path) -> bool:
    """Whether this is a folder, neither hidden nor a link."""
    return path.is_dir() and not path.is_symlink() and not path.name.startswith(".")


def summarise(folder: Path, name: str = "") -> Summary:
    """The summary of a run; of one that cannot be read, with a note."""
    known = Summary(name or folder.name, str(folder), "unreadable")
    try:
        known = replace(known, changed=_changed(folder), bytes=size(folder))
        return _summary(Run.open(folder), known)
    except Exception as problem:  # one damaged run must not hide the others
        return replace(known, note=str(failure(problem) or f"{folder}: cannot be read; {problem!r}"))


def _summary(run: Run, known: Summary) -> Summary:
    log, progress = outline(run.log), _progress(run)
    best = log.best
    return replace(
        known,
        **by_settings(run.settings),
        state=_state(run, progress),
        origin=str(origin_of(run.folder) or ""),
        parameters=parameters(run),
        steps=max(progress.step, log.step),
        loss=_finite(best["loss"] if best else None),
        score=_finite(best["score"] if best else None),
        score_name=best["name"] if best else "",
        best_step=progress.best_step,
    )


def by_settings(settings: Settings) -> dict[str, Any]:
    """The fields of a summary that follow from the settings."""
    return {
        "task": settings.task,
        "languages": str(languages_of(settings) or ""),
        "vectors": settings.text.source.kind == "vectors",
        "preset": preset_of(settings.model),
        "architecture": architecture(settings.model, settings.task),
        "about": settings.about,
        "of_steps": settings.train.steps,
        "time": settings.train.time,
        "built_in": settings.data.is_built_in,
    }


def _finite(value: float | None) -> float | None:
    """The number, or None where JSON has no such number."""
    return value if value is not None and math.isfinite(value) else None


def portray(folder: Path) -> RunDetails:
    """Everything about one run."""
    run = Run.open(folder)
    summary, events = summarise(run.folder, str(folder)), read_log(run.log)
    if summary.state == "unreadable":
        raise ModelError(summary.note)
    best = best_checkpoint(run).name if steps(run.checkpoints) else ""
    return RunDetails(
        summary,
        run.settings.model_dump(),
        _progress(run),
        tuple((event["step"], event["loss"]) for event in events if _is(event, "step", "loss")),
        tuple((event["step"], event["loss"], event["score"]) for event in events if _is(event, "validation", "score")),
        tuple(
            CheckpointSummary(
                path.name, int(path.name[5:]), size(path), path.name == best, (path / "optimizer.safetensors").exists()
            )
            for path in steps(run.checkpoints)
        ),
    )


def _is(event: dict[str, Any], kind: str, number: str) -> bool:
    """Whether this is an event of a kind, with numbers that can be drawn."""
    return event["event"] == kind and math.isfinite(event["loss"]) and math.isfinite(event[number])


def _progress(run: Run) -> Progress:
    found = steps(run.checkpoints)
    return load_progress(found[-1]) if found else Progress()


def _state(run: Run, progress: Progress) -> State:
    """From the newest checkpoint and the settings, and whether a process has locked the run."""
    if is_occupied(run.folder):
        return "running"
    if not steps(run.checkpoints):
        return "prepared"
    imported = not progress.step and (run.folder / ORIGIN).exists()  # it was trained elsewhere
    return "finished" if imported or _is_over(run.settings.train, progress) else "interrupted"


def _is_over(train: TrainSettings, progress: Progress) -> bool:
    late = train.seconds is not None and progress.seconds >= train.seconds
    return progress.step >= train.steps or late or 0 < train.patience <= progress.stale


def parameters(run: Run) -> int | None:
    """The number of parameters, from the header of the best weights; None before the first checkpoint."""
    if not steps(run.checkpoints):
        return None
    folder = best_checkpoint(run)
    weights = next(path for name in ("weights", "average") if (path := folder / f"{name}.safetensors").exists())
    learned = {name: shape for name, shape in shapes(weights).items() if name.startswith("model.")}
    return sum(math.prod(shape) for name, shape in learned.items() if ".running_" not in name)


# Which architecture


def preset_of(model: ModelSettings) -> str:
    """The preset whose architecture a model has: the same kinds of parts, and of those the nearest in size."""
    parts, sizes = _parts(model)
    near = {name: known for name, (kinds, known) in _presets().items() if kinds == parts}
    return min(near, key=lambda name: _distance(near[name], sizes), default="")


@cache
def _presets() -> dict[str, tuple[dict[str, Any], dict[str, float]]]:
    return {name: _parts(load_settings(name).model) for name in preset_names()}


def _parts(model: ModelSettings) -> tuple[dict[str, Any], dict[str, float]]:
    """The kinds of a model's parts, and its sizes."""
    if isinstance(model, RecurrentModel):
        decoder = model.decoder
        parts: dict[str, Any] = {"cell": model.cell, "reverse": model.reverse, "decoder": decoder.kind}
        if not isinstance(decoder, ContextDecoderSettings):
            attention = decoder.attention
            parts |= {"score": attention.score, "selection": attention.selection, "window": attention.window.kind}
        return parts, {"width": model.width, "hidden": model.hidden, "depth": model.depth}
    depths = {"encoder": model.encoder_depth, "decoder": model.decoder_depth, "heads": model.heads}
    kinds = {name: getattr(model, name) for name in ("kind", "autoregression", "positions", "activation")}
    return kinds, {"width": model.width, "hidden": model.hidden, **depths}


def _distance(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(abs(math.log(max(1, one[name]) / max(1, other[name]))) for name in one)


_CELLS = {"elman": "Elman network", "gru": "GRU", "lstm": "LSTM"}


def architecture(model: ModelSettings, task: str = "translate") -> str:
    """The kind and the sizes of a model, in words."""
    if not isinstance(model, RecurrentModel):
        written = ", SSRU decoder" if task not in {"tag", "classify"} and model.autoregression == "ssru" else ""
        size = f"{'+'.join(map(str, model.depths(task)))} layers, {model.heads} heads, width {model.width}"
        recent = ", rotary positions" * (model.positions == "rotary") + ", SwiGLU" * (model.activation == "swiglu")
        return f"Transformer, {size}{recent}{written}"
    words = [_CELLS[model.cell] + (", both ways" if model.bidirectional and task != "language" else "")]
    if task == "translate":
        decoder = model.decoder
        if isinstance(decoder, ContextDecoderSettings):
            words.append("no attention")
        else:
            words.append(f"{decoder.kind.title()} attention ({decoder.attention.score})")
    words.append(f"{model.depth} {'layer' if model.depth == 1 else 'layers'}")
    return ", ".join((*words, f"width {model.width}"))


# Which is best


def best_first(runs: Iterable[Summary]) -> list[Summary]:
    """Runs of one task and language pair in order of quality.

    Runs with a score come first; of these, runs on a user's own text before those on the built-in corpus; then the
    better score of the best validation; of equals, the run of the package is last and a newer one first.
    """
    return sorted(runs, key=_rank)


def _rank(summary: Summary) -> tuple[bool, bool, float, bool, float]:
    score = math.nan if summary.score is None else summary.score
    unscored = not math.isfinite(score)
    order = 0.0 if unscored else score if summary.score_name in _LOWER else -score
    return unscored, summary.built_in, order, is_fixed(Path(summary.folder)), -summary.changed


def is_usable(summary: Summary) -> bool:
    """Whether the run has a model, unlike one that is only prepared or cannot be read."""
    return summary.state != "unreadable" and summary.parameters is not None


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder, without links and files that a training removes meanwhile."""
    total = 0
    for file in (Path(root) / name for root, _, names in os.walk(path) for name in names) if path.is_dir() else (path,):
        with contextlib.suppress(FileNotFoundError):
            status = file.lstat()
            total += 0 if stat.S_ISLNK(status.st_mode) else status.st_size
    return total


def _changed(folder: Path) -> float:
    """The time of the last change of a run."""
    paths = (folder / name for name in (SETTINGS, "log.jsonl", "best", "checkpoints"))
    return max((path.stat().st_mtime for path in paths if path.exists()), default=0.0)


def foreign(folder: Path) -> list[str]:
    """The names in a run folder that are no part of a run."""
    return sorted(path.name for path in folder.iterdir() if path.name not in PARTS)


def is_fixed(folder: Path) -> bool:
    """Whether a run comes with the package, and can be neither renamed nor removed."""
    return resolve(folder).resolve() == packaged().resolve()


def removable(folder: Path) -> Run:
    """The run of a folder, if it may be renamed or removed: a folder with settings and not a link, not in training, and
    not the run of the package."""
    if is_fixed(folder):
        raise ModelError(f"{folder.name}: comes with Regard, and is neither renamed nor removed; train one of your own")
    if folder.is_symlink():
        raise ModelError(f"{folder}: is a link to {folder.resolve()}; name that folder, or remove the link itself")
    run = Run.open(folder)
    if is_occupied(folder):
        raise ModelError(f"{folder}: is being trained by another process; stop it first")
    return run


def remove_run(folder: Path) -> None:
    """Remove a run for good, whole and at once."""
    remove(removable(folder).folder)


# Renaming and the trash


def rename_run(folder: Path, name: str) -> Path:
    """Give a run another name in the same folder."""
    run = removable(folder)
    return run.folder.rename(vacant(run.folder.parent, name))


def vacant(parent: Path, name: str) -> Path:
    """The path of a new run of this name; a name that is taken or not allowed is refused."""
    if not NAME.fullmatch(name):
        raise SettingsError(f"name = {name[:100]}: not a name for a run; use letters, digits, '.', '_' and '-'")
    if (parent / name).exists() or (parent / name).is_symlink():
        raise SettingsError(f"name = {name}: is taken; choose another")
    return parent / name


def trash_run(folder: Path) -> Path:
    """Move a run into the trash beside it; `put_back` restores it."""
    return put_away(removable(folder).folder)


def put_away(folder: Path) -> Path:
    """Move a folder into the trash beside it, under its name and the time."""
    trash = folder.resolve().parent / TRASH
    trash.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{folder.resolve().name}-{stamp}{more}" for more in ("", *(f"-{count}" for count in range(2, 100))))
    return folder.rename(next(trash / name for name in names if not (trash / name).exists()))


def put_back(parent: Path, name: str) -> Path:
    """Restore the folder of this name that was moved into the trash last."""
    path, known = parent / name, trashed(parent)
    if name not in known:
        near = did_you_mean(name, known) if known else "it is empty"
        raise ModelError(f"{path}: is not in the trash; {near}")
    if path.exists() or path.is_symlink():
        raise ModelError(f"{path}: is there again; rename that first, then restore")
    return known[name][-1].rename(path)


def trashed(parent: Path) -> dict[str, list[Path]]:
    """The folders in the trash of a folder, by name, the oldest first."""
    known: dict[str, list[Path]] = {}
    trash = parent / TRASH
    for path in sorted(trash.iterdir(), key=_when) if trash.is_dir() else []:
        if (match := _TRASHED.fullmatch(path.name)) is not None and path.is_dir() and not path.is_symlink():
            known.setdefault(match[1], []).append(path)
    return known


def _when(path: Path) -> tuple[str, int]:
    match = _TRASHED.fullmatch(path.name)
    day, clock, *more = match[2].split("-") if match else ("", "")
    return day + clock, int(more[0]) if more else 1


# Leftovers


def leftovers(folder: Path) -> list[Path]:
    """The half-written files of killed processes in a folder of runs, in its runs and among its corpora.

    Nothing in a run that is being trained, and nothing that a process is writing now.
    """
    beside = folder.resolve().parent / "corpora"  # where older versions kept uploads
    folders = [folder, *_inside(folder, _DEEPEST), *([beside, *_inside(beside, 1)] if beside.is_dir() else [])]
    return [path for each in folders for path in files.leftovers(each)]


def _inside(folder: Path, deep: int) -> Iterator[Path]:
    """The folders that may have leftovers: down to the runs, and all of a run that is not being trained."""
    try:
        is_run = (folder / SETTINGS).is_file()
        if is_run and is_occupied(folder):
            return
        inside = [path for path in sorted(folder.iterdir() if deep else ()) if _is_plain(path)]
    except PermissionError:  # of another user
        return
    for path in inside:
        yield path
        yield from _inside(path, 2 if is_run else deep - 1)


def trash_of(folder: Path) -> list[Path]:
    """The folders in the trash of a folder of runs and of its corpora."""
    paths: list[Path] = []
    for parent in (folder, folder / "corpora", folder.resolve().parent / "corpora"):
        with contextlib.suppress(PermissionError):  # of another user
            paths += [path for several in trashed(parent).values() for path in several]
    return paths


_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: list[float], width: int = 40) -> str:
    """A curve in one line: at most `width` blocks, each the mean of its share of the values."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    count = min(width, len(finite))
    edges = [len(finite) * place // count for place in range(count + 1)]
    means = [sum(finite[begin:end]) / (end - begin) for begin, end in pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((value - low) * scale)] for value in means)
