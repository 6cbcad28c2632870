"""``/api/v1/compare`` and ``/api/v1/jobs``: compare runs, in a process of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from regard.errors import DataError, SettingsError
from regard.runs.folder import Run
from regard.serve.answers import problems
from regard.serve.corpora import BUILT_IN, Corpora
from regard.serve.jobs import Jobs, JobStatus
from regard.serve.library import check_shared
from regard.serve.limits import BEAM, COMPARED, NAME, Body
from regard.serve.routes.translate import Decode
from regard.settings.loading import overrides_of
from regard.tasks.load import task_of


class CompareRequest(Body):
    """What to compare."""

    runs: list[Annotated[str, Field(max_length=NAME)]] = Field(
        min_length=1, max_length=COMPARED, examples=[["lstm", "bahdanau"]]
    )
    corpus: str = Field(
        "", max_length=NAME, description="Whose test part is translated; empty for a test that all runs share."
    )
    limit: int = Field(200, ge=2, le=10_000, description="Sentences at the most.")
    beam: int = Field(5, ge=1, le=BEAM)
    decode: Decode = None


router = APIRouter(prefix="/api/v1", tags=["compare"])
PROBLEMS = problems(400, 404, 429, 503)


@router.post("/compare", status_code=202, responses=PROBLEMS)
def compare(request: Request, body: CompareRequest) -> dict[Literal["job"], str]:
    """Translate a test with every run and compare the outputs. The answer names the job that has the result later."""
    jobs: Jobs = request.app.state.jobs
    if len(set(body.runs)) < len(body.runs):
        raise SettingsError(f"runs = {', '.join(body.runs)[:200]}: one is named twice; name each once")
    folders = [jobs.library.path(run).resolve() for run in body.runs]
    settings = [Run.open(folder).settings for folder in folders]
    tasks = {each.task for each in settings}
    if len(tasks) > 1:
        named = ", ".join(f"{name} for {each.task}" for name, each in zip(body.runs, settings, strict=True))
        raise SettingsError(f"runs = {named}: are for different tasks; choose runs of one task")
    if len(body.runs) < 2 and not task_of(settings[0].task).counting:
        raise SettingsError(f"runs = {body.runs[0]}: a comparison needs two or more; name another run")
    limits, usual = jobs.library.limits, jobs.library.decode
    decode = limits.decode(usual, body.model_dump(include={"beam"}, exclude_unset=True), body.decode)
    arguments = [*map(str, folders), f"measure.limit={body.limit}", *overrides_of("decode", decode)]
    files: list[tuple[str, list[str]]] = []
    test = ""
    if body.corpus and tasks == {"translate"}:
        sources, references = request.app.state.corpora.pairs(body.corpus, body.limit)
        files, test = [("source", sources), ("target", references)], f"{body.corpus}, held-out part"
    elif body.corpus:
        arguments += _labelled(request.app.state.corpora, body.corpus)
    else:
        check_shared(body.runs, settings)
    return {"job": jobs.compare(arguments, files, test).name}


def _labelled(corpora: Corpora, corpus: str) -> list[str]:
    """The options for the files of a corpus with references."""
    if corpus in BUILT_IN:
        raise SettingsError(f"corpus = {corpus}: runs of this task are compared on the validation text that they share")
    files = corpora.files(corpus, "test") or corpora.files(corpus, "valid")
    if not files:
        raise DataError(f"corpus = {corpus}: has neither a test nor a validation part; add one with references")
    options = ("--source", "--target")
    return [word for option, file in zip(options, files, strict=False) for word in (option, str(file.resolve()))]


@router.get("/jobs/{job}", responses=PROBLEMS)
def one_job(request: Request, job: str) -> JobStatus:
    """The state of a job, and its result."""
    jobs: Jobs = request.app.state.jobs
    return jobs.status(job)


@router.delete("/jobs/{job}", status_code=204, responses=PROBLEMS)
def stop_job(request: Request, job: str) -> None:
    """End a job."""
    request.app.state.jobs.cancel(job)
