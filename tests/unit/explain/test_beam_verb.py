"""``regard beam``: the search for one sentence as a tree, here, as JSON and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpora_for_tests as small
from pages import asks_for_nothing
from regard.cli.main import run
from regard.decode.rules import Beam
from regard.decode.tree import Fate, Reason
from regard.explain.beam import Searched, SearchNode, search_tree
from regard.show.terminal import lines
from regard.tasks.load import load, load_predictor
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
CAT = "the cat sees a bird"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("searched") / "tiny"
    start(made, small.settings("gru", "train.steps=3", "train.validate_every=3"), small.Notes(), device="cpu")
    return made


def test_a_tree_shows_what_was_kept_and_why_the_rest_left(folder: Path, capsys: Capture) -> None:
    assert run(["beam", str(folder), CAT, "decode.beam=2"]) == 0
    shown = capsys.readouterr()
    printed = shown.out.splitlines()
    assert printed[2].split() == ["log", "p", "normed", "<start>"]
    assert " ✓ " in shown.out
    assert "pruned" in shown.out
    assert "× pruned (" in shown.err
    others = printed[printed.index("other beams") + 1 :]
    assert [line.split()[0] for line in others] == ["1", "2", "3", "5", "10"]
    assert others[1].endswith("(this one)")


def test_numbers_are_those_of_the_search(folder: Path, capsys: Capture) -> None:
    assert run(["beam", str(folder), CAT, "decode.beam=3", "decode.length_penalty=0.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    best = found["nodes"][found["outputs"][0]]
    assert (best["fate"], best["reason"], best["token"]) == ("finished", "output", "<end>")
    written = load(folder).search([CAT], _options(3, 0.5))[0][0]
    assert best["log_probability"] == pytest.approx(written.log_probability, abs=1e-4)
    assert best["score"] == pytest.approx(written.score, abs=1e-4)
    assert found["output"] == written.text
    mine = next(other for other in found["others"] if other["beam"] == 3)
    assert mine["output"] == written.text
    assert mine["score"] == pytest.approx(best["score"], abs=1e-4)
    parents = {node["number"] for node in found["nodes"]}
    assert all(node["parent"] in parents for node in found["nodes"][1:])


def _options(width: int, penalty: float) -> object:
    from regard.decode.options import Options  # noqa: PLC0415

    return Options(Beam(width, penalty))


def test_a_page_asks_for_nothing_and_holds_the_numbers(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    page = tmp_path / "tree.html"
    assert run(["beam", str(folder), CAT, "--out", str(page)]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"wrote {page}" in shown.err
    written = page.read_text(encoding="utf-8")
    asks_for_nothing(written)
    assert "Outputs of other beam sizes" in written
    assert "5 (this one)" in written


def test_a_language_models_search_is_a_tree_too(capsys: Capture, tmp_path: Path) -> None:
    settings = small.settings("gru", "task=language", "train.steps=3", "train.validate_every=3")
    start(tmp_path / "writer", settings, small.Notes(), device="cpu")
    assert run(["beam", str(tmp_path / "writer"), "the cat", "decode.beam=2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    written = load_predictor(tmp_path / "writer").write(["the cat"], rule=Beam(2))[0]
    best = found["nodes"][found["outputs"][0]]
    assert best["score"] == pytest.approx(written.score, abs=1e-4)
    assert written.text.endswith(found["output"])
    assert run(["beam", str(tmp_path / "writer"), "the cat", "--out", str(tmp_path / "tree.html")]) == 0
    assert "writer" in (tmp_path / "tree.html").read_text(encoding="utf-8")


def test_a_run_that_gives_labels_has_no_search(capsys: Capture, tmp_path: Path) -> None:
    settings = small.settings("gru", "task=tag", "train.steps=1", "train.validate_every=1")
    start(tmp_path / "tags", settings, small.Notes(), device="cpu")
    assert run(["beam", str(tmp_path / "tags"), "the cat"]) == 4
    assert "beam: this run gives labels, each by itself, and does not search" in capsys.readouterr().err


def node(
    number: int, parent: int | None, step: int, piece: str, fate: Fate = "kept", reason: Reason = ""
) -> SearchNode:
    score = -float(number) / max(step, 1)
    return SearchNode(number, parent, step, 7, -float(number), score, fate, reason, piece, piece)


def plain(tree: Searched, width: int) -> list[str]:
    return [line.plain for line in lines(tree, width=width)]


def test_a_terminal_has_a_line_for_each_candidate_below_what_it_continues() -> None:
    nodes = (
        node(0, None, 0, "<start>"),
        node(1, 0, 1, "le"),
        node(2, 0, 1, "la", "pruned", "beam"),
        node(3, 1, 2, "chat"),
        node(4, 3, 3, "<end>", "finished", "output"),
        node(5, 1, 2, "chien", "kept", "full"),
        node(6, 5, 3, "<end>", "finished", "worse"),
    )
    tree = Searched("the cat", "le chat", 2, 1.0, nodes, (4,))
    assert [line[20:].removesuffix(line[50:]).rstrip() for line in plain(tree, 120)[1:]] == [
        "├─✓ le",
        "│ ├─✓ chat",
        "│ │ └─✓ <end>",
        "│ └─○ chien",
        "│   └─■ <end>",
        "└─× la",
    ]
    assert plain(tree, 120)[3].endswith("finished: this is the output")
    assert plain(tree, 80)[3].endswith("✓ output")
    assert plain(Searched("x", "", 1, 1.0, nodes[:1], ()), 80) == ["    log p   normed  <start>"]


def test_the_way_to_the_output_stands_out_and_what_was_pruned_stands_back() -> None:
    nodes = (
        node(0, None, 0, "<start>"),
        node(1, 0, 1, "le", "finished", "output"),
        node(2, 0, 1, "la", "pruned", "beam"),
    )
    _, first, second = lines(Searched("x", "le", 2, 1.0, nodes, (1,)), width=80)
    assert (str(first.style), str(second.style)) == ("bold green", "dim")


def test_a_deep_tree_takes_one_cell_a_level() -> None:
    nodes = (node(0, None, 0, "<start>"), *(node(place, place - 1, place, f"t{place}") for place in range(1, 31)))
    drawn = plain(Searched("x", "x", 1, 1.0, nodes, ()), 80)
    assert drawn[1].split()[-2:] == ["└●", "t1"]
    assert max(map(len, drawn)) <= 80


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ([" "], 3, "text = ' ': there is nothing to search for; give it a word"),
        ([CAT, "decode.beam=0"], 2, "beam = 0: a beam holds at least one hypothesis"),
        ([CAT, "--out", "{tmp}/file/x.html"], 5, "file: is a file where a folder should be"),
    ],
)
def test_a_mistake_gets_one_line(
    arguments: list[str], code: int, line: str, folder: Path, capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(["beam", str(folder), *(word.replace("{tmp}", str(tmp_path)) for word in arguments)]) == code
    shown = capsys.readouterr()
    assert line in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.out == ""


def test_a_run_has_a_name_and_other_beams_are_what_is_asked_for(folder: Path) -> None:
    found = search_tree(load(folder), CAT, Beam(2), others=(4,))
    assert found.name == "tiny"
    assert [other.beam for other in found.beams] == [2, 4]


def test_unknown_words_are_copied_as_in_any_translation(with_demo: Path, capsys: Capture) -> None:
    assert run(["beam", str(with_demo), "Zorblax loves Qwertz."]) == 0
    assert capsys.readouterr().out.startswith("Zorblax aime Qwertz.\n")
