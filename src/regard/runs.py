"""Many runs: what there is in a folder, how each stands, and how one is taken away. Nothing here imports torch."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from regard.errors import ModelError, RegardError
from regard.files import remove
from regard.run import PARTS, SETTINGS, Progress, Run, best_checkpoint, is_occupied, load_progress, shapes, steps
from regard.settings import TrainSettings
from regard.trainer.log import read_log

State = Literal["prepared", "running", "interrupted", "finished", "unreadable"]
_DEEPEST = 4  # folders below the one that is searched


@dataclass(frozen=True)
class Summary:
    """A run at a glance."""

    name: str
    folder: str
    state: State
    note: str = ""  # what is wrong, where something is
    task: str = ""
    preset: str = ""  # whose settings it began with, where its first line still says so
    about: str = ""
    parameters: int | None = None
    steps: int = 0
    of_steps: int = 0
    loss: float | None = None  # of the best validation
    score: float | None = None
    score_name: str = ""
    best_step: int = 0
    changed: float = 0.0  # seconds since 1970
    bytes: int = 0


@dataclass(frozen=True)
class Kept:
    """A checkpoint of a run."""

    name: str
    step: int
    bytes: int
    best: bool
    resumable: bool


@dataclass(frozen=True)
class Portrait:
    """All that `regard runs show` tells of a run."""

    summary: Summary
    settings: dict[str, Any]
    progress: Progress
    losses: tuple[tuple[int, float], ...]  # of training, by step
    validations: tuple[tuple[int, float, float], ...]  # step, loss, score
    checkpoints: tuple[Kept, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def find(folder: Path) -> Iterator[Path]:
    """The run folders in a folder, by name; a run itself stands for itself. Links are not followed."""
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such folder; regard train makes runs/PRESET, or what --out names")
    yield from _find(folder, _DEEPEST)


def _find(folder: Path, deep: int) -> Iterator[Path]:
    if (folder / SETTINGS).is_file():
        yield folder
    elif deep:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield from _find(path, deep - 1)


def summarise(folder: Path, name: str = "") -> Summary:
    """How a run stands. One that cannot be read is described all the same."""
    name = name or folder.name
    known = Summary(name, str(folder), "unreadable", changed=_changed(folder), bytes=size(folder))
    try:
        return _summary(Run.open(folder), known)
    except (RegardError, OSError, ValueError, TypeError) as problem:  # a file cut short, or of another time
        return replace(known, note=str(problem))


def _summary(run: Run, known: Summary) -> Summary:
    events, progress = _events(run), _progress(run)
    reached = max((event["step"] for event in events if event["event"] == "step"), default=0)
    best = next((event for event in reversed(events) if event["event"] == "validation" and event["best"]), None)
    return replace(
        known,
        state=_state(run, progress),
        task=run.settings.task,
        preset=_presets().get(run.settings.about, ""),
        about=run.settings.about,
        parameters=parameters(run),
        steps=max(progress.step, reached),
        of_steps=run.settings.train.steps,
        loss=best and best["loss"],
        score=best and best["score"],
        score_name=best["name"] if best else "",
        best_step=progress.best_step,
    )


def portray(folder: Path) -> Portrait:
    """Everything about one run."""
    run = Run.open(folder)
    summary, events = summarise(run.folder, str(folder)), _events(run)
    if summary.state == "unreadable":
        raise ModelError(summary.note)
    best = best_checkpoint(run).name if steps(run.checkpoints) else ""
    return Portrait(
        summary,
        run.settings.model_dump(),
        _progress(run),
        tuple((event["step"], event["loss"]) for event in events if event["event"] == "step"),
        tuple((event["step"], event["loss"], event["score"]) for event in events if event["event"] == "validation"),
        tuple(
            Kept(
                path.name, int(path.name[5:]), size(path), path.name == best, (path / "optimizer.safetensors").exists()
            )
            for path in steps(run.checkpoints)
        ),
    )


def _events(run: Run) -> list[dict[str, Any]]:
    return read_log(run.log) if run.log.is_file() else []


def _progress(run: Run) -> Progress:
    found = steps(run.checkpoints)
    return load_progress(found[-1]) if found else Progress()


def _state(run: Run, progress: Progress) -> State:
    """What the newest checkpoint and the settings say, and whether a process holds the run now."""
    if is_occupied(run.folder):
        return "running"
    if not steps(run.checkpoints):
        return "prepared"
    return "finished" if _is_over(run.settings.train, progress) else "interrupted"


def _is_over(train: TrainSettings, progress: Progress) -> bool:
    late = train.seconds is not None and progress.seconds >= train.seconds
    return progress.step >= train.steps or late or 0 < train.patience <= progress.stale


def parameters(run: Run) -> int | None:
    """How many numbers were learned, from the header of the best weights; None before the first checkpoint."""
    if not steps(run.checkpoints):
        return None
    folder = best_checkpoint(run)
    weights = next(path for name in ("weights", "average") if (path := folder / f"{name}.safetensors").exists())
    learned = {name: shape for name, shape in shapes(weights).items() if name.startswith("model.")}
    return sum(math.prod(shape) for name, shape in learned.items() if ".running_" not in name)


@cache
def _presets() -> dict[str, str]:
    """Presets by their first line."""
    files = [entry for entry in resources.files("regard.presets").iterdir() if entry.name.endswith(".toml")]
    return {tomllib.loads(file.read_text(encoding="utf-8"))["about"]: file.name.removesuffix(".toml") for file in files}


def size(folder: Path) -> int:
    """Bytes of all files in a folder. Links count as nothing."""
    names = (Path(root) / name for root, _, files in os.walk(folder) for name in files)
    return sum(path.lstat().st_size for path in names if not path.is_symlink())


def _changed(folder: Path) -> float:
    """When something last happened in a run."""
    places = (folder / name for name in (SETTINGS, "log.jsonl", "best", "checkpoints"))
    return max((path.stat().st_mtime for path in places if path.exists()), default=0.0)


def foreign(folder: Path) -> list[str]:
    """What is in a run folder and not of the run."""
    return sorted(path.name for path in folder.iterdir() if path.name not in PARTS)


def removable(folder: Path) -> Run:
    """The run that may be removed: one whose settings are ours, in a folder and not a link, and not in training."""
    if folder.is_symlink():
        raise ModelError(f"{folder}: is a link to {folder.resolve()}; name that folder, or remove the link itself")
    run = Run.open(folder)
    if run.is_packaged:
        raise ModelError(f"{folder}: comes with Regard and stays; it is only read, and takes no room in your folders")
    if is_occupied(folder):
        raise ModelError(f"{folder}: is being trained by another process; stop it first")
    return run


def remove_run(folder: Path) -> None:
    """Take a run away, whole and at once."""
    remove(removable(folder).folder)


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
