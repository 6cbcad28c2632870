"""``/api/v1/predict``: tags, classes or continuations, from runs that do not translate."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fastapi import APIRouter, Request

from regard.errors import ModelError
from regard.serve.library import Library
from regard.serve.schema.predict import PredictAnswer, PredictBody, Prediction
from regard.serve.worker import Model
from regard.settings.call import CONTINUED, DecodeSettings
from regard.tasks.predictor import Predicted, Writing
from regard.text.known import KnownWords
from regard.text.reading import unseen

router = APIRouter(prefix="/api/v1/predict", tags=["predict"])


@router.post("")
async def predict(request: Request, body: PredictBody) -> PredictAnswer:
    """What a tagger, a classifier or a language model says of texts."""
    started = time.perf_counter()
    library: Library = request.app.state.service.library
    library.limits.check(body.texts)
    fields = body.model_dump(include={"length", "beam", "sample", "temperature", "seed"}, exclude_unset=True)
    usual = DecodeSettings(**{"beam": 1} | library.decode.model_dump(exclude_unset=True))
    what = "a text that is gone on with"
    how = Writing.of(library.limits.decode(usual, fields, body.decode, known=CONTINUED, what=what))

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
