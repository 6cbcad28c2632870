"""Bodies and answers of ``/api/v1/predict``."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from regard.serve.limits import BEAM, LENGTH, NAME
from regard.serve.schema.translate import Decode
from regard.text.reading import Unknown


class PredictBody(BaseModel):
    """Texts for a tagger, a classifier or a language model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: Annotated[str, Field(max_length=NAME, description="The name of a run.", examples=["tagger"])]
    texts: Annotated[list[str], Field(description="Each by itself.", examples=[["the black cat ate the mouse"]])]
    length: Annotated[int, Field(ge=1, le=LENGTH, description="Language models: pieces to add at the most.")] = 40
    beam: Annotated[int, Field(ge=1, le=BEAM, description="Language models: hypotheses; 1 is greedy.")] = 1
    sample: Annotated[bool, Field(description="Language models: draw instead of searching.")] = False
    temperature: Annotated[float, Field(gt=0, le=10, description="Of drawing; below 1 is more cautious.")] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**31, description="Of drawing.")] = 1
    decode: Decode = None


class Tag(BaseModel):
    """A word, its tag, and how probable that is."""

    word: str
    tag: str
    probability: float


class Label(BaseModel):
    """A class, and how probable it is."""

    label: str
    probability: float


class Prediction(BaseModel):
    """What a run says of one text. Which of the fields are filled depends on its task."""

    text: str
    tags: Annotated[list[Tag], Field(description="Of a tagger: one for each word.")] = []
    classes: Annotated[list[Label], Field(description="Of a classifier: all of them, the likeliest first.")] = []
    continuation: Annotated[str, Field(description="Of a language model: what follows the text.")] = ""
    score: Annotated[float | None, Field(description="Of a continuation: its log-probability over its length.")] = None
    warning: Annotated[str, Field(description="What the reader should know; empty if all is as usual.")] = ""
    unknown: Annotated[tuple[Unknown, ...], Field(description="Words that the run has never seen.")] = ()


class PredictAnswer(BaseModel):
    """All texts in their order."""

    run: str
    task: Annotated[str, Field(examples=["tag"])]
    predictions: list[Prediction]
    milliseconds: float
