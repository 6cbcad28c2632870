"""Shortlists: what is learned of the training text, and what a search among candidates writes."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import regard.tasks.shortlisting
import serving
import tiny
from regard.cli.main import run
from regard.data.examples import Examples, Ragged
from regard.data.lexicon import learn_lexicon
from regard.decode.cancel import cancellable
from regard.decode.fused import Fused
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.decode.search import search
from regard.decode.shortlist import Candidates, Shortlist
from regard.errors import DataError, SettingsError
from regard.serve.library import Library
from regard.tasks.load import load
from regard.text.special import END

Capture = pytest.CaptureFixture[str]
TEXTS = [serving.CAT, "the bear ate the honey", "", "a small bird sees the river"]
EVERY = torch.arange(tiny.TARGET_SIZE)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = ("model.width=32", "model.encoder_depth=1", "model.decoder_depth=1")
    return serving.train(tmp_path_factory.mktemp("shortlist") / "run", "transformer-small", *small)


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("shortlist.*"))
    return tmp_path / "run"


def ragged(rows: list[list[int]]) -> Ragged:
    return Ragged(np.concatenate(rows).astype(np.uint16), np.cumsum([0, *map(len, rows)]))


def test_a_piece_brings_what_it_stands_beside_when_others_do_not() -> None:
    sources = [[4, 5, END], [4, 6, END], [5, 6, END], [4, END]]
    targets = [[7, 8], [9, 7, 7], [8, 9], [7]]
    lexicon = learn_lexicon(Examples({"source": ragged(sources), "target": ragged(targets)}), (11, 13), 2)
    assert lexicon.likely[[4, 5, 6], 0].tolist() == [7, 8, 9]
    assert lexicon.likely[10].tolist() == [0, 0]  # never seen
    assert lexicon.frequent[:3].tolist() == [7, 8, 9]
    assert len(lexicon.frequent) == 13


def test_of_a_large_corpus_rows_are_left_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.lexicon.MOST", 12)
    sources, targets = [[4, END], [5, END]] * 6, [[7], [8]] * 6
    lexicon = learn_lexicon(Examples({"source": ragged(sources), "target": ragged(targets)}), (7, 11), 1)
    assert lexicon.likely[[4, 5], 0].tolist() == [7, 0]


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("overrides", [(), ("model.norm_place=after", "model.tie=all")])
def test_a_search_among_candidates_is_that_of_a_model_which_has_no_others(
    beam: int, overrides: tuple[str, ...]
) -> None:
    model = tiny.translator("transformer-small", *overrides)
    source, limits = tiny.rows([7, 3, 5], tiny.SOURCE_SIZE, 3), torch.tensor([17, 3, 23])
    shortlist = Shortlist(torch.randint(29, (29, 3), generator=torch.Generator().manual_seed(7)), EVERY[:7], 29)
    candidates, fused = shortlist.candidates(source), Fused(model)
    assert candidates.ids.tolist() != EVERY.tolist()
    writer = fused.among(candidates)
    together = search(writer, *writer.start(source), limits, rule=Beam(beam, best=beam))
    for row in range(3):
        own = shortlist.candidates(source[row : row + 1, : [7, 3, 5][row]]).ids
        few = copy.deepcopy(model)
        few.decoder.output.bias.data[~torch.isin(EVERY, own)] = -torch.inf
        start = few.start(source[row : row + 1, : [7, 3, 5][row]])
        (alone,) = search(few, *start, limits[row : row + 1], rule=Beam(beam, best=beam))
        found = [candidates.spell(each) for each in together[row]]
        assert [each.tokens for each in found] == [each.tokens for each in alone]
        assert [each.score for each in found] == pytest.approx([each.score for each in alone])


def test_the_whole_vocabulary_as_a_shortlist_changes_nothing(trained: Path) -> None:
    plain, short = load(trained), load(trained, shortlist=1)
    every = torch.arange(plain.tokenizers.target.size)
    object.__setattr__(short, "shortlist", Shortlist(short.shortlist.likely, every, len(every)))  # type: ignore[union-attr]
    for beam in (1, 5):
        ours, theirs = (each.translate(TEXTS, beam=beam) for each in (plain, short))
        assert [(each.text, each.score) for each in ours] == [(each.text, each.score) for each in theirs]
    fused = plain.search.fused
    assert fused is not None
    assert fused.among(Candidates(every, None)) is fused


def test_a_shortlist_is_learned_once_and_again_when_it_is_damaged(copied: Path) -> None:
    heard: list[str] = []
    first = load(copied, shortlist=50, tell=heard.append).translate(TEXTS)
    path = copied / "shortlist.safetensors"
    whole = path.read_bytes()
    shutil.rmtree(copied / "data")
    path.write_bytes(whole[:100])
    for engine in ("native", "auto"):
        again = load(copied, shortlist=50, engine=engine, tell=heard.append).translate(TEXTS)
        assert [each.text for each in again] == [each.text for each in first]
    assert path.read_bytes() == whole
    line = f"shortlist: learning from the training text which pieces translate which; kept in {path}"
    assert heard == [line, line, "engine: native: the others know nothing of a shortlist"]
    regard.tasks.shortlisting.DEPTH, depth = 7, regard.tasks.shortlisting.DEPTH
    try:
        assert load(copied, shortlist=5, tell=heard.append).shortlist is not None  # of another depth: made again
    finally:
        regard.tasks.shortlisting.DEPTH = depth
    assert heard[-1] == line


@pytest.mark.parametrize("options", [Options(Sample(2)), Options(prefix="le"), Options(Beam(2, coverage_penalty=0.1))])
def test_who_draws_or_names_pieces_or_looks_inside_has_all_of_them(trained: Path, options: Options) -> None:
    ours, theirs = (each.translate(TEXTS, options) for each in (load(trained), load(trained, shortlist=1)))
    assert [(each.text, each.score) for each in ours] == [(each.text, each.score) for each in theirs]


def test_no_text_depends_on_its_company(trained: Path) -> None:
    translator = load(trained, shortlist=3)
    together = [each.text for each in translator.translate(TEXTS)]
    assert together == [translator.translate(text).text for text in TEXTS]


@pytest.mark.parametrize("shortlist", [0, 50])
def test_a_check_that_raises_ends_the_search(trained: Path, shortlist: int) -> None:
    """It is asked before each batch and at each step, and who only waits changes nothing."""
    translator, asked = load(trained, shortlist=shortlist), []

    def leave_at_the_third() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError), cancellable(leave_at_the_third):
        translator.search(TEXTS, Options(Beam(2), shortest=2.0))
    assert len(asked) == 3
    with cancellable(lambda: asked.append(1)):
        patient = translator.search(TEXTS, Options())
    assert [each[0].text for each in patient] == [each.text for each in translator.translate(TEXTS)]
    assert len(asked) > 5


def test_the_verbs_and_the_service_take_a_shortlist(trained: Path, capsys: Capture) -> None:
    expected = load(trained, shortlist=50).translate(TEXTS[0]).text
    assert run(["translate", str(trained), TEXTS[0], "--shortlist", "50"]) == 0
    assert capsys.readouterr().out == f"{expected}\n"
    library = Library(None, [trained], shortlist=50)
    with serving.client_of(library) as client:
        asked = {"run": "run", "texts": [TEXTS[0]]}
        answer = client.post("/api/v1/translate", json=asked).json()
        assert answer["translations"][0]["outputs"][0]["text"] == expected


@pytest.mark.parametrize("count", [-1, 201])
def test_a_count_that_cannot_be_meant_gets_one_line(trained: Path, capsys: Capture, count: int) -> None:
    assert run(["translate", str(trained), TEXTS[0], "--shortlist", str(count)]) == 2
    line = f"shortlist = {count}: is how many targets a source piece brings, 1 to 200; 100 is usual, 0 is all"
    assert line in capsys.readouterr().err
    with pytest.raises(SettingsError, match=f"shortlist = {count}"):
        Library(None, [trained], shortlist=count)


def test_what_cannot_use_a_shortlist_says_so(trained: Path, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="shortlist = 50: the engine ctranslate2 knows of none; use the engine nat"):
        load(trained, shortlist=50, engine="ctranslate2")
    with pytest.raises(SettingsError, match="shortlist = 50: is for one Transformer on a CPU; leave it out for others"):
        load(trained, trained, shortlist=50)
    shutil.rmtree(copied / "data")

    def gone(_: object) -> None:
        raise DataError("train.en: no such file")

    monkeypatch.setattr(regard.tasks.shortlisting, "materials", gone)
    with pytest.raises(DataError, match=r"shortlist: the training text is not there any more \(train.en: no such file"):
        load(copied, shortlist=50)
