"""``/api/v1/presets`` and ``/api/v1/estimate``: what can be trained, and its cost."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, TypeAdapter

from regard.models import build
from regard.nn.fast.allocator import Unset
from regard.serve.answers import problems
from regard.serve.corpora import Corpora
from regard.serve.library import Library
from regard.serve.limits import LINE, NAME, OVERRIDES, WORD, Body
from regard.serve.trainings import DEMO, asked_for
from regard.settings import Settings, TransformerModel, load_settings, preset_names
from regard.settings.demo import demo_settings
from regard.settings.schema import LANGUAGE
from regard.trainer.preflight import Preflight


class Preset(BaseModel):
    """An architecture."""

    name: str = Field(examples=["transformer-tiny"])
    about: str = Field(description="A description in one line.")
    kind: str = Field(description="recurrent or transformer.", examples=["transformer"])
    parameters: int = Field(description="Of a translator with a vocabulary of 8,000 pieces.", examples=[2719040])
    sizes: dict[str, int] = Field(description="The settings that say how large it is.", examples=[{"model.width": 128}])
    train: dict[str, Any] = Field(description="How it is trained by default.")


Override = Annotated[str, Field(max_length=LINE, pattern=r"^[^\x00]*$")]  # becomes an argument of a command


class TrainingRequest(Body):
    """A training to start or to estimate."""

    name: str = Field("", max_length=NAME, description="Of the new run; an estimate needs none.", examples=["my-run"])
    preset: str = Field("", max_length=NAME, examples=["transformer-tiny"])
    base: str = Field("", max_length=NAME, description="The run to begin with, instead of a preset.")
    keep_watching: str = Field(
        "",
        max_length=NAME,
        description="A corpus to test on as well, to show forgetting.",
        examples=["fable:fr"],
    )
    corpus: str = Field(max_length=NAME, examples=["fable:fr"])
    time: str = Field(
        "", max_length=WORD, description="At the most: 90s, 10m, 2h; empty for no limit.", examples=["2m"]
    )
    languages: str = Field(
        "",
        max_length=WORD,
        pattern=rf"^({LANGUAGE}-{LANGUAGE})?$",
        description="Source and target, `en-de`; empty to take them from the names of the files.",
    )
    overrides: list[Override] = Field([], max_length=OVERRIDES, examples=[["train.steps=200", "data.pairs=2000"]])
    watch: str = Field(
        "",
        max_length=LINE,
        description="A sentence to translate now and then.",
        examples=["the black cat ate the mouse"],
    )

    def arguments(self, corpora: Corpora, library: Library) -> list[str]:
        """The arguments of `regard train`."""
        return asked_for(
            corpora,
            self.preset,
            self.corpus,
            self.overrides,
            base=library.path(self.base) if self.base else None,
            general=self.keep_watching,
            time=self.time,
            watch=self.watch,
            languages=self.languages,
        )


router = APIRouter(prefix="/api/v1", tags=["trainings"])
PIECES = 8000  # of the vocabulary for which parameters are counted
REMEMBERED = 64  # estimates kept


@router.get("/presets")
def presets() -> dict[Literal["presets"], tuple[Preset, ...]]:
    """Every architecture with its size: the demo first, then the simplest first."""
    return {"presets": _presets()}


@cache
def _presets() -> tuple[Preset, ...]:
    named = [(name, load_settings(name)) for name in preset_names()]
    return tuple(_preset(name, settings) for name, settings in [(DEMO, demo_settings()), *named])


def _preset(name: str, settings: Settings) -> Preset:
    model = settings.model
    with torch.device("meta"), Unset():  # counts parameters without allocating them
        built = build.encoder_decoder(model, PIECES, PIECES)
    sizes = {"model.width": model.width, "model.hidden": model.hidden}
    if isinstance(model, TransformerModel):
        depths = {"model.encoder_depth": model.encoder_depth, "model.decoder_depth": model.decoder_depth}
        sizes |= {"model.heads": model.heads, **depths}
    else:
        sizes["model.depth"] = model.depth
    about = "A small Transformer on the built-in English-French corpus: what `regard demo` trains."
    return Preset(
        name=name,
        about=about if name == DEMO else settings.about,
        kind=model.kind,
        parameters=sum(parameter.numel() for parameter in built.parameters()),
        sizes=sizes,
        train={"steps": settings.train.steps, "batch": settings.train.batch, "pieces": settings.text.tokenizer},
    )


@router.post("/estimate", responses=problems(400, 404, 429, 503, 504))
async def estimate(request: Request, body: TrainingRequest) -> Preflight:
    """Prepare a training in a temporary folder and measure its cost."""
    state = request.app.state
    asked = body.arguments(state.corpora, state.library)
    key = json.dumps([asked, state.corpora.stamp(body.corpus)])
    if key not in state.estimates:
        corner = Path(tempfile.mkdtemp(prefix="regard-estimate-"))
        try:
            command = ["train", *asked, "--out", "run", "--dry-run", "--json"]
            answer = await state.commands(request, command, corner)
        finally:
            shutil.rmtree(corner, ignore_errors=True)
        while len(state.estimates) >= REMEMBERED:
            state.estimates.pop(next(iter(state.estimates)))
        state.estimates[key] = TypeAdapter(Preflight).validate_python(answer)
    estimated: Preflight = state.estimates[key]
    return estimated
