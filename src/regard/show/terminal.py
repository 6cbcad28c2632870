"""Pictures in a terminal.

A heat map has a shade in each cell and, if the width allows, its number. A search has one line for each candidate,
below its parent, with its scores before it; a mark shows what became of it: ● went on, ✓ on the path to the output,
■ finished, × pruned, ○ left at the end.

Widths are counted in terminal cells, so that wide letters (CJK, emoji) and marks (Devanagari) keep columns aligned.
Right-to-left text is enclosed in left-to-right marks, so that a terminal reorders one label, never a whole line. In a
narrow terminal columns are numbered and named below; if that does not fit either, they are cut into several blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from regard.explain.heatmap import HeatMap, brief
from regard.metrics.numbers import signed
from regard.show import colours
from regard.show.markup import clusters, right_to_left
from regard.show.svg_tree import SHORT, WHY, drawn_nodes, reason_of, way_to

if TYPE_CHECKING:
    from regard.explain.beam import Searched, SearchNode

SHADES = " ░▒▓█"
LEFT_TO_RIGHT = "\u200e"  # a mark without width
JOINING = "\u200c\u200d"  # joiners are kept for words and emoji; other control characters are replaced
LONGEST = 16  # cells of a row's label
SUM = 6  # cells of a row's sum
WIDEST = 12  # cells of a column with a label
WIDE = 110  # cells from which on the reasons of a search are written in full
WORD = 14  # cells that a piece should have; with fewer, a level is one cell wide, not two
NARROWEST = 24  # cells for the tree, whatever the terminal
SCORE = 9  # cells of a score
STYLES = {"✓": "bold green", "■": "bold", "○": "dim", "×": "dim"}


@dataclass(frozen=True)
class Form:
    """How columns are drawn: the width of each with the space after it (none after width 1), and whether there are
    labels and numbers."""

    widths: tuple[int, ...]
    labels: bool
    numbers: bool


def lines(picture: HeatMap | Searched, *, width: int = 80, colour: bool = False) -> list[Text]:
    """The picture as lines for a terminal of this width; a heat map with shades or with colours."""
    return _heat(picture, width, colour=colour) if isinstance(picture, HeatMap) else _tree(picture, width)


# A heat map


def _heat(picture: HeatMap, width: int, *, colour: bool) -> list[Text]:
    left = min(LONGEST, max(4, width // 4), max(map(cell_len, picture.rows), default=0)) + 1
    room = max(1, width - left - (SUM if picture.sums else 0))
    form = _form(picture, room)
    drawn: list[Text] = []
    for first, last in _blocks(form, room):
        if drawn:
            drawn.append(Text())
        drawn += _block(picture, form, left, first, last, colour=colour)
    if not form.labels:
        drawn += [Text(), *_legend(picture.columns, width)]
    return drawn


def _form(picture: HeatMap, room: int) -> Form:
    """The most detailed form that fits into so many cells."""
    count = len(picture.columns)
    number = 2 + max((len(brief(value, picture.most)) for row in picture.values for value in row), default=0)
    labelled = tuple(min(WIDEST, max(number, cell_len(column) + 1)) for column in picture.columns)
    forms = [Form(labelled, labels=True, numbers=True), Form((number,) * count, labels=False, numbers=True)]
    forms += [Form((width,) * count, labels=False, numbers=False) for width in (3, 2, 1)]
    return next((form for form in forms if sum(form.widths) <= room), forms[-1])


def _blocks(form: Form, room: int) -> Iterator[tuple[int, int]]:
    """The first and last column, plus one, of parts that fit."""
    first = 0
    while first < len(form.widths):
        last, taken = first + 1, form.widths[first]
        while last < len(form.widths) and taken + form.widths[last] <= room:
            taken += form.widths[last]
            last += 1
        yield first, last
        first = last


def _block(picture: HeatMap, form: Form, left: int, first: int, last: int, *, colour: bool) -> list[Text]:
    """One part, with the sums of whole rows beside the last."""
    summed = picture.sums and last == len(picture.columns)
    drawn = [Text(" " * left + line) for line in _heads(picture, form, first, last)]
    if summed:
        drawn[-1].append("  Σ")
    for name, values, levels in zip(picture.rows, picture.values, colours.levels(picture), strict=True):
        line = Text(padded(name, left - 1, "end") + " ")
        for value, level, width in zip(values[first:last], levels[first:last], form.widths[first:last], strict=True):
            words = _cell(picture, value, level, width, numbered=form.numbers, colour=colour)
            line.append(words, "" if level == colours.nothing(picture) or not colour else _style(picture, level))
            line.append(" " if width > 1 else "")
        if summed:
            line.append(f"{signed(sum(values)):>5}")
        drawn.append(line)
    return [_fenced(line) for line in drawn]


def _heads(picture: HeatMap, form: Form, first: int, last: int) -> list[str]:
    """The labels or numbers of columns; numbers are vertical where columns are too narrow."""
    places = range(first, last)
    if form.labels:
        return ["".join(padded(picture.columns[place], form.widths[place] - 1, "start") + " " for place in places)]
    digits, width = len(str(last)), form.widths[first]
    if digits < width:
        return ["".join(f"{place + 1:>{width - 1}} " for place in places)]
    standing = [f"{place + 1:>{digits}}" for place in places]
    return ["".join(f"{number[digit]:{width}}" for number in standing) for digit in range(digits)]


def _cell(picture: HeatMap, value: float, level: int, width: int, *, numbered: bool, colour: bool) -> str:
    """A shade, or a space where there is a colour, then the number."""
    shade = " " if colour and level != colours.nothing(picture) else _shade(picture, level)
    words = f"{shade}{brief(value, picture.most)}" if numbered else shade * max(1, width - 1)
    return padded(words, max(1, width - 1), "start")


def _shade(picture: HeatMap, level: int) -> str:
    """A shade by the distance from zero; the sign is only in the number."""
    away = abs(level - colours.nothing(picture)) / max(
        colours.nothing(picture), colours.LEVELS - colours.nothing(picture)
    )
    return "·" if away == 0 else SHADES[min(4, max(1, round(4 * away)))]


def paper() -> colours.Theme:
    """The terminal's background if COLORFGBG says it (``15;0``); else colours that are visible on both."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if not background.isdecimal():
        return "either"
    return "light" if background in ("7", "15") else "dark"


