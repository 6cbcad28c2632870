"""The progress of a training on stderr: a bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn

from regard.cli.streams import EVERY, as_called
from regard.errors import ResourceError
from regard.runs.log import Listener, Moment, Validation, Watched, clock

_WIDE = 92  # columns that the whole bar takes


@contextmanager
def display(*, quiet: bool = False) -> Iterator[Listener]:
    """The listener that fits stderr."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield Quiet() if quiet else PlainLines()
        return
    with Progress(*_columns(console.width), console=console, transient=True) as bar:
        yield ProgressBar(bar)


def _columns(width: int) -> list[ProgressColumn]:
    """The columns that fit: a narrow terminal shows neither the bar nor the memory."""
    step = TextColumn("step {task.fields[step]:,}")
    pace = "loss {task.fields[loss]:.3f}  {task.fields[speed]:,.0f} tokens/s"
    when = TextColumn("{task.fields[when]}")
    if width < _WIDE:
        return [step, TextColumn(pace), TextColumn("{task.percentage:.0f} %"), when]
    return [step, BarColumn(bar_width=18), TextColumn(pace + "  {task.fields[memory]:,.0f} MiB"), when]


def when(moment: Moment) -> str:
    """The time: ``0:12 of 1:00`` if time is limited, else what is left."""
    if moment.limit is not None:
        return f"{clock(moment.seconds)} of {clock(moment.limit)}"
    return f"{clock(moment.left)} left"


class Quiet:
    """Shows nothing; errors are raised, not shown here."""

    def moment(self, moment: Moment) -> None: ...

    def validation(self, validation: Validation) -> None:
        self.tell(validation_line(validation))

    def watch(self, step: int, watched: Watched) -> None:
        self.tell(watch_line(step, watched))

    def tell(self, line: str) -> None: ...


class ProgressBar(Quiet):
    """The terminal."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=1.0, visible=False, step=0, loss=0.0, speed=0.0, memory=0.0, when="")

    def moment(self, moment: Moment) -> None:
        self._bar.update(
            self._task,
            completed=moment.progress,
            visible=True,
            step=moment.step,
            loss=moment.loss,
            speed=moment.tokens_per_second,
            memory=moment.memory / 2**20,
            when=when(moment),
        )

    def tell(self, line: str) -> None:
        self._bar.console.print(as_called(line), markup=False, soft_wrap=True)  # a command must not be broken


class PlainLines(Quiet):
    """A log or a pipe."""

    def __init__(self) -> None:
        self._last = 0.0

    def moment(self, moment: Moment) -> None:
        if time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            share = f"{100 * moment.progress:.0f} %  " if moment.limit is None else ""  # the time says it
            self.tell(
                f"step {moment.step:,}  loss {moment.loss:.3f}  {moment.tokens_per_second:,.0f} tokens/s  "
                f"{moment.memory / 2**20:,.0f} MiB  {share}{when(moment)}"
            )

    def tell(self, line: str) -> None:
        print(as_called(line), file=sys.stderr, flush=True)


def validation_line(validation: Validation) -> str:
    best = "  best so far" if validation.best else ""
    return (
        f"step {validation.step:,}  validation loss {validation.loss:.3f}  "
        f"{validation.name} {validation.score:.1f}{best}{_general(validation)}"
    )


def _general(validation: Validation) -> str:
    """Loss and score on the general test set, and the change since the beginning."""
    if validation.general_loss is None:
        return ""
    since = f" ({validation.forgotten:+.3f} since the beginning)" if validation.forgotten is not None else ""
    score = f"{validation.name} {validation.general_score:.1f}"
    return f"  general loss {validation.general_loss:.3f}{since}  {score}"


def watch_line(step: int, watched: Watched) -> str:
    return f"step {step:,}  {watched.text} → {' '.join(watched.output.split()) or '(nothing)'}"


class Events:
    """TensorBoard's event files, in the run's folder."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ResourceError("--tensorboard: needs the package tensorboard; pip install tensorboard") from None
        self._open = cache(lambda: SummaryWriter(str(folder / "tensorboard")))  # the folder does not exist yet

    def moment(self, moment: Moment) -> None:
        for name in ("loss", "norm", "rate", "tokens_per_second"):
            self._open().add_scalar(f"train/{name}", getattr(moment, name), moment.step)

    def validation(self, validation: Validation) -> None:
        self._open().add_scalar("valid/loss", validation.loss, validation.step)
        self._open().add_scalar(f"valid/{validation.name}", validation.score, validation.step)
        if validation.general_loss is not None:
            self._open().add_scalar("general/loss", validation.general_loss, validation.step)
            self._open().add_scalar(f"general/{validation.name}", validation.general_score, validation.step)
        self._open().flush()

    def watch(self, step: int, watched: Watched) -> None:
        self._open().add_text("watch", watched.output, step)

    def tell(self, line: str) -> None: ...
