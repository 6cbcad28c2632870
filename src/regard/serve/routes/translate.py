"""``/api/v1/translate``: translations with word links and doubt."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from regard.decode.options import Options
from regard.explain.answer import Sentence
from regard.explain.doubt import Doubt
from regard.explain.look import WordLink
from regard.serve.library import Library
from regard.serve.limits import BEAM, LINE, NAME, Body
from regard.serve.pairs import check_text
from regard.serve.worker import Translated
from regard.settings.call import DecodeSettings
from regard.text.reading import Unknown
from regard.text.words import space_words

Decode = Annotated[
    DecodeSettings | None,
    Field(description="All settings of a search, as on the command line.", examples=[{"length_penalty": 0.6}]),
]
CAT = "the black cat ate the mouse"


class TranslateBody(Body):
    """Texts for one run."""

    run: Annotated[str, Field(max_length=NAME, description="The name of a run.", examples=["demo"])]
    texts: Annotated[list[str], Field(description="The texts; each is translated by itself.", examples=[[CAT]])]
    beam: Annotated[int, Field(ge=1, le=BEAM, description="Hypotheses kept at each step; 1 is greedy.")] = 5
    best: Annotated[int, Field(ge=1, le=BEAM, description="Translations of each text, best first.")] = 1
    alignment: Annotated[bool, Field(description="Whether to link each word with its source words.")] = True
    doubt: Annotated[bool, Field(description="Whether to estimate the doubt of each translation.")] = False
    omitted: Annotated[
        bool, Field(description="Whether to look for words that the best output leaves out; not by large models.")
    ] = False
    prefix: Annotated[str, Field(max_length=LINE, description="What each translation begins with.")] = ""
    decode: Decode = None


class OutputAnswer(BaseModel):
    """One translation."""

    text: Annotated[str, Field(examples=["le chat noir a mangé la souris"])]
    words: list[str]
    log_probability: Annotated[float, Field(description="Natural logarithm, end included.", examples=[-0.41])]
    score: Annotated[float, Field(description="The score by which outputs are ranked.", examples=[-0.05])]
    links: list[WordLink]
    doubt: Annotated[Doubt | None, Field(description="Null if it was not asked for.")] = None


class TranslationAnswer(BaseModel):
    """One text with its translations."""

    source: str
    source_words: list[str]
    outputs: list[OutputAnswer]
    aligner: Annotated[str, Field(description="The attention that links were read from; empty if there are none.")]
    warning: Annotated[str, Field(description="A remark for the reader; empty if there is none.")]
    unknown: Annotated[tuple[Unknown, ...], Field(description="Words that the run has never seen.")]
    omitted: Annotated[
        tuple[Unknown, ...], Field(description="Words that the best output seems to leave out, if that was asked for.")
    ]
    read_as: Annotated[str, Field(description="How the model read the text, if that differs from how it is written.")]
    sentences: Annotated[list[Sentence], Field(description="Where its sentences are; each was translated by itself.")]


class TranslateAnswer(BaseModel):
    """All texts in their order."""

    run: str
    translations: list[TranslationAnswer]
    milliseconds: Annotated[float, Field(description="From the arrival of the request, including waiting.")]


router = APIRouter(prefix="/api/v1/translate", tags=["translate"])


@router.post("")
async def translate(request: Request, body: TranslateBody) -> TranslateAnswer:
    """Translate texts with one run. Waiting texts of all clients share batches."""
    started = time.perf_counter()
    library: Library = request.app.state.library
    check_text(library, body.run, *body.texts, where="texts")
    fields = body.model_dump(include={"beam", "best", "prefix"}, exclude_unset=True)
    options = Options.of(library.limits.decode(library.decode, fields, body.decode))
    worker = await library.worker(body.run)
    found = await worker.translate(body.texts, options, links=body.alignment, doubt=body.doubt, omitted=body.omitted)
    return TranslateAnswer(
        run=body.run,
        translations=[_translation(each) for each in found],
        milliseconds=round(1000 * (time.perf_counter() - started), 1),
    )


def _translation(found: Translated) -> TranslationAnswer:
    translation, links_of, aligner, doubted, omitted = found
    ranked = links_of or ([],) * len(translation.outputs)
    doubts = doubted or (None,) * len(translation.outputs)
    outputs = [
        OutputAnswer(
            text=output.text,
            words=space_words(output.text),
            log_probability=output.log_probability,
            score=output.score,
            links=[WordLink(link.target_place, link.source_place, link.weight) for link in links],
            doubt=doubt,
        )
        for output, links, doubt in zip(translation.outputs, ranked, doubts, strict=True)
    ]
    return TranslationAnswer(
        source=translation.source,
        source_words=space_words(translation.source),
        outputs=outputs,
        aligner=aligner,
        warning=translation.warning,
        unknown=translation.unknown,
        omitted=omitted,
        read_as=translation.read_as,
        sentences=[Sentence(start, end, translation.source[start:end]) for start, end in translation.sentences],
    )
