"""``regard train``"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.settings import Settings


def train(
    preset: Annotated[str, typer.Argument(help="A preset's name or a TOML file; see regard settings presets.")] = "",
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings to change, such as model.depth=4.")] = None,
    source: Annotated[str, typer.Option(help="Training text, one sentence a line (also .gz, .zst).")] = "",
    target: Annotated[str, typer.Option(help="Its translation, line by line.")] = "",
    valid_source: Annotated[str, typer.Option(help="Validation text.")] = "",
    valid_target: Annotated[str, typer.Option(help="Its translation.")] = "",
    corpus: Annotated[str, typer.Option(help="fable:fr, fable:hi, or one file with all columns.")] = "",
    valid_corpus: Annotated[str, typer.Option(help="The same for validation.")] = "",
    task: Annotated[str, typer.Option(help="translate, language, tag or classify.")] = "",
    time: Annotated[str, typer.Option(help="Train no longer than this: 90s, 10m, 2h.")] = "",
    watch: Annotated[str, typer.Option(help="A sentence to watch: what the model makes of it as it learns.")] = "",
    out: Annotated[Path | None, typer.Option(help="The run folder to make; default runs/PRESET.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with this run instead.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Prepare and estimate, but do not train.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON on stdout.")] = False,
) -> int:
    """Train a model, from a preset or a settings file; Ctrl-C saves and stops."""
    from regard.settings import load_settings

    flags = {
        "data.source": source,
        "data.target": target,
        "data.valid_source": valid_source,
        "data.valid_target": valid_target,
        "data.corpus": corpus,
        "data.valid_corpus": valid_corpus,
        "task": task,
        "train.time": time,
        "train.watch": watch,
    }
    given = [f"{name}={json.dumps(value)}" for name, value in flags.items() if value]
    if resume is not None:
        if preset or given:
            raise SettingsError(f"--resume {resume}: goes on with the run's own settings; leave the others out")
        folder, settings = resume, None
    else:
        if not preset:
            raise SettingsError("PRESET: missing; name a preset or a TOML file, or give --resume RUN")
        settings = load_settings(preset, *given, *(overrides or []))
        folder = out or Path("runs") / Path(preset).stem
    return _train(folder, settings, device=device, dry_run=dry_run, tensorboard=tensorboard, as_json=as_json)


def _train(
    folder: Path, settings: Settings | None, *, device: str, dry_run: bool, tensorboard: bool, as_json: bool
) -> int:
    from regard import training
    from regard.cli.display import display, events
    from regard.trainer.signals import INTERRUPTED

    with display() as shown:
        listeners: list[Any] = [shown, *([events(folder)] if tensorboard else [])]
        if dry_run:
            estimate = training.preflight(folder, settings, shown, device=device)
            shown.tell(f"{estimate}\nprepared; train it with: regard train --resume {folder}")
            print(json.dumps(asdict(estimate))) if as_json else None
            return 0
        if settings is None:
            outcome = training.resume(folder, *listeners, device=device)
        else:
            outcome = training.start(folder, settings, *listeners, device=device)
        shown.tell(_ending(folder, outcome.reason, outcome.progress.step))
    if as_json:
        print(json.dumps({"run": str(folder), "reason": outcome.reason, **asdict(outcome.progress)}))
    return INTERRUPTED if outcome.reason == "interrupted" else 0


def _ending(folder: Path, reason: str, step: int) -> str:
    if reason == "interrupted":
        return f"interrupted at step {step:,}, checkpoint written; go on with: regard train --resume {folder}"
    why = {"steps": "all steps done", "time": "time is up", "patience": "no improvement any more"}[reason]
    from regard.run import Run

    verb = "translate" if Run.open(folder).settings.task == "translate" else "predict"
    return f'{why} at step {step:,}; the best model is in {folder}; try: regard {verb} {folder} "…"'
