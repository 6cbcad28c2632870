"""The run that comes with the package: how it is made, how it is found, and that nobody writes into it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import corpora_for_tests as small
import regard
from benches import scripts
from regard.cli.main import run as cli
from regard.errors import ModelError, SettingsError
from regard.runs.archive import pack
from regard.runs.folder import MANIFEST, PACKAGED, Run, best_checkpoint, digest, resolve
from regard.runs.listing import removable
from regard.serve.library import Library
from regard.settings import load_settings
from regard.settings.demo import demo_settings
from regard.tasks.load import load
from regard.trainer.start import resume, start
from serving import client

Capture = pytest.CaptureFixture[str]
CAT = "the black cat ate the mouse"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return scripts("demo_model")[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "first"
    start(folder, small.settings("transformer-tiny", "train.average={kind='moving'}"), small.Notes(), device="cpu")
    return folder


@pytest.fixture(scope="module")
def made(trained: Path, maker: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny one, made as the real one is."""
    out = tmp_path_factory.mktemp("package") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maker, "TESTED", 7)
        maker.package(trained, out, command="make demo-model", changed=["train.seed=1"])
    return out


@pytest.fixture
def packaged(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny one in the place of the package's own; the working folder is empty, and so is the cache."""
    monkeypatch.setattr("regard.runs.folder.PACKAGED", made)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return made


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): digest(path) for path in folder.rglob("*") if path.is_file()}


# Making it


def test_what_is_packaged_is_what_using_it_takes_and_where_it_comes_from(made: Path) -> None:
    names = set(contents(made))
    assert {"settings.toml", "aligner.json", "log.jsonl", "best", "about.json"} < names
    assert not any("optimizer" in name or name.startswith("data/") for name in names)
    about = json.loads((made / "about.json").read_text(encoding="utf-8"))
    assert about["command"] == "make demo-model"
    assert about["seed"] == 1
    assert about["scores"]["sentences"] == 7
    assert len(about["corpus"]["sha256"]) == 64
    assert {"BLEU", "chrF2", "exact", "alignment error rate"} < about["scores"].keys()


def test_the_package_says_with_which_settings_its_run_was_made() -> None:
    about = json.loads((PACKAGED / "about.json").read_text(encoding="utf-8"))
    made = demo_settings(about["preset"], *about["changed"])
    assert made == load_settings(PACKAGED / "settings.toml")
    assert about["command"].endswith(" ".join(about["changed"][2:]))


