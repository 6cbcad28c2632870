"""``/api/v1/runs``: what runs there are, and how each stands."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Path as InPath

from regard import runs as shelf
from regard.errors import RegardError
from regard.explain.alignment import Aligner
from regard.serve.library import Library
from regard.serve.pairs import best_runs, settings_at
from regard.serve.schema.runs import LanguagesAnswer, RunAnswer, RunsAnswer, RunSummary
from regard.serve.shape import attends, shape
from regard.serve.sharing import corpus_name, test_of

Name = Annotated[str, InPath(examples=["demo"])]
router = APIRouter(prefix="/api/v1/runs", tags=["runs"])


@router.get("")
def every_run(request: Request) -> RunsAnswer:
    """All runs at a glance. `best` marks the one that is used for its task and languages where nobody names one."""
    library: Library = request.app.state.service.library
    best = set(best_runs(library).values())
    return RunsAnswer(runs=[_summary(library, name, path, best) for name, path in library.runs().items()])


@router.get("/{run}")
def one_run(request: Request, run: Name) -> RunAnswer:
    """Settings, curves and checkpoints of one run."""
    library: Library = request.app.state.service.library
    path = library.path(run)
    portrait, settings = shelf.portray(path), settings_at(path)
    aligner = Aligner.load(path)
    content = portrait.to_dict() | {
        "summary": _summary(library, run, path, set(best_runs(library).values())),
        "settings": without_paths(portrait.settings),
        "model": shape(settings),
        "aligner": aligner.describe() if aligner and attends(settings) else "",
    }
    return RunAnswer.model_validate(_finite(content))


def _summary(library: Library, name: str, path: Path, best: set[str]) -> RunSummary:
    summary = shelf.summarise(path, name)
    content: dict[str, Any] = asdict(summary) | {"note": library.conceal(summary.note)}
    attention, corpus, test = False, "", ""
    try:
        settings = settings_at(path)
        attention, corpus, test = attends(settings), corpus_name(settings.data), test_of(settings)
    except (RegardError, OSError):
        pass  # the summary says that it is unreadable, and why
    source, _, target = summary.languages.partition("-")
    worker = library.loaded.get(name)
    return RunSummary(
        **_finite(content)
        | {
            "languages": LanguagesAnswer(source=source, target=target) if target else None,
            "attention": attention,
            "best": name in best,
            "pinned": name in library.pinned,
            "fixed": shelf.is_fixed(path),
            "corpus": corpus,
            "test": test,
            "engine": "" if worker is None else worker.engine,
        }
    )


def without_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Of files only their names: where they are is nobody's business."""
    data = {
        key: Path(value).name if isinstance(value, str) and "/" in value else value
        for key, value in settings["data"].items()
    }
    return {**settings, "data": data}


def _finite(value: Any) -> Any:
    """What JSON has no number for is nothing."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
