"""Bodies and answers about corpora, trainings and comparisons."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.serve.limits import BEAM, COMPARED, LINE, NAME, OVERRIDES, WORD
from regard.settings import TaskName

FORBID = ConfigDict(frozen=True, extra="forbid")


class Preset(BaseModel):
    """An architecture to begin with."""

    name: str = Field(examples=["transformer-tiny"])
    about: str = Field(description="One line for people.")
    kind: str = Field(description="recurrent or transformer.", examples=["transformer"])
    parameters: int = Field(description="Of a translator with a vocabulary of 8,000 pieces.", examples=[2719040])
    sizes: dict[str, int] = Field(description="The settings that say how large it is.", examples=[{"model.width": 128}])
    train: dict[str, Any] = Field(description="How it is trained, if nobody says otherwise.")


class Presets(BaseModel):
    """All of them, simplest first; the one that demonstrates comes before."""

    presets: list[Preset]


class CorpusAnswer(BaseModel):
    """A corpus at a glance."""

    name: str = Field(examples=["fable:fr"])
    built_in: bool
    about: str
    pairs: int | None = Field(description="For training; null until the corpus was checked, or if there is no end.")
    languages: dict[str, str] | None = Field(examples=[{"source": "en", "target": "fr"}])
    bytes: int
    state: Literal["built in", "incomplete", "unchecked", "clean", "findings"]
    parts: dict[str, list[str]] = Field(examples=[{"train": ["train.source", "train.target"]}])
    names: dict[str, str] = Field(description="What files were called.", examples=[{"train.source": "news.en"}])


class CorpusDeleted(BaseModel):
    """A corpus that is in the trash."""

    corpus: str
    restore: str = Field(description="Post to this address to undo.", examples=["/api/v1/corpora/news/restore"])


class CorporaAnswer(BaseModel):
    """What can be trained on."""

    corpora: list[CorpusAnswer]
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
    """A training that is thought about."""

    model_config = FORBID
    preset: str = Field(max_length=NAME, examples=["transformer-tiny"])
    corpus: str = Field(max_length=NAME, examples=["fable:fr"])
    time: str = Field(
        "", max_length=WORD, description="At the most: 90s, 10m, 2h; empty for no limit.", examples=["2m"]
    )
    languages: str = Field(
        "",
        max_length=WORD,
        pattern=r"^([a-z]{2,3}-[a-z]{2,3})?$",
        description="Which is translated into which, `en-de`; empty for what the names of the files say.",
    )
    overrides: list[Override] = Field([], max_length=OVERRIDES, examples=[["train.steps=200", "data.pairs=2000"]])


class EstimateAnswer(BaseModel):
    """What a training will need. The time is right within a factor of two or so."""

    parameters: int
    examples: int
    too_long: int = Field(description="Examples that are left out as too long.")
    batches_per_epoch: int
    padding: list[float] = Field(description="Share of the batches that holds no token, source and target.")
    unknown: float = Field(description="Share of unknown pieces.")
    longest: int
    memory: int = Field(description="Bytes.")
    seconds: float
    steps: int
    within: int | None = Field(None, description="Steps that the time is enough for.")
    words: str = Field("", description="The same for people.", examples=["About 2 minutes for 1,000 steps."])


class TrainingRequest(EstimateRequest):
    """A training to start."""

    name: str = Field(max_length=NAME, description="Of the new run.", examples=["my-run"])
    watch: str = Field(
        "", max_length=LINE, description="A sentence to watch.", examples=["the black cat ate the mouse"]
    )


class Started(BaseModel):
    """A training that was started."""

    run: str = Field(examples=["my-run"])


class StopRequest(BaseModel):
    """How to stop."""

    model_config = FORBID
    now: bool = Field(default=False, description="Do not wait for the checkpoint that was asked for before.")


class ComplaintAnswer(BaseModel):
    """Why a training failed, in terms of what was asked for."""

    line: str = Field(description="What is wrong.")
    setting: str = Field(description="Which setting or field is to blame, where one is.", examples=["text.size"])
    right: str = Field(description="An override that would be right, where one is known.", examples=["text.size=625"])


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


class TrainingAnswer(BaseModel):
    """How a training stands."""

    run: str
    state: Literal["prepared", "running", "interrupted", "finished", "unreadable", "failed"]
    stage: Literal["", "starting", "preparing", "training", "validating", "stopping"]
    note: str = Field(description="Why it failed, where it did.")
    task: str
    preset: str = Field(description="Whose architecture it has, by its settings.")
    architecture: str = Field(description="In words.")
    languages: str = Field(examples=["en-fr"])
    steps: int
    of_steps: int
    time: str
    validate_every: int
    watch: str
    loss: float | None
    score: float | None
    score_name: str
    parameters: int | None
    changed: float = Field(description="Seconds since 1970.")
    ours: bool = Field(description="Whether it was started here, and so can be stopped here.")
    is_run: bool = Field(description="Whether there is a run to go on with; not before it has begun.")
    request: dict[str, Any] | None = Field(description="What was asked for, where it was started here.")
    error: ComplaintAnswer | None = Field(description="Why it failed, where it did.")


class TrainingsAnswer(BaseModel):
    """Running ones first, then the newest."""

    trainings: list[TrainingAnswer]
    most: int = Field(description="How many may run at once; 0 where who asks may not train.")


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


class JobStarted(BaseModel):
    """A job that was started."""

    job: str = Field(examples=["compare-00112233445566ff"])


class JobAnswer(BaseModel):
    """How a job stands."""

    state: Literal["running", "done", "failed", "stopped"]
    progress: float = Field(ge=0, le=1)
    line: str = Field(description="The last thing it said.")
    result: dict[str, Any] | None = Field(description="The comparison, as `regard compare --json` has it.")
