"""Trainings for clients: the settings that they ask for, the state of each, and its log as a stream."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from regard.errors import RegardError, SettingsError, did_you_mean
from regard.explain.answer import Answer
from regard.runs import listing
from regard.runs.listing import Summary
from regard.runs.log import LogReader, outline
from regard.serve.corpora import Corpora
from regard.serve.jobs import Job, Jobs
from regard.serve.pairs import settings_at, summary_at
from regard.settings import Settings, load_settings, preset_names
from regard.settings import demo as demonstration
from regard.trainer.teaching import given, settings_of

DEMO = "demo"  # the first preset
FILES = ("corpus", "source", "target", "valid_corpus", "valid_source", "valid_target")
BASE = "train.base: is set by the field base; leave it out of the overrides"
Stage = Literal["", "starting", "preparing", "training", "validating", "stopping"]
TICK = 0.3  # seconds between two reads of a log
HEARTBEAT = 15.0  # seconds without an event before a comment is sent, which keeps the connection open


def asked_for(
    corpora: Corpora,
    preset: str,
    corpus: str,
    overrides: Sequence[str],
    *,
    base: Path | None = None,
    general: str = "",
    time: str = "",
    watch: str = "",
    languages: str = "",
) -> list[str]:
    """The arguments of `regard train` for a client's request: a preset or a base run, and only the settings that were
    given, so that the others are fitted. Only files of the corpora are accepted."""
    data = corpora.settings(corpus) | ({"languages": languages} if languages else {})
    chosen = [f"data.{name}={json.dumps(path)}" for name, path in data.items()]
    chosen += [f"train.{name}={json.dumps(value)}" for name, value in (("time", time), ("watch", watch)) if value]
    if given("train.base", overrides):
        raise SettingsError(BASE)
    watched = corpora.test_files(general) if general else ()
    chosen += [f"data.general={json.dumps(watched)}"] if watched else []
    if base is not None:
        if preset:
            raise SettingsError(f"preset = {preset[:100]}: a base run has its own settings; give only one of the two")
        chosen = [f"train.base={json.dumps(str(base))}", *chosen]
    elif preset == DEMO:
        preset, chosen = demonstration.PRESET, [*demonstration.OVERRIDES, *chosen]
    elif preset not in preset_names():
        raise SettingsError(f"preset = {preset[:100]}: no such preset; {did_you_mean(preset, [DEMO, *preset_names()])}")
    asked = [*([] if base is not None else [preset]), *chosen, *overrides]
    settings = settings_of(asked)
    for name in FILES:
        if (found := getattr(settings.data, name)) != data.get(name, ""):
            raise SettingsError(f"data.{name} = {found[:100]}: is set by the corpus; leave it out of the overrides")
    if settings.data.general != tuple(watched):
        raise SettingsError("data.general: is set by keep_watching; leave it out of the overrides")
    if settings.train.base != ("" if base is None else str(base)):
        raise SettingsError(BASE)
    if settings.model.vectors.file:
        raise SettingsError("model.vectors.file: the service reads no such files; train on the command line")
    return asked


@dataclass(frozen=True, kw_only=True)
class Training(Summary, Answer):
    """The state of a training: the summary of its run, and its stage."""

    run: str
    stage: Stage = ""
    validate_every: int = 0
    watch: str = ""
    ours: Annotated[bool, Field(description="Whether it was started here, and can be stopped here.")] = False
    is_run: Annotated[bool, Field(description="Whether its run exists already, so that it can be resumed.")] = False
    request: Annotated[dict[str, Any] | None, Field(description="The request, where it was started here.")] = None
    error: Annotated[
        dict[Literal["line", "setting", "right"], str] | None,
        Field(
            description="Why it failed, if it did; the setting at fault, and an override that would be right.",
            examples=[{"line": "size = 8,000: is too large", "setting": "text.size", "right": "text.size=625"}],
        ),
    ] = None


_SETTING = re.compile(r"(?:^|: )((?:model|text|data|train)(?:\.\w+)+|size|preset|corpus|time|name|task)\b(?: = |:)")
_FLAGS = {"--source": "the source file", "--target": "the target file", "--out": "the name", "--time": "the time"}


def plain(line: str) -> str:
    """An error of the command line for the studio, without flags and commands."""
    for flag, words in _FLAGS.items():
        line = line.replace(flag, words)
    kept = [part for part in line.split("; ") if "regard " not in part and " --" not in part]
    return "; ".join(kept) or line


def explained(line: str, right: str = "") -> dict[Literal["line", "setting", "right"], str]:
    """An error of a training with the setting that it names."""
    found = _SETTING.search(line)
    setting = right.partition("=")[0] or ("" if found is None else found[1])
    return {"line": plain(line), "setting": "text.size" if setting == "size" else setting, "right": right}


class Trainings:
    """The trainings of all runs, also of runs that do not exist yet or never will."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs

    def all(self) -> list[Training]:
        """Running ones first, then the newest."""
        paths = self.jobs.library.runs()  # lists the whole folder: once for all
        trainings = [self.one(name, paths) for name in {**paths, **self.jobs.trainings()}]
        return sorted(trainings, key=lambda each: (each.state != "running", -each.changed))

    def one(self, run: str, paths: Mapping[str, Path] | None = None) -> Training:
        """The training of a run; ``paths`` are the folders of all runs, if they are known."""
        path = (self.jobs.library.runs() if paths is None else paths).get(run)
        job = self.jobs.training(run)
        if path is None and job is None:
            self.jobs.library.path(run)  # raises: no such run
        summary, settings = self._known(run, path, job)
        ours = job is not None and job.alive
        running = ours or summary.state == "running"
        ended = not running and summary.state in ("prepared", "interrupted", "failed")
        words, right = self.jobs.trouble(run) if ended else ("", "")
        content: dict[str, Any] = {
            **vars(summary),
            **({} if settings is None else settings.train.model_dump(include={"validate_every", "watch"})),
            "state": "running" if running else "failed" if words else summary.state,
            "stage": self.stage(run, path) if running else "",
            "note": plain(words) or self.jobs.shown(summary.note),
            "error": explained(words, right) if words else None,
        }
        return Training(run=run, ours=ours, is_run=path is not None, request=self.jobs.request(run), **content)

    def _known(self, run: str, path: Path | None, job: Job | None) -> tuple[Summary, Settings | None]:
        """The summary of a run, or of one that does not exist yet by its settings; and these, if they can be read."""
        if path is not None:
            found = summary_at(path, run)
            return found, None if found.state == "unreadable" else settings_at(path)
        assert job is not None
        known = Summary(run, "", "interrupted" if job.stopped else "failed", changed=job.began)
        try:
            settings = load_settings(self.jobs.folder / f"train-{run}" / "settings.toml")
        except RegardError:
            return known, None
        return replace(known, **listing.by_settings(settings)), settings

    def stage(self, run: str, path: Path | None) -> Stage:
        """The stage of a running training, by the last line of its log."""
        job = self.jobs.training(run)
        began = 0.0
        if job is not None and job.alive:
            if job.stopped:
                return "stopping"
            began = job.began
        if path is None:
            return "starting"
        last = outline(path / "log.jsonl").last
        if last is None or last.get("time", 0.0) < began:
            return "preparing"
        every = settings_at(path).train.validate_every
        over = last.get("progress", 0.0) >= 1.0
        due = bool(every) and last["step"] % every == 0
        return "validating" if last["event"] == "step" and (due or over) else "training"

    async def events(self, run: str, after: int) -> AsyncIterator[str]:
        """The log as server-sent events, after a line, until the training ends. The id of an event is its line.

        Events named ``state`` have the stage, ``end`` is the last one; they have no line.
        """
        path = (await asyncio.to_thread(self.jobs.library.runs)).get(run) or self._place(run)
        reader, shown, silence = LogReader(path / "log.jsonl"), "", 0.0
        yield "retry: 1000\n\n"
        while not self.jobs.closing.is_set():
            running = await asyncio.to_thread(self.jobs.is_training, run)  # before reading: no last line is missed
            read = await asyncio.to_thread(_next, reader)
            if reader.stale:  # the log was replaced: read all of it
                reader, after = LogReader(path / "log.jsonl"), 0
                continue
            lines = [] if read is None else await asyncio.to_thread(_events_after, read, after)
            for number, line in lines:
                yield f"id: {number}\ndata: {self.jobs.shown(line)}\n\n"
            if not running:
                if read is None:
                    yield _event("end", await asyncio.to_thread(self._ending, run))
                    return
                continue
            stage = await asyncio.to_thread(lambda: self.stage(run, self.jobs.library.runs().get(run)))
            silence = 0.0 if lines or stage != shown else silence + TICK
            if stage != shown:
                yield _event("state", {"state": "running", "stage": stage})
                shown = stage
            elif silence >= HEARTBEAT:
                yield ": still here\n\n"
                silence = 0.0
            await asyncio.sleep(TICK)

    def _place(self, run: str) -> Path:
        """The folder of a run that a training is about to create."""
        if self.jobs.training(run) is None or self.jobs.library.folder is None:
            return self.jobs.library.path(run)  # raises: no such run
        return self.jobs.library.folder / run

    def _ending(self, run: str) -> dict[str, Any]:
        try:
            found = self.one(run)
        except RegardError as problem:  # it was removed meanwhile
            return {"state": "failed", "stage": "", "note": self.jobs.shown(str(problem))}
        return {"state": found.state, "stage": "", "note": found.note}


def _next(reader: LogReader) -> list[tuple[int, bytes]] | None:
    """The new lines of a log; None while it cannot be read."""
    with suppress(OSError):
        return reader.read()
    return None


def _events_after(lines: list[tuple[int, bytes]], after: int) -> list[tuple[int, str]]:
    """The events after a line. A line that is no JSON, cut short by a crash, is counted but not sent."""
    found = ((number, _parsed(line)) for number, line in lines if number > after)
    return [(number, json.dumps(event, ensure_ascii=False)) for number, event in found if event is not None]


def _parsed(line: bytes) -> dict[str, Any] | None:
    """An event; NaN and infinity become null, because browsers read strict JSON."""
    try:
        event = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _event(name: str, values: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n"
