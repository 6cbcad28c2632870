"""``regard explain``"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import one_line, opened, put, say, suffix_of, terminal_width, write_whole
from regard.cli.verb import Common, Sentence, apart, called, common, only_one
from regard.errors import DataError, SettingsError
from regard.metrics.numbers import signed

if TYPE_CHECKING:
    from regard.explain.edits import Difference, Edit
    from regard.explain.heatmap import HeatMap
    from regard.explain.importance import Attribution
    from regard.explain.look import Looked
    from regard.explain.views import View
    from regard.show.pictures import Grid
    from regard.tasks.load import Trained

MANY = ("256", "truecolor", "windows")  # terminals with enough colours; others get shades
ALL = "all"  # heads, each by itself
MANY_LINES = 100  # sentences of a corpus at the most
SUFFIXES = (".html", ".svg", ".png", ".safetensors")


def explain(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    words: Sentence = [],  # noqa: B006
    target: Annotated[str | None, typer.Option(help="Explain this translation, not the run's own.")] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Explain each line of this file instead of TEXT; --out makes one page.")
    ] = None,
    side: Annotated[str | None, typer.Option(help="cross, encoder or decoder: whose attention.")] = None,
    layer: Annotated[int | None, typer.Option(help="A layer, from 1.")] = None,
    head: Annotated[str, typer.Option(help="A head, from 1; mean, best (the run's aligner) or all.")] = "best",
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Show the pieces the model reads, <end> too, not words.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(help="Importance of words by masking, alti, … or 'gradient of entropy'; docs/looking-inside.md."),
    ] = None,
    against: Annotated[
        str | None, typer.Option("--not", help="Why not this word instead, or this other translation?")
    ] = None,
    edit: Annotated[list[str] | None, typer.Option(help="A what-if edit as JSON, counting from 0; repeatable.")] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write a page (.html), the picture (.svg, .png) or the trace (.safetensors, with a .json); repeatable."
        ),
    ] = None,
) -> None:
    """Explain one output: the most faithful map if regard faithful measured it, else the attention."""
    from regard.explain.look import look
    from regard.explain.views import View, first_view
    from regard.show.svg_vectors import grounded
    from regard.tasks.load import load_predictor

    files, asked = {path: suffix_of(path, SUFFIXES) for path in out or ()}, common(context)
    overrides, texts = _texts(words, corpus, target, files)
    if _forecasts(run, texts, by or "", files, asked):
        return
    decode = called("explain", overrides).decode if overrides else None
    edits = _edits(edit or [])
    model = load_predictor(run, asked.place)
    pages: list[tuple[Looked, HeatMap]] = []
    one = partial(look, model, target=target, edits=edits, decode=decode, name=run.name)
    for found in map(one, opened(run, texts)) if corpus is None else _possible(one, opened(run, texts)):
        chosen = View(side or first_view(found.trace).side, layer, "mean" if head == ALL else head, not pieces, pieces)
        usual = side is None and layer is None and head == "best" and by is None and against is None
        weighed = _weighed(model, found, chosen, by, against, every=head == ALL, usual=usual)
        plain = found.picture(chosen) if weighed is None else weighed.picture(prefix=side == "decoder")
        pages.append((found, picture := grounded(plain, found)))
        for path, suffix in () if corpus else files.items():
            _save(path, suffix, found, chosen, picture, every=head == ALL)
        if asked.json:
            put(json.dumps(_json(found, picture, weighed), ensure_ascii=False))
        elif corpus is None or not files:
            _print(found, chosen, picture, every=head == ALL)
            for line in _remarks(found, weighed, by):
                say(line)
    if corpus:
        _write_pages(pages, corpus, files)


def _possible(look: Callable[[str], Looked], texts: list[str]) -> Iterator[Looked]:
    """Of many sentences those that can be looked into; of the others, why not."""
    for text in texts:
        try:
            yield look(text)
        except DataError as problem:
            say(f"left out: {problem}")


def _write_pages(pages: list[tuple[Looked, HeatMap]], corpus: Path, files: dict[Path, str]) -> None:
    from regard.show.explanation_page import corpus_page

    if not pages:
        raise DataError(f"{corpus}: has no sentence that can be looked into; give one with words that the run knows")
    for path in files:
        write_whole(path, corpus_page(pages, str(corpus)))


def _forecasts(run: Path, texts: list[str], by: str, files: dict[Path, str], asked: Common) -> bool:
    """Where a run forecasts: the forecast, and which moments it hangs on. Whether it does."""
    from regard.runs.folder import Run

    if Run.open(run).settings.task != "forecast":
        return False
    import numpy as np

    from regard.explain.forecast import over_time
    from regard.show.page import forecast_page
    from regard.tasks.forecast import open_forecaster
    from regard.text.vectors import written

    forecaster = open_forecaster(Run.open(run), asked.place)
    for text in opened(run, texts):
        found = over_time(forecaster, text, by, run.name)
        picture = found.picture()
        for path, suffix in files.items():
            if suffix == ".html":
                write_whole(path, forecast_page(found))
            elif suffix == ".safetensors":
                raise SettingsError(f"--out = {path}: a forecast has no trace; use .html, .svg or .png")
            else:
                _draw(path, suffix, picture)
        if asked.json:
            put(found.to_json().decode())
        else:
            put(written(np.array(found.forecast)))
            _show(picture)
    return True


def _texts(
    words: list[str], corpus: Path | None, target: str | None, files: dict[Path, str]
) -> tuple[list[str], list[str]]:
    """The settings, and the texts: one sentence, or the first lines of a file."""
    if corpus is None:
        overrides, text = only_one(words, "TEXT")
        return overrides, [text]
    from regard.data.lines import read_lines

    overrides, rest = apart(words)
    if rest or target is not None:
        raise SettingsError(f"--corpus = {corpus}: replaces TEXT and --target; leave these out")
    if any(suffix != ".html" for suffix in files.values()):
        raise SettingsError("--out: a corpus makes one page; a name that ends in .html would be right")
    lines = [line for line in read_lines(corpus) if line.strip()]
    if not lines:
        raise DataError(f"{corpus}: has no sentence; give at least one")
    if len(lines) > MANY_LINES:
        say(f"{corpus}: the first {MANY_LINES} of {len(lines):,} sentences")
    return overrides, lines[:MANY_LINES]


def _remarks(found: Looked, weighed: Attribution | None, by: str | None) -> list[str]:
    """Remarks on a map: why it is shown, how far apart two words were, and the source's share."""
    lines = list[str]()
    if found.measured is not None:
        shown = "attention" if weighed is None else weighed.method
        if weighed is not None and by is None and not weighed.against:
            lines.append(f"{found.measured.best}: {found.measured.told}; --by has others")
        lines += [line for line in [found.measured.caution(shown)] if line]
    if weighed is None:
        return lines
    if weighed.step is not None:
        apart, word = signed(float(weighed.values[0]), sign="+"), weighed.rows[0]
        lines.append(f"{word}, not {weighed.against}: {apart} nats of log-probability at step {weighed.step + 1}")
    if weighed.source_share is not None and len(weighed.source_share):
        lines.append(f"the source's share of all: {float(weighed.source_share.mean()):.0%}")
    return lines


