"""Bodies and answers about corpora, trainings and comparisons."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from regard.serve.corpora import CorpusSummary
from regard.serve.limits import BEAM, COMPARED, LINE, NAME, OVERRIDES, WORD
from regard.serve.schema.translate import Decode
from regard.serve.trainings import Training
from regard.settings import TaskName
from regard.settings.learning import LANGUAGE

FORBID = ConfigDict(frozen=True, extra="forbid")


class Preset(BaseModel):
    """An architecture to begin with."""

    name: str = Field(examples=["transformer-tiny"])
    about: str = Field(description="One line for people.")
    kind: str = Field(description="recurrent or transformer.", examples=["transformer"])
    parameters: int = Field(description="Of a translator with a vocabulary of 8,000 pieces.", examples=[2719040])
    sizes: dict[str, int] = Field(description="The settings that say how large it is.", examples=[{"model.width": 128}])
    train: dict[str, Any] = Field(description="How it is trained by default.")


class Presets(BaseModel):
    """All of them, the demo first, then simplest first."""

    presets: list[Preset]


class CorpusDeleted(BaseModel):
    """A corpus that is in the trash."""

    corpus: str
    restore: str = Field(description="Post to this address to undo.", examples=["/api/v1/corpora/news/restore"])


class CorporaAnswer(BaseModel):
    """What can be trained on."""

    corpora: list[CorpusSummary]
    changes: Annotated[bool, Field(description="Whether who asks may send, check, split, train and compare here.")]


class CheckRequest(BaseModel):
    """What a corpus is checked for."""

    model_config = FORBID
    task: TaskName = "translate"


class CheckAnswer(BaseModel):
    """What `regard data check` found, by part."""

    clean: bool
    parts: dict[str, dict[str, Any]] = Field(description="Pairs, findings with counts, and examples with their lines.")


class SplitRequest(BaseModel):
    """How many pairs to hold out of the training part."""

    model_config = FORBID
    valid: int = Field(500, ge=1, le=100_000, examples=[500])
    test: int = Field(0, ge=0, le=100_000, examples=[0])


Override = Annotated[str, Field(max_length=LINE, pattern=r"^[^\x00]*$")]  # becomes a word of a command


class EstimateRequest(BaseModel):
    """A training whose cost is to be estimated."""

    model_config = FORBID
    preset: str = Field(max_length=NAME, examples=["transformer-tiny"])
    corpus: str = Field(max_length=NAME, examples=["fable:fr"])
    time: str = Field(
        "", max_length=WORD, description="At the most: 90s, 10m, 2h; empty for no limit.", examples=["2m"]
    )
    languages: str = Field(
        "",
        max_length=WORD,
        pattern=rf"^({LANGUAGE}-{LANGUAGE})?$",
        description="Which is translated into which, `en-de`; empty for what the names of the files say.",
    )
    overrides: list[Override] = Field([], max_length=OVERRIDES, examples=[["train.steps=200", "data.pairs=2000"]])


class TrainingRequest(EstimateRequest):
    """A training to start."""

    name: str = Field(max_length=NAME, description="Of the new run.", examples=["my-run"])
    watch: str = Field(
        "", max_length=LINE, description="A sentence to watch.", examples=["the black cat ate the mouse"]
    )


class StopRequest(BaseModel):
    """How to stop."""

    model_config = FORBID
    now: bool = Field(default=False, description="Do not wait for the checkpoint that was asked for before.")


class ResumeRequest(BaseModel):
    """How much further to go."""

    model_config = FORBID
    time: Annotated[
        str,
        Field(max_length=WORD, pattern=r"^(\d+(\.\d+)?[smh])?$", description="So much longer.", examples=["10m"]),
    ] = ""
    steps: Annotated[
        str,
        Field(max_length=WORD, pattern=r"^(\+?\d{1,9})?$", description="So many in all, or `+` more.", examples=["+9"]),
    ] = ""


class TrainingsAnswer(BaseModel):
    """Running ones first, then the newest."""

    trainings: list[Training]
    most: int = Field(description="How many may run at once; 0 where who asks may not train.")


class JobStarted(BaseModel):
    """A job that was started."""

    job: str = Field(examples=["compare-00112233445566ff"])


class CompareRequest(BaseModel):
    """What to compare."""

    model_config = FORBID
    runs: list[Annotated[str, Field(max_length=NAME)]] = Field(
        min_length=1, max_length=COMPARED, examples=[["lstm", "bahdanau"]]
    )
    corpus: str = Field(
        "", max_length=NAME, description="Whose test part is translated; empty for a test that all runs share."
    )
    limit: int = Field(200, ge=2, le=10_000, description="Sentences at the most.")
    beam: int = Field(5, ge=1, le=BEAM)
    decode: Decode = None
