"""``regard compare``"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.progress import EVERY, Lines
from regard.cli.streams import put, say
from regard.errors import SettingsError


def compare(
    runs: Annotated[list[Path] | None, typer.Argument(help="Two or more run folders.")] = None,
    source: Annotated[str, typer.Option(help="Text to translate; without it, a test that all runs share.")] = "",
    target: Annotated[str, typer.Option(help="Its reference translation, line by line.")] = "",
    out: Annotated[
        list[Path] | None, typer.Option(help="Write a page (.html) or the numbers (.json); may be given twice.")
    ] = None,
    texts: Annotated[Path | None, typer.Option(help="A folder for all texts, one sentence a line.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    limit: Annotated[int | None, typer.Option(help="Use at most so many sentences.")] = None,
    metrics: Annotated[str, typer.Option(help="bleu, chrf, chrf++, ter; the first decides.")] = "bleu,chrf",
    tokenize: Annotated[str, typer.Option(help="BLEU's tokenizer: 13a, intl, char, zh, none.")] = "13a",
    edges: Annotated[str, typer.Option(help="Where groups of source lengths end, in words: 10,20,30.")] = "",
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.")] = 1000,
    trials: Annotated[int, typer.Option(help="Trials of the approximate randomisation.")] = 10_000,
    examples: Annotated[int, typer.Option(help="Sentences to show where the runs differ most.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the tests; the default is sacreBLEU's.")] = 12345,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    every: Annotated[float, typer.Option(help="Seconds between two lines of progress in a log.")] = EVERY,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON on stdout.")] = False,
) -> None:
    """Compare runs on one text: scores, paired tests, by length, most-differing sentences, cost."""
    from regard.evaluate import compare as comparing
    from regard.evaluate.saving import check_suffix

    for path in out or []:
        check_suffix(path)
    comparison = comparing.compare(
        runs or [],
        source,
        target,
        limit=limit,
        beam=beam,
        metrics=[name.strip() for name in metrics.split(",")],
        tokenize=tokenize,
        edges=whole_numbers(edges),
        resamples=resamples,
        trials=trials,
        examples=examples,
        seed=seed,
        device=device,
        texts=texts or "",
        tell=_tell,
        progress=Lines("translated", every),
    )
    _tell(str(comparison))
    for path in out or []:
        comparison.save(path)
        _tell(f"written: {path}")
    if not out:
        _tell("by length, all tests and sentences side by side: add --out compare.html")
    if as_json:
        put(json.dumps(comparison.as_json(), ensure_ascii=False))


def whole_numbers(words: str) -> list[int]:
    """``10,20,30``"""
    try:
        return [int(word) for word in words.split(",") if word.strip()]
    except ValueError:
        raise SettingsError(f"--edges = {words}: not whole numbers; write them as 10,20,30") from None


def _tell(line: str) -> None:
    say(line)
