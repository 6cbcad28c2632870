"""Errors as answers: the one line that the command line would print, with an HTTP status."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from safetensors import SafetensorError
from starlette.exceptions import HTTPException

from regard.errors import DataError, ModelError, RegardError, ResourceError, SettingsError, failure
from regard.serve.limits import BusyError, KindError, LateError, TooLargeError

STATUS: dict[type[RegardError], int] = {
    TooLargeError: 413,
    KindError: 415,
    BusyError: 429,
    LateError: 504,
    SettingsError: 400,
    DataError: 400,
    ModelError: 404,
    ResourceError: 503,
    RegardError: 500,
}


SHOULD = "input should be "
NO_FIELDS = ("body", "str", "int", "float", "bool", "dict", "list")  # kinds that a field may be of
DISK = {errno.ENOSPC: 507, errno.EDQUOT: 507, errno.EFBIG: 507, errno.ENOENT: 404}  # other errors of the disk are 503


class RefusedError(DataError):
    """An error with a status of its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Problem(BaseModel):
    """Every answer that is not a success."""

    error: Annotated[str, Field(description="What is wrong, and what would be right.")]
    hint: Annotated[str, Field(description="A command that helps, where there is one.")] = ""


def _example(line: str) -> dict[str, Any]:
    return {"application/json": {"example": {"error": line, "hint": ""}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "model": Problem,
        "description": "Something in the request is wrong: 400 its content, 401 the token, 403 its "
        "origin, or what its token does not allow, 404 no such run, 408 too slow, 413 too large, 415 another kind of "
        "body, 421 another host.",
        "content": _example("run = dmeo: no such run here; did you mean 'demo'?"),
    },
    429: {
        "model": Problem,
        "description": "The queue is full; ask again after the seconds in `Retry-After`.",
        "headers": {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}},
        "content": _example("queue = 1024 waiting: is full; ask again in 3 s"),
    },
    503: {
        "model": Problem,
        "description": "No memory is left for this now, the disk reports an error, or the service is about to end.",
    },
    507: {"model": Problem, "description": "The disk is full."},
    504: {"model": Problem, "description": "It took too long."},
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for OpenAPI."""
    return {status: {"model": Problem} for status in statuses}


def status_of(error: RegardError) -> int:
    if isinstance(error, RefusedError):
        return error.status
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(status: int, line: str, hint: str = "") -> JSONResponse:
    return JSONResponse(Problem(error=line, hint=hint).model_dump(), status)


def _without_folder(error: Exception) -> Exception:
    """An error of the system that names a file without its folder."""
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return OSError(error.errno, error.strerror, PurePath(error.filename).name)
    return error


def _place(error: Mapping[str, Any]) -> str:
    """The field that a request has wrong; without the kinds that it may be of, which are no names of fields."""
    parts = [str(part) for part in error["loc"] if part not in NO_FIELDS]
    return ".".join(part for part in parts if part.isalnum() or part.isidentifier()) or "body"


def _said(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "is missing; send it"
    return error["msg"].removeprefix("Value error, ").replace("Input", "input", 1)


def install(app: FastAPI) -> None:
    """Turn errors into answers. No answer contains a path of this machine."""

    @app.exception_handler(RegardError)
    def known_error(request: Request, error: RegardError) -> JSONResponse:
        conceal = request.app.state.library.conceal
        answer = problem(status_of(error), conceal(str(error)), conceal(error.hint))
        if isinstance(error, BusyError):
            answer.headers["Retry-After"] = str(error.seconds)
        return answer

    def failed(request: Request, error: Exception) -> JSONResponse:
        """Errors of disk and memory; any other is a bug, which `serve.watch` answers with 500."""
        known, status = failure(_without_folder(error)), None
        if known is None:
            raise error
        if isinstance(error, OSError) and error.errno in DISK:
            status = DISK[error.errno]
        conceal = request.app.state.library.conceal
        return problem(status or status_of(known), conceal(str(known)))

    for kind in (OSError, MemoryError, RuntimeError, SafetensorError):
        app.add_exception_handler(kind, failed)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        places = [_place(each) for each in error.errors()]
        said = [_said(each) for each, place in zip(error.errors(), places, strict=True) if place == places[0]]
        return problem(400, f"{places[0]}: {' or '.join([said[0], *(line.removeprefix(SHOULD) for line in said[1:])])}")

    @app.exception_handler(HTTPException)
    def unknown_route(request: Request, error: HTTPException) -> JSONResponse:
        headers = error.headers or {}
        right = f"send {headers['Allow']}" if "Allow" in headers else "/docs lists what there is"
        line = f"{request.method} {request.url.path[:100]}: {error.detail.lower()}; {right}"
        answer = problem(error.status_code, line)
        answer.headers.update(headers)
        return answer
