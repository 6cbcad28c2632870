"""Who searches: choosing an engine, the converted model in the run's folder, and what falls back to our own loop."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient

import corpora_for_tests as small
import regard.tasks.engines
from regard.cli.main import run
from regard.decode.cancel import cancellable
from regard.decode.engines.captured import Captured
from regard.decode.engines.pooled import Pooled
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.errors import ModelError, ResourceError, SettingsError
from regard.serve.app import create_app
from regard.serve.library import Library
from regard.settings.call import DecodeSettings
from regard.tasks.engines import Auto, CTranslate2, _cached, _open, choose, export, settle
from regard.tasks.load import load, open_translator
from regard.trainer.start import start

ctranslate2 = pytest.importorskip("ctranslate2")

Capture = pytest.CaptureFixture[str]
TEXTS = ["the black cat ate the mouse", "the bear ate the honey", "", "a small bird sees the river"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer of subwords, trained just long enough to write something."""
    folder = tmp_path_factory.mktemp("engines")
    learned = ("train.steps=120", "train.validate_every=120", "train.rate=2e-2", "train.smoothing=0.0")
    sizes = ("model.dropout=0.0", "model.width=32", "text.size=400")
    subwords = ("text.tokenizer=bpe", "text.joint=true", "model.tie=all")
    settings = small.settings("transformer-small", *small.animals(folder), *learned, *sizes, *subwords)
    start(folder / "run", settings, small.Notes(), device="cpu")
    return folder / "run"


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("engines"))
    return tmp_path / "run"


@pytest.mark.parametrize("beam", [1, 5])
def test_both_engines_translate_alike_and_say_what_they_are(trained: Path, beam: int) -> None:
    heard: list[str] = []
    native, other = load(trained, engine="native"), load(trained, engine="ctranslate2", tell=heard.append)
    assert heard == []
    assert isinstance(other.search.searcher.engine, CTranslate2)
    ours, theirs = (each.translate(TEXTS, beam=beam) for each in (native, other))
    assert [each.text for each in ours] == [each.text for each in theirs]
    assert [bool(each.text) for each in ours] == [True, True, False, True]
    assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-3)
    assert ours[0].attention.cross.shape == theirs[0].attention.cross.shape  # looking replays with the model


def test_a_check_that_raises_ends_the_search(trained: Path) -> None:
    """It is asked before each batch and at each step, and who only waits changes nothing."""
    translator, asked = load(trained), []

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


