"""``regard report``"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.compare import compared
from regard.cli.streams import put, say, tell
from regard.cli.verb import Common, apart, called, common, with_settings
from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.evaluate.comparison import Comparison
    from regard.evaluate.run_report import RunReport
    from regard.settings.call import CallSettings


def report(
    context: typer.Context,
    runs: Annotated[
        list[str],
        with_settings("RUN...", "A run folder; of several, the page compares them."),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(help="A page (.html) or the numbers (.json); may be given twice. Of one run: RUN/report.html."),
    ] = None,
    source: Annotated[str, typer.Option(help="Text to measure on; without it, what the run held out.")] = "",
    target: Annotated[str, typer.Option(help="Its reference translation, line by line.")] = "",
    pin: Annotated[list[str] | None, typer.Option(help="A sentence to show whatever happens; may be repeated.")] = None,
) -> None:
    """Write one page about a run that needs nothing else: verdict, curves, scores, sentences, heat maps, settings."""
    from regard.evaluate.comparison import check_suffix

    overrides, folders = apart(runs)
    files = (folders and out) or _beside(folders)
    for path in files:
        check_suffix(path)
    asked, call = common(context), called("report", overrides)
    if len(folders) == 1:
        made = _report(folders[0], (source, target), pin, call, asked)
    else:
        made = compared(folders, (source, target), call, asked)
    tell(str(made))
    for path in files:
        made.save(path)
        say(f"written: {path}")
    if asked.json:
        put(json.dumps(made.as_json(), ensure_ascii=False))


def _report(
    run: str, test: tuple[str, str], pins: list[str] | None, call: CallSettings, asked: Common
) -> RunReport | Comparison:
    from regard.evaluate.report import report

    return report(run, *test, decode=call.decode, measure=call.measure, pins=pins, device=asked.device, tell=say)


def _beside(runs: Sequence[str]) -> list[Path]:
    """Where a page goes by default."""
    if not runs:
        raise SettingsError("RUN: missing; name a run folder, or several to compare")
    if len(runs) != 1:
        raise SettingsError("--out: missing; the page of several runs belongs to none of them, so name a file")
    from regard.runs.folder import packaged, resolve

    return [Path("demo-report.html") if (folder := resolve(Path(runs[0]))) == packaged() else folder / "report.html"]
