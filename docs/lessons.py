"""Run the lessons of docs/course: each block of Python in order, its output written below it, a notebook beside it.

    python docs/lessons.py [LESSON...]

A lesson is Markdown. What a block prints, and the picture or value that its last line is, stand between two marks
behind it and are replaced each time; figures are in docs/course/figures. The notebook has the same text, code and
outputs. So no number of a lesson is written by hand.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COURSE = Path(__file__).parent / "course"
FIGURES = "figures"
OPEN, CLOSE = "<!-- output -->", "<!-- /output -->"
_OUTPUT = re.compile(rf"\n{re.escape(OPEN)}\n.*?{re.escape(CLOSE)}\n", re.DOTALL)
_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


@dataclass
class Cell:
    """Text, or code with what came of it."""

    text: str
    is_code: bool = False
    printed: str = ""
    picture: str = ""  # SVG
    title: str = ""  # of the picture

    @property
    def markdown(self) -> str:
        return f"```python\n{self.text}```\n" if self.is_code else self.text


@dataclass
class Lesson:
    """A page of the course."""

    path: Path
    cells: list[Cell] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def number(self) -> int:
        return int(self.name.partition("-")[0])


def pages() -> list[Path]:
    """All lessons in order."""
    return sorted(COURSE.glob("[0-9]*.md"))


def read(path: Path) -> Lesson:
    """A lesson without its outputs."""
    source = _OUTPUT.sub("", path.read_text(encoding="utf-8"))
    cells, end = [], 0
    for block in _BLOCK.finditer(source):
        cells += [Cell(source[end : block.start()]), Cell(block[1], is_code=True)]
        end = block.end()
    return Lesson(path, [*cells, Cell(source[end:])])


def run(lesson: Lesson) -> Lesson:
    """Run its code in order, as a notebook does, in a folder of its own."""
    names: dict[str, Any] = {"__name__": lesson.name}
    sys.path.insert(0, str(COURSE))
    before = Path.cwd()
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for number, cell in enumerate(each for each in lesson.cells if each.is_code):
                _execute(cell, names, f"{lesson.path.name}, block {number + 1}")
    finally:
        os.chdir(before)
        sys.path.remove(str(COURSE))
    return lesson


def _execute(cell: Cell, names: dict[str, Any], where: str) -> None:
    tree = ast.parse(cell.text, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out, value = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    cell.printed = out.getvalue()
    if hasattr(value, "_repr_svg_"):
        cell.picture, cell.title = value._repr_svg_(), value.title
    elif value is not None and not isinstance(value, bool):
        cell.printed += f"{value!r}\n"


def files(lesson: Lesson) -> dict[str, str]:
    """What a lesson that was run is written as, by places under docs/course."""
    parts, found, figure = [], {}, 0
    for cell in lesson.cells:
        parts.append(cell.markdown)
        shown = [f"```text\n{cell.printed.rstrip()}\n```\n"] if cell.printed.strip() else []
        if cell.picture:
            figure += 1
            place = f"{FIGURES}/{lesson.name}-{figure}.svg"
            found[place] = cell.picture
            shown.append(f"![{cell.title}]({place})\n")
        if shown:
            inside = "\n".join(shown)
            parts.append(f"\n{OPEN}\n{inside}{CLOSE}\n")
    return {f"{lesson.name}.md": "".join(parts), **found, f"{lesson.name}.ipynb": notebook(lesson)}


def notebook(lesson: Lesson) -> str:
    """The same as a Jupyter notebook, format 4.5."""
    cells = [_notebook_cell(cell, number) for number, cell in enumerate(lesson.cells) if _plain(cell.text).strip()]
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _notebook_cell(cell: Cell, number: int) -> dict[str, Any]:
    known = {"id": f"cell-{number}", "metadata": {}}
    if not cell.is_code:
        return known | {"cell_type": "markdown", "source": list(_lines(_plain(cell.text).strip()))}
    outputs: list[dict[str, Any]] = []
    if cell.printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": list(_lines(cell.printed))})
    if cell.picture:
        drawn = {"image/svg+xml": list(_lines(cell.picture)), "text/plain": [cell.title]}
        outputs.append({"output_type": "execute_result", "execution_count": None, "data": drawn, "metadata": {}})
    source = list(_lines(cell.text.rstrip("\n")))
    return known | {"cell_type": "code", "execution_count": None, "outputs": outputs, "source": source}


def _plain(text: str) -> str:
    """Without the parts that only a page can fold."""
    return re.sub(r"<details[^>]*><summary>(.*?)</summary>", r"**\1**", text).replace("</details>", "")


def _lines(text: str) -> Iterator[str]:
    return iter(text.splitlines(keepends=True))


def main(asked: list[str]) -> int:
    (COURSE / FIGURES).mkdir(exist_ok=True)
    for path in pages():
        if asked and not any(path.stem.startswith(name) for name in asked):
            continue
        began = time.monotonic()
        for place, content in files(run(read(path))).items():
            (COURSE / place).write_text(content, encoding="utf-8")
        print(f"{path.stem}: {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