def test_an_engine_searches_all_but_what_comes_to_its_limit(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = load(trained, engine="ctranslate2")
    seen = []
    search = CTranslate2.search
    monkeypatch.setattr(
        CTranslate2, "search", lambda *given, **named: seen.append(search(*given, **named)) or [None, *seen[-1][1:]]
    )
    assert [each.text for each in translator.translate(TEXTS)] == [each.text for each in load(trained).translate(TEXTS)]
    assert len(seen[0]) == 3  # an empty text goes to nobody


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (Options(Sample(2)), "sampling by seed"),
        (Options(Beam(2, coverage_penalty=0.2)), "coverage"),
        (Options(Beam(2, groups=2, diversity=0.5)), "groups"),
        (Options(shortest=0.5), "a least length"),
        (Options(no_repeat=3), "a limit on repeated pieces"),
        (Options(forbidden=("chat",)), "forbidden words"),
        (Options(prefix="le"), "a prefix"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_an_engine_does_not_know_goes_to_our_own_search(trained: Path, options: Options, what: str) -> None:
    heard: list[str] = []
    translator = load(trained, engine="ctranslate2", tell=heard.append)
    expected = load(trained).translate(TEXTS, options)
    for _ in range(2):
        assert [each.text for each in translator.translate(TEXTS, options)] == [each.text for each in expected]
    assert heard == [f"engine: native: ctranslate2 does not support {what}"]  # once


def test_a_converted_model_is_kept_until_the_weights_are_others(copied: Path) -> None:
    load(copied, engine="ctranslate2")
    folder = copied / "engines" / "ctranslate2-float32"
    made = (folder / "model.bin").stat().st_mtime_ns
    load(copied, engine="ctranslate2")
    assert (folder / "model.bin").stat().st_mtime_ns == made
    receipt = json.loads((folder / "regard.json").read_text())
    (folder / "regard.json").write_text(json.dumps(receipt | {"checkpoint": "step-7"}))
    load(copied, engine="ctranslate2")
    assert (folder / "model.bin").stat().st_mtime_ns != made
    assert json.loads((folder / "regard.json").read_text()) == receipt


def test_a_run_that_may_only_be_read_is_converted_elsewhere(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Path:
        raise PermissionError

    monkeypatch.setattr(regard.tasks.engines, "_cached", refuse)
    assert load(copied, engine="ctranslate2").translate(TEXTS[0]).text == load(copied).translate(TEXTS[0]).text
    assert not (copied / "engines").exists()


def test_a_damaged_folder_is_named(copied: Path) -> None:
    folder = _cached(open_translator(copied), "float32")
    (folder / "model.bin").write_bytes(b"nothing")
    with pytest.raises(ResourceError, match=r"ctranslate2-float32: ctranslate2 cannot use it .*; remove the folder"):
        _open(ctranslate2, folder, "float32")


@pytest.mark.parametrize("name", ["model.bin", "shared_vocabulary.json", "config.json"])
def test_a_converted_model_that_is_damaged_is_made_again(copied: Path, name: str) -> None:
    folder = _cached(open_translator(copied), "float32")
    whole = (folder / name).read_bytes()
    for damage in (whole[: len(whole) // 2], None):
        (folder / name).unlink() if damage is None else (folder / name).write_bytes(damage)
        assert load(copied, engine="ctranslate2").translate(TEXTS[0]).text == load(copied).translate(TEXTS[0]).text
        assert (folder / name).read_bytes() == whole


def test_a_service_searches_with_its_engine_and_names_it(copied: Path) -> None:
    heard: list[str] = []
    library = Library(None, [copied], decode=DecodeSettings(engine="ctranslate2"), tell=heard.append)
    with TestClient(create_app(library), "http://localhost") as client:
        assert client.get("/api/v1/runs/run").json()["summary"]["engine"] == ""
        for more, expected in (({}, load(copied).translate(TEXTS[0])), ({"prefix": "le"}, None)):
            asked = {"run": "run", "texts": [TEXTS[0]], "alignment": False} | more
            found = client.post("/api/v1/translate", json=asked).json()["translations"][0]["outputs"][0]["text"]
            assert found.startswith("le") if expected is None else found == expected.text
        assert client.get("/api/v1/runs").json()["runs"][0]["engine"] == "ctranslate2"
        assert 'regard_model_engine{engine="ctranslate2",run="run"} 1.0' in client.get("/metrics").text
    assert heard == ["run: engine: native: ctranslate2 does not support a prefix"]
    with pytest.raises(SettingsError, match="engine = ctranslate: no such engine; did you mean 'ctranslate2'"):
        Library(None, [copied], decode=DecodeSettings(engine="ctranslate"))


def test_int8_has_a_folder_of_its_own(copied: Path) -> None:
    translator = load(copied, engine="ctranslate2-int8")
    assert translator.search.searcher.name == "ctranslate2-int8"
    assert len(translator.translate(TEXTS)) == 4
    assert (copied / "engines" / "ctranslate2-int8" / "model.bin").is_file()


def test_an_engine_that_does_not_fit_is_refused_in_one_line(trained: Path) -> None:
    material = open_translator(trained)
    several = replace(material, models=material.models * 2)
    elsewhere = replace(material, device=torch.device("meta"))
    with pytest.raises(SettingsError, match="engine = nativ: no such engine; did you mean 'native'"):
        choose("nativ", material)
    with pytest.raises(SettingsError, match="translates with one run, and here are several"):
        choose("ctranslate2", several)
    with pytest.raises(SettingsError, match="computes on the CPU here; add --device cpu"):
        choose("ctranslate2", elsewhere)
    assert choose("auto", several).engine is None
    assert choose("auto", elsewhere).engine is None


def test_on_a_gpu_our_own_search_is_the_one_in_captured_steps(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no GPU here: the engine is told of one, and searches where the weights are."""
    material = open_translator(trained)
    there = replace(material, device=torch.device("cuda"))
    searcher = choose("native", there)
    assert isinstance(searcher.engine, Captured)
    native = load(trained)
    found = replace(native, searcher=searcher).translate([*TEXTS, "the river"], beam=4)
    assert [each.text for each in found] == [each.text for each in native.translate([*TEXTS, "the river"], beam=4)]
    half = choose("native-bfloat16", there).engine
    assert isinstance(half, Captured)
    assert (half.name, half.model.weight.dtype) == ("native-bfloat16", torch.bfloat16)
    assert native.model.decoder.output.weight.dtype == torch.float32
    with pytest.raises(SettingsError, match="engine = native-bfloat16: computes on a GPU; add --device cuda"):
        choose("native-bfloat16", material)
    monkeypatch.setattr(Captured, "fits", lambda _: False)
    monkeypatch.setattr(Pooled, "fits", lambda _: False)
    assert choose("native", there).engine is None
    with pytest.raises(ModelError, match="engine = native-bfloat16: is for Transformers with plain attention"):
        choose("native-bfloat16", there)


@pytest.mark.parametrize(
    "options",
    [
        Options(Sample(4, nucleus=0.9)),
        Options(Sample(6), risk=True),
        Options(Beam(4, best=3), forbidden=("chat", "le"), no_repeat=2),
        Options(Beam(3), prefix="le", shortest=0.5, glossary={"river": "chat", "cat": "chien"}),
        Options(Beam(4, groups=2, diversity=0.5)),
        Options(Beam(3, coverage_penalty=0.2)),
    ],
    ids=lambda options: str(options.rule),
)
def test_in_captured_steps_every_option_has_the_outputs_of_the_loop(trained: Path, options: Options) -> None:
    material, native = open_translator(trained), load(trained)
    for models in (material.models, material.models * 2):
        searcher = choose("native", replace(material, models=models, device=torch.device("cuda")))
        assert isinstance(searcher.engine, Captured)
        found = replace(native, searcher=searcher).translate([*TEXTS, "the river"], options)
        expected = native.translate([*TEXTS, "the river"], options)
        assert [[each.text for each in one.outputs] for one in found] == [
            [each.text for each in one.outputs] for one in expected
        ]


def test_auto_stays_with_the_loop_where_the_other_engine_is_missing_or_would_differ(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    material = open_translator(trained)
    assert isinstance(choose("auto", material).engine, Auto)
    with monkeypatch.context() as changed:
        changed.setattr(regard.tasks.engines, "unfit", lambda _: "model.kind = recurrent: not here")
        assert choose("auto", material).engine is None
        with pytest.raises(ModelError, match=r"model\.kind = recurrent"):
            choose("ctranslate2", material)
    with monkeypatch.context() as changed:
        changed.setattr(regard.tasks.engines, "WordTokenizer", type(material.tokenizers.target))
        assert choose("auto", material).engine is None
    monkeypatch.setattr(regard.tasks.engines, "find_spec", lambda _: None)
    assert choose("auto", material).engine is None


# What is usual: our own loop for a few sentences; for many, CTranslate2 if it writes the same


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three different sentences are a sample, and six are many."""
    monkeypatch.setattr(regard.tasks.engines, "SAMPLE", 3)
    monkeypatch.setattr(regard.tasks.engines, "MANY", 6)


@pytest.mark.usefixtures("few")
def test_many_sentences_go_to_ctranslate2_when_it_writes_the_same_and_the_run_remembers(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    translator, expected = load(copied, tell=heard.append), [each.text for each in load(copied).translate(TEXTS)]
    searcher = translator.search.searcher
    assert [each.text for each in translator.translate(TEXTS)] == expected
    assert (searcher.name, searcher.bytes, heard, (copied / "engines").exists()) == ("native", 0, [], False)
    assert [each.text for each in translator.translate(TEXTS)] == expected
    assert searcher.name == "ctranslate2"
    assert searcher.bytes > 0
    assert heard == ["engine: ctranslate2, float32: the same outputs in less time"]
    kept = copied / "engines" / "ctranslate2-float32" / "same.json"
    remembered = json.loads(kept.read_text())
    assert remembered == {"ctranslate2": ctranslate2.__version__, "sentences": 3, "same": 3}
    translator.translate(TEXTS, Options(prefix="le"))
    assert heard[1:] == ["engine: native: ctranslate2 does not support a prefix"]
    monkeypatch.setattr(regard.tasks.engines, "_others", lambda *_: pytest.fail("measured again"))
    again = load(copied)
    assert [each.text for each in again.translate(TEXTS * 2)] == expected * 2
    assert again.search.searcher.name == "ctranslate2"
    kept.write_text(json.dumps(remembered | {"same": 2}))
    other = load(copied)
    other.translate(TEXTS * 2)
    assert other.search.searcher.name == "native"


@pytest.mark.usefixtures("few")
def test_what_ctranslate2_writes_otherwise_stays_with_the_loop(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    search = CTranslate2.search

    def wrong(*given: Any) -> Any:
        first, *rest = search(*given)
        return [[replace(each, tokens=[*each.tokens, 7]) for each in first or []], *rest]

    monkeypatch.setattr(CTranslate2, "search", wrong)
    translator, expected = load(copied, tell=heard.append), [each.text for each in load(copied).translate(TEXTS)]
    for _ in range(3):
        assert [each.text for each in translator.translate(TEXTS)] == expected
    assert heard == ["engine: native: ctranslate2 has other outputs for 1 of 3 sentences"]  # once
    assert translator.search.searcher.name == "native"
    assert json.loads((copied / "engines" / "ctranslate2-float32" / "same.json").read_text())["same"] == 2


@pytest.mark.usefixtures("few")
def test_processes_that_share_a_file_settle_by_its_first_lines(copied: Path) -> None:
    many, one, drawn = load(copied), load(copied), load(copied)
    settle(many, TEXTS * 2, Options())
    assert many.search.searcher.name == "ctranslate2"
    settle(one, TEXTS, Options())  # too few: it stays with the loop, however many come
    one.translate(TEXTS * 3)
    assert one.search.searcher.name == "native"
    settle(drawn, TEXTS * 2, Options(prefix="le"))
    assert drawn.search.searcher.name == "native"
    settle(load(copied, engine="native"), TEXTS, Options())


@pytest.mark.usefixtures("few")
def test_the_same_sentence_again_and_again_is_no_sample(copied: Path) -> None:
    translator = load(copied)
    translator.translate(TEXTS[:1] * 20)
    assert translator.search.searcher.name == "native"
    assert not (copied / "engines").exists()


@pytest.mark.usefixtures("few")
def test_a_converted_model_that_cannot_be_used_leaves_auto_with_the_loop(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ResourceError("engines: ctranslate2 cannot use it")

    monkeypatch.setattr(regard.tasks.engines, "_open", refuse)
    heard: list[str] = []
    translator = load(copied, tell=heard.append)
    assert translator.translate(TEXTS * 2)[0].text == load(copied).translate(TEXTS[0]).text
    assert heard == ["engine: native: engines: ctranslate2 cannot use it"]


def test_a_run_is_exported_to_a_folder_with_its_tokenizers(trained: Path, tmp_path: Path) -> None:
    folder = export(open_translator(trained), tmp_path / "out", "float32")
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "config.json", "model.bin", "regard.json", "shared_vocabulary.json", "tokenizer"),
    }
    with pytest.raises(ModelError, match="out: is there already; choose another folder"):
        export(open_translator(trained), tmp_path / "out", "float32")


def test_the_verbs_take_an_engine(copied: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(["runs", "export", str(copied), "--to", "ctranslate2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(copied / "engines" / "ctranslate2-float32")
    assert run(["runs", "export", str(copied), "--to", "ctranslate2-int8"]) == 0
    assert "decode.engine=ctranslate2-int8 uses it" in capsys.readouterr().err
    assert run(["runs", "export", str(copied), "--to", "ctranslate2-int16"]) == 0
    assert "uses it" not in capsys.readouterr().err
    assert run(["translate", str(copied), TEXTS[0], "decode.engine=ctranslate2"]) == 0
    shown = capsys.readouterr()
    assert run(["translate", str(copied), TEXTS[0]]) == 0
    assert capsys.readouterr().out == shown.out
    files = [tmp_path / "in", tmp_path / "ref"]
    for file in files:
        file.write_text(f"{TEXTS[0]}\n{TEXTS[1]}\n")
    sides = ["--source", str(files[0]), "--target", str(files[1]), "measure.resamples=0", "--json"]
    assert run(["evaluate", str(copied), *sides, "decode.engine=ctranslate2", "measure.metrics=bleu"]) == 0
    capsys.readouterr()
    assert run(["runs", "rm", str(copied), "--yes"]) == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--to", "onnx"], "--to = onnx: no such format; known: archive, archive-all"),
        (["run.tar", "--to", "ctranslate2"], "FILE = run.tar: is for an archive; name a folder"),
        ([], "FILE: missing; name the archive to write, for example run.tar.gz"),
    ],
    ids=str,
)
def test_an_export_that_cannot_be_meant_gets_one_line(
    trained: Path, capsys: Capture, arguments: list[str], line: str
) -> None:
    assert run(["runs", "export", str(trained), *arguments]) == 2
    assert line in capsys.readouterr().err
