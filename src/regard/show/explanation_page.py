"""One sentence from inside, as one HTML file: no request, no script that runs, readable on a telephone and on paper.

Hovering a word lights up those it is linked with. The links are rules of CSS, so this works without a script; whoever
cannot hover finds the same links in the heat map below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.errors import ModelError
from regard.explain.explanation import Explanation, first_view
from regard.explain.heatmap import HeatMap
from regard.explain.statistics import statistics
from regard.explain.views import (
    NAMES,
    View,
    difference_map,
    gate_maps,
    head_maps,
    masking_map,
    stacked,
    state_maps,
)
from regard.explain.whatif import Outcome
from regard.show import charts, heatmap_svg
from regard.show.heatmap_svg import heat_svg, multiples_svg
from regard.show.markup import Html, element, join
from regard.show.page import figure, items, page, paragraph, section, sentence, table
from regard.text.words import legible

STYLE = """
.words{font-size:1.15rem;line-height:2.1;margin:.2rem 0}
.words span.w{padding:.1em .25em;border-radius:4px;border-bottom:2px solid transparent}
.figures{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}
.figures figure{margin:.5rem 0;flex:1 1 26rem;min-width:0;max-width:100%}
figcaption{max-width:36rem}
details{margin:.75rem 0}
summary{cursor:pointer}
@media (max-width:640px){.stack td{white-space:normal;text-align:right;gap:1rem}.stack td.left{text-align:right}}
"""
LIT = "background:var(--mark);border-bottom-color:var(--under)"
FEW = 20  # columns that fit on a telephone
HALF = 440  # pixels of two figures beside one another
MOST_CELLS, MOST_VALUES = 250_000, 100_000  # of small multiples: drawn, and with their numbers
KINDS = {"cross": "cross", "encoder": "encoder_self", "decoder": "decoder_self"}


def explanation_page(found: Explanation, view: View | None = None, outcome: Outcome | None = None) -> str:
    """The whole page."""
    shown = view or first_view(found.trace)
    picture = found.picture(shown)
    body = [
        *_head(found),
        _links(found),
        *([_what_if(outcome)] if outcome else []),
        section("Where it looked" if found.sides else "What it hangs on", _figure(picture)),
        *_importance(found),
        *_heads(found, shown),
        *_recurrent(found),
        _steps(found),
        *_statistics(found),
        _notes(found),
    ]
    title = f"{_read_text(found)} → {found.output}"
    return page(
        title, body, explanation_numbers(found, picture), style=heatmap_svg.STYLE + STYLE + link_rules(found.links)
    )


def words_line(words: Sequence[str], kind: str) -> Html:
    """A sentence, each word to be pointed at or reached by the keyboard."""
    each = [element("span", {"class": f"w {kind}{place}", "tabindex": 0}, word) for place, word in enumerate(words)]
    return element("p", {"class": "words", "dir": "auto"}, join(each, " "))


def link_rules(links: frozenset[tuple[int, int]]) -> str:
    """CSS that lights up a word, and all it is linked with, while it is pointed at or has the focus."""
    rules: dict[str, set[str]] = {}
    for source, target in sorted(links):
        for one, other in ((f"a{source}", f"b{target}"), (f"b{target}", f"a{source}")):
            rules.setdefault(one, {one}).add(other)
    return "".join(
        ",".join(f".pair:has(.{one}:is(:hover,:focus)) .{name}" for name in sorted(names)) + f"{{{LIT}}}"
        for one, names in rules.items()
    )


def _read_text(found: Explanation) -> str:
    return " ".join(found.read.words)


def _head(found: Explanation) -> list[Html]:
    trace = found.trace
    count = len(trace.target)
    about = f"log-probability {_signed(trace.score)} in {count} steps, {_signed(trace.score / max(1, count))} a step"
    name = [element("code", {}, found.name), "; "] if found.name else []
    return [
        element("h1", {}, sentence(found.output)),
        paragraph("lead", sentence(_read_text(found))),
        paragraph("note", *name, about),
    ]


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _links(found: Explanation) -> Html:
    lines = [words_line(found.read.words, "a"), words_line(found.trace.target.words, "b")]
    note = f"Point at a word, or go there with the tab key, to see what it is linked with. Links: {found.links_origin}."
    return section("Which word comes from which", element("div", {"class": "pair"}, *lines), paragraph("note", note))


def _figure(picture: HeatMap, *, titled: bool = False, width: int = charts.WIDE) -> Html:
    """A heat map; one of few columns is drawn for narrow windows too, and one of many scrolls by itself there."""
    caption = (f"{picture.title}: " if titled else "") + picture.origin

    def draw(wanted: int) -> Html:
        drawn = heat_svg(picture, caption=False, width=min(width, wanted))
        return element("div", {"class": "scroll", "tabindex": 0}, drawn)

    if len(picture.columns) <= FEW:
        return figure(draw, caption)
    return element("figure", {}, draw(width), element("figcaption", {"class": "note"}, caption))


def _importance(found: Explanation) -> list[Html]:
    """Attention is where it looked; masking is what that was worth."""
    if not found.speaks:
        return []
    output = "label" if found.trace.task == "label" else "output word"
    pictures = [masking_map(found.trace, found.effect)]
    if found.aligner is not None and "cross" in found.sides:
        pictures.append(difference_map(found.trace, found.aligner, found.effect))
    words = (
        f"Where a model looks need not be what decides. Beside attention: how much less probable each {output} gets "
        f"when a word is blanked out{', and where the two disagree' if len(pictures) > 1 else ''}."
    )
    figures = element("div", {"class": "figures"}, *(_figure(picture, titled=True, width=HALF) for picture in pictures))
    return [section("What it was worth", paragraph("", words), figures)]


def _heads(found: Explanation, shown: View) -> list[Html]:
    """Small multiples of every attention; of a large model's long sentence only the one shown above, by its colours."""
    several = [side for side in found.sides if stacked(found.trace, side).shape[:2].numel() > 1]
    sizes = {side: stacked(found.trace, side).numel() for side in several}
    kept = several if sum(sizes.values()) <= MOST_CELLS else [side for side in several if side == shown.side]
    parts = []
    for side in kept:
        grid = head_maps(found.trace, View(side, words=shown.words, special=True))
        drawn = multiples_svg(grid, title=NAMES[side], values=sizes[side] <= MOST_VALUES)
        name = element("summary", {}, f"{NAMES[side]}: {len(grid)} × {len(grid[0])} heads")
        scroll = element("div", {"class": "scroll", "tabindex": 0}, drawn)
        parts.append(element("details", {"open": ""} if side == shown.side else {}, name, scroll))
    if not parts:
        return []
    words = "Rows and columns are those of the large one, special tokens included; 2.1 is layer 2, head 1."
    rest = "" if kept == several else " The other attentions are too large for this page; --side shows them."
    return [section("Every head", paragraph("note", words + rest), *parts)]


