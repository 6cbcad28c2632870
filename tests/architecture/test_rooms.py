"""The shape of the house, held by reading its source: who imports whom, how long a function may be."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "regard"
FILES = sorted(PACKAGE.rglob("*.py"))

# Which rooms a room may enter. A sentence walks in one direction; no room imports upwards.
DOORS: dict[str, set[str]] = {
    "errors": set(),
    "cancel": set(),
    "files": set(),
    "presets": set(),
    "checks": {"errors"},
    "reader": {"errors"},
    "optional": {"errors"},
    "device": {"errors"},
    "settings": {"checks", "errors", "presets", "reader"},
    "glossary": {"errors", "reader", "settings"},
    "demonstration": {"settings"},
    "text": {"errors", "files"},
    "corpora": {"errors", "files"},
    "data": {"errors", "files", "optional", "text"},
    "run": {"errors", "files", "settings"},
    "nn": {"checks", "errors"},
    "models": {"errors", "nn", "text"},
    "build": {"checks", "errors", "models", "nn", "settings", "text"},
    "decode": {"cancel", "errors", "models", "nn", "text"},
    "measure": {"errors", "text"},
    "explain": {"cancel", "errors", "files", "decode", "measure", "models", "nn", "text"},
    "interop": {"build", "data", "errors", "models", "nn", "optional", "reader", "settings", "text"},
    "tasks": {
        *("corpora", "data", "decode", "errors", "explain", "interop", "measure", "models", "nn", "settings", "text"),
    },
    "trainer": {"data", "device", "errors", "files", "nn", "run", "settings", "tasks"},
    "runs": {"errors", "files", "presets", "run", "settings", "trainer"},
    "archive": {"data", "errors", "files", "optional", "reader", "run", "text"},
    "training": {"build", "data", "device", "errors", "files", "run", "settings", "tasks", "text", "trainer"},
    "aligning": {"corpora", "errors", "explain", "measure", "models", "run", "settings", "tasks", "text"},
    "translator": {"aligning", "decode", "draw", "errors", "explain", "models", "nn", "run", "settings", "text"},
    "engines": {"decode", "errors", "files", "interop", "models", "nn", "optional", "run", "text"},
    "shortlisting": {"data", "decode", "errors", "files", "run", "tasks", "text"},
    "loading": {
        *("build", "decode", "engines", "errors", "models", "nn", "run", "settings", "shortlisting", "text"),
        *("trainer", "translator"),
    },
    "prediction": {
        *("build", "data", "decode", "engines", "errors", "loading", "measure", "run", "tasks", "text", "trainer"),
        "translator",
    },
    "walking": {"decode", "errors", "explain", "prediction", "text", "translator"},
    "explaining": {"decode", "draw", "errors", "explain", "prediction", "text", "translator"},
    "comparing_labels": {
        *("data", "decode", "errors", "measure", "prediction", "report", "run", "settings", "tasks"),
    },
    "evaluation": {"data", "decode", "errors", "explain", "measure", "run", "tasks", "text", "translator"},
    "report": {"errors", "files", "measure"},
    "draw": {"errors", "explain", "files", "report", "text"},
    "comparing": {
        *(
            "comparing_labels",
            "corpora",
            "data",
            "decode",
            "device",
            "errors",
            "files",
            "loading",
            "measure",
            "prediction",
        ),
        *("report", "run", "settings", "tasks", "trainer", "training", "translator"),
    },
    "searching": {"decode", "errors", "prediction", "report", "text", "translator"},
    "understanding": {
        *("decode", "errors", "explain", "models", "prediction", "report", "run", "tasks", "text", "translator"),
    },
    "reporting_sentences": {"decode", "explain", "measure", "report", "searching", "settings", "text", "translator"},
    "reporting": {
        *("comparing", "comparing_labels", "data", "decode", "device", "errors", "evaluation", "loading", "measure"),
        *("prediction", "report", "reporting_sentences", "run", "runs", "settings", "text", "trainer", "training"),
        "translator",
    },
    "inside": {
        *("cancel", "decode", "draw", "errors", "explain", "explaining", "models", "nn", "prediction", "text"),
        "translator",
    },
    "serve": {
        *("aligning", "archive", "build", "cancel", "corpora", "data", "decode", "demonstration", "draw", "engines"),
        *("errors", "explain"),
        *(
            "files",
            "inside",
            "nn",
            "prediction",
            "run",
            "runs",
            "searching",
            "settings",
            "shortlisting",
            "tasks",
            "text",
        ),
        *("trainer", "translator", "understanding", "walking"),
    },
    "studio": set(),
    "__main__": {"cli"},
    "cli": {
        *(
            "archive",
            "comparing",
            "corpora",
            "data",
            "decode",
            "demonstration",
            "device",
            "draw",
            "errors",
            "evaluation",
        ),
        *("explain", "explaining", "files", "glossary", "loading", "measure", "prediction", "report", "reporting"),
        *("run", "runs", "searching", "serve", "settings", "tasks", "text", "trainer", "training", "translator"),
        *("engines", "understanding", "walking"),
    },
}
WITHOUT_TORCH = (
    "errors",
    "cancel",
    "files",
    "checks",
    "reader",
    "optional",
    "settings",
    "glossary",
    "demonstration",
    "presets",
    "text",
    "corpora",
    "data",
    "run",
    "runs",
    "archive",
    "measure",
    "report.charts",
    "report.comparison_page",
    "report.run_page",
    "report.heatmap_svg",
    "report.beam",
    "report.meaning",
    "cli.main",
)
WITHOUT_NUMPY = (
    *("errors", "files", "checks", "reader", "settings", "glossary", "presets", "corpora", "run", "runs", "cli.main"),
)
LONGEST_FUNCTION = 60


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, dotted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "regard":
            yield from (f"regard.{alias.name}" for alias in node.names if not alias.name.startswith("_"))
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_enters_only_the_rooms_below_it(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        return  # the front door: names only, loaded when used
    entered = {name.split(".")[1] for name in imports(path) if name.startswith("regard.")} - {room(path)}
    assert entered <= DOORS[room(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_function_fits_on_a_screen_and_says_what_it_takes(path: Path) -> None:
    for function in functions(path):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        assert length <= LONGEST_FUNCTION, f"{function.name} has {length} lines"
        assert function.args.kwarg is None, f"{function.name} takes **{function.args.kwarg.arg}"


def test_no_room_is_called_after_what_did_not_fit_elsewhere() -> None:
    names = {part for path in FILES for part in path.relative_to(PACKAGE).with_suffix("").parts}
    assert not names & {"utils", "util", "helpers", "helper", "misc", "common"}


def test_rooms_that_need_no_torch_do_not_import_it() -> None:
    for package, rooms in (("torch", WITHOUT_TORCH), ("numpy", WITHOUT_NUMPY)):
        names = ", ".join(f"regard.{name}" for name in rooms)
        script = f"import sys, regard, {names}; sys.exit('{package}' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", script], check=False, timeout=300).returncode == 0, package


def test_importing_regard_imports_nothing_but_the_standard_library() -> None:
    script = "import sys, regard; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=300).returncode == 0


PUBLIC = [
    "DataError",
    "ModelError",
    "Recorder",
    "RegardError",
    "ResourceError",
    "Settings",
    "SettingsError",
    "compare",
    "encoder_decoder",
    "labeller",
    "language_model",
    "load",
    "load_settings",
    "preset_names",
    "train",
]


def test_the_public_names_are_these_and_all_of_them_load() -> None:
    assert dir(regard) == PUBLIC
    assert regard.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(regard, name).__name__ == name


def test_every_dependency_that_tests_use_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    extras = project["optional-dependencies"]
    ours = extras["dev"][0].removeprefix("regard[").removesuffix("]").split(",")
    wanted = [*project["dependencies"], *extras["dev"][1:], *(name for extra in ours for name in extras[extra])]
    for requirement in wanted:
        name = requirement.split(">=")[0].lower().replace("_", "-")
        assert f"\n{name}==" in pins, name


def test_the_changelog_knows_this_version() -> None:
    assert f"## {regard.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_fits_on_a_page(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 40
