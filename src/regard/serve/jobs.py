"""Trainings and comparisons, each in a process of its own.

Their records are in the folder ``.jobs`` among the runs; a run's lock says whether it is trained now, its log how far.
So a server that is restarted finds all jobs that another has started.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import Field

from regard.errors import DataError, ModelError, RegardError, ResourceError, SettingsError
from regard.explain.answer import Answer
from regard.files import new_file, read_object, write_object
from regard.runs import listing
from regard.runs.folder import is_occupied
from regard.runs.listing import NAME
from regard.runs.log import NAMED_LOG, read_log
from regard.serve.library import Library
from regard.serve.limits import BusyError, LateError
from regard.settings import Settings
from regard.trainer.teaching import settings_of

# Processes that outlive the server.
#
# The system reuses process ids. So the start time is kept beside the id: a signal is only sent to the process that has
# both.

NICENESS = 5  # nice value of a child, so that pages stay quick while it works


def is_alive(pid: int, began: str) -> bool:
    """Whether the process with this id is still the one that began then."""
    return bool(began) and started(pid) == began


def send(pid: int, began: str, number: signal.Signals) -> bool:
    """Send a signal, unless the process has ended; where the system has process handles, without a race."""
    try:
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return False
    try:
        if not is_alive(pid, began):
            return False
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        if handle is not None:
            os.close(handle)


def started(pid: int) -> str:
    """When a process began, as the system writes it; empty if there is none or it has ended."""
    proc = Path("/proc")
    if not (proc / "self").exists():
        return _started_by_ps(pid)
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()  # the name may contain anything
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else f"{boot} {fields[19]}"


def _started_by_ps(pid: int) -> str:
    """The same where there is no /proc."""
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except subprocess.TimeoutExpired:  # the system hangs
        return ""
    state, _, began = answer.partition(" ")
    return "" if state.startswith("Z") else began.strip()


def spawn(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Start ``regard`` in a session of its own, which goes on when the server ends; returns its id and start time.

    Its stdout goes into ``result.json`` of the folder, its stderr into ``output.txt`` and, as events, into
    ``log.jsonl``.
    """
    with (folder / "result.json").open("wb") as out, (folder / "output.txt").open("ab") as err:
        child = subprocess.Popen(
            [sys.executable, "-m", "regard", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, NAMED_LOG: str(folder / "log.jsonl")},
            start_new_session=True,
        )
    process = child.pid, started(child.pid)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
    threading.Thread(target=child.wait, daemon=True, name=f"child {child.pid}").start()  # else it stays as a zombie
    return process


# Short work in a process of its own: a ``regard`` command whose answer is awaited. It keeps the server responsive and
# is killed when its client disconnects.

WAITING = 4  # commands in the queue
LAST = 5.0  # seconds that a command gets to end once it is killed
ASKING = 0.25  # seconds between two checks whether the client is still connected
PROGRAM = (sys.executable, "-m", "regard")
KINDS: dict[int, type[RegardError]] = {2: SettingsError, 3: DataError, 4: ModelError, 5: ResourceError}


