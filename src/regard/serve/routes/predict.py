"""``/api/v1/predict``: tags, classes or continuations, from runs that do not translate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

from fastapi import APIRouter, Request

from regard.decode.rules import Beam, Rule, Sample
from regard.errors import ModelError
from regard.explain.look import task_of
from regard.serve.library import Library
from regard.serve.schema.predict import Label, PredictAnswer, PredictBody, Prediction, Tag
from regard.serve.schema.translate import UnknownAnswer
from regard.serve.worker import Model
from regard.tasks.labels import Classifier, Tagger
from regard.tasks.translator import Translator
from regard.tasks.writer import Writer
from regard.text.reading import unseen

router = APIRouter(prefix="/api/v1/predict", tags=["predict"])


@router.post("")
async def predict(request: Request, body: PredictBody) -> PredictAnswer:
    """What a tagger, a classifier or a language model says of texts."""
    started = time.perf_counter()
    library: Library = request.app.state.service.library
    library.limits.check(body.texts)
    rule: Rule = Sample(1, body.temperature, seed=body.seed) if body.sample else Beam(body.beam)

    def work(model: Model) -> tuple[str, list[Prediction]]:
        return task_of(model), [_remarked(each, model) for each in _predictions(model, body, rule)]

    task, found = await (await library.worker(body.run)).call(work)
    spent = round(1000 * (time.perf_counter() - started), 1)
    return PredictAnswer(run=body.run, task=task, predictions=found, milliseconds=spent)


def _remarked(found: Prediction, model: Model) -> Prediction:
    """With the words that the run has never seen."""
    if isinstance(model, Translator):
        return found
    unknown, warning = unseen(found.text, model.known)
    return found.model_copy(update={"warning": warning, "unknown": [UnknownAnswer(**asdict(each)) for each in unknown]})


def _predictions(model: Model, body: PredictBody, rule: Rule) -> list[Prediction]:
    match model:
        case Tagger():
            return [
                Prediction(
                    text=text,
                    tags=[
                        Tag(word=word, tag=tag, probability=probability)
                        for word, tag, probability in zip(one.words, one.tags, one.probabilities, strict=True)
                    ],
                )
                for text, one in zip(body.texts, model.tag(body.texts), strict=True)
            ]
        case Classifier():
            return [
                Prediction(text=text, classes=[Label(label=label, probability=value) for label, value in one.classes])
                for text, one in zip(body.texts, model.classify(body.texts), strict=True)
            ]
        case Writer():
            return _continued(model, body.texts, body.length, rule)
        case _:
            raise ModelError(f"run = {body.run}: translates; ask /api/v1/translate")


def _continued(writer: Writer, texts: Sequence[str], length: int, rule: Rule) -> list[Prediction]:
    """A text without words has nothing to go on from, and gets nothing."""
    filled = [text for text in texts if text.strip()]
    written = iter(writer.write(filled, length=length, rule=rule))
    found = []
    for text in texts:
        if not text.strip():
            found.append(Prediction(text=text))
            continue
        one = next(written)
        found.append(Prediction(text=text, continuation=one.added, score=one.score))
    return found
