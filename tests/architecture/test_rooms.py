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

# The rooms in reading order. A room imports only rooms that stand before it; `docs/architecture.md` says what each is.
ROOMS = (
    *("errors", "files", "device", "settings", "text", "fable", "data", "nn", "models", "decode", "metrics", "runs"),
    *("tasks", "convert", "explain", "trainer", "evaluate", "show", "serve", "cli", "__main__"),
)
TOP_LEVEL = {"errors", "files", "device", "__init__", "__main__"}
# What is asked of a translation or a report, when somebody asks: each import is inside a function.
UPWARDS = {("tasks", "explain"), ("tasks", "show"), ("evaluate", "show")}
WITHOUT_TORCH = (
    *("errors", "files", "settings", "settings.reading", "settings.help", "settings.demo", "text", "fable", "data"),
    *("decode.cancel", "metrics", "runs.folder", "runs.listing", "runs.archive", "show.svg", "show.comparison_page"),
    *("show.run_page", "show.terminal", "show.page", "show.faithful_page", "cli.main"),
)
WITHOUT_NUMPY = ("errors", "files", "settings", "settings.help", "fable", "runs.folder", "runs.listing", "cli.main")
LONGEST_FUNCTION = 60
# Classes of one name in two files: a word of the field that both mean.
SHARED_NAMES = {"Measured", "Part", "Tally", "Watch"}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module that a file names in an import, dotted, and whether that is done only when a function runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checked = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        late = id(node) in checked or getattr(node, "col_offset", 0) > 0
        if isinstance(node, ast.Import):
            yield from ((alias.name, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "regard":
            yield from ((f"regard.{alias.name}", late) for alias in node.names if not alias.name.startswith("_"))
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, late


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_a_room_imports_only_rooms_that_stand_before_it() -> None:
    wrong = []
    for path in FILES:
        if path == PACKAGE / "__init__.py":
            continue  # the front door: names only, loaded when used
        own = room(path)
        entered = {(name.split(".")[1], late) for name, late in imports(path) if name.startswith("regard.")}
        upwards = {(other, late) for other, late in entered if ROOMS.index(other) > ROOMS.index(own)}
        wrong += [f"{path}: {other}" for other, late in upwards if not late or (own, other) not in UPWARDS]
    assert wrong == []


def test_the_rooms_are_these_and_hardly_anything_stands_beside_them() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == TOP_LEVEL
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ROOMS) - TOP_LEVEL
    assert len(folders) <= 18


def test_the_folders_of_unit_tests_are_the_rooms() -> None:
    folders = {path.parent.name for path in (ROOT / "tests" / "unit").glob("*/test_*.py")}
    assert folders <= {*ROOMS, "studio"} - TOP_LEVEL


def test_a_function_fits_on_a_screen_and_says_what_it_takes() -> None:
    wrong = []
    for path in FILES:
        for function in functions(path):
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > LONGEST_FUNCTION or function.args.kwarg is not None:
                wrong.append(f"{path}: {function.name} has {length} lines, or takes **arguments")
    assert wrong == []


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


def test_whoever_translates_imports_nothing_that_reads_corpora() -> None:
    """One sentence from the command line takes little more than importing torch."""
    script = "import sys, regard.tasks.load; sys.exit('regard.data' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=300).returncode == 0


def test_torchs_compiler_is_imported_only_by_who_compiles() -> None:
    """It takes seconds."""
    compilers = "{'torch._dynamo', 'torch._inductor', 'triton'}"
    script = f"import sys, regard.tasks.load, regard.trainer.start; sys.exit(bool({compilers} & sys.modules.keys()))"
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


def test_a_name_is_that_of_one_class() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1}.keys() == SHARED_NAMES
