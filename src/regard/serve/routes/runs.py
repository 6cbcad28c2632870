"""``/api/v1/runs``: list, show, rename, remove, restore, export and report runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from regard.errors import RegardError
from regard.evaluate.comparison import plain
from regard.explain.alignment import Aligner
from regard.explain.answer import Answer
from regard.runs import listing
from regard.runs.archive import pack
from regard.runs.folder import Progress, Run
from regard.runs.listing import CheckpointSummary, Summary
from regard.serve.answers import RefusedError, problems
from regard.serve.examples import examples
from regard.serve.guard import may_change
from regard.serve.jobs import Jobs
from regard.serve.library import Library, ModelAnswer, attends, corpus_name, shape, test_of
from regard.serve.limits import NAME, Body
from regard.serve.pairs import best_runs, settings_at, summary_at
from regard.serve.trainings import FILES
from regard.settings import DataSettings, Settings
from regard.settings.languages import Languages
from regard.settings.loading import overrides_of


@dataclass(frozen=True, kw_only=True)
class RunSummary(Summary, Answer):
    """The summary of a run, and its role in this service."""

    languages: Annotated[Languages | None, Field(description="Null if the run does not say.")] = None  # type: ignore[assignment]
    attention: Annotated[bool, Field(description="Whether there is attention to look at.")] = False
    best: Annotated[bool, Field(description="Whether it is the default for its task and languages.")]
    pinned: Annotated[bool, Field(description="Whether it is the default because it was pinned.")]
    fixed: Annotated[bool, Field(description="Whether it cannot be renamed or removed here.")]
    corpus: Annotated[str, Field(description="What it was trained on.", examples=["fable:fr"])] = ""
    test: Annotated[str, Field(description="Runs with the same value, not empty, share a test.")] = ""
    engine: Annotated[str, Field(description="The engine; empty until the run is loaded.", examples=["native"])]


class RunAnswer(BaseModel):
    """Everything about one run."""

    summary: RunSummary
    settings: Annotated[Settings, Field(description="All settings; files without their folders.")]
    progress: Annotated[Progress, Field(description="The progress of the training.")]
    losses: Annotated[list[tuple[int, float | None]], Field(description="Of training: step, loss.")]
    validations: Annotated[list[tuple[int, float | None, float | None]], Field(description="Step, loss, score.")]
    checkpoints: list[CheckpointSummary]
    model: ModelAnswer
    aligner: Annotated[str, Field(description="The attention that links are read from; empty until it was chosen.")]


class RenameBody(Body):
    """Another name."""

    to: Annotated[str, Field(max_length=NAME, description="The new name.", examples=["demo"])]


class SettingsAnswer(BaseModel):
    """The settings of a run; files without their folders."""

    run: str
    toml: Annotated[str, Field(description="As TOML for `regard train`.")]
    settings: dict[str, Any]


class ExamplesAnswer(BaseModel):
    """Validation sentences of a run, from short to long."""

    run: str
    task: str
    examples: Annotated[
        list[dict[Literal["text", "reference"], str]],
        Field(description="Each with its reference; for a language model the whole sentence."),
    ]


Name = Annotated[str, InPath(examples=["demo"])]
REPORTED = 200  # sentences that a report is measured on
PART = 1 << 18  # bytes of an archive sent at once
PROBLEMS = problems(400, 404, 429, 503)
ARCHIVE: dict[int | str, dict[str, Any]] = {200: {"content": {"application/gzip": {}}, "description": "The archive."}}
PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {}}, "description": "The page."}}
APART = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)
router = APIRouter(prefix="/api/v1/runs", tags=["runs"])


@router.get("")
def every_run(request: Request) -> dict[Literal["runs"], list[RunSummary]]:
    """The summaries of all runs. `best` marks the default of its task and languages."""
    library: Library = request.app.state.library
    best, changes = set(best_runs(library).values()), may_change(request)
    found = library.runs().items()
    return {"runs": [_summary(library, name, path, best, changes=changes) for name, path in found]}


@router.get("/{run}")
def one_run(request: Request, run: Name) -> RunAnswer:
    """Settings, curves and checkpoints of one run."""
    library: Library = request.app.state.library
    path = library.path(run)
    portrait, settings = listing.portray(path), settings_at(path)
    aligner = Aligner.load(path)
    content = asdict(portrait) | {
        "summary": _summary(library, run, path, set(best_runs(library).values()), changes=may_change(request)),
        "settings": without_paths(portrait.settings),
        "model": shape(settings),
        "aligner": aligner.describe() if aligner and attends(settings) else "",
    }
    return RunAnswer.model_validate(plain(content))


# Changing


@router.post("/{run}/rename", responses=PROBLEMS)
def rename(request: Request, run: Name, body: RenameBody) -> dict[Literal["run"], str]:
    """Give a run another name; not while it is trained."""
    request.app.state.jobs.rename(run, body.to)
    return {"run": body.to}


@router.delete("/{run}", responses=PROBLEMS)
def remove(request: Request, run: Name) -> dict[Literal["run", "restore"], str]:
    """Put a run into the trash, or the record of a training that failed before it made one; not while it is trained.
    Post to `restore` to undo."""
    request.app.state.jobs.remove(run)
    return {"run": run, "restore": f"/api/v1/runs/{run}/restore"}


@router.post("/{run}/restore", responses=PROBLEMS)
def restore(request: Request, run: Name) -> dict[Literal["run"], str]:
    """Restore the run that was removed last under this name."""
    request.app.state.jobs.restore(run)
    return {"run": run}


# Settings, examples, archive and report


@router.get("/{run}/settings", responses=PROBLEMS)
def settings_of(request: Request, run: Name) -> SettingsAnswer:
    """All settings of a run."""
    values = without_paths(settings_at(request.app.state.library.path(run)).model_dump())
    return SettingsAnswer(run=run, toml=Settings.model_validate(values).to_toml(), settings=values)


@router.get("/{run}/examples", responses=PROBLEMS)
def examples_of(
    request: Request, run: Name, count: Annotated[int, Query(ge=1, le=50, description="At the most.")] = 5
) -> ExamplesAnswer:
    """Sentences to try a run with: some of its validation sentences."""
    opened = Run.open(request.app.state.library.path(run))
    return ExamplesAnswer(run=run, task=opened.settings.task, examples=examples(opened, count))


@router.get("/{run}/export", responses={**PROBLEMS, **ARCHIVE}, response_class=StreamingResponse)
def export(
    request: Request, run: Name, everything: Annotated[bool, Query(description="Also what resuming needs.")] = False
) -> StreamingResponse:
    """A run as one archive, which `regard runs import` reads."""
    path = request.app.state.library.path(run).resolve()
    folder = Path(tempfile.mkdtemp(prefix="regard-export-"))
    try:
        pack(path, folder / f"{run}.tar.gz", everything=everything)
        archive = (folder / f"{run}.tar.gz").open("rb")
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the open file can still be read
    return ArchiveResponse(archive, f"{run}.tar.gz")


class ArchiveResponse(StreamingResponse):
    """Sends an open file and closes it, also if the client has gone before the first part is read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(os.fstat(file.fileno()).st_size),
        }
        super().__init__(iter(partial(file.read, PART), b""), media_type="application/gzip", headers=headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


@router.get("/{run}/report", responses={**PROBLEMS, **PAGE}, response_class=HTMLResponse)
async def report(request: Request, run: Name) -> HTMLResponse:
    """The report of a run as one HTML file. It is made when first asked for, which may take a minute."""
    library: Library = request.app.state.library
    jobs, path = request.app.state.jobs, library.path(run).resolve()
    made = next((file for file in (path / "report.html", jobs.report_of(run)) if _is_newer(file, path)), None)
    if made is None:
        if not may_change(request):
            raise RefusedError(
                403, f"run = {run}: has no report yet, and only clients that may train can have one made"
            )
        made = jobs.report_of(run)
        made.parent.mkdir(parents=True, exist_ok=True)
        decode = overrides_of("decode", library.limits.decode(library.decode, {}))
        command = ["report", str(path), "--out", str(made), f"measure.limit={REPORTED}", *decode]
        await request.app.state.commands(request, command, made.parent)
    text = await asyncio.to_thread(made.read_text, encoding="utf-8")
    return HTMLResponse(_concealed(text, settings_at(path).data, jobs), headers={"Content-Security-Policy": APART})


def _is_newer(file: Path, run: Path) -> bool:
    """Whether a report is newer than the run."""
    changed = [path.stat().st_mtime for path in (run / "best", run / "settings.toml") if path.exists()]
    return file.is_file() and file.stat().st_mtime >= max(changed)


def _concealed(text: str, data: DataSettings, jobs: Jobs) -> str:
    """A report without the folders of this machine."""
    files = (getattr(data, name) for name in FILES)
    for place in sorted({str(Path(file).parent) for file in files if "/" in file}, key=len, reverse=True):
        text = text.replace(f"{place}/", "")
    return jobs.library.conceal(jobs.shown(text))


# Summaries


def _summary(library: Library, name: str, path: Path, best: set[str], *, changes: bool) -> RunSummary:
    summary = summary_at(path, name)
    content = vars(summary) | {"note": library.conceal(summary.note)}
    content["languages"] = Languages.of(summary.languages) if summary.languages else None
    with suppress(RegardError, OSError):  # the summary says why it is unreadable
        settings = settings_at(path)
        content |= {"attention": attends(settings), "corpus": corpus_name(settings.data), "test": test_of(settings)}
    worker = library.loaded.get(name)
    return RunSummary(
        **content,
        best=name in best,
        pinned=name in library.pinned,
        fixed=not changes or library.is_fixed(name),
        engine="" if worker is None else worker.engine,
    )


def without_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings whose files are named without their folders."""
    data = {
        key: Path(value).name if isinstance(value, str) and "/" in value else value
        for key, value in settings["data"].items()
    }
    return {**settings, "data": data}