class Commands:
    """Runs commands one after the other: each may use the whole machine."""

    def __init__(self, shown: Callable[[str], str] = str, seconds: float = 300.0) -> None:
        """``shown`` removes what clients must not see from an error."""
        self._shown, self._seconds = shown, seconds
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def __call__(self, request: Request, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
        """Run ``regard`` in a folder and return the JSON that it prints, if any; its error is raised here."""
        if self._waiting >= WAITING:
            raise BusyError("commands: too many are waiting; ask again in 10 s", 10)
        self._waiting += 1
        try:
            async with self._turn:
                return await self._run(request, arguments, folder)
        finally:
            self._waiting -= 1

    async def _run(self, request: Request, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
        child = await asyncio.create_subprocess_exec(
            *(*PROGRAM, *arguments),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        talking = asyncio.ensure_future(child.communicate())
        try:
            await self._wait(request, talking)
            output, errors = talking.result()
        finally:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.kill()
                await asyncio.wait([talking], timeout=LAST)  # a child of its own may keep the pipes open
                talking.cancel()
        return self._outcome(child.returncode or 0, output, errors)

    async def _wait(self, request: Request, talking: asyncio.Future[Any]) -> None:
        for _ in range(round(self._seconds / ASKING)):
            done, _ = await asyncio.wait([talking], timeout=ASKING)
            if done:
                return
            if await request.is_disconnected():
                raise LateError("request: the client has disconnected")
        raise LateError(f"time = {self._seconds:g} s: was not enough; do it on the command line")

    def _outcome(self, code: int, output: bytes, errors: bytes) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            if isinstance(answer := json.loads(output), dict):
                return answer  # also of a command that reports findings
        if not code:
            return {}
        lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
        hints = ["", *(line.strip() for line in lines if line.startswith("  "))]
        said = ["the command ended without an error message", *(line for line in lines if not line.startswith("  "))]
        raise KINDS.get(code, ResourceError)(self._shown(said[-1]), hint=self._shown(hints[-1]))


TRAININGS = 2  # at once
COMPARISONS = 1
REQUEST = "request.json"
Kind = Literal["train", "compare"]
JobState = Literal["running", "done", "failed", "stopped"]
KILLED = "the process ended without an error message: it was killed, or ran out of memory"


@dataclass(frozen=True)
class Job:
    """The record of a job."""

    name: str
    kind: Kind
    run: str  # that is trained; empty for a comparison
    pid: int
    started: str
    began: float  # seconds since 1970
    stopped: bool = False  # on request
    test: str = ""  # the name of a comparison's test, where its files do not have it

    @property
    def alive(self) -> bool:
        return is_alive(self.pid, self.started)

    def send(self, number: signal.Signals) -> None:
        send(self.pid, self.started, number)


@dataclass(frozen=True)
class JobStatus(Answer):
    """The state of a job."""

    state: JobState
    progress: Annotated[float, Field(ge=0, le=1)]
    line: Annotated[str, Field(description="The last line it wrote.")]
    result: Annotated[
        dict[str, Any] | None, Field(description="The comparison, as `regard compare --json` has it.")
    ] = None


class Jobs:
    """Starts, finds and stops jobs."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.closing = threading.Event()  # set when the server ends: streams of events end too
        self._starting = threading.Lock()

    @cached_property
    def folder(self) -> Path:
        """The folder of the records: among the runs or, where runs were named one by one, a temporary one."""
        runs = self.library.folder
        return Path(tempfile.mkdtemp(prefix="regard-jobs-")) if runs is None else runs.resolve() / ".jobs"

    # Trainings

    def train(self, run: str, asked: Sequence[str], request: dict[str, Any] | None = None) -> Job:
        """Train a new run with the arguments of `regard train`.

        ``request`` is the client's request, kept so that it can be edited and sent again.
        """
        if self.library.folder is None:
            raise SettingsError("name: this server has no folder for new runs; start it with regard studio RUNS")
        _check_name(run)
        with self._starting:
            place = self.library.folder.resolve() / run
            if place.exists() or run in self.library.runs():
                raise SettingsError(f"name = {run}: there is a run of this name; choose another, or resume it")
            self._has_room(run)
            folder = self._fresh(f"train-{run}")
            write_object(folder / REQUEST, request or {})
            with new_file(folder / "settings.toml") as file:
                file.write(settings_of(asked).to_toml().encode())
            return self._start("train", run, ["train", *asked, "--out", str(place)])

    def resume(self, run: str, *, time: str = "", steps: str = "") -> Job:
        """Resume a run, up to what its settings say or for so much longer."""
        further = [word for flag, value in (("--time", time), ("--steps", steps)) if value for word in (flag, value)]
        path = self.library.path(run).resolve()
        with self._starting:
            self._has_room(run)
            request = self.request(run)
            folder = self._fresh(f"train-{run}")
            write_object(folder / REQUEST, request or {})
            return self._start("train", run, ["train", "--resume", str(path), *further])

    def request(self, run: str) -> dict[str, Any] | None:
        """The request that started a training here."""
        return read_object(self.folder / f"train-{run}" / REQUEST) or None

    def stop(self, run: str, *, now: bool = False) -> None:
        """Tell a training to write a checkpoint and end; ``now``, to end at once without one."""
        job = self.training(run)
        if job is None or not job.alive:
            if self.is_training(run):
                raise SettingsError(f"run = {run}: was not started here; stop it where it was, with Ctrl-C")
            raise SettingsError(f"run = {run}: is not being trained")
        if now or not job.stopped:  # a second SIGINT would end it without the checkpoint
            self._keep(replace(job, stopped=True))
            job.send(signal.SIGTERM if now else signal.SIGINT)

    def stop_all(self) -> None:
        """Tell every training that was started here to write a checkpoint and end."""
        for run, job in self.trainings().items():
            if job.alive:
                self.stop(run)

    def training(self, run: str) -> Job | None:
        """The record of the last training of a run."""
        return self._read(f"train-{run}") if NAME.fullmatch(run) else None

    def trainings(self) -> dict[str, Job]:
        """The last training of each run by its name; some never created their run."""
        found = [self._read(path.name) for path in self.folder.glob("train-*")] if self.folder.is_dir() else []
        return {job.run: job for job in found if job is not None}

    def is_training(self, run: str) -> bool:
        """Whether a process trains the run now, or is starting to."""
        job = self.training(run)
        if job is not None and job.alive:
            return True
        path = self.library.runs().get(run)
        return path is not None and is_occupied(path)

    def trouble(self, run: str) -> tuple[str, str]:
        """Why a training failed, and the setting that its error suggests, such as `text.size=625`.

        Both are empty if it did not fail, or was stopped on request.
        """
        job = self.training(run)
        if job is None or job.stopped or job.alive:
            return "", ""
        last = {event["event"]: event for event in self._events(job.name)}
        if "error" not in last:
            return "" if "end" in last else KILLED, ""
        words = str(last["error"].get("hint", "")).split()
        overrides = [word for word in words if "=" in word and re.split("[.=]", word)[0] in Settings.model_fields]
        return str(last["error"].get("text", "")), overrides[-1] if overrides else ""

    def forget(self, run: str) -> None:
        """Remove the record of a training that has ended. The run stays."""
        job = self.training(run)
        if job is None:
            raise ModelError(f"run = {run[:100]}: no training of this name was started here")
        if job.alive:
            raise SettingsError(f"run = {run}: is being trained; stop it first")
        shutil.rmtree(self.folder / job.name, ignore_errors=True)

    # Names and the trash

    def rename(self, run: str, name: str) -> None:
        """Rename a run, and the record of its training with it."""
        path = self._movable(run)
        _check_name(name)
        listing.vacant(path.parent, name)
        if name in self.library.runs() or self.training(name) is not None:
            raise SettingsError(f"name = {name}: is taken; choose another")
        self.library.forget(run)
        listing.rename_run(path, name)
        self.report_of(run).unlink(missing_ok=True)
        if (job := self.training(run)) is not None:
            (self.folder / job.name).rename(self.folder / f"train-{name}")
            self._keep(replace(job, name=f"train-{name}", run=name))

    def remove(self, run: str) -> None:
        """Put a run into the trash, or the record of a training that never created one."""
        path = self.library.runs().get(run)
        if path is None and self.training(run) is None:
            self.library.path(run)  # raises: no such run
        if path is not None:
            listing.trash_run(self._movable(run))
            self.library.forget(run)
        elif self.is_training(run):
            raise SettingsError(f"run = {run}: is being trained; stop it first")
        self.report_of(run).unlink(missing_ok=True)
        if (job := self.training(run)) is not None:
            listing.put_away(self.folder / job.name)

    def restore(self, run: str) -> None:
        """Restore what was removed last under this name."""
        if not NAME.fullmatch(run):
            raise ModelError(f"run = {run[:100]}: no such run in the trash")
        job = f"train-{run}"
        runs, records = listing.trashed(self._runs()), listing.trashed(self.folder)
        if run in runs or job not in records:
            listing.put_back(self._runs(), run)
        if job in records and not (self.folder / job).exists():
            listing.put_back(self.folder, job)

    def _runs(self) -> Path:
        if self.library.folder is None:
            raise SettingsError("run: this server has no folder of runs, and so no trash; start it with --runs RUNS")
        return self.library.folder.resolve()

    def _movable(self, run: str) -> Path:
        """The folder of a run that may be renamed or removed."""
        path = self.library.path(run)
        if self.library.is_fixed(run):
            raise SettingsError(f"run = {run}: comes with Regard or was named at the start, and cannot be changed here")
        if self.is_training(run):
            raise SettingsError(f"run = {run}: is being trained; stop it first")
        return path.resolve()

    def report_of(self, run: str) -> Path:
        """The file of a run's report."""
        return self.folder / "reports" / f"{run}.html"

    def _has_room(self, run: str) -> None:
        if self.is_training(run):
            raise SettingsError(f"run = {run}: is being trained already; stop it first")
        busy = [name for name in {*self.library.runs(), *self.trainings()} if self.is_training(name)]
        if len(busy) >= TRAININGS:
            raise BusyError(
                f"trainings = {', '.join(sorted(busy))}: are running, and {TRAININGS} at once is the limit; "
                "stop one, or wait",
                60,
            )

    # Comparisons

    def compare(self, arguments: Sequence[str], files: Sequence[tuple[str, Sequence[str]]] = (), test: str = "") -> Job:
        """Start ``regard compare``. ``files`` are options with the lines of the files that they name."""
        with self._starting:
            busy = [job for job in self._comparisons() if job.alive]
            if len(busy) >= COMPARISONS:
                raise BusyError("comparisons: one is running; wait for it, or stop it", 30)
            for old in self._comparisons()[:-8]:
                shutil.rmtree(self.folder / old.name, ignore_errors=True)
            folder = self._fresh(f"compare-{secrets.token_hex(8)}")
            named: list[str] = []
            for option, lines in files:
                path = folder / option
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                named += [f"--{option}", str(path)]
            command = ["compare", *arguments, *named, "--json", "measure.every=0.5"]
            job = replace(self._start("compare", "", command, folder.name), test=test)
            self._keep(job)
            return job

    def _comparisons(self) -> list[Job]:
        found = [self._read(path.name) for path in self.folder.glob("compare-*")] if self.folder.is_dir() else []
        return sorted((job for job in found if job is not None), key=lambda job: job.began)

    def status(self, name: str) -> JobStatus:
        """The state of a comparison, and its result."""
        job = self._comparison(name)
        events = self._events(name)
        said = [str(event["text"]) for event in events if "text" in event]
        if job.alive:
            line = said[-1] if said else "starting"
            return JobStatus("stopped" if job.stopped else "running", _progress(events), line)
        result = self._result(name)
        if result is not None:
            if job.test:
                result["conditions"]["data"] = job.test
            return JobStatus("done", 1.0, "done", result)
        line = said[-1] if said else "the process ended at once"
        return JobStatus("stopped" if job.stopped else "failed", _progress(events), line)

    def cancel(self, name: str) -> None:
        """End a comparison."""
        job = self._comparison(name)
        if job.alive:
            self._keep(replace(job, stopped=True))
            job.send(signal.SIGTERM)

    def _comparison(self, name: str) -> Job:
        job = self._read(name) if re.fullmatch(r"compare-[0-9a-f]{16}", name) else None
        if job is None:
            raise ModelError(f"job = {name[:100]}: no such job; ask for one with POST /api/v1/compare")
        return job

    def _result(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self.shown((self.folder / name / "result.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    # Records

    def shown(self, text: str) -> str:
        """A text without the folders of this machine, for clients."""
        runs = self.library.folder
        for place in (self.folder, *(() if runs is None else (runs.resolve(), runs.resolve().parent))):
            text = text.replace(f"{place}/", "")
        return text

    def _fresh(self, name: str) -> Path:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _start(self, kind: Kind, run: str, arguments: Sequence[str], name: str = "") -> Job:
        name = name or f"train-{run}"
        job = Job(name, kind, run, *spawn(arguments, self.folder / name), time.time())
        self._keep(job)
        return job

    def _keep(self, job: Job) -> None:
        write_object(self.folder / job.name / "job.json", asdict(job))

    def _read(self, name: str) -> Job | None:
        try:
            return Job(**read_object(self.folder / name / "job.json") or {})
        except TypeError:  # no record, or one of another version
            return None

    def _events(self, name: str) -> list[dict[str, Any]]:
        """The events of a job's log, without the folders of this machine."""
        try:
            events = read_log(self.folder / name / "log.jsonl")
        except OSError:
            return []
        return [
            {key: self.shown(value) if isinstance(value, str) else value for key, value in each.items()}
            for each in events
        ]


def _check_name(run: str) -> None:
    if not NAME.fullmatch(run):
        raise SettingsError(f"name = {run[:100]}: not a name for a run; use letters, digits, '.', '_' and '-'")
    if run == "corpora":
        raise SettingsError(f"name = {run}: is the name of the folder of corpora; choose another")


def _progress(events: Sequence[dict[str, Any]]) -> float:
    """The progress of a comparison: translating counts 0.8 of it, the tests the rest."""
    counts = [event for event in events if event["event"] == "progress"]
    done = counts[-1]["done"] / max(1, counts[-1]["of"]) if counts else 0.0
    return 0.05 + 0.8 * done if events else 0.0
