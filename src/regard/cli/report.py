"""``regard report``"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.compare import whole_numbers
from regard.errors import SettingsError


def report(
    runs: Annotated[list[Path], typer.Argument(help="A run folder; of several, the page compares them.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(help="A page (.html) or the numbers (.json); may be given twice. Of one run: RUN/report.html."),
    ] = None,
    source: Annotated[str, typer.Option(help="Text to measure on; without it, what the run held out.")] = "",
    target: Annotated[str, typer.Option(help="Its reference translation, line by line.")] = "",
    pin: Annotated[list[str] | None, typer.Option(help="A sentence to show whatever happens; may be repeated.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    limit: Annotated[int | None, typer.Option(help="Use at most so many sentences.")] = None,
    metrics: Annotated[str, typer.Option(help="bleu, chrf, chrf++, ter; the first is also by length.")] = "bleu,chrf",
    tokenize: Annotated[str, typer.Option(help="BLEU's tokenizer: 13a, intl, char, zh, none.")] = "13a",
    edges: Annotated[str, typer.Option(help="Where groups of source lengths end, in words: 10,20,30.")] = "",
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the sentences that are drawn, and of a comparison's tests.")] = 12345,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON on stdout.")] = False,
) -> None:
    """Write one page about a run that needs nothing else: verdict, curves, scores, sentences, heat maps, settings."""
    from regard import comparing, reporting
    from regard.report.comparison import Comparison
    from regard.report.run_report import RunReport, check_suffix

    files = out or _beside(runs)
    for path in files:
        check_suffix(path)
    names, groups = [name.strip() for name in metrics.split(",")], whole_numbers(edges)
    made: RunReport | Comparison
    if len(runs) == 1:
        made = reporting.report(
            runs[0],
            source,
            target,
            pins=pin,
            limit=limit,
            beam=beam,
            metrics=names,
            tokenize=tokenize,
            edges=groups,
            resamples=resamples,
            seed=seed,
            device=device,
            tell=_tell,
        )
    else:
        made = comparing.compare(
            runs,
            source,
            target,
            limit=limit,
            beam=beam,
            metrics=names,
            tokenize=tokenize,
            edges=groups,
            resamples=resamples,
            seed=seed,
            device=device,
            tell=_tell,
        )
    _tell(str(made))
    for path in files:
        made.save(path)
        _tell(f"written: {path}")
    if as_json:
        print(json.dumps(made.as_json(), ensure_ascii=False))


def _beside(runs: list[Path]) -> list[Path]:
    """Where a page goes if nobody says."""
    if len(runs) > 1:
        raise SettingsError("--out: missing; the page of several runs belongs to none of them, so name a file")
    return [runs[0] / "report.html"]


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