def _weighed(
    model: Trained, found: Looked, view: View, by: str | None, against: str | None, *, every: bool, usual: bool
) -> Attribution | None:
    """The attribution that ``--by`` and ``--not`` ask for, else the one measured to be best, if any."""
    from regard.explain.importance import attribute, most_faithful

    if usual and found.measured is not None:
        return most_faithful(model, found, view)
    if by is None and against is None:
        return None
    if every:
        raise SettingsError("--head = all: --by makes one map of all heads; use only one of the two")
    method, _, of = (by or "masking").partition(" of ")
    head = view.head if method.startswith("attention") else "best"
    return attribute(
        model,
        found,
        method,
        of or "log-probability",
        against or "",
        layer=view.layer,
        head=head,
        words=view.words,
        special=view.special,
    )


def _edits(given: list[str]) -> tuple[Edit, ...]:
    """Edits from JSON objects, or lists of them."""
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


def _save(path: Path, suffix: str, shown: Looked, view: View, picture: HeatMap, *, every: bool) -> None:
    from regard.explain.views import NAMES, head_maps
    from regard.show.explanation_page import explanation_page
    from regard.show.pictures import Grid

    if suffix == ".html":
        return write_whole(path, explanation_page(shown, view, picture))
    if suffix == ".safetensors":
        return shown.trace.save(path.with_suffix(suffix))
    title = f"{NAMES.get(view.side, '')}, every head: layer.head"
    return _draw(path, suffix, Grid(title, head_maps(shown.trace, view)) if every else picture)


