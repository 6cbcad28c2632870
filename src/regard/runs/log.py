"""The record of a training, ``log.jsonl``: one JSON object a line, made to be read while it is being written."""

from __future__ import annotations

import io
import json
import os
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Protocol

Weights = tuple[tuple[float, ...], ...]  # (T, S)


@dataclass(frozen=True)
class ValidationSample:
    """A held-out text, the right answer, and the model's output now."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True)
class Watched:
    """The model's output for the watched sentence now and, if it attends to a source, the attention."""

    text: str
    output: str
    source: tuple[str, ...] = ()  # pieces, <end> included
    target: tuple[str, ...] = ()
    layers: tuple[Weights, ...] = ()  # cross-attention, the mean of each layer's heads


LONGEST = 1 << 26  # bytes of a log that are read: days of training
LONGEST_LINE = 1 << 20
MOST = 200_000  # events of a log that are kept
KNOWN = 1 << 16  # bytes before the offset that must be unchanged for reading to go on
NAMED_LOG = "REGARD_LOG"  # an environment variable with a file, to which ``regard`` writes its lines as events too
OUTLINES = 256  # logs whose outline is kept


@dataclass(frozen=True)
class Moment:
    """The training's numbers, over the steps since the last moment."""

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
    """The result of a validation."""

    step: int
    epoch: int
    seconds: float
    loss: float
    score: float
    name: str
    best: bool
    samples: tuple[ValidationSample, ...] = ()
    general_loss: float | None = None  # on the general test set, if there is one
    general_score: float | None = None
    general_before: float | None = None  # its loss before the first step

    @property
    def forgotten(self) -> float | None:
        """How much larger the loss on the general test set has become."""
        known = self.general_loss is not None and self.general_before is not None
        return self.general_loss - self.general_before if known else None  # type: ignore[operator]


