"""Sequences of vectors as a user has them: train, translate, classify, evaluate, look inside, resume."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import corpora_for_tests as small
from regard.cli.main import run as cli
from regard.data.readers import Corpus
from regard.errors import DataError, SettingsError
from regard.explain.look import look
from regard.explain.replay import replay
from regard.fable.sets import png
from regard.runs.folder import Run
from regard.settings import Settings
from regard.tasks.corpus import Files
from regard.tasks.load import evaluate, load, load_predictor
from regard.text.vectors import written
from regard.trainer.start import fitted, resume, start

Capture = pytest.CaptureFixture[str]
WORDS = ("left", "right", "top", "bottom")  # which half of a picture is bright
LEARN = ("text.tokenizer=word", "train.rate=0.01", "train.smoothing=0.0", "train.schedule=constant", "data.corpus=")


def picture(word: str, seed: int) -> np.ndarray:
    chance = np.random.default_rng((WORDS.index(word), seed))
    pixels = chance.integers(0, 60, (6, 6))
    half = (slice(None), slice(0, 3)) if word in ("left", "right") else (slice(0, 3), slice(None))
    if word in ("right", "bottom"):
        half = tuple(slice(3, 6) if each.stop else each for each in half)
    pixels[half] += 150
    return pixels.astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of pictures: in lines, and as files that lines name."""
    made = tmp_path_factory.mktemp("vectors")
    (made / "pictures").mkdir()
    for split, count in (("train", 40), ("test", 5)):
        rows = [(picture(word, seed + 1000 * (split == "test")), word) for seed in range(count) for word in WORDS]
        (made / f"{split}.vectors").write_text("".join(f"{png(pixels)}\n" for pixels, _ in rows))
        (made / f"{split}.words").write_text("".join(f"{word}\n" for _, word in rows))
        named = []
        for number, (pixels, _) in enumerate(rows):
            path = made / "pictures" / f"{split}{number}.png"
            path.write_bytes(base64.b64decode(png(pixels).partition(",")[2]))
            named.append(f"pictures/{path.name}\n")
        (made / f"{split}.names").write_text("".join(named))
        series = [f"{written(pixels / 255)}\t{word}\n" for pixels, word in rows]  # a line of pixels is a vector
        (made / f"{split}.tsv").write_text("".join(series))
    return made


def settings(folder: Path, preset: str, *overrides: str, source: str = "train.vectors") -> Settings:
    files = (f"data.source={folder / source}", f"data.target={folder / 'train.words'}")
    return small.settings(preset, *LEARN, *files, "text.source={kind='vectors', patch=3}", "model.tie=none", *overrides)


@cache
def trained(folder: Path, name: str) -> Path:
    """Runs shared by the tests: do not change them."""
    torch.manual_seed(0)
    if name == "classify":
        table = (
            f"data.corpus={folder / 'train.tsv'}",
            "data.source=",
            "data.target=",
            "task=classify",
            "model.reach=3",
        )
        chosen = settings(folder, "gru", *table, "train.steps=150")
    else:
        source = "train.names" if name == "bahdanau" else "train.vectors"
        chosen = settings(folder, name, "train.steps=300", source=source)
    start(folder / name, chosen, small.Notes(), device="cpu")
    return folder / name


