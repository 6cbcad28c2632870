"""Every `raise` must be run by a test: with `--raises`, those that were not are named at the end and fail the session.

A tracer of lines would slow every line of every test. Here the importer puts one call before each `raise` of the
package, which notes its place: what is not raised costs nothing. What other processes raise does not count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "regard"
NOTE = "__raised__"
Place = tuple[str, int]  # file, line


class Raises:
    """A plugin, there only when asked for: the places that this process and its workers have raised at."""

    def __init__(self) -> None:
        self.seen: set[Place] = set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist has ended, and hands over what it has seen."""
        self.seen |= {(file, line) for file, line in getattr(node, "workeroutput", {}).get("raises", ())}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["raises"] = [list(place) for place in self.seen]
        elif session.exitstatus == pytest.ExitCode.OK and self.missed():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        lines = [f"{file}:{line}: this raise is run by no test" for file, line in self.missed()]
        terminalreporter.write_line("\n".join(lines) or "every raise is run by a test")

    def missed(self) -> list[Place]:
        return sorted(everywhere() - self.seen)


@cache
def everywhere() -> frozenset[Place]:
    """Where the package raises."""
    return frozenset(place for path in PACKAGE.rglob("*.py") for place in places(path))


def places(path: Path) -> list[Place]:
    """Where a file raises."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(str(path), node.lineno) for node in ast.walk(tree) if isinstance(node, ast.Raise)]


class Noting(ast.NodeTransformer):
    """Puts ``__raised__((file, line))`` before each `raise`, on its line."""

    def __init__(self, file: str) -> None:
        self.file = file

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        note = ast.parse(f"{NOTE}(({self.file!r}, {node.lineno}))").body[0]
        for part in ast.walk(note):
            ast.copy_location(part, node)
        return [note, node]


class Loader(SourceFileLoader):
    """Compiles a file of the package with its notes; Python's own compiled files are neither read nor written."""

    def __init__(self, name: str, path: str, seen: set[Place]) -> None:
        super().__init__(name, path)
        self.seen = seen

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = Noting(str(Path(path).resolve())).visit(ast.parse(self.get_data(path), path))
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, NOTE, self.seen.add)
        super().exec_module(module)


class Finder(MetaPathFinder):
    def __init__(self, seen: set[Place]) -> None:
        self.seen = seen

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(fullname, path, target) if fullname.partition(".")[0] == PACKAGE.name else None
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = Loader(found.loader.name, found.loader.path, self.seen)
        return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--raises", action="store_true", help="fail if a `raise` of the package is run by no test")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--raises"):
        assert PACKAGE.name not in sys.modules, "the package was imported before its notes"
        plugin = Raises()
        sys.meta_path.insert(0, Finder(plugin.seen))
        config.pluginmanager.register(plugin, "raises-seen")
