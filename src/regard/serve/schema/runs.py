"""Bodies and answers about runs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from regard.runs.folder import Progress
from regard.runs.listing import CheckpointSummary
from regard.serve.examples import Example
from regard.serve.limits import NAME
from regard.settings import Settings
from regard.settings.languages import Languages


class RunSummary(BaseModel):
    """A run at a glance."""

    name: Annotated[str, Field(examples=["demo"])]
    state: Annotated[str, Field(description="prepared, running, interrupted, finished or unreadable.")]
    note: Annotated[str, Field(description="What is wrong, where something is.")]
    task: Annotated[str, Field(examples=["translate"])]
    preset: Annotated[str, Field(description="Whose architecture it has; empty if no preset has it.")]
    architecture: Annotated[str, Field(description="In words.", examples=["GRU, 1 layer, width 256"])]
    about: str
    origin: Annotated[str, Field(description="Of an imported model: what it was, and its licence.")]
    parameters: int | None
    steps: int
    of_steps: int
    loss: Annotated[float | None, Field(description="Of the best validation.")]
    score: float | None
    score_name: str
    best_step: int
    changed: Annotated[float, Field(description="Seconds since 1970.")]
    bytes: int
    languages: Annotated[Languages | None, Field(description="Where the run says so.")]
    attention: Annotated[bool, Field(description="Whether there is attention to look at.")]
    best: Annotated[bool, Field(description="Whether it is the default for its task and languages.")]
    pinned: Annotated[bool, Field(description="Whether it is the default because it was pinned.")]
    fixed: Annotated[bool, Field(description="Whether it can be neither renamed nor removed here.")]
    corpus: Annotated[str, Field(description="What it was trained on.", examples=["fable:fr"])]
    test: Annotated[str, Field(description="Runs in which this is the same, and not empty, share a test.")]
    engine: Annotated[str, Field(description="Who searches; empty until the run is loaded.", examples=["native"])]


class RunsAnswer(BaseModel):
    """All runs."""

    runs: list[RunSummary]


class ModelAnswer(BaseModel):
    """A model's shape."""

    kind: Annotated[str, Field(examples=["transformer"])]
    encoder_layers: int
    decoder_layers: int
    heads: int
    attentions: Annotated[list[str], Field(examples=[["encoder.0.self", "decoder.0.self", "decoder.0.cross"]])]


class RunAnswer(BaseModel):
    """Everything about one run."""

    summary: RunSummary
    settings: Annotated[Settings, Field(description="As resolved; of files only their names.")]
    progress: Annotated[Progress, Field(description="Where the training stands.")]
    losses: Annotated[list[tuple[int, float | None]], Field(description="Of training: step, loss.")]
    validations: Annotated[list[tuple[int, float | None, float | None]], Field(description="Step, loss, score.")]
    checkpoints: list[CheckpointSummary]
    model: ModelAnswer
    aligner: Annotated[str, Field(description="Which attention shows links; empty until links were first asked for.")]


class RenameBody(BaseModel):
    """Another name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: Annotated[str, Field(max_length=NAME, description="The new name.", examples=["demo"])]


class RunName(BaseModel):
    """The run that was started, renamed or restored."""

    run: Annotated[str, Field(examples=["demo"])]


class Removed(BaseModel):
    """A run that is in the trash."""

    run: str
    restore: Annotated[str, Field(description="Post to this address to undo.", examples=["/api/v1/runs/demo/restore"])]


class SettingsAnswer(BaseModel):
    """The settings of a run; of files only their names."""

    run: str
    toml: Annotated[str, Field(description="As text, to be read by `regard train`.")]
    settings: dict[str, Any]


class ExamplesAnswer(BaseModel):
    """Validation sentences of a run, from short to long."""

    run: str
    task: str
    examples: list[Example]
