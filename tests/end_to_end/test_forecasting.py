"""Series as a user has them: train, forecast, measure, look inside, resume; and what must hold of any forecaster."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import corpora_for_tests as small
from regard.cli.main import run as cli
from regard.data.series import naive
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.forecast import over_time
from regard.metrics.forecast import LEVELS, MEDIAN
from regard.runs.folder import Run
from regard.settings import ForecastSettings, Settings
from regard.tasks.forecast import Forecaster, Gaussian, Quantiles, as_vectors, open_forecaster
from regard.tasks.load import load_predictor
from regard.text.vectors import written
from regard.trainer.start import fitted, resume, start

Capture = pytest.CaptureFixture[str]
LADDER = ("rnn", "gru", "lstm", "bahdanau", "luong-general", "transformer-tiny")
CUT = ("task=forecast", "forecast.context=13", "forecast.horizon=5", "forecast.season=7", "forecast.paths=30")
LEARN = ("train.rate=0.01", "train.batch=512", "train.schedule=cosine", "train.steps=60", "train.validate_every=60")


def wave(length: int, seed: int, channels: int = 2) -> np.ndarray:
    """Two channels of one week, with noise and holes."""
    chance, time = np.random.default_rng(seed), np.arange(length)[:, None]
    values = 5 + 3 * np.sin(2 * np.pi * time / 7 + np.arange(channels)) + 0.3 * chance.normal(size=(length, channels))
    values[chance.random(length) < 0.03, 0] = np.nan
    return values


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("series")
    for name, length, seed in (("train", 300, 1), ("test", 60, 2)):
        lines = (",".join("" if np.isnan(one) else f"{one:.4f}" for one in row) for row in wave(length, seed))
        numbered = (f"{2000 + place},{line}" for place, line in enumerate(lines))
        (made / f"{name}.csv").write_text("\n".join(("year,a,b", *numbered)) + "\n")
    return made


def settings(folder: Path, preset: str, *overrides: str) -> Settings:
    return small.settings(preset, *CUT, *LEARN, f"data.corpus={folder / 'train.csv'}", *overrides)


@cache
def trained(folder: Path, preset: str, *overrides: str) -> Path:
    """Runs shared by the tests: do not change them."""
    torch.manual_seed(0)
    place = folder / "-".join((preset, *(override.rpartition("=")[2] for override in overrides)))
    start(place, settings(folder, preset, *overrides), small.Notes(), device="cpu")
    return place


def forecaster(folder: Path, preset: str, *overrides: str) -> Forecaster:
    return open_forecaster(Run.open(trained(folder, preset, *overrides)))


def test_the_end_of_a_training_names_a_command_that_works(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run, corpus = tmp_path / "run", folder / "train.csv"
    asked = ["task=forecast", *CUT, "train.steps=2", "--corpus", str(corpus), "--out", str(run), "--device", "cpu"]
    assert cli(["train", "gru", *asked]) == 0
    command = f"predict {run} --file {corpus}"
    assert f"try: regard {command}\n" in capsys.readouterr().err
    assert cli([*command.split(), "--device", "cpu"]) == 0


@pytest.mark.parametrize("preset", LADDER)
def test_every_rung_forecasts_no_worse_than_the_last_season(preset: str, folder: Path, capsys: Capture) -> None:
    run = trained(folder, preset)
    assert cli(["evaluate", str(run), "--source", str(folder / "test.csv"), "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    scores = {each["name"]: each for each in found["scores"]}
    assert found["windows"] == 60 - 13 - 5 + 1
    assert scores["own predictions"]["mase"] < 1.05 * scores["seasonal naive"]["mase"]
    assert scores["seasonal naive"]["mase"] < 0.5 * scores["naive"]["mase"]
    assert 0.5 < scores["own predictions"]["coverage"]["0.8"] <= 1
    assert len(scores["given the true past"]["steps"]) == 5


@pytest.mark.parametrize(
    "how", [("forecast.head=direct",), ("forecast.loss=quantile",), ("forecast.head=direct", "forecast.loss=quantile")]
)
def test_heads_and_losses(how: tuple[str, ...], folder: Path, capsys: Capture) -> None:
    run = trained(folder, "gru", *how)
    assert cli(["evaluate", str(run), "--source", str(folder / "test.csv"), "--device", "cpu"]) == 0
    shown = capsys.readouterr().err
    assert "own predictions" in shown
    assert ("given the true past" in shown) is ("forecast.head=direct" not in how)
    quantiles = forecaster(folder, "gru", *how).forecast([wave(13, 3)])[0]
    assert quantiles.shape == (5, 2, len(LEVELS))
    assert (np.diff(quantiles) >= -1e-9).all()


def test_a_file_is_forecast(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run = str(trained(folder, "gru"))
    assert cli(["predict", run, "--file", str(folder / "test.csv"), "--device", "cpu"]) == 0
    median = np.array(json.loads(capsys.readouterr().out))
    assert median.shape == (5, 2)
    assert cli(["predict", run, str(folder / "test.csv"), "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(found["forecast"], median, rtol=1e-5)
    np.savez(tmp_path / "two.npz", a=wave(20, 4), b=wave(9, 5))
    assert cli(["predict", run, "--file", str(tmp_path / "two.npz"), "--device", "cpu"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("preset", LADDER)
def test_batch_mates_and_padding_change_nothing(preset: str, folder: Path) -> None:
    predictor = forecaster(folder, preset)
    series = [wave(13, 6), wave(7, 7), wave(4, 8)]
    together = predictor.forecast(series)
    for each, other in zip(series, together, strict=True):
        np.testing.assert_allclose(predictor.forecast([each])[0], other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("preset", LADDER)
def test_a_step_is_a_short_forward(preset: str, folder: Path) -> None:
    model = forecaster(folder, preset).model.eval()
    source = as_vectors(torch.randn(3, 11, 3))[..., :6]  # one of two channels may be missing, and both have an anchor
    target = as_vectors(torch.randn(3, 5, 2))
    with torch.no_grad():
        vector, state = model.start(source)
        read = torch.cat((vector[:, None], target[:, :-1]), 1)
        whole = model(source, read)
        for time in range(5):
            found, state = model.step(read[:, time], state)
            torch.testing.assert_close(found, whole[:, time], rtol=1e-4, atol=1e-5)


def test_the_future_changes_nothing_before_it(folder: Path) -> None:
    for preset in ("transformer-tiny", "bahdanau"):
        model = forecaster(folder, preset).model.eval()
        source, target = as_vectors(torch.randn(2, 7, 3))[..., :6], as_vectors(torch.randn(2, 5, 2))
        changed = target.clone()
        changed[:, 3:] += 1
        with torch.no_grad():
            torch.testing.assert_close(model(source, target)[:, :3], model(source, changed)[:, :3])


def test_a_direct_head_reads_no_moment_that_it_forecasts(folder: Path) -> None:
    predictor = forecaster(folder, "transformer-tiny", "forecast.head=direct")
    found = predictor.forecast([wave(13, 9)])[0]
    drawn = replace(predictor, cut=predictor.cut.model_copy(update={"paths": 3})).forecast([wave(13, 9)])[0]
    np.testing.assert_array_equal(found, drawn)


@pytest.mark.parametrize("preset", ["gru", "transformer-tiny"])
def test_a_run_that_was_resumed_is_one_that_never_stopped(preset: str, folder: Path, tmp_path: Path) -> None:
    for name, steps in (("whole", 9), ("parts", 4)):
        chosen = settings(folder, preset, f"train.steps={steps}", "train.schedule=constant")
        start(tmp_path / name, chosen, small.Notes(), device="cpu")
    resume(tmp_path / "parts", small.Notes(), device="cpu", more="9")
    assert small.weights(tmp_path / "parts") == small.weights(tmp_path / "whole")


@pytest.mark.parametrize("preset", ["gru", "luong-general", "transformer-tiny"])
def test_a_forecast_is_looked_into(preset: str, folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run, out = trained(folder, preset), [tmp_path / f"map.{suffix}" for suffix in ("html", "svg", "png")]
    arguments = [part for path in out for part in ("--out", str(path))]
    assert cli(["explain", str(run), str(folder / "test.csv"), *arguments, "--device", "cpu"]) == 0
    assert "+1" in capsys.readouterr().out
    assert all(path.stat().st_size > 1000 for path in out)
    assert "<path" in out[1].read_text()  # the curve
    found = over_time(open_forecaster(Run.open(run)), written(wave(20, 3)), run="wave")
    picture = found.picture()
    assert picture.columns[0] == "8"  # the last 13 of 20
    np.testing.assert_allclose(np.array(found.quantiles)[..., MEDIAN], found.forecast)
    np.testing.assert_allclose(found.naive, naive(wave(20, 3)[7:], 5, 7))
    np.testing.assert_allclose(np.array(found.context, float), wave(20, 3)[7:], rtol=1e-5)
    assert found.methods == (["gradient"] if preset == "gru" else ["attention", "gradient"])
    if preset != "gru":
        np.testing.assert_allclose(picture.totals, 1.0, rtol=1e-4)
    gradients = over_time(open_forecaster(Run.open(run)), written(wave(20, 3)), "gradient")
    assert gradients.picture().unit == "gradient"
    assert np.isfinite(gradients.weights).all()
    assert cli(["explain", str(run), str(folder / "test.csv"), "--json", "--device", "cpu"]) == 0
    assert len(json.loads(capsys.readouterr().out)["weights"]) == 5


def test_what_a_forecaster_cannot_be_asked_is_said(folder: Path, tmp_path: Path) -> None:
    run, predictor = trained(folder, "gru"), forecaster(folder, "gru")
    with pytest.raises(ModelError, match="forecasts numbers and has no words"):
        load_predictor(run)
    with pytest.raises(DataError, match="channels = 1: 2 would be right"):
        predictor.predict(["[1, 2, 3]"])
    with pytest.raises(DataError, match="empty series"):
        over_time(predictor, " ")
    with pytest.raises(DataError, match="not for a forecast"):
        over_time(predictor, "[[1, 2]]", "alti")
    with pytest.raises(ModelError, match="attends to nothing"):
        over_time(predictor, "[[1, 2]]", "attention")
    short = tmp_path / "short.csv"
    short.write_text("a\n1\n2\n3\n")
    with pytest.raises(DataError, match="= 18 moments to train with"):
        start(tmp_path / "run", settings(folder, "gru", f"data.corpus={short}"), small.Notes(), device="cpu")
    for change, problem in (
        ("text.source.kind=text", "reads numbers"),
        ("train.scheduled_sampling=0.5", "is for words"),
        ("forecast.context=300", "leaves all examples out"),
    ):
        with pytest.raises(SettingsError, match=problem):
            settings(folder, "gru", change)
    assert cli(["explain", str(run), str(folder / "test.csv"), "--out", str(tmp_path / "x.safetensors")]) == 2


def test_a_forecaster_is_chosen_where_no_preset_is_named(folder: Path) -> None:
    found, reason = fitted("", "task=forecast", f"data.corpus={folder / 'train.csv'}", device="cpu")
    assert found.text.source.kind == "vectors"
    assert "recurrent" in reason


def test_quantile_functions_are_those_of_their_distributions() -> None:
    normal = torch.tensor([2.0, 1.0])  # softplus(1) = 1.3133
    assert float(Gaussian().at(normal, torch.tensor(0.5))) == pytest.approx(2.0)
    assert float(Gaussian().at(normal, torch.tensor(0.975))) == pytest.approx(2 + 1.96 * 1.3143, abs=1e-3)
    levels = torch.tensor(LEVELS) * 10
    for share in (0.05, 0.5, 0.31, 0.99, 0.01):
        assert float(Quantiles().at(levels, torch.tensor(share))) == pytest.approx(10 * share, abs=1e-5)
    truth = torch.randn(2001, generator=torch.Generator().manual_seed(1))
    guesses = [
        Quantiles().loss((torch.special.ndtri(torch.tensor(LEVELS)) * by).expand(2001, -1), truth).mean()
        for by in (0.5, 1, 2)
    ]
    assert min(guesses) == guesses[1]


def test_defaults_can_be_written_and_read_again() -> None:
    assert ForecastSettings.model_validate(ForecastSettings().model_dump()) == ForecastSettings()
