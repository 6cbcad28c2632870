"""``regard report`` and ``regard compare``"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import LineCounter, put, say, tell
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
    pin: Annotated[list[str] | None, typer.Option(help="A sentence to show in any case; may be repeated.")] = None,
) -> None:
    """Write a report of a run as one HTML file: verdict, curves, scores, sentences, heat maps, settings."""
    from regard.evaluate.comparison import check_suffix

    overrides, folders = apart(runs)
    files = (folders and out) or _beside(folders)
    for path in files:
        check_suffix(path)
    asked, call = common(context), called("report", overrides)
    made: RunReport | Comparison
    if len(folders) == 1:
        from regard.evaluate.report import report

        how, device = call.measure, asked.device
        made = report(folders[0], source, target, decode=call.decode, measure=how, pins=pin, device=device, tell=say)
    else:
        made = _compared(folders, (source, target), call, asked)
    _give(made, files, asked)


def _give(made: RunReport | Comparison, files: Sequence[Path], asked: Common) -> None:
    """The summary on stderr, the files, and on request all numbers on stdout."""
    tell(str(made))
    for path in files:
        made.save(path)
        say(f"written: {path}")
    if asked.json:
        put(json.dumps(made.as_json(), ensure_ascii=False))


def _beside(runs: Sequence[str]) -> list[Path]:
    """The default file of a report."""
    if not runs:
        raise SettingsError("RUN: missing; name a run folder, or several to compare")
    if len(runs) != 1:
        raise SettingsError("--out: missing; name a file for the page of several runs")
    from regard.runs.folder import packaged, resolve

    return [Path("demo-report.html") if (folder := resolve(Path(runs[0]))) == packaged() else folder / "report.html"]


def compare(
    context: typer.Context,
    runs: Annotated[
        list[str] | None,
        with_settings("RUN...", "Two or more run folders."),
    ] = None,
    source: Annotated[str, typer.Option(help="Text to translate; without it, a test that all runs share.")] = "",
    target: Annotated[str, typer.Option(help="Its reference translation, line by line.")] = "",
    out: Annotated[
        list[Path] | None, typer.Option(help="Write a page (.html) or the numbers (.json); may be given twice.")
    ] = None,
) -> None:
    """Compare runs on one text: scores, paired tests, by length, most-differing sentences, cost."""
    from regard.evaluate.comparison import check_suffix

    for path in out or []:
        check_suffix(path)
    overrides, folders = apart(runs or [])
    asked = common(context)
    _give(_compared(folders, (source, target), called("compare", overrides), asked), out or [], asked)
    if not out:
        say("by length, all tests and sentences side by side: add --out compare.html")


def _compared(runs: Sequence[str], test: tuple[str, str], call: CallSettings, asked: Common) -> Comparison:
    from regard.evaluate.compare import compare

    return compare(
        runs,
        *test,
        decode=call.decode,
        measure=call.measure,
        device=asked.device,
        texts=call.measure.texts,
        tell=say,
        progress=LineCounter("translated", call.measure.every),
    )
