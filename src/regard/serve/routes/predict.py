"""``/api/v1/predict``: tags, classes, continuations or forecasts by runs that do not translate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from regard.errors import ModelError
from regard.serve.library import Library
from regard.serve.limits import BEAM, LENGTH, NAME, Body
from regard.serve.pairs import check_text
from regard.serve.routes.translate import Decode
from regard.serve.worker import Model
from regard.settings.call import CONTINUED, DecodeSettings
from regard.tasks.predictor import Predicted, continuing
from regard.text.reading import Unknown, unseen


class PredictBody(Body):
    """Texts for a tagger, a classifier or a language model, or series for a forecaster."""

    run: Annotated[str, Field(max_length=NAME, description="The name of a run.", examples=["tagger"])]
    texts: Annotated[
        list[str],
        Field(
            description="Each by itself; a series is `[1, 2, 3]`, or the contents of a CSV file.",
            examples=[["the black cat ate the mouse"]],
        ),
    ]
    length: Annotated[int, Field(ge=1, le=LENGTH, description="Language models: pieces to generate at the most.")] = 40
    beam: Annotated[int, Field(ge=1, le=BEAM, description="Language models: hypotheses; 1 is greedy.")] = 1
    sample: Annotated[bool, Field(description="Language models: sample instead of searching.")] = False
    temperature: Annotated[float, Field(gt=0, le=10, description="Of sampling; below 1 is more cautious.")] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**31, description="Of sampling.")] = 1
    decode: Decode = None


class TaggedWord(BaseModel):
    """A word with its tag."""

    word: str
    tag: str
    probability: float


class ClassProbability(BaseModel):
    """A class with its probability."""

    label: str
    probability: float


class Prediction(BaseModel):
    """The prediction for one text. Which fields are filled depends on the task of the run."""

    text: str
    tags: Annotated[list[TaggedWord], Field(description="Of a tagger: one for each word.")] = []
    classes: Annotated[
        list[ClassProbability], Field(description="Of a classifier: all classes, the most probable first.")
    ] = []
    continuation: Annotated[str, Field(description="Of a language model: the text that follows.")] = ""
    score: Annotated[float | None, Field(description="Of a continuation: its log-probability over its length.")] = None
    forecast: Annotated[list[list[float]], Field(description="Of a forecaster: the median of each moment.")] = []
    levels: Annotated[list[float], Field(description="Of a forecaster: which quantiles there are.")] = []
    quantiles: Annotated[
        list[list[list[float]]], Field(description="Of a forecaster: of each moment and channel.")
    ] = []
    warning: Annotated[str, Field(description="A remark for the reader; empty if there is none.")] = ""
    unknown: Annotated[tuple[Unknown, ...], Field(description="Words that the run has never seen.")] = ()


class PredictAnswer(BaseModel):
    """All texts in their order."""

    run: str
    task: Annotated[str, Field(examples=["tag"])]
    predictions: list[Prediction]
    milliseconds: float


router = APIRouter(prefix="/api/v1/predict", tags=["predict"])


@router.post("")
async def predict(request: Request, body: PredictBody) -> PredictAnswer:
    """Predict with a tagger, a classifier, a language model or a forecaster."""
    started = time.perf_counter()
    library: Library = request.app.state.library
    check_text(library, body.run, *body.texts, where="texts")
    fields = body.model_dump(include={"length", "beam", "sample", "temperature", "seed"}, exclude_unset=True)
    usual = DecodeSettings(**{"beam": 1} | library.decode.model_dump(exclude_unset=True))
    what = "continuing a text"
    how = continuing(library.limits.decode(usual, fields, body.decode, known=CONTINUED, what=what))

    def work(model: Model) -> tuple[str, list[Prediction]]:
        if model.task == "translate":
            raise ModelError(f"run = {body.run}: translates; ask /api/v1/translate")
        answers: Sequence[Predicted] = model.predict(body.texts, how)
        predictions = []
        for text, answer in zip(body.texts, answers, strict=True):
            unknown, warning = unseen(text, model.known)
            content = {"text": text, **answer.fields(), "warning": warning, "unknown": unknown}
            predictions.append(Prediction.model_validate(content))
        return model.task, predictions

    task, predictions = await (await library.worker(body.run)).call(work)
    spent = round(1000 * (time.perf_counter() - started), 1)
    return PredictAnswer(run=body.run, task=task, predictions=predictions, milliseconds=spent)
