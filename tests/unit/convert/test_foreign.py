"""Ids that move, and runs that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from importing import small_run
from regard.cli.main import run as cli
from regard.convert import foreign
from regard.convert.foreign import MOST_PIECES, NEVER, Foreign, Ids, write
from regard.errors import ModelError, ResourceError
from regard.runs.archive import pack, unpack
from regard.runs.checkpoint import model_tensors
from regard.runs.folder import Origin, origin_of
from regard.runs.listing import summarise
from regard.tasks.load import load, open_translator
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, START, UNK


def test_special_tokens_have_our_ids_wherever_theirs_are() -> None:
    pieces = ["</s>", "<unk>", *(f"p{number}" for number in range(2, 28)), "<pad>"]
    opus = Ids.of(pieces, pad=28, start=28, end=0, unknown=1)
    assert opus.theirs.tolist() == [28, 28, 0, 1, *range(2, 28)]
    assert opus.ours(torch.tensor([28, 0, 1, 2, 27])).tolist() == [PAD, END, UNK, 4, 29]
    assert opus.pieces[:5] == (*SPECIAL_TOKENS, "p2")
    own = Ids.of(pieces, pad=PAD, start=START, end=END, unknown=UNK)
    assert own.theirs.tolist() == own.ours(torch.arange(29)).tolist() == list(range(29))


def test_rows_that_are_added_are_zero_and_never_written() -> None:
    ids = Ids.of(["</s>", "a", "b"], pad=None, start=0, end=0, unknown=None)
    matrix = torch.arange(6.0).reshape(3, 2) + 1
    assert ids.rows(matrix).tolist() == [[0, 0], [1, 2], [1, 2], [0, 0], [3, 4], [5, 6]]
    assert ids.bias(torch.tensor([7.0, 8.0, -torch.inf])).tolist() == [NEVER, NEVER, 7, NEVER, 8, NEVER]


def test_pieces_of_one_name_and_rows_without_a_piece_are_told_apart() -> None:
    ids = Ids.of(["</s>", "<unk>", "a", "a", "<pad>"], pad=None, start=0, end=0, unknown=1, rows=6)
    assert ids.pieces[4:] == ("a", "a#3", "<pad>#4", "<unused 5>")


@pytest.mark.parametrize("special", [(0, 0, 0, 1), (0, 1, 2, 1), (0, 0, 2, 29), (-1, 0, 2, 3)])
def test_special_tokens_that_are_none_or_the_same_are_refused(special: tuple[int, int, int, int]) -> None:
    pad, start, end, unknown = special
    with pytest.raises(ModelError, match=r"must be ids of 29 pieces, all different"):
        Ids.of(["x"] * 29, pad=pad, start=start, end=end, unknown=unknown)


def test_vocabularies_beyond_all_measure_or_beyond_the_matrices_are_refused() -> None:
    with pytest.raises(ModelError, match="more than the"):
        Ids.of([], pad=0, start=0, end=1, unknown=2, rows=MOST_PIECES + 1)
    with pytest.raises(ModelError, match="vocabulary = 9 pieces: the matrices have 5 rows"):
        Ids.of(["x"] * 9, pad=0, start=0, end=1, unknown=2).rows(torch.zeros(5, 2))


def changed(run: Path, extra: str = "", *, without: str = "", fill: float = 0.0, size: int = 0) -> Foreign:
    material = open_translator(run)
    weights = {name: tensor.clone() for name, tensor in model_tensors(material.models[0]).items()}
    weights[BIAS] = torch.full((size or len(weights[BIAS]),), fill)
    weights.pop(without, None)
    more = [(extra, torch.zeros(1))] if extra else []
    return Foreign(material.run.settings, [*weights.items(), *more], material.tokenizers, Origin("none", "x"))


BIAS = "decoder.output.bias"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"size": 3}, rf"{BIAS} = \(3,\): must be"),
        ({"fill": torch.nan}, f"{BIAS}: has infinite numbers or NaN"),
        ({"without": BIAS}, f"{BIAS}: the model has no such weight; 1 are missing"),
        ({"extra": "decoder.more"}, r"decoder\.more: no such weight"),
    ],
)
def test_weights_that_do_not_fit_leave_nothing(change: dict[str, Any], line: str, tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    with pytest.raises(ModelError, match=line):
        write(changed(run, **change), tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_others_have_trained_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = small_run(tmp_path / "run")
    assert summarise(write(changed(run, {}), tmp_path / "other").folder).state == "finished"
    assert cli(["runs", "ls", str(tmp_path)]) == cli(["runs", "show", str(tmp_path / "other")]) == 0
    told = capsys.readouterr().out
    assert "imported" in told
    assert "training  " not in told  # it was not trained here


def test_a_place_that_is_taken_or_too_small_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small_run(tmp_path / "run")
    with pytest.raises(ModelError, match="run: exists already; choose another --out"):
        write(changed(run), run)
    monkeypatch.setattr(foreign.shutil, "disk_usage", lambda _: type("Disk", (), {"free": 5}))
    with pytest.raises(ResourceError, match="but only 5 are free; free some space"):
        write(changed(run), tmp_path / "other")


def test_where_a_model_comes_from_goes_with_its_archive(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    Origin("fairseq", "x", "MIT", (("a", "b"),), (("README", "text"),)).save(run)
    pack(run, tmp_path / "run.tar")
    assert origin_of(unpack(tmp_path / "run.tar", tmp_path / "again").folder) == origin_of(run)
    assert load(tmp_path / "again").translate("the cat").text is not None
    (run / "origin.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(ModelError, match="is damaged; take it from a copy"):
        origin_of(run)
    assert origin_of(tmp_path) is None
