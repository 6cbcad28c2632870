"""``/api/v1/translate``: texts, translations, and which word looked at which."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request

from regard.decode.options import Options
from regard.explain.answer import Sentence
from regard.explain.looked import WordLink
from regard.serve.library import Library
from regard.serve.schema.translate import (
    OutputAnswer,
    TranslateAnswer,
    TranslateBody,
    TranslationAnswer,
)
from regard.serve.worker import Translated
from regard.text.words import space_words

router = APIRouter(prefix="/api/v1/translate", tags=["translate"])


@router.post("")
async def translate(request: Request, body: TranslateBody) -> TranslateAnswer:
    """Translate texts with one run. Texts of all clients that wait at the same time share batches."""
    started = time.perf_counter()
    library: Library = request.app.state.service.library
    library.limits.check(body.texts)
    fields = body.model_dump(include={"beam", "best", "prefix"}, exclude_unset=True)
    options = Options.of(library.limits.decode(library.decode, fields, body.decode))
    worker = await library.worker(body.run)
    found = await worker.translate(body.texts, options, links=body.alignment)
    return TranslateAnswer(
        run=body.run,
        translations=[_translation(each) for each in found],
        milliseconds=round(1000 * (time.perf_counter() - started), 1),
    )


def _translation(found: Translated) -> TranslationAnswer:
    translation = found.translation
    ranked = found.links or ([],) * len(translation.outputs)
    outputs = [
        OutputAnswer(
            text=output.text,
            words=space_words(output.text),
            log_probability=output.log_probability,
            score=output.score,
            links=[WordLink(link.target_place, link.source_place, link.weight) for link in links],
        )
        for output, links in zip(translation.outputs, ranked, strict=True)
    ]
    return TranslationAnswer(
        source=translation.source,
        source_words=space_words(translation.source),
        outputs=outputs,
        aligner=found.aligner,
        warning=translation.warning,
        unknown=translation.unknown,
        read_as=translation.read_as,
        sentences=[Sentence(start, end, translation.source[start:end]) for start, end in translation.sentences],
    )
