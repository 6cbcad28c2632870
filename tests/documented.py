"""The commands and examples of the documents and of the program's own hints, collected so that tests can run them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.cli.streams import VERBS

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
RECORDS = {"benchmarks.md", "ladder.md"}  # made from a ledger: what was typed when it was measured
PROGRAMS = ("regard", ".venv/bin/regard", "make", "python", "torchrun", "curl", "pip")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`((?:regard|python|make|torchrun)\s[^`]+)`")
_HINT = re.compile(rf"\bregard (?:{'|'.join(VERBS)})\b[^;\n)]*")


@dataclass(frozen=True)
class Command:
    """One line that a reader may type."""

    page: str
    text: str
    inline: bool = False  # in the middle of a sentence

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)


def commands(page: Path) -> Iterator[Command]:
    """Every command of a page in order: those of shell blocks, of sessions (``$ …``), and those inside the text."""
    content = page.read_text(encoding="utf-8")
    for found in re.finditer(rf"{_FENCE.pattern}|{_INLINE.pattern}", content, re.DOTALL | re.MULTILINE):
        language, block, inline = found.groups()
        if inline is not None:
            yield Command(page.name, " ".join(inline.split()), inline=True)
        elif language in ("sh", ""):
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                command = line.removeprefix("$ ") if line.startswith("$ ") else line if _is_command(line) else ""
                if command and (language == "sh" or line.startswith(("$ ", "curl "))):
                    yield Command(page.name, command)


def _is_command(line: str) -> bool:
    return line.partition(" ")[0] in PROGRAMS


def examples(page: Path) -> list[str]:
    """The Python of a page, block by block."""
    return [block for language, block in _FENCE.findall(page.read_text(encoding="utf-8")) if language == "python"]


def hints() -> set[str]:
    """Every command inside a string of the program; ``{}`` stands for what is filled in."""
    found: set[str] = set()
    for path in sorted((ROOT / "src" / "regard").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        passed = {id(text) for node in nodes for text in _docstring(node)}
        passed |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            if id(node) not in passed and (text := _text(node)):
                found |= {" ".join(hint.strip().rstrip(".:`'").split()) for hint in _HINT.findall(text)}
    return found


def _docstring(node: ast.AST) -> Iterator[ast.expr]:
    """Strings that are statements: of modules, classes, functions, and of settings."""
    for child in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            yield child.value


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""
