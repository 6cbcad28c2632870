"""``regard explain``"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import one_line, put, say, suffix_of, terminal_width, write_whole
from regard.cli.verb import Sentence, called, common, only_one
from regard.errors import SettingsError
from regard.metrics.numbers import signed

if TYPE_CHECKING:
    from regard.explain.edits import Edit
    from regard.explain.explanation import Explanation
    from regard.explain.heatmap import HeatMap
    from regard.explain.views import View
    from regard.explain.whatif import EditOutcome

MANY = ("256", "truecolor", "windows")  # colours; with eight or sixteen, shades tell more
ALL = "all"  # heads, each by itself
SUFFIXES = (".html", ".svg", ".png", ".safetensors")


def explain(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    words: Sentence,
    target: Annotated[str | None, typer.Option(help="Look into this translation, not into the run's own.")] = None,
    side: Annotated[str | None, typer.Option(help="cross, encoder or decoder: whose attention.")] = None,
    layer: Annotated[int | None, typer.Option(help="A layer, from 1.")] = None,
    head: Annotated[str, typer.Option(help="A head, from 1; mean, best (the run's aligner) or all.")] = "best",
    pieces: Annotated[bool, typer.Option("--pieces", help="Show the pieces the model reads, not words.")] = False,
    special: Annotated[bool, typer.Option("--special", help="Show <end> and <start> too.")] = False,
    edit: Annotated[list[str] | None, typer.Option(help="What if: an edit as JSON, counting from 0; again.")] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write a page (.html), the picture (.svg, .png) or the trace (.safetensors, with a .json); again."
        ),
    ] = None,
) -> None:
    """Look into one sentence: where the model looked, as a heat map here, as a picture or as a page."""
    from regard.explain.explanation import first_view
    from regard.explain.look import Question, look
    from regard.explain.views import View
    from regard.tasks.load import load_predictor

    files, asked = {path: suffix_of(path, SUFFIXES) for path in out or ()}, common(context)
    overrides, text = only_one(words, "TEXT")
    decode = called("explain", overrides).decode if overrides else None
    question = Question(text, target, edits=_edits(edit or []), decode=decode)
    found = look(load_predictor(run, asked.place), question, run.name)
    shown = found.explanation
    chosen = View(side or first_view(shown.trace).side, layer, "mean" if head == ALL else head, not pieces, special)
    picture = shown.picture(chosen)
    for path, suffix in files.items():
        _save(path, suffix, shown, chosen, picture, found.outcome, every=head == ALL)
    if asked.json:
        put(json.dumps(_json(shown, picture, found.outcome), ensure_ascii=False))
    else:
        _print(shown, chosen, picture, found.outcome, every=head == ALL)


def _edits(given: list[str]) -> tuple[Edit, ...]:
    """Each a JSON object, or a list of them."""
    if not given:
        return ()
    from regard.explain.edits import from_data

    read: list[Any] = []
    for words in given:
        try:
            content = json.loads(words)
        except (ValueError, RecursionError):
            example = '{"kind": "mask-word", "word": 2}'
            raise SettingsError(f"--edit = {words[:40]}: is not JSON; {example} would be right") from None
        read += content if isinstance(content, list) else [content]
    return from_data(read)


def _save(
    path: Path,
    suffix: str,
    shown: Explanation,
    view: View,
    picture: HeatMap,
    outcome: EditOutcome | None,
    *,
    every: bool,
) -> None:
    from regard.explain.views import NAMES, head_maps
    from regard.show.explanation_page import explanation_page
    from regard.show.pictures import Grid
    from regard.show.png import save_png
    from regard.show.svg import document

    if suffix == ".html":
        return write_whole(path, explanation_page(shown, view, outcome))
    if suffix == ".safetensors":
        return shown.trace.save(path.with_suffix(suffix))
    title = f"{NAMES.get(view.side, '')}, every head: layer.head"
    drawn = Grid(title, head_maps(shown.trace, view)) if every else picture
    if suffix == ".svg":
        return write_whole(path, document(drawn))
    missing = save_png(drawn, path)
    say(f"wrote {path}")
    if missing:
        say(f"{path}: no font here has {' '.join(missing[:20])}; install one, such as Noto Sans")
    return None


def _print(shown: Explanation, view: View, picture: HeatMap, outcome: EditOutcome | None, *, every: bool) -> None:
    """The output and its heat map on stdout; where the numbers come from on stderr."""
    from rich.console import Console

    from regard.show.terminal import lines

    console = Console(highlight=False, markup=False, emoji=False)
    coloured = console.is_terminal and console.color_system in MANY and not os.environ.get("NO_COLOR")
    for line in _changes(outcome) if outcome else [one_line(shown.output)]:
        put(line)
    print()
    if every:
        put("\n".join(_table(shown, view)))
    else:
        for drawn in lines(picture, width=console.width if console.is_terminal else terminal_width(), colour=coloured):
            console.print(drawn, soft_wrap=True)
        say(f"{picture.unit}s: {picture.origin}")
    say(f"log-probability: {signed(shown.trace.score)} in {len(shown.trace.target)} steps")


def _changes(outcome: EditOutcome) -> list[str]:
    """What the edits did, in text and in log-probability."""
    before, after = outcome.texts
    scores = outcome.scores
    rows = [
        f"before            {signed(scores[0]):>8}  {before}",
        f"same, edited      {signed(scores[1]):>8}  {before}",
        f"anew, edited      {signed(scores[2]):>8}  {after}",
        f"difference        {signed(outcome.difference, sign='+'):>8}",
    ]
    found = [f"  {' '.join(old) or '(nothing)'} → {' '.join(new) or '(nothing)'}" for old, new in outcome.changes()]
    return rows + (found or ["  the words stay the same"])


def _table(shown: Explanation, view: View) -> list[str]:
    """Every head in a few numbers."""
    from regard.explain.statistics import statistics
    from regard.show.explanation_page import KINDS

    rows = [f"{'head':>6} {'entropy':>8} {'coverage':>9} {'distance':>9} {'diagonal':>9}  does"]
    for one in statistics(shown.trace, KINDS[view.side]):
        name, slope = f"{one.layer + 1}.{one.head + 1}", signed(one.diagonality)
        rows.append(f"{name:>6} {one.entropy:8.2f} {one.coverage:9.2f} {one.distance:9.2f} {slope:>9}  {one.role}")
    return [row.rstrip() for row in rows]


def _json(shown: Explanation, picture: HeatMap, outcome: EditOutcome | None) -> dict[str, Any]:
    from regard.show.explanation_page import explanation_numbers

    content = explanation_numbers(shown, picture)
    if outcome is not None:
        from regard.explain.edits import to_data

        content["what_if"] = {
            "edits": to_data(outcome.edits),
            "texts": list(outcome.texts),
            "log_probability": list(outcome.scores),
            "difference": outcome.difference,
            "changes": [[list(old), list(new)] for old, new in outcome.changes()],
            "fall": outcome.fall.tolist(),
        }
    return content
