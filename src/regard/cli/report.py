"""``regard report``"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.compare import whole_numbers
from regard.cli.streams import put, say
from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.evaluate.comparison import Comparison
    from regard.evaluate.run_report import RunReport


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
    from regard.evaluate.saving import check_suffix

    files = out or _beside(runs)
    for path in files:
        check_suffix(path)
    shared = _Shared([name.strip() for name in metrics.split(",")], tokenize, whole_numbers(edges), resamples, seed)
    if len(runs) == 1:
        made = _report(runs[0], (source, target), pin, limit, beam, device, shared)
    else:
        made = _compare(runs, (source, target), limit, beam, device, shared)
    _tell(str(made))
    for path in files:
        made.save(path)
        _tell(f"written: {path}")
    if as_json:
        put(json.dumps(made.as_json(), ensure_ascii=False))


@dataclass(frozen=True)
class _Shared:
    """How to measure, for one run and for several."""

    metrics: list[str]
    tokenize: str
    edges: list[int]
    resamples: int
    seed: int


def _report(
    run: Path, texts: tuple[str, str], pins: list[str] | None, limit: int | None, beam: int, device: str, how: _Shared
) -> RunReport | Comparison:
    from regard.evaluate.report import report

    return report(
        run,
        *texts,
        pins=pins,
        limit=limit,
        beam=beam,
        metrics=how.metrics,
        tokenize=how.tokenize,
        edges=how.edges,
        resamples=how.resamples,
        seed=how.seed,
        device=device,
        tell=_tell,
    )


def _compare(
    runs: list[Path], texts: tuple[str, str], limit: int | None, beam: int, device: str, how: _Shared
) -> RunReport | Comparison:
    from regard.evaluate.compare import compare

    return compare(
        runs,
        *texts,
        limit=limit,
        beam=beam,
        metrics=how.metrics,
        tokenize=how.tokenize,
        edges=how.edges,
        resamples=how.resamples,
        seed=how.seed,
        device=device,
        tell=_tell,
    )


def _beside(runs: list[Path]) -> list[Path]:
    """Where a page goes if nobody says."""
    if len(runs) > 1:
        raise SettingsError("--out: missing; the page of several runs belongs to none of them, so name a file")
    from regard.runs.folder import packaged, resolve

    return [Path("demo-report.html") if (folder := resolve(runs[0])) == packaged() else folder / "report.html"]


def _tell(line: str) -> None:
    say(line)
