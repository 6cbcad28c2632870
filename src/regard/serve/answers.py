"""What goes wrong, as an answer: the same one line as everywhere, with the status that fits its kind."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from regard.errors import DataError, ModelError, RegardError, ResourceError, SettingsError
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


class Problem(BaseModel):
    """Every answer that is not a success."""

    error: str
    hint: str = ""  # a command that helps, where there is one


def status_of(error: RegardError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(status: int, line: str, hint: str = "") -> JSONResponse:
    return JSONResponse(Problem(error=line, hint=hint).model_dump(), status)


def install(app: FastAPI) -> None:
    """Turn complaints into answers."""

    @app.exception_handler(RegardError)
    def complaint(_: Request, error: RegardError) -> JSONResponse:
        answer = problem(status_of(error), str(error), error.hint)
        if isinstance(error, BusyError):
            answer.headers["Retry-After"] = str(error.seconds)
        return answer

    @app.exception_handler(RequestValidationError)
    def misshapen(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
        return problem(400, f"{where}: {first['msg'].lower()}")
