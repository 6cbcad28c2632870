"""``regard walk``"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from regard.cli.streams import put, say, show
from regard.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from regard.explain.walkthrough.walk import SideName

SIDES = ("all", "encoder", "decoder", "cross")
NARROWEST, WIDEST = 60, 120


def walk(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    text: Annotated[str, typer.Argument(help="A sentence.")],
    layer: Annotated[int, typer.Option(help="The layer to walk through, counted from 1.")] = 1,
    head: Annotated[int, typer.Option(help="The attention head, counted from 1.")] = 1,
    word: Annotated[
        int, typer.Option(help="The word written, counted from 1; with --side encoder, the word read.")
    ] = 1,
    side: Annotated[str, typer.Option(help="all, encoder, decoder or cross (attention to the source).")] = "all",
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown page here, formulas in TeX.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: what is shown, by step.")] = False,
) -> None:
    """The mathematics of one sentence with the run's own numbers: idea, formula, numbers, code, step by step."""
    if side not in SIDES:
        raise SettingsError(f"--side = {side}: no such side; {did_you_mean(side, SIDES)}")
    from regard.cli.streams import destination
    from regard.device import pick_device
    from regard.explain.walk import walk_text
    from regard.explain.walkthrough import render
    from regard.explain.walkthrough.walk import NoSuchPlaceError
    from regard.tasks.load import load_predictor

    predictor = load_predictor(run, str(pick_device(device)))
    try:
        steps = walk_text(predictor, text, layer=layer - 1, head=head - 1, word=word - 1, side=cast("SideName", side))
    except NoSuchPlaceError as problem:
        raise SettingsError(problem.line(first=1, flag=f"--{problem.name}")) from None
    if markdown is not None:
        with destination(markdown) as write:
            write(render.markdown(steps).rstrip("\n"))
        say(f"{len(steps)} steps: {markdown}")
    if as_json:
        put(json.dumps(steps.to_dict(), ensure_ascii=False, allow_nan=False))
    elif markdown is None:
        width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size((100, 24)).columns))
        show(render.styled(line) for line in render.terminal(steps, width).split("\n"))
