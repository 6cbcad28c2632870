"""``regard settings``: show, explain, schema, presets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.train import preset_of
from regard.cli.verb import Command, common

app = typer.Typer(help="See what can be set and what it is set to.", no_args_is_help=True, rich_markup_mode=None)


@app.command(cls=Command)
def show(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PRESET] [SETTING=VALUE]...",
            help="A preset, a TOML file or a run folder, and settings to change, such as model.depth=4.",
        ),
    ] = None,
) -> None:
    """Print all settings, defaults too."""
    from regard.runs.folder import resolve
    from regard.settings import load_settings

    preset, overrides = preset_of(words)
    name = preset or "transformer-small"
    folder = resolve(Path(name))
    path = folder / "settings.toml" if folder.is_dir() else name
    settings = load_settings(path, *overrides)
    print(json.dumps(settings.model_dump(), indent=2) if common(context).json else settings.to_toml().rstrip())


@app.command("explain", cls=Command)
def explain_setting(
    context: typer.Context,
    setting: Annotated[str, typer.Argument(help="A dotted name, such as model.heads or train.schedule.")],
) -> None:
    """Explain a setting: its meaning, values and default."""
    from regard.settings.help import explain

    lines = explain(setting)
    print(json.dumps(lines, indent=2, ensure_ascii=False) if common(context).json else "\n".join(lines))


@app.command(cls=Command)
def schema() -> None:
    """Print the JSON schema of all settings."""
    from regard.settings import Settings

    print(json.dumps(Settings.model_json_schema(), indent=2))


@app.command(cls=Command)
def presets(context: typer.Context) -> None:
    """List the built-in architectures, simplest first."""
    from regard.settings import load_settings, preset_names

    about = {name: load_settings(name).about for name in preset_names()}
    if common(context).json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
        return
    for name, line in about.items():
        print(f"{name:20}{line}")
