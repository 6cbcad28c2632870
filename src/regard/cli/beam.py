"""``regard beam``"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.verb import Sentence, called, common, only_one

if TYPE_CHECKING:
    from regard.explain.beam import Searched


def beam(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    words: Sentence,
    out: Annotated[Path | None, typer.Option(help="Write the tree as one page, .html.")] = None,
) -> None:
    """The search for one output as a tree: what was kept, what was pruned, and why."""
    from regard.cli.streams import opened, put, suffix_of, write_whole
    from regard.explain.beam import drawn, search_tree
    from regard.runs.folder import Run
    from regard.show.page import beam_page
    from regard.tasks.load import load_predictor

    overrides, text = only_one(words, "TEXT")
    asked, decode = common(context), called("beam", overrides).decode
    rule = drawn(decode)
    if out is not None:
        suffix_of(out, (".html",))
    predictor, name = load_predictor(run, asked.place), Run.open(run).folder.name
    found = search_tree(predictor, opened(run, [text])[0], rule, prefix=decode.prefix, name=name)
    if out is not None:
        write_whole(out, beam_page(found))
    if asked.json:
        put(json.dumps(found.numbers(), ensure_ascii=False))
    elif out is None:
        _print(found)


def _print(tree: Searched) -> None:
    from rich.text import Text

    from regard.cli.streams import one_line, say, show, terminal_width
    from regard.metrics.numbers import probability, signed
    from regard.show.svg_tree import PRUNED
    from regard.show.terminal import lines

    show([Text(tree.text, "bold"), "", *lines(tree, width=terminal_width())])
    pruned = sum(node.fate == "pruned" for node in tree.nodes)
    say(
        f"● went on, ✓ on the way to the output, ■ finished, ○ left, × pruned ({pruned:,} of {len(tree.nodes) - 1:,}; "
        f"the best {PRUNED} of each step are shown, --json has all)"
    )
    show(["", Text("other beams", "bold")])
    for other in tree.beams:
        here = " (this one)" if other.beam == tree.beam else ""
        scores = f"{signed(other.log_probability, 3):>9}{signed(other.score, 3):>9}"
        text = one_line(other.text)
        line = f"{other.beam:>4}{probability(other.log_probability):>9}{scores}  {text}{here}"
        show([Text(line, "bold" if here else "")])
