"""Runs that read numbers and pictures, as a client of the service meets them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import serving
from regard.explain.forecast import over_time
from regard.runs.folder import Run
from regard.serve.limits import Limits
from regard.tasks.forecast import Forecaster, open_forecaster

SERIES = "[[5, 4], [6, null], [7, 3], [5, 4], [6, 5], [7, 3], [5, 4], [6, 5], [7, 3]]"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = serving.vector_runs(tmp_path_factory.mktemp("numbers") / "runs")
    serving.train(folder / "text", "lstm", "model.depth=1")
    return folder


@pytest.fixture(scope="module")
def forecaster(runs: Path) -> Forecaster:
    return open_forecaster(Run.open(runs / "series"))


def asked(client: TestClient, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/{path}", json={"run": "series", **body})
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def test_a_forecast_is_the_prediction_of_its_task(client: TestClient, forecaster: Forecaster) -> None:
    found, empty = asked(client, "predict", texts=[SERIES, ""])["predictions"]
    expected = forecaster.predict([SERIES])[0].to_dict()
    for name in ("forecast", "levels", "quantiles"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)
    assert empty["forecast"] == []
    table = base64.b64encode(b"date,a,b\n2001,5,4\n2002,6,5\n2003,7,3\n").decode()
    (from_file,) = asked(client, "predict", texts=[f"data:text/csv;base64,{table}"])["predictions"]
    assert np.shape(from_file["forecast"]) == (5, 2)


def test_what_a_forecast_hangs_on_is_one_answer(client: TestClient, forecaster: Forecaster) -> None:
    found = asked(client, "forecast", text=SERIES)
    assert found == over_time(forecaster, SERIES, run="series").plain()
    assert (found["method"], found["methods"]) == ("attention", ["attention", "gradient"])
    assert found["context"][1] == [6.0, None]
    assert np.shape(found["weights"]) == (5, 9)
    assert asked(client, "forecast", text=SERIES, method="gradient")["method"] == "gradient"
    at_the_end = asked(client, "forecast", text=SERIES, checkpoint="step-7")
    np.testing.assert_allclose(at_the_end["forecast"], found["forecast"], rtol=1e-4)


@pytest.mark.parametrize(
    ("path", "status", "body", "line"),
    [
        ("forecast", 400, {"text": "[1, 2, 3]"}, "channels = 1: 2 would be right"),
        ("forecast", 400, {"text": "one two"}, "source = 'one two': not numbers"),
        ("forecast", 400, {"text": "/etc/passwd.csv"}, "source = '/etc/passwd.csv': not numbers"),
        ("forecast", 400, {"text": "[[1e308, 1], [2, 3]]"}, "source: a number that is infinite, or beyond 1e+30"),
        ("forecast", 400, {"text": " "}, "text = '': an empty series"),
        ("forecast", 400, {"text": SERIES, "method": "alti"}, "by = alti: not for a forecast"),
        ("forecast", 404, {"run": "text", "text": "a cat"}, "run = text: does not forecast; ask /api/v1/trace"),
        ("trace", 404, {"text": SERIES}, "run = series: forecasts numbers and has no words"),
        ("importance", 404, {"text": SERIES}, "run = series: forecasts numbers and has no words"),
        ("beam", 404, {"text": SERIES}, "run = series: forecasts numbers and has no words"),
        ("walkthrough", 404, {"text": SERIES}, "run = series: forecasts numbers and has no words"),
        ("meaning", 404, {"word": "a", "sentences": ["a"]}, "run = series: forecasts numbers and has no words"),
        (
            "translate",
            404,
            {"texts": [SERIES]},
            "run: does not translate; ask /api/v1/predict, or choose a run that translates",
        ),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(
    client: TestClient, path: str, status: int, body: dict[str, Any], line: str
) -> None:
    error = asked(client, path, status, **body)["error"]
    assert error.startswith(line)
    assert "\n" not in error


def test_numbers_may_be_longer_than_a_text(client: TestClient, runs: Path) -> None:
    long = str([[1.5, 2.5]] * 1000)
    assert len(long) > Limits().text
    assert asked(client, "forecast", text=long)["first"] == 1000 - 14 + 1
    assert len(asked(client, "predict", texts=[long])["predictions"]) == 1
    for path, body in (("predict", {"texts": [long]}), ("trace", {"text": long}), ("translate", {"texts": [long]})):
        assert "too long; send at most 5,000" in asked(client, path, 413, run="text", **body)["error"]
    with serving.client(runs, limits=Limits(vectors=6000)) as small:
        assert "too long; send at most 6,000" in asked(small, "forecast", 413, text=long)["error"]


def test_a_long_text_that_is_no_numbers_is_not_sent_back(client: TestClient) -> None:
    assert len(asked(client, "forecast", 400, text="x" * 100_000)["error"]) < 300


def test_a_forecaster_is_listed_with_what_it_does(client: TestClient) -> None:
    listed = {each["name"]: each for each in client.get("/api/v1/runs").json()["runs"]}
    assert (listed["series"]["task"], listed["series"]["score_name"]) == ("forecast", "relative error")
    assert listed["series"]["best"]
    assert [listed[name]["vectors"] for name in ("series", "pictures", "captions", "text")] == [True, True, True, False]
    described = client.get("/api/v1/runs/series").json()["model"]
    assert described["attentions"] == ["decoder.cross"]
    first = client.get("/api/v1/runs/series/examples").json()["examples"][0]["text"]
    assert len(asked(client, "forecast", text=first)["context"]) == 14


def test_a_picture_is_looked_into(client: TestClient) -> None:
    text = client.get("/api/v1/runs/pictures/examples").json()["examples"][0]["text"]
    assert text.startswith("data:image/png")
    found = asked(client, "trace", run="pictures", text=text)
    assert found["source"]["words"] == ["1,1", "1,2", "2,1", "2,2"]
    assert found["output"] in ("dark", "light")


def test_pictures_are_in_no_language_and_stand_in_for_no_text(client: TestClient) -> None:
    listed = {each["name"]: each for each in client.get("/api/v1/runs").json()["runs"]}
    assert listed["captions"]["languages"] is None  # though its settings name two
    assert listed["captions"]["best"]
    assert listed["text"]["best"]
    answer = client.post("/translate", json={"q": "the cat", "source": "en", "target": "fr"})
    assert answer.headers["X-Regard-Run"] == "text"
    assert [each["targets"] for each in client.get("/languages").json()] == [["fr"], []]


def test_a_text_for_a_run_of_pictures_is_refused_and_the_run_goes_on(client: TestClient) -> None:
    picture = client.get("/api/v1/runs/captions/examples").json()["examples"][0]["text"]
    for path, body in (("translate", {"texts": [picture, "a cat"]}), ("beam", {"text": "a cat"})):
        assert asked(client, path, 400, run="captions", **body)["error"].startswith("source = 'a cat': not numbers")
    assert asked(client, "translate", run="captions", texts=[picture])["translations"][0]["outputs"][0]["text"]


def test_a_run_of_pictures_has_no_words_to_compare(client: TestClient) -> None:
    picture = client.get("/api/v1/runs/captions/examples").json()["examples"][0]["text"]
    for run in ("captions", "pictures"):
        error = asked(client, "meaning", 404, run=run, word="1,1", sentences=[picture])["error"]
        assert error.startswith("meaning: this run reads vectors and no words")


def test_the_schema_describes_a_forecast(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert "/api/v1/forecast" in schema["paths"]
    described = schema["components"]["schemas"]["Forecasted"]
    assert {"context", "quantiles", "naive", "weights"} <= set(described["required"])