def _style(picture: HeatMap, level: int) -> str:
    """A background colour, and black or white text."""
    colour = colours.table(picture.scale, paper())[level]
    return f"{colours.code(colours.ink(colour))} on {colours.code(colour)}"


def _legend(columns: Sequence[str], width: int) -> list[Text]:
    """``1 the  2 black  3 cat``, in as many lines as needed."""
    found = [""]
    for number, column in enumerate(columns, start=1):
        entry = f"{number} {cut(column, max(1, width - 6))}"
        if found[-1] and cell_len(found[-1]) + 2 + cell_len(entry) > width:
            found.append("")
        found[-1] += f"  {entry}{_mark(column)}" if found[-1] else entry + _mark(column)
    return [_fenced(Text(line)) for line in found]


def padded(label: str, width: int, side: str) -> str:
    """A label padded or cut to so many cells."""
    kept = cut(label, width)
    space = " " * (width - cell_len(kept))
    fenced = f"{kept}{_mark(kept)}"
    return f"{fenced}{space}" if side == "start" else f"{space}{fenced}"


def cut(label: str, width: int) -> str:
    """A label cut to so many cells between grapheme clusters."""
    label = "".join(letter if letter.isprintable() or letter in JOINING else "␣" for letter in label)
    if cell_len(label) <= width:
        return label
    kept = clusters(label)
    while kept and cell_len("".join(kept)) > width - 1:
        kept.pop()
    return "".join(kept) + "…"


def _mark(label: str) -> str:
    return LEFT_TO_RIGHT if right_to_left(label) else ""


def _fenced(line: Text) -> Text:
    """A line with a direction mark begins with one, so that the terminal does not guess its direction."""
    return Text(LEFT_TO_RIGHT) + line if LEFT_TO_RIGHT in line.plain else line


# The tree of a search


def _tree(tree: Searched, width: int) -> list[Text]:
    """All candidates that were kept or finished, and the best pruned ones of each step; the path to the output is bold,
    what left the beam dim."""
    drawn = {node.number: node for step in drawn_nodes(tree) for node in step}
    children: dict[int, list[SearchNode]] = {}
    for node in drawn.values():
        if node.parent is not None:
            children.setdefault(node.parent, []).append(node)
    way = way_to(tree, tree.outputs[0]) if tree.outputs else set()
    reasons = WHY if width >= WIDE else SHORT
    room = max(NARROWEST, width - 2 * SCORE - 3 - max(map(len, reasons.values())))
    deep = 2 * max((node.step for node in drawn.values()), default=0) > room - WORD
    found = [Text(f"{'log p':>{SCORE}}{'normed':>{SCORE}}  <start>", "bold")]
    for stem, node in _walk(children, 0, "", deep=deep):
        mark, reason = _sign(node, way), reason_of(tree, node)
        line = _line(node, f"{stem}{mark} ", room, reasons.get(reason, reason))
        found.append(Text(line.rstrip(), STYLES.get(mark, "")))
    return found


def _walk(
    children: dict[int, list[SearchNode]], parent: int, stem: str, *, deep: bool
) -> Iterator[tuple[str, SearchNode]]:
    """Every candidate with its branch lines, depth first, best first."""
    several = sorted(children.get(parent, []), key=lambda node: -node.score)
    for place, node in enumerate(several):
        last = place == len(several) - 1
        corner, below = ("└", " ") if last else ("├", "│")
        dash, gap = ("", "") if deep else ("─", " ")
        yield f"{stem}{corner}{dash}", node
        yield from _walk(children, node.number, f"{stem}{below}{gap}", deep=deep)


def _sign(node: SearchNode, way: set[int]) -> str:
    if node.number in way:
        return "✓"
    if node.fate == "kept":
        return "○" if node.reason else "●"
    return {"finished": "■", "pruned": "×"}[node.fate]


def _line(node: SearchNode, stem: str, room: int, reason: str) -> str:
    scores = f"{signed(node.log_probability, 3):>{SCORE}}{signed(node.score, 3):>{SCORE}}"
    token = cut(node.shown, max(4, room - cell_len(stem)))
    told = padded(f"{stem}{token}", max(room, cell_len(stem) + 4), "start")
    return f"{scores}  {told} {reason if node.reason else ''}"
