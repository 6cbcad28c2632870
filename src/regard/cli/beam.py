"""``regard beam``"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.explain.beam import Searched


def beam(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    text: Annotated[
        str, typer.Argument(help="The sentence to search a translation for, or what a language model goes on from.")
    ],
    width: Annotated[int, typer.Option("--beam", help="Hypotheses kept at each step.")] = 5,
    length_penalty: Annotated[float, typer.Option(help="Scores are log p / length^penalty.")] = 1.0,
    html: Annotated[Path | None, typer.Option(help="Write the tree as one page.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="The whole tree as one JSON object.")] = False,
) -> None:
    """The search for one output as a tree: what was kept, what was pruned, and why."""
    from regard.cli.streams import put, write_whole
    from regard.decode.rules import Beam
    from regard.device import pick_device
    from regard.explain.beam import search_tree
    from regard.runs.folder import Run
    from regard.show.beam_page import beam_page
    from regard.tasks.load import load_predictor

    rule = Beam(width, length_penalty)
    predictor, name = load_predictor(run, str(pick_device(device))), Run.open(run).folder.name
    found = search_tree(predictor, text, rule, name=name)
    if html is not None:
        write_whole(html, beam_page(found))
    if as_json:
        put(json.dumps(found.numbers(), ensure_ascii=False))
    elif html is None:
        _print(found)


def _print(tree: Searched) -> None:
    from rich.text import Text

    from regard.cli.streams import say, show, terminal_width
    from regard.show.beam_terminal import tree_lines
    from regard.show.tree import PRUNED, number, percent

    show([Text(tree.text, "bold"), "", *tree_lines(tree, terminal_width())])
    pruned = sum(node.fate == "pruned" for node in tree.nodes)
    say(
        f"● went on, ✓ on the way to the output, ■ finished, ○ left, × pruned ({pruned:,} of {len(tree.nodes) - 1:,}; "
        f"the best {PRUNED} of each step are shown, --json has all)"
    )
    show(["", Text("other beams", "bold")])
    for other in tree.beams:
        here = " (this one)" if other.beam == tree.beam else ""
        scores = f"{percent(other.log_probability):>9}{number(other.log_probability):>9}{number(other.score):>9}"
        line = f"{other.beam:>4}{scores}  {' '.join(other.text.splitlines())}{here}"
        show([Text(line, "bold" if here else "")])