def clock(seconds: float) -> str:
    """``0:12``, ``4:05`` or ``1:02:30``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Listener(Protocol):
    """Gets the events of a training: a terminal, a log, TensorBoard, a page."""

    def moment(self, moment: Moment) -> None: ...

    def validation(self, validation: Validation) -> None: ...

    def watch(self, step: int, watched: Watched) -> None:
        """The watched sentence as the model writes it after a step."""

    def tell(self, line: str) -> None:
        """A line of text."""


def append(path: Path, event: str, values: Mapping[str, object]) -> None:
    """Write an event as a line."""
    record = {"event": event, "time": round(time.time(), 3), **values}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


class Log:
    """Appends all events to ``log.jsonl`` and passes them on to other listeners."""

    def __init__(self, path: Path, *others: Listener) -> None:
        self._path = path
        self._others = others
        if path.is_file() and _last_byte(path) not in (
            b"",
            b"\n",
        ):  # killed while writing: the next event begins a line
            with path.open("ab") as file:
                file.write(b"\n")

    def moment(self, moment: Moment) -> None:
        append(self._path, "step", asdict(moment))
        self._pass_on(lambda other: other.moment(moment))

    def validation(self, validation: Validation) -> None:
        append(self._path, "validation", asdict(validation))
        self._pass_on(lambda other: other.validation(validation))

    def watch(self, step: int, watched: Watched) -> None:
        append(self._path, "watch", {"step": step, **asdict(watched)})
        self._pass_on(lambda other: other.watch(step, watched))

    def tell(self, line: str) -> None:
        append(self._path, "note", {"text": line})
        self._pass_on(lambda other: other.tell(line))

    def _pass_on(self, call: Callable[[Listener], None]) -> None:
        for other in self._others:
            call(other)


class LogReader:
    """Reads a log while it is being written: each call gives some of the whole lines that were added since.

    A log that has become shorter, was replaced or written again is `stale`: read it from the beginning.
    """

    def __init__(self, path: Path, most: int | None = None) -> None:
        """Of a log with more than ``most`` bytes only the end is read."""
        self._path = path
        self._offset = max(0, path.stat().st_size - most) if most is not None and path.is_file() else 0
        self._line = 0
        self._file: tuple[int, int] | None = None
        self._before = 0, 0  # a number of bytes before the offset, and their checksum
        self._endless = False  # whether the offset is inside a line that is too long to be an event
        self.rest = b""  # the bytes after the last line end
        self.stale = False

    def read(self) -> list[tuple[int, bytes]] | None:
        """The next lines that are not empty, with their numbers; None if there is nothing new."""
        try:
            with self._path.open("rb") as file:
                if not self._is_known(file):
                    self.stale = True
                    return None
                data = file.read(LONGEST_LINE)
                whole, newline, self.rest = data.rpartition(b"\n")
                if not newline and len(data) < LONGEST_LINE:
                    return None
                self._offset += len(whole) + 1 if newline else len(data)
                self._remember(file)
        except (FileNotFoundError, IsADirectoryError):
            self.stale = self._file is not None
            return None
        return self._numbered(whole.split(b"\n")) if newline else self._skip()

    def _skip(self) -> list[tuple[int, bytes]]:
        """Skip a part of a line that is too long."""
        self._endless, self.rest = True, b""
        return []

    def _numbered(self, lines: list[bytes]) -> list[tuple[int, bytes]]:
        first, self._line = self._line + 1, self._line + len(lines)
        found = [(number, line) for number, line in enumerate(lines, first) if line]
        skip, self._endless = self._endless and bool(found) and found[0][0] == first, False
        return found[1:] if skip else found

    def _is_known(self, file: BinaryIO) -> bool:
        """Whether this is still the file that was read before; leaves it at the offset."""
        seen = os.fstat(file.fileno())
        if self._file is None:
            self._file = seen.st_dev, seen.st_ino
        count, checksum = self._before
        file.seek(self._offset - count)
        same = self._file == (seen.st_dev, seen.st_ino) and seen.st_size >= self._offset
        return same and zlib.crc32(file.read(count)) == checksum

    def _remember(self, file: BinaryIO) -> None:
        count = min(self._offset, KNOWN)
        file.seek(self._offset - count)
        self._before = count, zlib.crc32(file.read(count))


class Outline:
    """The last and the best events of a log, kept while it grows."""

    def __init__(self, path: Path) -> None:
        self.last: dict[str, Any] | None = None  # step or validation
        self.step = 0  # of the last that was trained
        self._best: list[dict[str, Any]] = []  # every validation that was the best so far
        self._reader = LogReader(path, LONGEST)

    @property
    def best(self) -> dict[str, Any] | None:
        """The best validation."""
        return self._best[-1] if self._best else None

    def is_current(self) -> bool:
        """Read what was added; False where the log is another one."""
        while (lines := self._reader.read()) is not None:
            for _, line in lines:
                self._add(parse_event(line))
        self._add(parse_event(self._reader.rest))  # every time: adding an event twice changes nothing
        return not self._reader.stale

    def _add(self, event: dict[str, Any] | None) -> None:
        """Steps that a resumed run does again replace those it did before."""
        if event is None or event["event"] not in ("step", "validation"):
            return
        self.last = event
        if event["event"] == "step":
            self.step = event["step"]
            return
        while self._best and self._best[-1]["step"] >= event["step"]:
            self._best.pop()
        if event["best"]:
            self._best.append({name: value for name, value in event.items() if name != "samples"})


_outlines: OrderedDict[Path, Outline] = OrderedDict()  # the one asked for last is at the end
_one_by_one = threading.Lock()


def outline(path: Path) -> Outline:
    """The outline of a log. Of one that was read before, only new lines are read."""
    with _one_by_one:
        known = _outlines.pop(path, None)
        if known is None or not known.is_current():
            known = Outline(path)
            known.is_current()
        _outlines[path] = known
        if len(_outlines) > OUTLINES:
            _outlines.popitem(last=False)
        return known


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a training in order; none if there is no log. Steps that a resumed run did again count once.

    Lines that are no events, such as one cut off when the run was killed, are skipped; of a log that is too long for
    memory the end is read.
    """
    reader, kept = LogReader(path, LONGEST), _Kept()
    while (lines := reader.read()) is not None:
        for _, line in lines:
            kept.add(parse_event(line))
    kept.add(parse_event(reader.rest))
    return list(kept.events.values())


class _Kept:
    """Events by their numbers; of each kind only the last event of a step."""

    def __init__(self) -> None:
        self.events: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._steps: dict[str, list[tuple[int, int]]] = {}  # by kind: increasing steps, and the numbers of their events
        self._count = 0

    def add(self, event: dict[str, Any] | None) -> None:
        if event is None:
            return
        self._count += 1
        if "step" in event:
            steps = self._steps.setdefault(event["event"], [])
            while steps and steps[-1][0] >= event["step"]:
                self.events.pop(steps.pop()[1], None)
            steps.append((event["step"], self._count))
        self.events[self._count] = event
        if len(self.events) > MOST:
            self.events.popitem(last=False)


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, io.SEEK_END) - 1))
        return file.read()


# The numbers that an event must have.
_NUMBERS = {
    "step": tuple(each.name for each in fields(Moment) if each.default is MISSING),
    "validation": ("step", "epoch", "seconds", "loss", "score"),
    "watch": ("step",),
}
_LARGEST = 1 << 63


def parse_event(line: bytes) -> dict[str, Any] | None:
    """The event of a line; None if it is none."""
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
    """Whether it is a number of a usual size; a loss may be infinite or NaN."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST)


def _is_validation(event: dict[str, Any]) -> bool:
    samples = event.get("samples", [])
    rows = isinstance(samples, list) and all(isinstance(each, dict) for each in samples)
    texts = rows and all(
        isinstance(each.get(field.name), str) for each in samples for field in fields(ValidationSample)
    )
    watched = (event.get(f"general_{name}") for name in ("loss", "score", "before"))
    texts = texts and all(value is None or _is_number(value) for value in watched)
    return texts and isinstance(event.get("name"), str) and isinstance(event.get("best"), bool)
