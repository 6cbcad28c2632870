"""What bench/shape.py counts, on a made-up package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benches import scripts

MADE_UP = {
    "__init__.py": "from house.cellar import Jar\n",
    "__main__.py": "from house.hall import enter\n",
    "hall.py": '''"""The hall."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from house.attic import Box


class Key(NamedTuple):
    """Opens
    a door."""

    teeth: int


def enter() -> None:
    from house import kitchen  # only when somebody enters
''',
    "kitchen/__init__.py": "from .shelf import Jar as Pot\n",
    "kitchen/shelf.py": """from dataclasses import dataclass
from ..cellar import Jar as Stored


@dataclass(frozen=True)
class Jar:
    size: int


class Open(Stored): ...
""",
    "cellar.py": "import pydantic\n\n\nclass Jar(pydantic.BaseModel):\n    size: int\n",
    "attic.py": "from house.kitchen import Pot\n\n\nclass Box(Pot): ...\n\n\nclass Key: ...\n",
    "studio/main.js": "let one;\nlet two;\n",
    "studio/main.css": "a {}\n",
    "show/templates/page.css": "a {}\n",
    "show/templates/run/part.html": "<p>\n</p>\n",
    "demo/settings.toml": "",
}


@pytest.fixture(scope="module")
def shape() -> ModuleType:
    return scripts("shape")[0]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name, text in MADE_UP.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "house"


def test_folders_with_source_in_them_and_modules_beside_import_each_other(shape: ModuleType, house: Path) -> None:
    assert shape.rooms_of(house) == ["__main__", "attic", "cellar", "hall", "kitchen", "studio"]


def test_imports_in_functions_count_and_those_for_type_checkers_do_not(shape: ModuleType, house: Path) -> None:
    doors = shape.entered(shape.files_of(house), shape.rooms_of(house))
    assert {room: below for room, below in doors.items() if below} == {
        "__main__": {"hall"},
        "attic": {"kitchen"},
        "hall": {"kitchen"},
        "kitchen": {"cellar"},
    }
    assert shape.longest_chain(doors) == ["__main__", "hall", "kitchen", "cellar"]


def test_a_circle_of_rooms_is_shown(shape: ModuleType) -> None:
    assert sorted(set(shape.longest_chain({"attic": {"cellar"}, "cellar": {"attic"}}))) == ["attic", "cellar"]


def test_a_record_is_one_through_whatever_file_its_ancestor_came(shape: ModuleType, house: Path) -> None:
    assert shape.records(shape.files_of(house)) == {"hall": 1, "kitchen": 2, "cellar": 1, "attic": 1}


def test_lines_of_code_are_without_docstrings_comments_and_blank_lines(shape: ModuleType, house: Path) -> None:
    hall = next(file for file in shape.files_of(house) if file.room == "hall")
    assert hall.counts == {"files": 1, "lines": 17, "code": 7, "core": 0, "functions": 1}


def test_the_figures_of_the_whole(shape: ModuleType, house: Path) -> None:
    seen = shape.Seen(
        {"open": ("house.hall", ["key", "door"])}, {"train": [], "translate": [], "trace": [("hall.py", "enter")]}
    )
    files = shape.files_of(house)
    found = shape.figures(house, files, seen)
    wanted = {"top-level modules": "3", "rooms": "2", "records": "5", "options": "2", "files on the walk: looking": "1"}
    assert wanted.items() <= found.items()
    assert [found[f"lines of {kind}"] for kind in ("JavaScript", "CSS", "templates")] == ["2", "1", "3"]
    assert shape.shared_names(files) == {"Jar": ["cellar.py", "kitchen/shelf.py"], "Key": ["attic.py", "hall.py"]}
    rows = {row[0]: row[-1] for row in shape.by_room(files, seen)}
    assert (rows["hall"], rows["cellar"]) == ("2", "0")


def test_a_walk_has_the_files_whose_functions_are_called_but_not_while_they_are_imported(
    shape: ModuleType, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = importlib.import_module(shape.see.__module__).Walk(house)
    (house / "early.py").write_text("def now() -> None: ...\n\n\nnow()\n", encoding="utf-8")
    (house / "late.py").write_text(
        "class Late:\n    def now(self) -> None:\n        import house.early\n", encoding="utf-8"
    )
    (house / "__init__.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(house.parent))
    before = sys.getprofile()
    sys.setprofile(walk)
    try:
        importlib.import_module("house.late").Late().now()
    finally:
        sys.setprofile(before)
    assert walk.files() == [("late.py", "Late.now")]
