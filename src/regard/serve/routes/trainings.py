"""``/api/v1/trainings``: start, watch, stop and resume trainings. Each is a process of its own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from regard.errors import SettingsError
from regard.serve.answers import problems
from regard.serve.guard import may_change
from regard.serve.jobs import TRAININGS
from regard.serve.limits import WORD, Body
from regard.serve.routes.presets import TrainingRequest
from regard.serve.trainings import Training, Trainings


class ResumeRequest(Body):
    """How much longer to train."""

    time: Annotated[
        str,
        Field(max_length=WORD, pattern=r"^(\d+(\.\d+)?[smh])?$", description="For how much longer.", examples=["10m"]),
    ] = ""
    steps: Annotated[
        str,
        Field(
            max_length=WORD,
            pattern=r"^(\+?\d{1,9})?$",
            description="In all, or with `+` further ones.",
            examples=["+9"],
        ),
    ] = ""


class TrainingsAnswer(BaseModel):
    """Running ones first, then the newest."""

    trainings: list[Training]
    most: int = Field(description="How many may run at once; 0 if this client may not train.")


router = APIRouter(prefix="/api/v1/trainings", tags=["trainings"])
PROBLEMS = problems(400, 404, 429, 503)
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
        "description": "Lines of the log, each with its number as id; `state` when the stage changes, `end` last.",
    }
}


@router.get("")
def every_training(request: Request) -> TrainingsAnswer:
    """Running ones first, then the newest."""
    return TrainingsAnswer(trainings=_trainings(request).all(), most=TRAININGS if may_change(request) else 0)


@router.post("", status_code=201, responses=PROBLEMS)
def start(request: Request, body: TrainingRequest) -> dict[Literal["run"], str]:
    """Train a new run. It goes on when the page is closed, and when the server ends."""
    state = request.app.state
    return {"run": state.jobs.train(body.name, body.arguments(state.corpora, state.library), body.model_dump()).run}


@router.get("/{run}", responses=PROBLEMS)
def one_training(request: Request, run: str) -> Training:
    """The state of one training."""
    return _trainings(request).one(run)


@router.delete("/{run}", status_code=204, responses=PROBLEMS)
def forget(request: Request, run: str) -> None:
    """Remove the record of a training that has ended; its run stays."""
    _trainings(request).jobs.forget(run)


@router.post("/{run}/stop", status_code=202, responses=PROBLEMS)
def stop(request: Request, run: str, body: dict[Literal["now"], bool] | None = None) -> Training:
    """Write a checkpoint and end; the training can be resumed. With `now` it ends at once, without a checkpoint."""
    trainings = _trainings(request)
    trainings.one(run)  # raises for an unknown name
    trainings.jobs.stop(run, now=(body or {}).get("now", False))
    return trainings.one(run)


@router.post("/{run}/resume", status_code=202, responses=PROBLEMS)
def resume(request: Request, run: str, body: ResumeRequest | None = None) -> Training:
    """Resume from the last checkpoint; a run that has finished needs more `time` or `steps`."""
    trainings, more = _trainings(request), body or ResumeRequest(time="", steps="")
    if trainings.one(run).state == "finished" and not (more.time or more.steps):
        raise SettingsError(f"run = {run}: has finished; give time or steps to train it further")
    trainings.jobs.resume(run, time=more.time, steps=more.steps)
    return trainings.one(run)


@router.get("/{run}/events", responses={**PROBLEMS, **EVENTS}, response_class=StreamingResponse)
def events(request: Request, run: str) -> StreamingResponse:
    """The log as server-sent events while it is written; ``Last-Event-ID`` continues after a line."""
    trainings = _trainings(request)
    trainings.one(run)  # raises for an unknown name
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isdecimal() and len(last) < 16 else 0
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(trainings.events(run, after), media_type="text/event-stream", headers=headers)


def _trainings(request: Request) -> Trainings:
    trainings: Trainings = request.app.state.trainings
    return trainings
