"""``regard meaning``"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import put, say, show
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.explain.meaning import Compared


def meaning(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    word: Annotated[str, typer.Argument(help="The word to follow.")],
    sentences: Annotated[list[str], typer.Argument(help="Sentences that have it.")],
    control: Annotated[str, typer.Option(help="A word of the same sentences to compare with, such as 'the'.")] = "",
    html: Annotated[Path | None, typer.Option(help="Write everything as one page.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the way through the layers as SVG.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="The numbers as one JSON object.")] = False,
) -> None:
    """One word in several sentences: how alike its vectors are, layer by layer, and how each is translated."""
    from regard.cli.streams import write_whole
    from regard.device import pick_device
    from regard.explain.meaning import compare_meanings
    from regard.show.meaning_page import meaning_page, meaning_svg
    from regard.tasks.load import load_predictor

    predictor = load_predictor(run, str(pick_device(device)))
    found = compare_meanings(predictor, word, sentences, control=control, folder=run)
    if control and not found.of_control():
        raise DataError(f"control = {control}: stands in one of the sentences; a word in two would be right")
    if html is not None:
        write_whole(html, meaning_page(found))
    if svg is not None:
        write_whole(svg, meaning_svg(found))
    if as_json:
        put(json.dumps(found.numbers(), ensure_ascii=False))
    elif html is None and svg is None:
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
        lines.append(f"{number:>3}  " + ", ".join(f"{one.word} {_number(one.cosine)}" for one in near))
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
        + "".join(f"{_number(column[place]):>{width}}" for column, width in zip(columns, widths, strict=True))
        for place, layer in enumerate(found.layers)
    ]
    return [head, *rows]


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
