"""``/api/v1/corpora``: upload, check, split, delete and restore corpora."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from regard.errors import DataError, SettingsError
from regard.runs.folder import Run, is_occupied
from regard.serve.answers import problems
from regard.serve.corpora import BUILT_IN, PARTS, Corpora, CorpusSummary
from regard.serve.guard import may_change
from regard.serve.limits import Body
from regard.settings import TaskName


class CorporaAnswer(BaseModel):
    """All corpora."""

    corpora: list[CorpusSummary]
    changes: Annotated[bool, Field(description="Whether this client may upload, check, split, train and compare.")]


class CheckAnswer(BaseModel):
    """The result of `regard data check` for each part."""

    clean: bool
    parts: dict[str, dict[str, Any]] = Field(description="Pairs, findings with counts, and examples with their lines.")


class SplitRequest(Body):
    """How many pairs to hold out of the training part."""

    valid: int = Field(500, ge=1, le=100_000, examples=[500])
    test: int = Field(0, ge=0, le=100_000, examples=[0])


router = APIRouter(prefix="/api/v1/corpora", tags=["corpora"])
PROBLEMS = problems(400, 404, 411, 413, 415, 429, 503, 504)


@router.get("")
def every_corpus(request: Request) -> CorporaAnswer:
    """The built-in corpora and the uploaded ones."""
    return CorporaAnswer(corpora=_corpora(request).all(), changes=may_change(request))


@router.put(
    "/{name}/{file}",
    responses=PROBLEMS,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}},
)
async def send(
    request: Request,
    name: str,
    file: str,
    called: Annotated[str, Query(max_length=1000, description="Its original name.", examples=["a.en"])] = "",
) -> CorpusSummary:
    """Upload one file: ``train.source``, ``train.target``, ``valid.tsv.gz``. It is written to the disk as it arrives.

    The languages are taken from what two files were `called`, such as ``news.en`` and ``news.de``.
    """
    corpora, size = _corpora(request), 0
    async with _in_thread(corpora.receive(name, file, called)) as place:
        try:
            async for block in request.stream():  # `serve.bodies` limits its size
                size += len(block)
                await asyncio.to_thread(place.write, block)
        except ClientDisconnect:
            raise DataError(f"file = {file}: the client disconnected before the end; send it again") from None
        if not size:
            raise DataError(f"file = {file}: is empty; send one with a sentence a line")
    return await asyncio.to_thread(corpora.summary, name)


@asynccontextmanager
async def _in_thread(place: AbstractContextManager[BinaryIO]) -> AsyncIterator[BinaryIO]:
    """Open and close a file in a thread, because both wait for the disk."""
    opened = await asyncio.to_thread(place.__enter__)
    try:
        yield opened
    except BaseException as problem:
        if not await asyncio.to_thread(place.__exit__, type(problem), problem, problem.__traceback__):
            raise
    else:
        await asyncio.to_thread(place.__exit__, None, None, None)


@router.post("/{name}/check", responses=PROBLEMS)
async def check(request: Request, name: str, body: dict[Literal["task"], TaskName] | None = None) -> CheckAnswer:
    """Check each part with `regard data check`; sources of held-out parts must not be in the training part."""
    corpora, task = _corpora(request), (body or {}).get("task", "translate")
    if name in BUILT_IN:
        return CheckAnswer(clean=True, parts={})
    folder = corpora.path(name)
    parts: dict[str, dict[str, Any]] = {}
    for part in PARTS:
        if not (files := [file.name for file in corpora.files(name, part)]):
            continue
        command = ["data", "check", *files, "--task", task, "--json"]
        others = [file.name for file in (corpora.files(name, "test") or corpora.files(name, "valid"))]
        if part == "train" and len(others) == len(files):
            command += [word for other in others for word in ("--held-out", other)]
        parts[part] = await request.app.state.commands(request, command, folder)
    if not parts:
        raise DataError(f"corpus = {name}: has no files yet; send train.source and train.target")
    found = CheckAnswer(clean=not any(report["findings"] for report in parts.values()), parts=parts)
    corpora.keep_check(name, found.model_dump())
    return found


@router.post("/{name}/split", responses=PROBLEMS)
async def split(request: Request, name: str, body: SplitRequest) -> CorpusSummary:
    """Hold out pairs of the training part for validation and test, so that no source is in two parts."""
    corpora = _corpora(request)
    folder, files = corpora.path(name), corpora.files(name, "train")
    if corpora.files(name, "valid"):
        raise SettingsError(f"corpus = {name}: has a validation part already")
    with corpora.scratch() as corner:
        count = ["--valid", str(body.valid), "--test", str(body.test)]
        command = ["data", "split", *(file.name for file in files), "--out", str(corner), *count, "--json"]
        await request.app.state.commands(request, command, folder)
        corpora.adopt(name, corner)
    return corpora.summary(name)


@router.delete("/{name}", responses=PROBLEMS)
def delete(request: Request, name: str) -> dict[Literal["corpus", "restore"], str]:
    """Put a corpus into the trash, unless it is being trained on; post to `restore` to undo."""
    corpora, jobs = _corpora(request), request.app.state.jobs
    place = "" if name in BUILT_IN else str(corpora.path(name).resolve())
    for run, path in jobs.library.runs().items():
        if place and is_occupied(path) and f"{place}/" in Run.open(path).settings.to_toml():
            raise SettingsError(f"corpus = {name}: {run} is being trained on it; stop that first")
    corpora.delete(name)
    return {"corpus": name, "restore": f"/api/v1/corpora/{name}/restore"}


@router.post("/{name}/restore", responses=PROBLEMS)
def restore(request: Request, name: str) -> CorpusSummary:
    """Restore the corpus that was deleted last under this name."""
    corpora = _corpora(request)
    corpora.restore(name)
    return corpora.summary(name)


def _corpora(request: Request) -> Corpora:
    corpora: Corpora = request.app.state.corpora
    return corpora
