"""``regard score``"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import put
from regard.cli.verb import common

if TYPE_CHECKING:
    from regard.evaluate.evaluate import Scored


def score(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    source: Annotated[Path, typer.Option(help="Texts, one a line (also .gz, .zst).")],
    target: Annotated[Path, typer.Option(help="The translations to score, line by line.")],
    tokens: Annotated[bool, typer.Option("--tokens", help="Also the log-probability of every piece.")] = False,
) -> None:
    """How probable a model finds given translations: natural log-probabilities, one line for each pair."""
    from regard.cli.progress import LineCounter
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
        lines, pieces, total = lines + 1, pieces + len(scored.pieces), total + scored.total
        put(_json(scored, lines, tokens) if asked.json else _text(scored, tokens))
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


def _text(scored: Scored, tokens: bool) -> str:
    parts = zip(scored.pieces, scored.log_probabilities, strict=True)
    return "\t".join((f"{scored.total:.4f}", *(f"{piece}={value:.4f}" for piece, value in parts if tokens)))


def _json(scored: Scored, line: int, tokens: bool) -> str:
    shown: dict[str, object] = {"line": line, "log_probability": scored.total, "pieces": len(scored.pieces)}
    if tokens:
        parts = zip(scored.pieces, scored.log_probabilities, strict=True)
        shown["tokens"] = [{"piece": piece, "log_probability": value} for piece, value in parts]
    return json.dumps(shown, ensure_ascii=False)
