"""Bodies and answers of ``/api/v1/translate``."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from regard.explain.answer import Sentence
from regard.explain.looked import WordLink
from regard.serve.limits import BEAM, LINE, NAME
from regard.settings.call import DecodeSettings
from regard.text.reading import Unknown

Decode = Annotated[
    DecodeSettings | None,
    Field(description="All that can be set for a search, as on the command line.", examples=[{"length_penalty": 0.6}]),
]
CAT = "the black cat ate the mouse"


class TranslateBody(BaseModel):
    """Texts for one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: Annotated[str, Field(max_length=NAME, description="The name of a run.", examples=["demo"])]
    texts: Annotated[list[str], Field(description="What to translate; each text by itself.", examples=[[CAT]])]
    beam: Annotated[int, Field(ge=1, le=BEAM, description="Hypotheses kept at each step; 1 is greedy.")] = 5
    best: Annotated[int, Field(ge=1, le=BEAM, description="Translations of each text, best first.")] = 1
    alignment: Annotated[bool, Field(description="Whether to say which source word each word looked at.")] = True
    prefix: Annotated[str, Field(max_length=LINE, description="What each translation begins with.")] = ""
    decode: Decode = None


class OutputAnswer(BaseModel):
    """One translation."""

    text: Annotated[str, Field(examples=["le chat noir a mangé la souris"])]
    words: list[str]
    log_probability: Annotated[float, Field(description="Natural logarithm, end included.", examples=[-0.41])]
    score: Annotated[float, Field(description="What outputs are compared by.", examples=[-0.05])]
    links: list[WordLink]


class TranslationAnswer(BaseModel):
    """One text with its translations."""

    source: str
    source_words: list[str]
    outputs: list[OutputAnswer]
    aligner: Annotated[str, Field(description="Where the links were read; empty where there are none.")]
    warning: Annotated[str, Field(description="What the reader should know; empty if all is as usual.")]
    unknown: Annotated[tuple[Unknown, ...], Field(description="Words that the run has never seen.")]
    read_as: Annotated[str, Field(description="How the text was read, where that differs from how it is written.")]
    sentences: Annotated[list[Sentence], Field(description="Where its sentences are; each was translated by itself.")]


class TranslateAnswer(BaseModel):
    """All texts in their order."""

    run: str
    translations: list[TranslationAnswer]
    milliseconds: Annotated[float, Field(description="From the arrival of the request, waiting included.")]
