"""``/api/v1/presets`` and ``/api/v1/estimate``: what can be trained, and what it would take."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch
from fastapi import APIRouter, Request

from regard.models import build
from regard.nn.fast.uninitialised import Unset
from regard.serve.answers import Problem
from regard.serve.schema.trainings import EstimateAnswer, EstimateRequest, Preset, Presets
from regard.serve.trainings import DEMO, asked_for
from regard.settings import Settings, TransformerModel, load_settings, preset_names
from regard.settings.demo import demo_settings

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
async def estimate(request: Request, wish: EstimateRequest) -> EstimateAnswer:
    """Prepare a training in a corner, look at what it would need, and throw it away."""
    state = request.app.state
    chosen = {"time": wish.time, "languages": wish.languages}
    asked = asked_for(state.corpora, wish.preset, wish.corpus, wish.overrides, **chosen)
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
        found = EstimateAnswer(**outcome.answer)
        state.estimates[key] = found.model_copy(update={"words": in_words(found)})
    answer: EstimateAnswer = state.estimates[key]
    return answer


def in_words(found: EstimateAnswer) -> str:
    """What a training will take, for people."""
    steps = found.steps if found.within is None else min(found.steps, found.within)
    rounds = steps / max(1, found.batches_per_epoch)
    seen = f"about {rounds:,.0f} times" if rounds >= 1.5 else "about once" if rounds >= 0.75 else "not even once"
    size = f"{found.parameters / 1e6:.1f} million" if found.parameters >= 100_000 else f"{found.parameters:,}"
    left = f" {found.too_long:,} are too long and are left out." if found.too_long else ""
    return (
        f"{_clock(found.seconds)} here for {steps:,} steps, in which each of the {found.examples:,} examples "
        f"is seen {seen}. The model has {size} parameters and needs about {_memory(found.memory)} of memory.{left}"
    )


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"About {max(10, round(seconds, -1)):.0f} seconds"
    return f"About {seconds / 60:.0f} minutes" if seconds < 5400 else f"About {seconds / 3600:.1f} hours"


def _memory(count: int) -> str:
    return f"{count / 2**20:,.0f} MB" if count < 2**30 else f"{count / 2**30:.1f} GB"
