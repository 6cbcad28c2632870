"""``/api/v1/presets`` and ``/api/v1/estimate``: what can be trained, and what it would take."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch
from fastapi import APIRouter, Request
from pydantic import TypeAdapter

from regard.models import build
from regard.nn.fast.uninitialised import Unset
from regard.serve.answers import Problem
from regard.serve.schema.trainings import EstimateRequest, Preset, Presets
from regard.serve.trainings import DEMO, asked_for
from regard.settings import Settings, TransformerModel, load_settings, preset_names
from regard.settings.demo import demo_settings
from regard.trainer.preflight import Preflight

router = APIRouter(prefix="/api/v1", tags=["trainings"])
PIECES = 8000  # of the vocabulary that sizes are told for
REMEMBERED = 64  # estimates


@router.get("/presets")
def presets() -> Presets:
    """Every architecture, with its size."""
    return Presets(presets=list(_presets()))


@cache
def _presets() -> tuple[Preset, ...]:
    named = [(name, load_settings(name)) for name in preset_names()]
    return tuple(_preset(name, settings) for name, settings in [(DEMO, demo_settings()), *named])


def _preset(name: str, settings: Settings) -> Preset:
    model = settings.model
    with torch.device("meta"), Unset():  # counts weights without having them
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


@router.post("/estimate", responses={status: {"model": Problem} for status in (400, 404, 429, 503, 504)})
async def estimate(request: Request, wish: EstimateRequest) -> Preflight:
    """Prepare a training in a temporary folder, measure what it would need, and remove it."""
    state = request.app.state
    asked = asked_for(
        state.corpora,
        wish.preset,
        wish.corpus,
        wish.overrides,
        base=state.jobs.library.path(wish.base) if wish.base else None,
        general=wish.keep_watching,
        time=wish.time,
        languages=wish.languages,
    )
    key = json.dumps([asked, state.corpora.stamp(wish.corpus)])
    if key not in state.estimates:
        corner = Path(tempfile.mkdtemp(prefix="regard-estimate-"))
        try:
            command = ["train", *asked, "--out", "run", "--dry-run", "--json"]
            outcome = await state.commands(request, command, corner)
        finally:
            shutil.rmtree(corner, ignore_errors=True)
        if outcome.answer is None:
            error = outcome.error()
            raise type(error)(state.jobs.shown(str(error)), hint=state.jobs.shown(error.hint))
        while len(state.estimates) >= REMEMBERED:
            state.estimates.pop(next(iter(state.estimates)))
        state.estimates[key] = TypeAdapter(Preflight).validate_python(outcome.answer)
    answer: Preflight = state.estimates[key]
    return answer
