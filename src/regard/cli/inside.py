"""``regard beam``, ``regard walk`` and ``regard meaning``: a search, the mathematics of a sentence, a word by layer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from regard.cli.streams import destination, one_line, opened, put, say, show, suffix_of, terminal_width, write_whole
from regard.cli.verb import Sentence, called, common, only_one
from regard.errors import DataError, SettingsError, did_you_mean
from regard.metrics.numbers import probability, signed

if TYPE_CHECKING:
    from regard.explain.beam import Searched
    from regard.explain.meaning import Compared
    from regard.explain.walkthrough.walk import SideName

SIDES = ("all", "encoder", "decoder", "cross")
NARROWEST, WIDEST = 60, 120  # columns of a walkthrough


def beam(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    words: Sentence,
    out: Annotated[Path | None, typer.Option(help="Write the tree as one page, .html.")] = None,
) -> None:
    """The search for one output as a tree: what was kept, what was pruned, and why."""
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
        _print_tree(found)


def _print_tree(tree: Searched) -> None:
    from rich.text import Text

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
    """The computation for one sentence with the run's own numbers, step by step: idea, formula, numbers, code."""
    if side not in SIDES:
        raise SettingsError(f"--side = {side}: no such side; {did_you_mean(side, SIDES)}")
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


def meaning(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    word: Annotated[str, typer.Argument(help="The word to follow.")],
    sentences: Annotated[list[str], typer.Argument(help="Sentences that have it.")],
    control: Annotated[str, typer.Option(help="A word of the same sentences to compare with, such as 'the'.")] = "",
    out: Annotated[
        list[Path] | None,
        typer.Option(help="Write a page (.html) or the points of each layer (.svg); repeatable."),
    ] = None,
) -> None:
    """One word in several sentences: the similarity of its vectors layer by layer, and its translations."""
    from regard.explain.meaning import compare_meanings
    from regard.show.page import meaning_page, meaning_svg
    from regard.tasks.load import load_predictor

    files = {path: suffix_of(path, (".html", ".svg")) for path in out or ()}
    asked = common(context)
    predictor = load_predictor(run, asked.place)
    found = compare_meanings(predictor, word, sentences, control=control, folder=run)
    if control and not found.of_control():
        raise DataError(f"control = {control}: is in only one of the sentences; give a word of two or more")
    for path, suffix in files.items():
        write_whole(path, meaning_page(found) if suffix == ".html" else meaning_svg(found))
    if asked.json:
        put(json.dumps(found.numbers(), ensure_ascii=False))
    elif not files:
        _print_meaning(found)


def _print_meaning(found: Compared) -> None:
    from rich.text import Text

    lines: list[Text | str] = []
    missing = "no link" if any(place.translation for place in found.places) else ""  # a class is of no single word
    for number, place in enumerate(found.places, start=1):
        lines.append(f"{number:>3}  {place.sentence}")
        whole, became = f"({place.whole})" if place.whole else "", place.translation or missing
        if became or whole:
            gap = " " if became and whole else ""
            lines.append(Text.assemble("     → ", (became, "bold green"), gap, (whole, "dim")))
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
    """A line for each layer, a column for each pair of sentences."""
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
