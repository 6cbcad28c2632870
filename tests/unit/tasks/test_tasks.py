"""What every task has to keep to, those of tomorrow too: each that the settings name is trained and used."""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path
from typing import get_args

import pytest

import corpora_for_tests as small
from regard.runs.folder import Run
from regard.serve.routes.predict import Prediction
from regard.settings import TaskName
from regard.settings.call import DecodeSettings
from regard.tasks.corpus import materials
from regard.tasks.load import load, open_predictor, task_of
from regard.trainer.start import start

LEARN = ("train.steps=2", "train.validate_every=2", "data.pairs=61", "train.watch='the cat sleeps'")
TEXTS = ["the cat sleeps", " ", "an old dog saw the river"]


@pytest.mark.parametrize("name", get_args(TaskName))
def test_a_task_is_trained_predicts_and_is_measured(name: TaskName, tmp_path: Path) -> None:
    notes, series = small.Notes(), ()
    if name == "forecast":
        moments = [[round(math.sin(place), 3)] for place in range(90)]
        (tmp_path / "series.jsonl").write_text(json.dumps({"series": moments}) + "\n")
        series = (
            f"data.corpus={tmp_path / 'series.jsonl'}",
            "train.watch='[1,2]'",
            "forecast.horizon=5",
            "forecast.paths=7",
        )
    texts = ["[1, 2, 3]", " ", "[1, null, 2, 7]"] if series else TEXTS
    start(tmp_path / "run", small.settings("lstm", f"task={name}", *LEARN, *series), notes, device="cpu")
    task, run = task_of(name), Run.open(tmp_path / "run")
    rows = list(islice(materials(run.settings)[1].rows(task.columns), 7))
    assert not any(task.fault(row) for _, row in rows)
    assert [len(row) for _, row in rows] == [len(task.columns)] * 7
    if name == "translate":  # which is asked otherwise, and has tests of its own
        assert len((translator := load(run.folder)).translate(TEXTS)) == len(TEXTS)
        assert len(repr(translator)) < 400
        return
    predictor = open_predictor(run.folder)
    assert len(repr(predictor)) < 400  # its run, not every layer
    assert predictor.task == name
    answers = predictor.predict(texts, DecodeSettings(length=5, beam=2))
    for text, answer in zip(texts, answers, strict=True):
        assert len(str(answer).splitlines()) == bool(text.strip())
        assert json.dumps(answer.to_dict())
        assert set(answer.fields()) <= set(Prediction.model_fields)
    assert len(predictor.read(texts)) == len(texts)
    result = predictor.evaluate([rows], "corpus")
    assert all(number > 0 or label != "accuracy" for label, number in result.numbers())
    assert result.to_dict()["task"] == name
    assert len(result.rows()) > len(result.confusions())
