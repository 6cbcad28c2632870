"""``regard settings``: show, explain, schema, presets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="See what can be set and what it is set to.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A preset, a TOML file or a run folder.")] = "transformer-small",
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings to change, such as model.depth=4.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print all settings, defaults too."""
    from regard.runs.folder import resolve
    from regard.settings import load_settings

    folder = resolve(Path(name))
    path = folder / "settings.toml" if folder.is_dir() else name
    settings = load_settings(path, *(overrides or []))
    print(json.dumps(settings.model_dump(), indent=2) if as_json else settings.to_toml().rstrip())


@app.command("explain")
def explain_setting(
    setting: Annotated[str, typer.Argument(help="A dotted name, such as model.heads or train.schedule.")],
) -> None:
    """Say what a setting means, what it takes and its default."""
    from regard.settings.help import explain

    print("\n".join(explain(setting)))


@app.command()
def schema() -> None:
    """Print the JSON schema of all settings."""
    from regard.settings import Settings

    print(json.dumps(Settings.model_json_schema(), indent=2))


@app.command()
def presets(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the built-in architectures, simplest first."""
    from regard.settings import load_settings, preset_names

    about = {name: load_settings(name).about for name in preset_names()}
    if as_json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
        return
    for name, line in about.items():
        print(f"{name:20}{line}")
