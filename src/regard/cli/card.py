"""``regard card``: what a run is, on a page that can go with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.runs import RunFolder
from regard.cli.streams import say
from regard.cli.verb import common


def card(
    context: typer.Context,
    run: RunFolder,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="What regard evaluate RUN --json printed; the run keeps it for later cards."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write it; default RUN/README.md.")] = None,
) -> None:
    """Write a model card: data and its hashes, licences, scores with their signatures, settings, limits."""
    from regard.runs.card import remember_scores, write_card

    if scores:
        remember_scores(run, scores)
    path = write_card(run, out)
    if common(context).json:
        print(json.dumps({"card": str(path)}))
        return
    say(f"{path}: written")
