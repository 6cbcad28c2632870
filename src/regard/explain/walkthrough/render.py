"""A walkthrough for people: in a terminal, and as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from torch import Tensor

from regard.explain.walkthrough.step import AxisLabels, Step, Walkthrough
from regard.text.words import legible

WIDTH = 100
ROWS = 12  # of a table in a terminal
COLUMNS = 8  # of a table in Markdown
_LABEL = 14  # cells that a label may take
_NUMBER = 9
_PARTS = {
    "encoder": "Encoder",
    "context": "From encoder to decoder",
    "decoder": "Decoder",
    "cross": "Attention to the source",
    "output": "Output",
}


# Numbers as text: labels of columns, rows with theirs, which row is that of the piece walked with, and what is left out
Table = tuple[list[str], list[tuple[str, list[str]]], int | None, str]


def headline(walk: Walkthrough) -> str:
    """What is walked through, counted as people count."""
    places = f"layer {walk.layer + 1}"
    if any(step.name.endswith(".weights") and step.part != "output" for step in walk):
        places += f", head {walk.head + 1}"
    if walk.task == "label":
        return f"{' '.join(walk.source.words)}: {places}, at {_printable(walk.source.pieces[walk.position])}"
    target = " ".join(walk.target.words)
    if all(step.part in ("encoder", "context") for step in walk):
        return f"{' '.join(walk.source.words)}: {places}, at {_printable(walk.source.pieces[walk.position])}"
    text = f"{' '.join(walk.source.words)} → {target}" if walk.source.words else target
    return f"{text}: {places}, on the way to {_printable(walk.target.pieces[walk.position])}"


# Terminal


def terminal(walk: Walkthrough, width: int = WIDTH) -> str:
    """Idea, formula, numbers and code of every step, as plain text."""
    lines = textwrap.wrap(headline(walk), width)
    part = ""
    for number, step in enumerate(walk, start=1):
        if step.part != part:
            part = step.part
            lines += ["", f"── {_PARTS[part]} ".ljust(width, "─")]
        idea = textwrap.wrap(step.idea, width, initial_indent="   ", subsequent_indent="   ")
        lines += ["", f"{number}. {step.title}  ({step.name})", *idea, f"   {step.formula}", ""]
        lines += [f"   {line}" for line in _grid(table(step, (width - 24) // (_NUMBER + 1), ROWS))]
        lines += ["", *(f"   {name}: {origin}" for name, origin in step.origins.items())]
        lines += [f"   │ {line}" for line in step.snippet.splitlines()]
    return "\n".join(lines)


_STYLES = (
    (re.compile(r"── "), "bold cyan"),  # a part
    (re.compile(r"\d+\. "), "bold"),  # the title of a step
    (re.compile(r" {3}▸ "), "bold green"),  # the row of the piece walked with
    (re.compile(r" {3}│ "), "dim"),  # code
)


def styled(line: str) -> Text:
    """A line of `terminal` with the weight and colour that it has there."""
    return Text(line, next((style for start, style in _STYLES if start.match(line)), ""))


def _grid(made: Table) -> Iterator[str]:
    columns, rows, marked, left_out = made
    left = max((cell_len(label) for label, _ in rows), default=0)
    widths = [max(_NUMBER, cell_len(label)) for label in columns]
    if any(columns):
        heads = (_right(label, size) for label, size in zip(columns, widths, strict=True))
        yield ("  " + " " * left + " " + " ".join(heads)).rstrip()
    for number, (label, cells) in enumerate(rows):
        mark = "▸ " if number == marked else "  "
        cells = [_right(cell, size) for cell, size in zip(cells, widths, strict=True)]  # noqa: PLW2901
        yield mark + set_cell_size(label, left) + " " + " ".join(cells)
    if left_out:
        yield f"  {left_out}"


def _right(text: str, size: int) -> str:
    return " " * (size - cell_len(text)) + text


# Markdown


def markdown(walk: Walkthrough, title: str = "") -> str:
    """The same as a page, with formulas in TeX."""
    lines = [f"# {_escape(title or headline(walk))}"]
    part = ""
    for number, step in enumerate(walk, start=1):
        if step.part != part:
            part = step.part
            lines += ["", f"## {_PARTS[part]}"]
        lines += ["", f"### {number}. {_escape(step.title)}", "", step.idea, "", f"$${step.tex}$$", ""]
        lines += list(_markdown_table(table(step, COLUMNS, ROWS)))
        origins = ", ".join(f"`{name}` {_escape(origin)}" for name, origin in step.origins.items())
        lines += ["", *([f"With {origins}:", ""] if origins else []), "```python", step.snippet, "```"]
    return "\n".join([*lines, ""])


def _markdown_table(made: Table) -> Iterator[str]:
    columns, rows, marked, left_out = made
    yield "| | " + " | ".join(map(_escape, columns)) + " |"
    yield "|---|" + "---:|" * len(columns)
    for number, (label, cells) in enumerate(rows):
        name = f"**{_escape(label)}**" if number == marked and label else _escape(label)
        yield f"| {name} | " + " | ".join(cells) + " |"
    if left_out:
        yield f"\n{left_out}"


def _escape(text: str) -> str:
    """As it stands, and never as markup."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|$#":
        text = text.replace(mark, f"\\{mark}")
    return text


# Tables


def table(step: Step, columns: int, rows: int) -> Table:
    """So much of a step's numbers as there is room for; always with the marked row and its largest place."""
    shown = step.shown
    if shown.dim() == 0:
        return ([""], [("", [_number(shown)])], None, "")
    if shown.dim() == 1:
        across, values = step.axes[0], shown[None]
        kept = _window(len(across.shown), columns, 0)
        return (_labels(across, kept), [("", _numbers(values[0], kept))], None, _left_out(step, kept, None))
    down, across = step.axes
    row = step.row if step.row is not None else 0
    peak = 0 if across.name == "feature" else int(shown[row].double().argmax())
    kept = _window(len(across.shown), columns, peak)
    lines = _window(len(down.shown), rows, row)
    body = list(zip(_labels(down, lines), (_numbers(shown[line], kept) for line in lines), strict=True))
    marked = None if step.row is None else lines.index(step.row)
    return (_labels(across, kept), body, marked, _left_out(step, kept, lines))


def _window(size: int, room: int, around: int) -> list[int]:
    """So many places as there is room for, with one among them."""
    begin = max(0, min(around - room // 2, size - room))
    return list(range(begin, min(begin + room, size)))


def _left_out(step: Step, columns: Sequence[int], rows: Sequence[int] | None) -> str:
    shape = list(step.output.shape)
    kept = [len(columns)] if rows is None else [len(rows), len(columns)]
    return "" if kept == shape else f"({' × '.join(map(str, kept))} shown of {' × '.join(map(str, shape))})"


def _labels(axis: AxisLabels, places: Sequence[int]) -> list[str]:
    return [_printable(axis.labels[place]) for place in places]


def _printable(label: str) -> str:
    """On one line, without control characters, and not too long."""
    plain = "".join(mark if mark.isprintable() else "�" for mark in legible(label)) or "∅"
    return plain if cell_len(plain) <= _LABEL else set_cell_size(plain, _LABEL - 1) + "…"


def _numbers(values: Tensor, places: Sequence[int]) -> list[str]:
    return [_number(values[place]) for place in places]


def _number(value: Tensor) -> str:
    number = value.item()
    if isinstance(number, int):
        return str(number)
    if number == float("-inf"):
        return "−∞"
    return f"{number:.4f}" if 5e-5 <= abs(number) < 10_000 or number == 0 else f"{number:.2e}"