def _recurrent(found: Explanation) -> list[Html]:
    pictures: list[HeatMap] = []
    for make in (gate_maps, state_maps):
        try:
            pictures += make(found.trace)
        except ModelError:  # a plain RNN has no gates, a Transformer no states of this kind
            continue
    if not pictures:
        return []
    return [section("Gates and state", *(_figure(picture, titled=True) for picture in pictures))]


def _steps(found: Explanation) -> Html:
    """Each step's choice, with what else was probable."""
    trace = found.trace
    head = ["step", "read", "wrote", "p", "rank", "most probable"]
    rows = []
    for step, (read, wrote) in enumerate(zip(_read_at_each(found), trace.target.pieces, strict=True)):
        best = zip(trace.top_pieces[step], trace.top_log_probability[step].exp().tolist(), strict=True)
        others = element("span", {}, join([join([_bidi(piece), f" {chance:.2f}"]) for piece, chance in best], ", "))
        chance = f"{float(trace.log_probability[step].exp()):.3f}"
        rows.append([str(step + 1), _bidi(read), _bidi(wrote), chance, str(int(trace.rank[step]) + 1), others])
    return section("Step by step", table(head, rows, left=(1, 2, 5)))


def _read_at_each(found: Explanation) -> Sequence[str]:
    """What was read at each step; a classifier reads all of it for its one."""
    trace = found.trace
    whole = trace.task == "label" and len(trace.target) != len(trace.source)
    return [_read_text(found)] * len(trace.target) if whole else trace.inputs[: len(trace.target)]


def _bidi(piece: str) -> Html:
    return element("bdi", {}, legible(piece))


def _statistics(found: Explanation) -> list[Html]:
    parts = []
    for side in found.sides:
        head = ["head", "entropy", "coverage", "distance", "diagonality", "on <end>", "does"]
        rows = [
            [
                f"{one.layer + 1}.{one.head + 1}",
                *(f"{value:.2f}" for value in (one.entropy, one.coverage, one.distance)),
                _signed(one.diagonality),
                f"{one.end:.2f}",
                one.role,
            ]
            for one in statistics(found.trace, KINDS[side])
        ]
        parts.append(table(head, rows, NAMES[side], left=(6,)))
    if not parts:
        return []
    words = (
        "Entropy in nats; coverage is the share of words that somebody looked at; distance in tokens from the "
        "diagonal; diagonality is 1 straight, −1 reversed. Of this sentence alone."
    )
    return [section("Heads in numbers", *parts, paragraph("note", words))]


def _what_if(outcome: Outcome) -> Html:
    before, after = outcome.texts
    scores = outcome.scores
    rows = [
        ["before", sentence(before), _signed(scores[0])],
        ["the same, under the edits", sentence(before), _signed(scores[1])],
        ["anew, under the edits", sentence(after), _signed(scores[2])],
    ]
    edits = items(*(f"{edit.kind}: {edit}" for edit in outcome.edits))
    note = "Greedy, before and after. The rest of this page is the sentence under the edits."
    return section("What if", edits, table(["", "output", "log-probability"], rows, left=(1,)), paragraph("note", note))


def _notes(found: Explanation) -> Html:
    read = "what was read so far" if found.trace.task == "language" else "the source"
    return section(
        "How this was made",
        items(
            "The output was replayed through the model in one recorded pass; a row is the distribution that was used "
            "when that word was predicted.",
            f"Masking blanks out a word of {read}: its embedding is zero, its place stays.",
            "All numbers are in this file as JSON, in the element with the id “data”, and in the drawings as "
            "data-values.",
        ),
    )


def explanation_numbers(found: Explanation, picture: HeatMap) -> dict[str, Any]:
    trace = found.trace
    return {
        "source": list(trace.source.words),
        "target": list(trace.target.words),
        "source_pieces": list(trace.source.pieces),
        "target_pieces": list(trace.target.pieces),
        "log_probability": trace.log_probability.tolist(),
        "rank": trace.rank.tolist(),
        "links": sorted(map(list, found.links)),
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
