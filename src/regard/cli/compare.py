"""``regard compare``"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import LineCounter, put, say, tell
from regard.cli.verb import Common, apart, called, common, with_settings

if TYPE_CHECKING:
    from regard.evaluate.comparison import Comparison
    from regard.settings.call import CallSettings


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
    comparison = compared(folders, (source, target), called("compare", overrides), asked)
    tell(str(comparison))
    for path in out or []:
        comparison.save(path)
        say(f"written: {path}")
    if not out:
        say("by length, all tests and sentences side by side: add --out compare.html")
    if asked.json:
        put(json.dumps(comparison.as_json(), ensure_ascii=False))


def compared(runs: Sequence[str], test: tuple[str, str], call: CallSettings, asked: Common) -> Comparison:
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