@pytest.mark.parametrize("name", ["transformer-tiny", "bahdanau"])
def test_pictures_are_told_in_words(name: str, folder: Path, capsys: Capture) -> None:
    run = trained(folder, name)
    source = "test.names" if name == "bahdanau" else "test.vectors"
    arguments = ["--source", str(folder / source), "--target", str(folder / "test.words"), "--json", "--device", "cpu"]
    assert cli(["evaluate", str(run), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    scores = {each["name"]: each["score"] for each in found["qualities"]}
    assert scores["exact"] >= 90
    assert scores["edits"] <= 15
    assert not found["lengths"]
    assert cli(["translate", str(run), str(folder / "pictures" / "test0.png"), "--device", "cpu"]) == 0
    assert capsys.readouterr().out.split() == ["left"]


def test_a_name_in_a_text_opens_no_file(folder: Path) -> None:
    translator = load(trained(folder, "transformer-tiny"))
    with pytest.raises(DataError, match="a file is named by a person"):
        translator.translate(str(folder / "pictures" / "test0.png"))
    assert translator.translate("").text == ""


def test_batch_mates_and_engines_change_nothing(folder: Path) -> None:
    run = trained(folder, "transformer-tiny")
    lines = (folder / "test.vectors").read_text().splitlines()
    lines.append(png(np.full((9, 3), 200, np.uint8)))  # of another length
    together = load(run).translate(lines)
    alone = [load(run, engine="native").translate(line) for line in lines[-3:]]
    for first, second in zip(together[-3:], alone, strict=True):
        assert first.text == second.text
        assert first.log_probability == pytest.approx(second.log_probability, abs=1e-4)


def test_vectors_are_classified(folder: Path, capsys: Capture) -> None:
    run = trained(folder, "classify")
    assert cli(["evaluate", str(run), "--source", str(folder / "test.tsv"), "--json", "--device", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] >= 0.9
    predictor = load_predictor(run)
    line, label = (folder / "test.tsv").read_text().splitlines()[2].split("\t")
    assert predictor.read([line, ""]) == [label, ""]
    assert len(look(predictor, line).trace.source.words) == 6


def test_every_vector_is_tagged(folder: Path, capsys: Capture) -> None:
    """Whether a number is above the one before it: a frame a tag."""
    chance = np.random.default_rng(1)
    for split, count in (("tags", 80), ("tagged", 9)):
        rows = [chance.normal(size=(int(chance.integers(3, 9)), 1)) for _ in range(count)]
        tags = [" ".join("up" if up else "down" for up in np.diff(row[:, 0], prepend=0) > 0) for row in rows]
        lines = (f"{written(row)}\t{tag}\n" for row, tag in zip(rows, tags, strict=True))
        (folder / f"{split}.tsv").write_text("".join(lines))
    table = (f"data.corpus={folder / 'tags.tsv'}", "data.source=", "data.target=", "task=tag", "model.reach=3")
    start(folder / "tag", settings(folder, "gru", *table, "train.steps=150"), small.Notes(), device="cpu")
    assert (
        cli(["evaluate", str(folder / "tag"), "--source", str(folder / "tagged.tsv"), "--json", "--device", "cpu"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] >= 0.9
    assert found["unknown_words"] == 0
    tagger = load_predictor(folder / "tag")
    line = (folder / "tagged.tsv").read_text().split("\t")[0]
    first, nothing = tagger.predict([line, ""])
    assert first.to_dict()["words"] == tuple(str(place + 1) for place in range(line.count(",") + 1))
    assert not str(nothing)
    assert look(tagger, line).trace.target.words[0] in ("up", "down")
    (folder / "wrong.tsv").write_text("[1, 2]\tup\n")
    with pytest.raises(DataError, match="2 vectors but 1 tags; every vector needs one tag"):
        evaluate(folder / "tag", Files(Corpus((str(folder / "wrong.tsv"),))))
    with pytest.raises(DataError, match="2 vectors but 1 tags"):
        start(folder / "odd", settings(folder, "gru", *table, f"data.corpus={folder / 'wrong.tsv'}"), small.Notes())
    chosen, _ = fitted("", f"data.corpus={folder / 'tags.tsv'}", "task=tag", "text.source.kind=vectors", device="cpu")
    assert not chosen.model.letters


@pytest.mark.parametrize("method", ["attention", "masking", "masking-unknown", "masking-removed", "gradient", "alti"])
def test_every_method_says_which_patches_mattered(method: str, folder: Path, capsys: Capture) -> None:
    run, text = trained(folder, "transformer-tiny"), str(folder / "pictures" / "test0.png")
    assert cli(["explain", str(run), text, "--by", method, "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)["attribution"]
    assert found["columns"] == ["1,1", "1,2", "2,1", "2,2"]
    assert np.isfinite(found["source"]).all()


@pytest.mark.parametrize("name", ["transformer-tiny", "bahdanau", "classify"])
def test_a_walk_through_vectors_ends_where_the_model_does(name: str, folder: Path, capsys: Capture) -> None:
    if name == "classify":
        text = (folder / "test.tsv").read_text().split("\t")[0]
    else:
        text = str(folder / "pictures" / "test1.png")
    assert cli(["walk", str(trained(folder, name)), text, "--side", "encoder", "--json", "--device", "cpu"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert "vectors" in {step["kind"] for step in steps}
    assert ("filtered" if name == "classify" else "from_vectors") in {step["kind"] for step in steps}


def test_a_replay_of_a_loaded_run_is_what_was_searched(folder: Path) -> None:
    translation = load(trained(folder, "bahdanau")).translate((folder / "test.vectors").read_text().splitlines()[3])
    trace = translation.trace()
    assert trace.source.words == ("1,1", "1,2", "2,1", "2,2")
    assert trace.score == pytest.approx(translation.log_probability, abs=1e-4)
    again = replay(translation.translator.model, trace.source.rows, trace.target.ids)
    torch.testing.assert_close(again.log_probability, trace.log_probability)


@pytest.mark.parametrize("preset", ["transformer-tiny", "luong-dot"])
def test_a_run_that_was_resumed_is_one_that_never_stopped(preset: str, folder: Path, tmp_path: Path) -> None:
    for name, steps in (("whole", 12), ("parts", 5)):
        start(tmp_path / name, settings(folder, preset, f"train.steps={steps}"), small.Notes(), device="cpu")
    resume(tmp_path / "parts", small.Notes(), device="cpu", more="12")
    assert small.weights(tmp_path / "parts") == small.weights(tmp_path / "whole")


def test_settings_are_fitted_to_vectors_too(folder: Path) -> None:
    given = (f"data.source={folder / 'train.vectors'}", f"data.target={folder / 'train.words'}")
    found, reason = fitted("", *given, "text.source.kind=vectors", "text.source.patch=3", device="cpu")
    assert found.model.tie != "all"
    assert "160 pairs" in reason or "152 pairs" in reason


def test_what_vectors_cannot_be_is_said(folder: Path) -> None:
    for change, problem in (
        ("task=language", "reads text; use another task"),
        ("data.corpus=fable:fr", "is text; name a corpus of vectors"),
        ("text.sampling=true", "are for text"),
        ("model.reach=2", "must be odd; 3 would be right"),
    ):
        with pytest.raises(SettingsError, match=problem):
            settings(folder, "gru", change)
    with pytest.raises(SettingsError, match="has no vocabulary to share"):
        start(folder / "tied", settings(folder, "gru", "model.tie=all"), small.Notes(), device="cpu")


def test_a_run_keeps_its_scale(folder: Path) -> None:
    run = Run.open(trained(folder, "transformer-tiny"))
    kept = json.loads((run.tokenizer / "source" / "tokenizer.json").read_text())
    assert len(kept["mean"]) == 9
    assert kept["kind"] == "vectors"
