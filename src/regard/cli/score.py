"""``regard score``"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.streams import one_line, put
from regard.cli.verb import common


def score(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    source: Annotated[Path, typer.Option(help="Texts, one a line (also .gz, .zst).")],
    target: Annotated[Path, typer.Option(help="The translations to score, line by line.")],
) -> None:
    """Log-probabilities (natural) of given translations, a line a pair; --json: of each piece."""
    from regard.cli.streams import LineCounter
    from regard.data.encoding import PairEncoder
    from regard.data.readers import Corpus
    from regard.errors import DataError
    from regard.evaluate import evaluate as evaluation
    from regard.tasks.load import load

    asked = common(context)
    translator = load(run, device=asked.place)
    told = LineCounter("scored")
    lines, pieces, total = 0, 0, 0.0
    rows = Corpus((str(source), str(target))).rows(PairEncoder.names)
    for scored in evaluation.score(translator, (row for _, row in rows)):
        found = sum(value for _, value in scored)
        lines, pieces, total = lines + 1, pieces + len(scored), total + found
        tokens = [{"piece": piece, "log_probability": value} for piece, value in scored] if asked.json else []
        row = {"line": lines, "log_probability": found, "pieces": len(scored), "tokens": tokens}
        put(json.dumps(row, ensure_ascii=False) if asked.json else f"{found:.4f}")
        if lines % evaluation.CHUNK == 0:
            told(lines)
    if not lines:
        raise DataError(f"{source}: is empty; give at least one sentence")
    mean = total / pieces
    sums = {"lines": lines, "pieces": pieces, "log_probability": total, "mean": mean, "perplexity": math.exp(-mean)}
    if asked.json:
        print(json.dumps(sums))
    print(
        f"lines {lines:,}, pieces with <end> {pieces:,}, log-probability {total:,.2f}, "
        f"a piece {mean:.4f}, perplexity a piece {math.exp(-mean):,.3f}",
        file=sys.stderr,
    )


# ``regard doubt``


def doubt(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    source: Annotated[Path, typer.Argument(help="Texts, one a line (also .gz, .zst).")],
    target: Annotated[Path | None, typer.Argument(help="Their translations; without, the run translates them.")] = None,
) -> None:
    """Sort a corpus by the doubt of its translations, highest first: doubt, line, source, target, reasons."""
    from regard.cli.streams import LineCounter
    from regard.data.lines import read_lines
    from regard.data.readers import Corpus
    from regard.errors import DataError
    from regard.evaluate.evaluate import doubted
    from regard.tasks.load import load

    asked = common(context)
    translator = load(run, device=asked.place)
    rows: Iterable[tuple[str, str | None]]
    if target is None:
        rows = ((line, None) for line in read_lines(source))
    else:
        rows = ((row[0], row[1]) for _, row in Corpus((str(source), str(target))).rows(("source", "target")))
    found = doubted(translator, rows, LineCounter("replayed"))
    if not found:
        raise DataError(f"{source}: has no sentence; give at least one")
    for number, read, written, each in found:
        if asked.json:
            about = {"line": number, "source": read, "target": written, "doubt": asdict(each)}
            put(json.dumps(about, ensure_ascii=False))
        else:
            value = "" if each.value is None else f"{each.value:.4f}"
            put("\t".join((value, str(number), one_line(read), one_line(written), "; ".join(each.reasons))))
