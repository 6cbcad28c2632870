"""``regard walk``"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from regard.cli.streams import put, say, show
from regard.cli.verb import Sentence, called, common, only_one
from regard.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from regard.explain.walkthrough.walk import SideName

SIDES = ("all", "encoder", "decoder", "cross")
NARROWEST, WIDEST = 60, 120


def walk(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    words: Sentence,
    layer: Annotated[int, typer.Option(help="The layer to walk through, counted from 1.")] = 1,
    head: Annotated[int, typer.Option(help="The attention head, counted from 1.")] = 1,
    word: Annotated[
        int, typer.Option(help="The word written, counted from 1; with --side encoder, the word read.")
    ] = 1,
    side: Annotated[str, typer.Option(help="all, encoder, decoder or cross (attention to the source).")] = "all",
    out: Annotated[Path | None, typer.Option(help="Write a Markdown page here, .md, formulas in TeX.")] = None,
) -> None:
    """The mathematics of one sentence with the run's own numbers: idea, formula, numbers, code, step by step."""
    if side not in SIDES:
        raise SettingsError(f"--side = {side}: no such side; {did_you_mean(side, SIDES)}")
    from regard.cli.streams import destination, opened, suffix_of
    from regard.explain.walkthrough import render
    from regard.explain.walkthrough.walk import NoSuchPlaceError, walk_text
    from regard.tasks.load import load_predictor

    if out is not None:
        suffix_of(out, (".md",))
    overrides, text = only_one(words, "TEXT")
    asked, decode = common(context), called("walk", overrides).decode if overrides else None
    predictor, seen = load_predictor(run, asked.place), opened(run, [text])[0]
    try:
        steps = walk_text(
            predictor, seen, layer=layer - 1, head=head - 1, word=word - 1, side=cast("SideName", side), decode=decode
        )
    except NoSuchPlaceError as problem:
        raise SettingsError(problem.line(first=1, flag=f"--{problem.name}")) from None
    if out is not None:
        with destination(out) as write:
            write(render.markdown(steps).rstrip("\n"))
        say(f"{len(steps)} steps: {out}")
    if asked.json:
        put(json.dumps(steps.to_dict(), ensure_ascii=False, allow_nan=False))
    elif out is None:
        width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size((100, 24)).columns))
        show(render.styled(line) for line in render.terminal(steps, width).split("\n"))
