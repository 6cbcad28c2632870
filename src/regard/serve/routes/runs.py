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
from regard.serve.languages import languages_of
from regard.serve.library import Library
from regard.serve.pairs import settings_at
from regard.serve.schema.runs import LanguagesAnswer, RunAnswer, RunsAnswer, RunSummary
from regard.serve.shape import attends, shape

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])


@router.get("")
def every_run(request: Request) -> RunsAnswer:
    """All runs at a glance."""
    library: Library = request.app.state.service.library
    found = library.runs().items()
    return RunsAnswer(runs=[_summary(library, shelf.summarise(path, name), path) for name, path in found])


@router.get("/{run}")
def one_run(request: Request, run: Annotated[str, InPath(examples=["demo"])]) -> RunAnswer:
    """Settings, curves and checkpoints of one run."""
    library: Library = request.app.state.service.library
    path = library.path(run)
    portrait, settings = shelf.portray(path), settings_at(path)
    aligner = Aligner.load(path)
    content = portrait.to_dict() | {
        "summary": _summary(library, shelf.summarise(path, run), path),
        "settings": _without_paths(portrait.settings),
        "model": shape(settings),
        "aligner": aligner.describe() if aligner and attends(settings) else "",
    }
    return RunAnswer.model_validate(_finite(content))


def _summary(library: Library, summary: shelf.Summary, path: Path) -> RunSummary:
    content: dict[str, Any] = asdict(summary) | {"note": library.conceal(summary.note)}
    languages, attention = None, False
    try:
        settings = settings_at(path)
        languages, attention = languages_of(settings), attends(settings)
    except (RegardError, OSError):
        pass  # the summary says that it is unreadable, and why
    told = None if languages is None else LanguagesAnswer(**asdict(languages))
    worker = library.loaded.get(summary.name)
    engine = "" if worker is None else worker.engine
    return RunSummary(**_finite({**content, "languages": told, "attention": attention, "engine": engine}))


def _without_paths(settings: dict[str, Any]) -> dict[str, Any]:
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
