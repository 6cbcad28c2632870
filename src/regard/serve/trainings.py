"""Trainings as clients see them: settings from what they ask for, how each stands, and its log as it grows."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
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

DEMO = "demo"  # the preset of the first button
FILES = ("corpus", "source", "target", "valid_corpus", "valid_source", "valid_target")
BASE = "train.base: is the run to begin with; choose that, and leave this out"
Stage = Literal["", "starting", "preparing", "training", "validating", "stopping"]
TICK = 0.3  # seconds between two looks at a log
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
    """The arguments of `regard train` for a client's request: a preset or a run to begin with, and only those settings
    that were chosen, so that the others are fitted. Files are those of its corpora and no others."""
    data = corpora.settings(corpus) | ({"languages": languages} if languages else {})
    chosen = [f"data.{name}={json.dumps(path)}" for name, path in data.items()]
    chosen += [f"train.{name}={json.dumps(value)}" for name, value in (("time", time), ("watch", watch)) if value]
    if given("train.base", overrides):
        raise SettingsError(BASE)
    watched = corpora.test_files(general) if general else ()
    chosen += [f"data.general={json.dumps(watched)}"] if watched else []
    if base is not None:
        if preset:
            raise SettingsError(f"preset = {preset[:100]}: a run to begin with has its own settings; leave this out")
        chosen = [f"train.base={json.dumps(str(base))}", *chosen]
    elif preset == DEMO:
        preset, chosen = demonstration.PRESET, [*demonstration.OVERRIDES, *chosen]
    elif preset not in preset_names():
        raise SettingsError(f"preset = {preset[:100]}: no such preset; {did_you_mean(preset, [DEMO, *preset_names()])}")
    asked = [*([] if base is not None else [preset]), *chosen, *overrides]
    settings = settings_of(asked)
    for name in FILES:
        if (found := getattr(settings.data, name)) != data.get(name, ""):
            raise SettingsError(f"data.{name} = {found[:100]}: comes from the corpus; choose that, and leave this out")
    if settings.data.general != tuple(watched):
        raise SettingsError("data.general: comes from the corpus to keep watching; choose that, and leave this out")
    if settings.train.base != ("" if base is None else str(base)):
        raise SettingsError(BASE)
    if settings.model.vectors.file:
        raise SettingsError("model.vectors.file: files are read on the command line alone; use regard train")
    return asked


@dataclass(frozen=True, kw_only=True)
class Training(Summary, Answer):
    """How a training stands: its run at a glance, and what goes on."""

    run: str
    stage: Stage = ""
    validate_every: int = 0
    watch: str = ""
    ours: Annotated[bool, Field(description="Whether it was started here, and so can be stopped here.")] = False
    is_run: Annotated[bool, Field(description="Whether there is a run to go on with; not before it has begun.")] = False
    request: Annotated[dict[str, Any] | None, Field(description="What was asked for, where it was started here.")] = (
        None
    )
    error: Annotated[
        dict[Literal["line", "setting", "right"], str] | None,
        Field(
            description="Why it failed, where it did; which setting is to blame, and an override that would be right.",
            examples=[{"line": "size = 8,000: is too large", "setting": "text.size", "right": "text.size=625"}],
        ),
    ] = None


_SETTING = re.compile(r"(?:^|: )((?:model|text|data|train)(?:\.\w+)+|size|preset|corpus|time|name|task)\b(?: = |:)")
_FLAGS = {"--source": "the source file", "--target": "the target file", "--out": "the name", "--time": "the time"}


def plain(line: str) -> str:
    """An error of the command line for the studio: no flags, no commands to type."""
    for flag, words in _FLAGS.items():
        line = line.replace(flag, words)
    kept = [part for part in line.split("; ") if "regard " not in part and " --" not in part]
    return "; ".join(kept) or line


def complaint(line: str, right: str = "") -> dict[Literal["line", "setting", "right"], str]:
    """Which setting the last line of a training names."""
    found = _SETTING.search(line)
    setting = right.partition("=")[0] or ("" if found is None else found[1])
    return {"line": plain(line), "setting": "text.size" if setting == "size" else setting, "right": right}


class Trainings:
    """Every run of the library, and trainings that are not one yet or never came to be."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs

    def all(self) -> list[Training]:
        """The newest first."""
        paths = self.jobs.library.runs()  # which looks at the whole folder: once for all
        found = [self._one(name, paths.get(name)) for name in {**paths, **self.jobs.trainings()}]
        return sorted(found, key=lambda each: (each.state != "running", -each.changed))

    def one(self, run: str) -> Training:
        return self._one(run, self.jobs.library.runs().get(run))

    def _one(self, run: str, path: Path | None) -> Training:
        job = self.jobs.training(run)
        if path is None and job is None:
            self.jobs.library.path(run)  # complains
        summary, settings = self._known(run, path, job)
        ours = job is not None and job.alive
        running = ours or summary.state == "running"
        ended = not running and summary.state in ("prepared", "interrupted", "failed")
        words, right = self.jobs.trouble(run) if ended else ("", "")
        content: dict[str, Any] = {
            **vars(summary),
            **({} if settings is None else settings.train.model_dump(include={"validate_every", "watch"})),
            "state": "running" if running else "failed" if words else summary.state,
            "stage": self._stage(run, path) if running else "",
            "note": plain(words) or self.jobs.shown(summary.note),
            "error": complaint(words, right) if words else None,
        }
        return Training(run=run, ours=ours, is_run=path is not None, request=self.jobs.request(run), **content)

    def _known(self, run: str, path: Path | None, job: Job | None) -> tuple[Summary, Settings | None]:
        """A run at a glance, or what the settings say of one that is yet to be; and these, where they can be read."""
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

    def stage(self, run: str) -> Stage:
        """What a running training does now, by the last line of its log."""
        return self._stage(run, self.jobs.library.runs().get(run))

    def _stage(self, run: str, path: Path | None) -> Stage:
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
        """The log as server-sent events, from a line on, until the training ends. The id of an event is its line.

        Events named ``state`` say what goes on, ``end`` that nothing more will come; they have no line.
        """
        path = (await asyncio.to_thread(self.jobs.library.runs)).get(run) or self._place(run)
        reader, shown, silence = LogReader(path / "log.jsonl"), "", 0.0
        yield "retry: 1000\n\n"
        while not self.jobs.closing.is_set():
            running = await asyncio.to_thread(self.jobs.is_training, run)  # before reading: its last lines are there
            read = await asyncio.to_thread(_next, reader)
            if reader.stale:  # another log: all of it is new
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
            stage = await asyncio.to_thread(self.stage, run)
            silence = 0.0 if lines or stage != shown else silence + TICK
            if stage != shown:
                yield _event("state", {"state": "running", "stage": stage})
                shown = stage
            elif silence >= HEARTBEAT:
                yield ": still here\n\n"
                silence = 0.0
            await asyncio.sleep(TICK)

    def _place(self, run: str) -> Path:
        """Where the run will be that a training is about to make."""
        if self.jobs.training(run) is None or self.jobs.library.folder is None:
            return self.jobs.library.path(run)  # which complains
        return self.jobs.library.folder / run

    def _ending(self, run: str) -> dict[str, Any]:
        try:
            found = self.one(run)
        except RegardError as problem:  # it was removed in the meantime
            return {"state": "failed", "stage": "", "note": self.jobs.shown(str(problem))}
        return {"state": found.state, "stage": "", "note": found.note}


def _next(reader: LogReader) -> list[tuple[int, bytes]] | None:
    """What was added to a log; nothing, while it cannot be read."""
    with suppress(OSError):
        return reader.read()
    return None


def _events_after(lines: list[tuple[int, bytes]], after: int) -> list[tuple[int, str]]:
    """Events after a line. What is no JSON, cut short by a crash, counts but is not sent."""
    found = ((number, _parsed(line)) for number, line in lines if number > after)
    return [(number, json.dumps(event, ensure_ascii=False)) for number, event in found if event is not None]


def _parsed(line: bytes) -> dict[str, Any] | None:
    """An event; a number that is none (a loss that is not finite) becomes null, for browsers read strict JSON."""
    try:
        event = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _event(name: str, values: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n"
