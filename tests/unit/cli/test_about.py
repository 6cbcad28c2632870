"""How to cite this program, and its documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import regard
from regard.cli import about
from regard.cli.main import run

ROOT = Path(__file__).parents[3]
Capture = pytest.CaptureFixture[str]


def test_the_citation_is_the_same_everywhere(capsys: Capture) -> None:
    assert run(["cite"]) == 0
    bibtex = dict(re.findall(r"^  (\w+) += \{(.+)\},$", capsys.readouterr().out, re.MULTILINE))
    assert run(["cite", "--json"]) == 0
    csl = json.loads(capsys.readouterr().out)
    file = dict(re.findall(r'^(\w+): "?(.+?)"?$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE))
    assert bibtex["title"] == csl["title"] == file["title"]
    assert bibtex["version"] == csl["version"] == file["version"] == regard.__version__
    assert bibtex["author"] == f"{{{csl['author'][0]['literal']}}}"


@pytest.fixture
def manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("index", "training", "course/01-sequences"):
        (tmp_path / f"{name}.html").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.html").touch()
    monkeypatch.setattr(about, "MANUAL", tmp_path)
    return tmp_path


def test_a_page_of_the_documentation_is_found_by_its_name(manual: Path, capsys: Capture) -> None:
    for asked, page in (
        (["docs"], "index"),
        (["docs", "training.md"], "training"),
        (["docs", "docs/training"], "training"),
    ):
        assert run(asked) == 0
        assert capsys.readouterr().out == f"{manual / page}.html\n"
    assert run(["docs", "course/01-sequences", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"] == str(manual / "course" / "01-sequences.html")


def test_a_person_at_a_terminal_gets_a_browser(manual: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    opened: list[str] = []
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)))
    assert run(["docs"]) == 0
    assert opened == [(manual / "index.html").as_uri()]
    assert "no browser could be opened" in capsys.readouterr().err


def test_a_page_that_is_not_there_and_docs_that_are_not_built_are_told(
    manual: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert run(["docs", "trianing"]) == 3
    assert "page = trianing: no such page; did you mean 'training'?" in capsys.readouterr().err
    monkeypatch.setattr(about, "MANUAL", manual / "nowhere")
    assert run(["docs"]) == 5
    assert "docs: not in this installation" in capsys.readouterr().err