def _draw(path: Path, suffix: str, drawn: HeatMap | Grid) -> None:
    from regard.show.png import save_png
    from regard.show.svg import document

    if suffix == ".svg":
        return write_whole(path, document(drawn))
    missing = save_png(drawn, path)
    say(f"wrote {path}")
    if missing:
        say(f"{path}: no font here has {' '.join(missing[:20])}; install one, such as Noto Sans")
    return None


def _print(shown: Looked, view: View, picture: HeatMap, *, every: bool) -> None:
    """Print the output and its heat map on stdout, and the origin of the numbers on stderr."""
    for line in _changes(shown.difference) if shown.difference else [one_line(shown.output)]:
        put(line)
    print()
    if every:
        put("\n".join(_table(shown, view)))
    else:
        _show(picture)
    count = len(shown.trace.steps)
    say(f"log-probability: {signed(shown.trace.score)} in {count} step{'' if count == 1 else 's'}")


def _show(picture: HeatMap) -> None:
    """A heat map in the terminal."""
    from rich.console import Console

    from regard.show.terminal import lines

    console = Console(highlight=False, markup=False, emoji=False)
    coloured = console.is_terminal and console.color_system in MANY and not os.environ.get("NO_COLOR")
    for drawn in lines(picture, width=console.width if console.is_terminal else terminal_width(), colour=coloured):
        console.print(drawn, soft_wrap=True)
    plural = picture.unit if picture.unit in ("nats", "probability") else f"{picture.unit}s"
    say(f"{plural}: {picture.origin}")


def _changes(outcome: Difference) -> list[str]:
    """The effect of edits on the text and its log-probability."""
    told = ("before", outcome.before), ("same, edited", outcome.same), ("anew, edited", outcome.after)
    rows = [f"{name:<17} {signed(one.log_probability):>8}  {one.text}" for name, one in told]
    rows.append(f"difference        {signed(outcome.change_in_log_probability, sign='+'):>8}")
    words = [(" ".join(change["before"]), " ".join(change["after"])) for change in outcome.changes]
    found = [f"  {old or '(nothing)'} → {new or '(nothing)'}" for old, new in words]
    return rows + (found or ["  the words stay the same"])


def _table(shown: Looked, view: View) -> list[str]:
    """A line of statistics for every head."""
    from regard.explain.statistics import statistics

    rows = [f"{'head':>6} {'entropy':>8} {'coverage':>9} {'distance':>9} {'diagonal':>9}  does"]
    for one in statistics(shown.trace, view.side):
        name, slope = f"{one.layer + 1}.{one.head + 1}", signed(one.diagonality)
        rows.append(f"{name:>6} {one.entropy:8.2f} {one.coverage:9.2f} {one.distance:9.2f} {slope:>9}  {one.role}")
    return [row.rstrip() for row in rows]


def _json(shown: Looked, picture: HeatMap, weighed: Attribution | None) -> dict[str, Any]:
    from regard.show.explanation_page import explanation_numbers

    content = explanation_numbers(shown, picture)
    if (measured := shown.measured) is not None:
        content["measured"] = {name: getattr(measured, name) for name in ("best", "links", "told")}
        content["caution"] = measured.caution("attention" if weighed is None else weighed.method)
    if weighed is not None:
        share = weighed.source_share
        content["attribution"] = {
            **{name: getattr(weighed, name) for name in ("method", "of", "against", "step", "origin", "unit", "rows")},
            "columns": weighed.columns,
            "read": weighed.read,
            "source": None if weighed.source is None else weighed.source.tolist(),
            "prefix": None if weighed.prefix is None else weighed.prefix.tolist(),
            "values": weighed.values.tolist(),
            "source_share": None if share is None else share.tolist(),
            "completeness_error": weighed.completeness_error,
            "quadrature_error": weighed.quadrature_error,
        }
    if (outcome := shown.difference) is not None:
        from regard.explain.edits import to_data

        content["what_if"] = {
            "edits": to_data(outcome.editor.edits),
            "texts": [outcome.before.text, outcome.after.text],
            "log_probability": [one.log_probability for one in (outcome.before, outcome.same, outcome.after)],
            "difference": outcome.change_in_log_probability,
            "changes": [[list(change["before"]), list(change["after"])] for change in outcome.changes],
            "fall": list(outcome.fall),
        }
    return content
