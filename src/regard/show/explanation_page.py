"""The explanation of one output as a self-contained HTML file.

Hovering over a word highlights the words linked with it, by rules of CSS; the heat map below shows the same links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from regard.errors import ModelError
from regard.explain.attribution import METHODS
from regard.explain.heatmap import HeatMap
from regard.explain.look import Looked
from regard.explain.statistics import statistics
from regard.explain.views import (
    NAMES,
    View,
    difference_map,
    first_view,
    gate_maps,
    head_maps,
    masking_map,
    state_maps,
)
from regard.show.page import render
from regard.show.pictures import Grid
from regard.show.sentences import lighting, words_line
from regard.text.words import legible

MOST_CELLS, MOST_VALUES = 250_000, 100_000  # of the small maps: drawn, and drawn with their numbers


def explanation_page(found: Looked, view: View | None = None, picture: HeatMap | None = None) -> str:
    """The whole page; ``picture`` replaces the first picture, that of the view."""
    shown, read = view or first_view(found.trace), " ".join(found.read.words)
    picture = picture or found.picture(shown)
    grids, all_of_them = _heads(found, shown)
    source, output = _linked(found)
    content = {
        "title": f"{read} → {found.output}",
        "data": explanation_numbers(found, picture),
        "found": found,
        "read": read,
        "source": source,
        "output": output,
        "lighting": lighting(len(found.trace.target.words)),
        "heading": _heading(found, picture),
        "outcome": found.difference,
        "picture": picture,
        "importance": _importance(found) if found.speaks else [],
        "grids": grids,
        "all_heads": all_of_them,
        "recurrent": _recurrent(found),
        "steps": list(_steps(found, read)),
        "statistics": [(NAMES[side], statistics(found.trace, side)) for side in found.sides],
        "side": NAMES.get(shown.side),
    }
    return render("explanation.html", content)


def _heading(found: Looked, picture: HeatMap) -> str:
    if picture.title in METHODS:
        return f"What each word did: {picture.title}"
    return "Where it looked" if found.sides else "What it depends on"


def corpus_page(pages: Sequence[tuple[Looked, HeatMap]], name: str) -> str:
    """Many sentences on one page, each with its links and its map."""
    content = {
        "title": f"{name} from inside",
        "data": [explanation_numbers(found, picture) for found, picture in pages],
        "name": name,
        "pages": [(found, picture, *_linked(found)) for found, picture in pages],
        "first": pages[0][0],
        "lighting": lighting(max(len(found.trace.target.words) for found, _ in pages)),
    }
    return render("corpus.html", content)


def _linked(found: Looked) -> tuple[Markup, Markup]:
    """Source and output, with linked words marked alike."""
    by_source: dict[int, list[int]] = {}
    for source, target in found.word_links:
        by_source.setdefault(source, []).append(target)
    own = {target: [target] for _, target in found.word_links}
    return words_line(found.read.words, by_source, {}, stop=0), words_line(found.trace.target.words, own, {}, stop=0)


def _importance(found: Looked) -> list[HeatMap]:
    """The effect of masking each word and, with cross-attention, its difference from attention."""
    pictures = [masking_map(found.trace, found.effect)]
    if found.reader is not None and "cross" in found.sides:
        pictures.append(difference_map(found.trace, found.reader, found.effect))
    return pictures


def _heads(found: Looked, shown: View) -> tuple[list[Grid], bool]:
    """Small maps of every head, and whether all attentions are shown. For a large model and a long sentence it is only
    the attention shown above."""
    several = [side for side in found.sides if found.trace.weights(side).shape[:2].numel() > 1]
    sizes = {side: found.trace.weights(side).numel() for side in several}
    kept = several if sum(sizes.values()) <= MOST_CELLS else [side for side in several if side == shown.side]
    views = [(side, View(side, words=shown.words, special=True)) for side in kept]
    grids = [Grid(NAMES[side], head_maps(found.trace, view), sizes[side] <= MOST_VALUES) for side, view in views]
    return grids, kept == several


def _recurrent(found: Looked) -> list[HeatMap]:
    pictures: list[HeatMap] = []
    for make in (gate_maps, state_maps):
        try:
            pictures += make(found.trace)
        except ModelError:  # a plain RNN has no gates, a Transformer no states of this kind
            continue
    return pictures


def _steps(found: Looked, text: str) -> Iterator[tuple[str, str, float, int, Sequence[tuple[str, float]]]]:
    """Each step: the piece read, the piece written, its probability and rank, and the most probable pieces."""
    trace = found.trace
    whole = trace.task == "label" and len(trace.target) != len(trace.source)  # a classifier reads all of it for its one
    read = [text] * len(trace.target) if whole else trace.inputs[: len(trace.target)]
    for step, (before, wrote) in enumerate(zip(read, trace.target.pieces, strict=True)):
        best = zip(map(legible, trace.top_pieces[step]), trace.top_log_probability[step].exp().tolist(), strict=True)
        chance, rank = float(trace.log_probability[step].exp()), int(trace.rank[step]) + 1
        yield legible(before), legible(wrote), chance, rank, list(best)


def explanation_numbers(found: Looked, picture: HeatMap) -> dict[str, Any]:
    trace = found.trace
    return {
        "source": list(trace.source.words),
        "target": list(trace.target.words),
        "source_pieces": list(trace.source.pieces),
        "target_pieces": list(trace.target.pieces),
        "log_probability": trace.log_probability.tolist(),
        "rank": trace.rank.tolist(),
        "links": sorted(map(list, found.word_links)),
        "picture": picture_numbers(picture),
    }


def picture_numbers(picture: HeatMap) -> dict[str, Any]:
    """A heat map as plain data."""
    return {
        "title": picture.title,
        "origin": picture.origin,
        "rows": list(picture.rows),
        "columns": list(picture.columns),
        "values": [list(row) for row in picture.values],
    }
