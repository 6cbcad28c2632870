"""``regard meaning``"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import put, say, show
from regard.cli.verb import common
from regard.errors import DataError
from regard.metrics.numbers import signed

if TYPE_CHECKING:
    from regard.explain.meaning import Compared


def meaning(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    word: Annotated[str, typer.Argument(help="The word to follow.")],
    sentences: Annotated[list[str], typer.Argument(help="Sentences that have it.")],
    control: Annotated[str, typer.Option(help="A word of the same sentences to compare with, such as 'the'.")] = "",
    out: Annotated[
        list[Path] | None, typer.Option(help="Write a page (.html) or the way through the layers (.svg); again.")
    ] = None,
) -> None:
    """One word in several sentences: how alike its vectors are, layer by layer, and how each is translated."""
    from regard.cli.streams import suffix_of, write_whole
    from regard.explain.meaning import compare_meanings
    from regard.show.page import meaning_page, meaning_svg
    from regard.tasks.load import load_predictor

    files = {path: suffix_of(path, (".html", ".svg")) for path in out or ()}
    asked = common(context)
    predictor = load_predictor(run, asked.place)
    found = compare_meanings(predictor, word, sentences, control=control, folder=run)
    if control and not found.of_control():
        raise DataError(f"control = {control}: stands in one of the sentences; a word in two would be right")
    for path, suffix in files.items():
        write_whole(path, meaning_page(found) if suffix == ".html" else meaning_svg(found))
    if asked.json:
        put(json.dumps(found.numbers(), ensure_ascii=False))
    elif not files:
        _print(found)


def _print(found: Compared) -> None:
    from rich.text import Text

    lines: list[Text | str] = []
    for number, place in enumerate(found.places, start=1):
        lines.append(f"{number:>3}  {place.sentence}")
        whole = f"({place.whole})" if place.whole else ""
        if place.translation or whole:
            gap = " " if place.translation and whole else ""
            lines.append(Text.assemble("     → ", (place.translation, "bold green"), gap, (whole, "dim")))
    if len(found.places) > 1:
        head, *rows = _table(found)
        lines += ["", Text(head, "bold"), *rows]
    lines += ["", Text("nearest at the last layer", "bold")]
    for number, near in enumerate(found.neighbours[-1][: len(found.places)], start=1):
        lines.append(f"{number:>3}  " + ", ".join(f"{one.word} {signed(one.cosine)}" for one in near))
    show(lines)
    say(f"neighbours: among {found.among}")
    say("cosines: of the word's vectors in every pair of the sentences; 1 is the same direction")


def _table(found: Compared) -> list[str]:
    """A line for each layer, a column for each two sentences."""
    names = [f"{one + 1}–{other + 1}" for one, other in found.pairs]
    columns = [found.of_pair(pair) for pair in found.pairs]
    if control := found.of_control():
        names, columns = [*names, found.control], [*columns, control]
    widths = [max(6, len(name) + 2) for name in names]
    left = max(map(len, found.layers))
    head = f"{'cosine':{left}}" + "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    rows = [
        f"{layer:{left}}"
        + "".join(f"{signed(column[place]):>{width}}" for column, width in zip(columns, widths, strict=True))
        for place, layer in enumerate(found.layers)
    ]
    return [head, *rows]
