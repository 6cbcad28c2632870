"""The record of a training, ``log.jsonl``: one JSON object a line, made to be read while it is being written."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from regard.tasks.shown import Sample, Watched


@dataclass(frozen=True)
class Moment:
    """How the training goes, over the steps since the last moment."""

    step: int
    epoch: int
    loss: float  # per prediction, as trained
    norm: float  # of the gradient
    rate: float
    tokens: int  # predictions since the beginning
    tokens_per_second: float
    seconds: float  # of training since the beginning
    progress: float  # share of the whole
    memory: int  # bytes
    limit: float | None = None  # seconds, where time is the limit
    left: float = 0.0  # seconds, about


@dataclass(frozen=True)
class Validation:
    """How good the model is."""

    step: int
    epoch: int
    seconds: float
    loss: float
    score: float
    name: str
    best: bool
    samples: tuple[Sample, ...] = ()


def clock(seconds: float) -> str:
    """``0:12``, ``4:05`` or ``1:02:30``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Listener(Protocol):
    """Somebody who follows a training: a terminal, a log, TensorBoard, a page."""

    def moment(self, moment: Moment) -> None: ...

    def validation(self, validation: Validation) -> None: ...

    def watch(self, step: int, watched: Watched) -> None:
        """How far the sentence that is watched has come."""

    def tell(self, line: str) -> None:
        """A sentence for people."""


class Log:
    """Appends to ``log.jsonl`` and passes everything on."""

    def __init__(self, path: Path, *others: Listener) -> None:
        self._path = path
        self._others = others

    def moment(self, moment: Moment) -> None:
        self._write("step", asdict(moment))
        self._pass_on(lambda other: other.moment(moment))

    def validation(self, validation: Validation) -> None:
        self._write("validation", asdict(validation))
        self._pass_on(lambda other: other.validation(validation))

    def watch(self, step: int, watched: Watched) -> None:
        self._write("watch", {"step": step, **asdict(watched)})
        self._pass_on(lambda other: other.watch(step, watched))

    def tell(self, line: str) -> None:
        self._write("note", {"text": line})
        self._pass_on(lambda other: other.tell(line))

    def _write(self, event: str, values: dict[str, Any]) -> None:
        record = {"event": event, "time": round(time.time(), 3), **values}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _pass_on(self, call: Callable[[Listener], None]) -> None:
        for other in self._others:
            call(other)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a training in order. What a resumed run did again counts once, as it was done last."""
    events: list[dict[str, Any]] = []
    lowest: dict[str, float] = {}  # of the steps that came later, by kind of event
    for line in reversed(path.read_text(encoding="utf-8").splitlines()):
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed while writing it
        if "step" in event:
            if event["step"] >= lowest.get(event["event"], math.inf):
                continue
            lowest[event["event"]] = event["step"]
        events.append(event)
    return events[::-1]
