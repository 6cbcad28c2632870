"""The record of a training, ``log.jsonl``: one JSON object a line, made to be read while it is being written."""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from regard.tasks.shown import Sample, Watched

LONGEST = 1 << 26  # bytes of a log that are read: days of training
LONGEST_LINE = 1 << 20
MOST = 200_000  # events that are kept of it


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
        if path.is_file() and _end(path, 1) not in (b"", b"\n"):  # killed while writing: the next line is its own
            with path.open("ab") as file:
                file.write(b"\n")

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
    """The events of a training in order. What a resumed run did again counts once, as it was done last.

    Lines that are no events (the last one of a run that was killed while writing it, or what somebody put there) are
    passed over; of a log that is too long for memory the end is read.
    """
    events: list[dict[str, Any]] = []
    lowest: dict[str, float] = {}  # of the steps that came later, by kind of event
    for line in _backwards(_end(path, LONGEST)):
        event = parse_event(line)
        if event is None:
            continue
        if len(events) == MOST:
            break
        if "step" in event:
            if event["step"] >= lowest.get(event["event"], math.inf):
                continue
            lowest[event["event"]] = event["step"]
        events.append(event)
    return events[::-1]


def _end(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - count))
        return file.read(count)


def _backwards(data: bytes) -> Iterator[bytes]:
    """The lines, the last one first, without a list of all of them: a file of nothing but line ends has millions."""
    end = len(data)
    while end >= 0:
        begin = data.rfind(b"\n", 0, end)
        if end - begin > 1:
            yield data[begin + 1 : end]
        end = begin


# What an event must have to be one: its numbers, and whatever else is read from it.
_NUMBERS = {
    "step": tuple(each.name for each in fields(Moment) if each.default is MISSING),
    "validation": ("step", "epoch", "seconds", "loss", "score"),
    "watch": ("step",),
}
_LARGEST = 1 << 63


def parse_event(line: bytes) -> dict[str, Any] | None:
    """The event of a line, if it is one."""
    if not line.startswith(b"{") or len(line) > LONGEST_LINE:
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(kind := event.get("event"), str):
        return None
    whole = isinstance(event.get("step", 0), int) and _is_number(event.get("time", 0))
    numbers = all(_is_number(event.get(name)) for name in _NUMBERS.get(kind, ()))
    return event if whole and numbers and (kind != "validation" or _is_validation(event)) else None


def _is_number(value: object) -> bool:
    """One that can be computed with; a loss may be infinite or none at all."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST)


def _is_validation(event: dict[str, Any]) -> bool:
    samples = event.get("samples", [])
    rows = isinstance(samples, list) and all(isinstance(each, dict) for each in samples)
    texts = rows and all(isinstance(each.get(field.name), str) for each in samples for field in fields(Sample))
    return texts and isinstance(event.get("name"), str) and isinstance(event.get("best"), bool)
