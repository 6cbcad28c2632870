"""``regard train``"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.verb import Common, common
from regard.errors import SettingsError, quoted

if TYPE_CHECKING:
    from regard.runs.log import Listener
    from regard.settings import Settings
    from regard.trainer.loop import Outcome

AUTO = "auto"  # a preset that fits the corpus, the machine and the time
_REASONS = {"steps": "all steps are done", "time": "the time is up", "patience": "no further improvement"}


def train(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PRESET] [SETTING=VALUE]...",
            help="A preset's name or a TOML file, and settings to change, such as model.depth=4 or task=tag; "
            "see regard settings presets. auto, or none: one that fits.",
        ),
    ] = None,
    source: Annotated[str, typer.Option(help="Training text, one sentence a line (also .gz, .zst).")] = "",
    target: Annotated[str, typer.Option(help="Its translation, line by line.")] = "",
    corpus: Annotated[str, typer.Option(help="fable:fr, fable:hi, or one file with all columns.")] = "",
    base: Annotated[str, typer.Option("--from", help="Begin with this run's weights: demo, or a folder.")] = "",
    keep_watching: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES", help="A further, general test set: fable:fr, a table, or a pair A,B."),
    ] = None,
    time: Annotated[str, typer.Option(help="Train at most this long, or with --resume this much longer: 10m.")] = "",
    steps: Annotated[str, typer.Option(help="At most this many steps; with --resume also +5000 for more.")] = "",
    out: Annotated[Path | None, typer.Option(help="The run folder to make; default a new one in runs/.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Resume this run instead.")] = None,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Go on with --out if it is there: the same command may be repeated.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate, but do not train; with --out, keep what is prepared.")
    ] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")] = False,
) -> int:
    """Train a model, from a preset, a settings file or just a corpus; Ctrl-C saves and stops."""
    flags = {"data.source": source, "data.target": target, "data.corpus": corpus, "train.base": base}
    given = [f"{name}={json.dumps(value)}" for name, value in flags.items() if value]
    given += [f"data.general={json.dumps(','.join(keep_watching))}"] if keep_watching else []
    preset, overrides = preset_of(words)
    asked, kinds = common(context), {"dry_run": dry_run, "tensorboard": tensorboard}
    asked = asked._replace(quiet=asked.quiet or not _leads())
    if go_on and (out is None or resume is not None or dry_run):
        raise SettingsError("--continue: begins or goes on with the run in --out; add that, no --resume or --dry-run")
    if resume is not None:
        if preset or given or overrides or out:
            raise SettingsError(f"--resume {resume}: uses the run's own settings; add only --time or --steps")
        return _resume(resume, time, steps, asked, **kinds)
    given += limits(time, steps)
    if go_on and out is not None:
        return train_or_go_on(preset, [*given, *overrides], out, asked, tensorboard=tensorboard)
    return _start(preset, [*given, *overrides], out, asked, **kinds)


def preset_of(words: list[str] | None) -> tuple[str, list[str]]:
    """The preset, if the first word is no setting, and the settings to change; ``auto`` means that one is fitted."""
    from regard.settings import preset_names

    names = {AUTO, *preset_names()}  # these mean presets, also beside a file of that name
    others = [word for word in words or () if "=" not in word and word not in names and Path(word).suffix != ".toml"]
    if texts := [word for word in others if os.path.isfile(word)]:  # noqa: PTH113  of a long name pathlib complains
        from regard.data.readers import format_of

        table = format_of(texts[0]) != "text"
        raise SettingsError(
            f"{texts[0]}: is a file, no preset; settings end in .toml, texts go with --source and --target, "
            "tables with --corpus",
            hint=f"regard train --corpus {quoted(texts[0])}" if table else "regard train --source FILE --target FILE",
        )
    first, *rest = words or [""]
    return ("", [first, *rest]) if "=" in first else ("" if first == AUTO else first, rest)


def _leads() -> bool:
    """Whether this is the first of the processes that torchrun has started; only that one prints."""
    return os.environ.get("RANK", "0") == "0"


def limits(time: str, steps: str) -> list[str]:
    """The settings that --time and --steps mean."""
    from regard.settings.schema import parse_time

    if time:
        parse_time(time)  # refused here, it names no preset that nobody has named
    if steps and not steps.replace(",", "").isdecimal():
        raise SettingsError(f"--steps = {steps}: not a number of steps; give a number, or with --resume also +5000")
    given = [f"train.time={json.dumps(time)}"] if time else []
    return given + ([f"train.steps={steps.replace(',', '')}"] if steps else [])


def _start(
    preset: str, overrides: list[str], out: Path | None, asked: Common, *, dry_run: bool, tensorboard: bool
) -> int:
    """Train a new run."""
    from regard.cli.display import display
    from regard.trainer import start as training

    with display(quiet=asked.quiet) as shown:
        settings, remark = training.fitted(preset, *overrides, device=asked.device)
        folder = out or training.free_place(preset, settings)
        if dry_run and out is None:
            with tempfile.TemporaryDirectory(prefix="regard-dry-run-") as place:
                return _estimate(Path(place) / folder.name, settings, shown, asked, remark, meant=folder)
        if dry_run:
            return _estimate(folder, settings, shown, asked, remark)
        another = "" if out or folder == training.place(preset, settings) else ", because a run of its name exists"
        opening = f"training {folder}{another}; Ctrl-C saves and stops it"
        listeners = _listeners(folder, shown, tensorboard=tensorboard)
        outcome = training.start(folder, settings, *listeners, device=asked.device, opening=opening, remark=remark)
        shown.tell(_ending(folder, outcome))
    return _code(folder, outcome, asked)


def train_or_go_on(preset: str, overrides: list[str], folder: Path, asked: Common, *, tensorboard: bool) -> int:
    """Train a new run, or go on with it."""
    from regard.cli.display import display
    from regard.trainer import start as training

    with display(quiet=asked.quiet) as shown:
        opening = f"training {folder}; Ctrl-C stops it, and the same command goes on"
        listeners = _listeners(folder, shown, tensorboard=tensorboard)
        outcome = training.go_on(folder, preset, *listeners, overrides=overrides, device=asked.device, opening=opening)
        shown.tell(_ending(folder, outcome))
    return _code(folder, outcome, asked)


def _resume(folder: Path, time: str, steps: str, asked: Common, *, dry_run: bool, tensorboard: bool) -> int:
    """Go on with a run."""
    from regard.cli.display import display
    from regard.trainer import start as training

    with display(quiet=asked.quiet) as shown:
        if dry_run:
            return _estimate(folder, None, shown, asked)
        listeners = _listeners(folder, shown, tensorboard=tensorboard)
        outcome = training.resume(folder, *listeners, device=asked.device, time=time, more=steps)
        shown.tell(_ending(folder, outcome))
    return _code(folder, outcome, asked)


def _listeners(folder: Path, shown: Listener, *, tensorboard: bool) -> list[Listener]:
    from regard.cli.display import Events

    return [shown, *([Events(folder)] if tensorboard else [])]


def _estimate(
    folder: Path,
    settings: Settings | None,
    shown: Listener,
    asked: Common,
    remark: str = "",
    *,
    meant: Path | None = None,
) -> int:
    """Prepare a run and say what it would take; ``meant`` is where it would be trained, if ``folder`` is not kept."""
    from regard.runs.folder import Run
    from regard.trainer import start as training

    estimate = training.preflight(folder, settings, shown, device=asked.device, remark=remark)
    kept = f"prepared; train it with: regard train --resume {quoted(folder)}"
    nothing = "nothing of it is kept; --out keeps it"
    shown.tell(f"{estimate}\n{kept if meant is None else nothing}")
    resolved = Run.open(folder).settings
    if asked.json:
        print(json.dumps({"run": str(meant or folder), **asdict(estimate), "settings": resolved.model_dump()}))
    else:
        print(resolved.to_toml().rstrip())
    return 0


def _code(folder: Path, outcome: Outcome, asked: Common) -> int:
    from regard.trainer.loop import INTERRUPTED

    if asked.json and _leads():
        print(json.dumps({"run": str(folder), "reason": outcome.reason, **asdict(outcome.progress)}))
    return INTERRUPTED if outcome.reason == "interrupted" else 0


def _ending(folder: Path, outcome: Outcome) -> str:
    from regard.runs.folder import Run

    step = f"{outcome.progress.step:,} steps"
    if outcome.reason == "interrupted":
        return f"stopped after {step}, checkpoint written; resume with: regard train --resume {quoted(folder)}"
    why = f"{_REASONS[outcome.reason]} after {step}"
    more = f"resume with: regard train --resume {quoted(folder)} --time 10m"
    if not outcome.taken:
        return f"{folder}: is finished, {why}; {more}"
    settings = Run.open(folder).settings
    verb = "translate" if settings.task == "translate" else "predict"
    given = f"--file {quoted(settings.data.corpus)}" if settings.task == "forecast" and settings.data.corpus else '"…"'
    return f"{why}; the best model is in {folder}; try: regard {verb} {quoted(folder)} {given}\n{more}"
