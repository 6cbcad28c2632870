"""``/api/v1/predict``: tags, classes or continuations, from runs that do not translate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from regard.errors import ModelError
from regard.serve.library import Library
from regard.serve.limits import BEAM, LENGTH, NAME, Body
from regard.serve.routes.translate import Decode
from regard.serve.worker import Model
from regard.settings.call import CONTINUED, DecodeSettings
from regard.tasks.predictor import Predicted, continuing
from regard.text.reading import KnownWords, Unknown, unseen


class PredictBody(Body):
    """Texts for a tagger, a classifier or a language model."""

    run: Annotated[str, Field(max_length=NAME, description="The name of a run.", examples=["tagger"])]
    texts: Annotated[list[str], Field(description="Each by itself.", examples=[["the black cat ate the mouse"]])]
    length: Annotated[int, Field(ge=1, le=LENGTH, description="Language models: pieces to add at the most.")] = 40
    beam: Annotated[int, Field(ge=1, le=BEAM, description="Language models: hypotheses; 1 is greedy.")] = 1
    sample: Annotated[bool, Field(description="Language models: draw instead of searching.")] = False
    temperature: Annotated[float, Field(gt=0, le=10, description="Of drawing; below 1 is more cautious.")] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**31, description="Of drawing.")] = 1
    decode: Decode = None


class Prediction(BaseModel):
    """What a run says of one text. Which of the fields are filled depends on its task."""

    text: str
    tags: Annotated[
        list[dict[Literal["word", "tag", "probability"], str | float]],
        Field(description="Of a tagger: one for each word, and how probable it is."),
    ] = []
    classes: Annotated[
        list[dict[Literal["label", "probability"], str | float]],
        Field(description="Of a classifier: all of them, the likeliest first."),
    ] = []
    continuation: Annotated[str, Field(description="Of a language model: what follows the text.")] = ""
    score: Annotated[float | None, Field(description="Of a continuation: its log-probability over its length.")] = None
    forecast: Annotated[list[list[float]], Field(description="Of a forecaster: the median of each moment.")] = []
    levels: Annotated[list[float], Field(description="Of a forecaster: which quantiles there are.")] = []
    quantiles: Annotated[
        list[list[list[float]]], Field(description="Of a forecaster: of each moment and channel.")
    ] = []
    warning: Annotated[str, Field(description="What the reader should know; empty if all is as usual.")] = ""
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
    """What a tagger, a classifier or a language model says of texts."""
    started = time.perf_counter()
    library: Library = request.app.state.library
    library.limits.check(body.texts)
    fields = body.model_dump(include={"length", "beam", "sample", "temperature", "seed"}, exclude_unset=True)
    usual = DecodeSettings(**{"beam": 1} | library.decode.model_dump(exclude_unset=True))
    what = "a text that is gone on with"
    how = continuing(library.limits.decode(usual, fields, body.decode, known=CONTINUED, what=what))

    def work(model: Model) -> tuple[str, list[Prediction]]:
        if model.task == "translate":
            raise ModelError(f"run = {body.run}: translates; ask /api/v1/translate")
        answers: Sequence[Predicted] = model.predict(body.texts, how)
        found = zip(body.texts, answers, strict=True)
        return model.task, [_prediction(text, answer, model.known) for text, answer in found]

    task, found = await (await library.worker(body.run)).call(work)
    spent = round(1000 * (time.perf_counter() - started), 1)
    return PredictAnswer(run=body.run, task=task, predictions=found, milliseconds=spent)


def _prediction(text: str, answer: Predicted, known: KnownWords | None) -> Prediction:
    """With the words that the run has never seen."""
    unknown, warning = unseen(text, known)
    return Prediction.model_validate({"text": text, **answer.fields(), "warning": warning, "unknown": unknown})
