"""Bodies of looking inside; the answers are those of `regard.explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from regard.explain.answer import Answer, Sentence
from regard.explain.edits import MOST
from regard.serve.limits import BEAM, LINE, NAME, SENTENCES, TEXT, WORD
from regard.serve.schema.translate import Decode

_RUN = Field(description="Name of a run.", max_length=NAME, examples=["demo"])
_TEXT = Field(description="The sentence to look into.", max_length=TEXT, examples=["the black cat sleeps"])
_SENTENCE = Field(
    default=0, ge=0, le=TEXT, description="Which sentence of the text, where a translator is given several."
)
_TARGET = Field(
    default=None,
    description="A given output, looked into instead of the run's own.",
    max_length=TEXT,
    examples=[None],
)
_EDITS: Any = Field(
    default_factory=list,
    description="What if: edits, each with its kind, counting from 0.",
    max_length=MOST,
    examples=[[{"kind": "mask-word", "word": 1}]],
)


class Body(BaseModel):
    """What clients send: nothing but what is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SentencesBody(Body):
    """A text to cut."""

    text: str = Field(max_length=TEXT, examples=["The cat sleeps. Dr. Smith does not."])


@dataclass(frozen=True)
class SentencesAnswer(Answer):
    """Where the sentences of a text are; whatever is between them stays as it is."""

    sentences: tuple[Sentence, ...]


class Inquiry(Body):
    """A sentence, and perhaps what to change."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    target: str | None = _TARGET
    edits: list[dict[str, JsonValue]] = _EDITS
    decode: Decode = None


class TraceBody(Inquiry):
    """What to look into."""

    rank: int = Field(default=0, ge=0, lt=BEAM, description="Of the n-best, 0 the best.")
    beam: int = Field(default=5, ge=1, le=BEAM, description="Hypotheses side by side; edits are greedy.")
    checkpoint: str | None = Field(
        default=None, max_length=NAME, description="A checkpoint of the run, else the best.", examples=[None]
    )


class BeamBody(Body):
    """A search to watch."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    beam: int = Field(default=5, ge=1, le=BEAM)
    length_penalty: float = Field(default=1.0, ge=-5, le=5)
    prefix: str = Field(default="", max_length=LINE, description="What the output begins with.")
    decode: Decode = None


class MeaningBody(Body):
    """A word in several sentences."""

    run: str = _RUN
    word: str = Field(max_length=WORD, min_length=1, examples=["bank"])
    sentences: list[Annotated[str, Field(max_length=LINE)]] = Field(
        min_length=1, max_length=SENTENCES, examples=[["she sat on the bank of the river", "the bank lends money"]]
    )
    control: str | None = Field(default=None, max_length=WORD, description="A word to compare with.", examples=["the"])
    neighbours: int = Field(default=5, ge=0, le=20)


class WalkthroughBody(Body):
    """Which numbers to walk through; everything counts from 0."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    layer: int = Field(default=0, ge=0, le=TEXT)
    head: int = Field(default=0, ge=0, le=TEXT)
    word: int = Field(default=0, ge=0, le=TEXT)
    side: Literal["all", "encoder", "decoder", "cross"] = "all"
    decode: Decode = None
