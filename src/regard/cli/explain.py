"""``regard explain``"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import put, say, terminal_width, write_whole
from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.explain.edits import Edit
    from regard.explain.explanation import Explanation
    from regard.explain.heatmap import HeatMap
    from regard.explain.views import View
    from regard.explain.whatif import Outcome

MANY = ("256", "truecolor", "windows")  # colours; with eight or sixteen, shades tell more
ALL = "all"  # heads, each by itself


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    text: Annotated[str, typer.Argument(help="The sentence to look into.")],
    target: Annotated[str | None, typer.Option(help="Look into this translation, not into the run's own.")] = None,
    side: Annotated[str | None, typer.Option(help="cross, encoder or decoder: whose attention.")] = None,
    layer: Annotated[int | None, typer.Option(help="A layer, from 1.")] = None,
    head: Annotated[str, typer.Option(help="A head, from 1; mean, best (the run's aligner) or all.")] = "best",
    pieces: Annotated[bool, typer.Option("--pieces", help="Show the pieces the model reads, not words.")] = False,
    special: Annotated[bool, typer.Option("--special", help="Show <end> and <start> too.")] = False,
    edit: Annotated[list[str] | None, typer.Option(help="What if: an edit as JSON, counting from 0; again.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write everything as one page.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the picture as SVG.")] = None,
    png: Annotated[Path | None, typer.Option(help="Write the picture as PNG.")] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the trace: SAVE.safetensors and SAVE.json.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="The numbers as one JSON object.")] = False,
) -> None:
    """Look into one sentence: where the model looked, as a heat map here, as a picture or as a page."""
    from regard.device import pick_device
    from regard.explain.explanation import first_view
    from regard.explain.look import Question, look
    from regard.explain.views import View
    from regard.tasks.load import load_predictor

    question = Question(text, target, edits=_edits(edit or []))
    found = look(load_predictor(run, str(pick_device(device))), question, run.name)
    shown = found.explanation
    chosen = View(side or first_view(shown.trace).side, layer, "mean" if head == ALL else head, not pieces, special)
    picture = shown.picture(chosen)
    if save is not None:
        shown.trace.save(save)
    _files(shown, chosen, picture, found.outcome, html, svg, png, every=head == ALL)
    if as_json:
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


def _files(
    shown: Explanation,
    view: View,
    picture: HeatMap,
    outcome: Outcome | None,
    html: Path | None,
    svg: Path | None,
    png: Path | None,
    *,
    every: bool,
) -> None:
    from regard.explain.views import NAMES, head_maps
    from regard.show.explanation_page import explanation_page
    from regard.show.heatmap_svg import document, multiples_document
    from regard.show.png import save_multiples, save_png

    grid = head_maps(shown.trace, view) if every else []
    title = f"{NAMES.get(view.side, '')}, every head: layer.head"
    if svg is not None:
        write_whole(svg, multiples_document(grid, title=title) if every else document(picture))
    if png is not None:
        missing = save_multiples(grid, png, title=title) if every else save_png(picture, png)
        say(f"wrote {png}")
        if missing:
            say(f"{png}: no font here has {' '.join(missing[:20])}; install one, such as Noto Sans")
    if html is not None:
        write_whole(html, explanation_page(shown, view, outcome))


def _print(shown: Explanation, view: View, picture: HeatMap, outcome: Outcome | None, *, every: bool) -> None:
    """The output and its heat map on stdout; where the numbers come from on stderr."""
    from rich.console import Console

    from regard.show.terminal import lines

    console = Console(highlight=False, markup=False, emoji=False)
    coloured = console.is_terminal and console.color_system in MANY and not os.environ.get("NO_COLOR")
    for line in _changes(outcome) if outcome else [_one_line(shown.output)]:
        put(line)
    print()
    if every:
        put("\n".join(_table(shown, view)))
    else:
        for drawn in lines(picture, width=console.width if console.is_terminal else terminal_width(), colour=coloured):
            console.print(drawn, soft_wrap=True)
        say(f"{picture.unit}s: {picture.origin}")
    say(f"log-probability: {_signed(shown.trace.score)} in {len(shown.trace.target)} steps")


def _one_line(words: str) -> str:
    return " ".join(words.splitlines())


def _signed(value: float, sign: str = "") -> str:
    return f"{value:{sign}.2f}".replace("-", "−")


def _changes(outcome: Outcome) -> list[str]:
    """What the edits did, in text and in log-probability."""
    before, after = outcome.texts
    scores = outcome.scores
    rows = [
        f"before            {_signed(scores[0]):>8}  {before}",
        f"same, edited      {_signed(scores[1]):>8}  {before}",
        f"anew, edited      {_signed(scores[2]):>8}  {after}",
        f"difference        {_signed(outcome.difference, '+'):>8}",
    ]
    found = [f"  {' '.join(old) or '(nothing)'} → {' '.join(new) or '(nothing)'}" for old, new in outcome.changes()]
    return rows + (found or ["  the words stay the same"])


def _table(shown: Explanation, view: View) -> list[str]:
    """Every head in a few numbers."""
    from regard.explain.statistics import statistics
    from regard.show.explanation_page import KINDS

    rows = [f"{'head':>6} {'entropy':>8} {'coverage':>9} {'distance':>9} {'diagonal':>9}  does"]
    for one in statistics(shown.trace, KINDS[view.side]):
        name, slope = f"{one.layer + 1}.{one.head + 1}", _signed(one.diagonality)
        rows.append(f"{name:>6} {one.entropy:8.2f} {one.coverage:9.2f} {one.distance:9.2f} {slope:>9}  {one.role}")
    return [row.rstrip() for row in rows]


def _json(shown: Explanation, picture: HeatMap, outcome: Outcome | None) -> dict[str, Any]:
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