def test_weights_of_16_bits_are_computed_with_in_32(made: Path, trained: Path) -> None:
    weights = load_file(next(best_checkpoint(Run.open(made)).glob("*.safetensors")))
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float16)}
    half, whole = load(made).model, load(trained).model
    for one, other in zip(half.parameters(), whole.parameters(), strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_a_number_too_large_for_16_bits_is_named(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "large")
    checkpoint = best_checkpoint(Run.open(run))
    weights = {name: array * np.float32(1e9) for name, array in load_file(checkpoint / "average.safetensors").items()}
    save_file(weights, checkpoint / "average.safetensors")
    hashes = json.loads((checkpoint / MANIFEST).read_text())
    hashes["average.safetensors"] = digest(checkpoint / "average.safetensors")
    (checkpoint / MANIFEST).write_text(json.dumps(hashes))
    with pytest.raises(ModelError, match="beyond 65,504"):
        pack(run, tmp_path / "x.tar", half=True)


def test_half_is_for_use_and_all_for_training(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="half, everything: weights of 16 bits cannot be resumed"):
        pack(trained, tmp_path / "x.tar", half=True, everything=True)


def test_export_halves_an_archive(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    for name, flags in (("whole", ()), ("half", ("--to", "archive-half"))):
        assert cli(["runs", "export", str(trained), str(tmp_path / f"{name}.tar"), *flags]) == 0
    assert (tmp_path / "half.tar").stat().st_size < 0.7 * (tmp_path / "whole.tar").stat().st_size
    capsys.readouterr()


def test_one_too_large_for_the_package_is_refused(
    trained: Path, maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker, "TESTED", 3)
    monkeypatch.setattr(maker, "LARGEST", 1000)
    with pytest.raises(SystemExit, match="too large for the package"):
        maker.package(trained, tmp_path / "demo", command="x")
    assert not (tmp_path / "demo").exists()


# Finding it


def test_the_name_is_the_packages_run_where_no_folder_has_it(packaged: Path, trained: Path) -> None:
    assert resolve(Path("demo")) == packaged
    assert Run.open(Path("demo")).place == "demo"
    Path("demo").mkdir()
    Path("demo", "notes.txt").touch()
    assert resolve(Path("demo")) == packaged  # somebody's folder, but no run
    shutil.copytree(trained, "demo", dirs_exist_ok=True)
    assert resolve(Path("demo")) == Path("demo")
    assert Run.open(Path("demo")).folder == Path("demo")


def test_python_loads_it_by_name(packaged: Path) -> None:
    assert packaged.is_dir()
    result = regard.load("demo").translate(CAT, trace=True)
    assert result.attention.cross.dim() == 4
    assert result.text == load(packaged).translate(CAT).text


VERBS = {
    "translate": ["translate", "demo", CAT, "--show", "align"],
    "explain": ["explain", "demo", CAT],
    "beam": ["beam", "demo", CAT, "decode.beam=2"],
    "meaning": ["meaning", "demo", "cat", CAT, "the cat slept", "--control", "the"],
    "walk": ["walk", "demo", CAT],
    "evaluate": ["evaluate", "demo", "--source", "test.en", "--target", "test.fr", "measure.resamples=0"],
    "score": ["score", "demo", "--source", "test.en", "--target", "test.fr"],
    "report": ["report", "demo", "measure.limit=5", "measure.resamples=5"],
    "runs show": ["runs", "show", "demo"],
    "card": ["card", "demo"],
    "runs export": ["runs", "export", "demo", "demo.tar.gz"],
    "settings show": ["settings", "show", "demo"],
    "data check": ["data", "check", "test.en", "test.fr", "--run", "demo"],
    "an engine": ["translate", "demo", CAT, "decode.engine=ctranslate2"],
}


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_takes_it_and_leaves_it_as_it_was(name: str, packaged: Path, capsys: Capture) -> None:
    Path("test.en").write_text(f"{CAT}\nthe cat slept\n", encoding="utf-8")
    Path("test.fr").write_text("le chat noir a mangé la souris\nle chat a dormi\n", encoding="utf-8")
    before = contents(packaged)
    assert cli(VERBS[name]) == 0, capsys.readouterr().err
    assert contents(packaged) == before
    assert not any(str(packaged) in path.read_text(errors="replace") for path in Path().glob("*.html"))
    assert not Path("demo").exists()  # which the next command would take for the run


def test_its_card_is_written_beside_and_keeps_no_scores(packaged: Path, capsys: Capture) -> None:
    assert cli(["card", "demo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"card": "demo-card.md"}
    assert Path("demo-card.md").read_text(encoding="utf-8").startswith("---\n")
    assert cli(["card", "demo", "--scores", "scores.json"]) == 2
    assert "--scores: demo comes with Regard, and keeps none" in capsys.readouterr().err
    assert packaged.is_dir()


def test_what_is_made_on_use_is_kept_in_the_users_cache(packaged: Path, tmp_path: Path, capsys: Capture) -> None:
    (packaged / "aligner.json").rename(tmp_path / "aligner.json")
    try:
        assert cli(["translate", "demo", CAT, "--show", "align"]) == 0
        assert cli(["translate", "demo", CAT, "decode.engine=ctranslate2"]) == 0
        assert not (packaged / "aligner.json").exists()
    finally:
        (tmp_path / "aligner.json").rename(packaged / "aligner.json")
    (kept,) = (tmp_path / "cache" / "regard").iterdir()
    assert {path.name for path in kept.iterdir()} == {"aligner.json", "engines"}
    assert Run.open(packaged).cache == kept
    capsys.readouterr()


def test_a_folder_that_may_only_be_read_uses_the_cache_too(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Run.open(trained).cache == trained
    monkeypatch.setattr("os.access", lambda *_: False)
    assert Run.open(trained).cache.parent == tmp_path / ".cache" / "regard"


def test_it_is_neither_removed_nor_trained(packaged: Path, capsys: Capture) -> None:
    with pytest.raises(ModelError, match="demo: comes with Regard, and is neither renamed nor removed"):
        removable(Path("demo"))
    assert cli(["runs", "rm", "demo", "--yes"]) == 4
    with pytest.raises(ModelError, match=r"^demo: holds weights alone and cannot be resumed"):
        resume(Path("demo"))
    assert (packaged / "settings.toml").is_file()
    capsys.readouterr()


def test_a_demo_that_is_not_trained_yet_points_to_the_one_in_the_package(packaged: Path) -> None:
    assert packaged.is_dir()
    with pytest.raises(ModelError, match=r"runs/demo: no such folder; regard demo trains one; the name demo alone is"):
        Run.open(Path("runs/demo"))
    with pytest.raises(ModelError, match="dmo: no such folder; did you mean 'demo'"):
        Run.open(Path("dmo"))


def test_the_service_lists_it_behind_those_of_a_folder(packaged: Path, trained: Path, tmp_path: Path) -> None:
    assert Library(tmp_path / "none").runs() == {"demo": packaged}
    runs = tmp_path / "runs"
    shutil.copytree(trained, runs / "zebra")
    assert list(Library(runs).runs()) == ["zebra", "demo"]
    assert Library(None, [trained]).runs() == {"first": trained}
    shutil.copytree(trained, runs / "demo")
    assert Library(runs).runs()["demo"] == runs / "demo"


def test_the_studio_works_on_an_empty_folder(packaged: Path, tmp_path: Path) -> None:
    before = contents(packaged)
    (tmp_path / "empty").mkdir()
    with client(tmp_path / "empty", studio=True) as ask:
        assert [run["name"] for run in ask.get("/api/v1/runs").json()["runs"]] == ["demo"]
        answer = ask.post("/api/v1/translate", json={"run": "demo", "texts": [CAT]})
        assert answer.status_code == 200
        assert ask.get("/api/v1/runs/demo").status_code == 200
        assert ask.post("/api/v1/trace", json={"run": "demo", "text": CAT}).status_code == 200
        assert str(packaged) not in answer.text
    assert contents(packaged) == before
    assert list((tmp_path / "empty").iterdir()) == []
