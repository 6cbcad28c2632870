"""Every kind of preset at a size where a test is quick. Sizes are prime, so that a wrong axis cannot fit by luck."""

from __future__ import annotations

from functools import cache

import torch
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.models.generator import EncoderDecoder, Labeller, LanguageModel
from regard.settings import RecurrentModel, Settings
from regard.text.vocabulary import PAD, START

SOURCE_SIZE, TARGET_SIZE, LABELS = 23, 29, 5
NAMES = regard.preset_names()
VECTORS = " of vectors"  # behind the name of a preset: its source is a sequence of these
NUMBERS = 3  # of a vector

RECURRENT = ("model.width=7", "model.hidden=11")
TRANSFORMER = ("model.width=15", "model.heads=3", "model.hidden=19", "model.encoder_depth=2", "model.decoder_depth=2")


def settings(preset: str, *overrides: str) -> Settings:
    """A preset, shrunk; of those that read vectors, half see their neighbours too, and some those above and below."""
    if preset.endswith(VECTORS):
        preset = preset.removesuffix(VECTORS)
        reach, across = (1 if NAMES.index(preset) % 2 else 3), (0 if NAMES.index(preset) % 4 else 2)
        overrides = (*overrides, "model.tie=none", f"model.reach={reach}", f"model.across={across}")
    sizes = TRANSFORMER if preset.startswith("transformer") else RECURRENT
    if preset == "luong-local":
        sizes = (*sizes, "model.decoder.attention.window.reach=2")
    return regard.load_settings(preset, *sizes, *overrides)


def _different() -> tuple[str, ...]:
    """The presets but for those that, shrunk, are the model of one before them: a model is tested once."""
    models = {name: settings(name).model.model_dump_json(exclude={"dropout"}) for name in NAMES}
    return tuple({model: name for name, model in reversed(models.items())}.values())[::-1]


PRESETS = _different()
READERS = (*PRESETS, *(f"{preset}{VECTORS}" for preset in PRESETS))


@cache
def translator(preset: str, *overrides: str) -> EncoderDecoder:
    """The shrunk preset as a translator, in float64, not training. Shared between tests: do not change it."""
    torch.manual_seed(0)
    model = settings(preset, *overrides).model
    size = TARGET_SIZE if model.tie == "all" else SOURCE_SIZE
    if preset.endswith(VECTORS):
        return regard.encoder_decoder(model, NUMBERS, TARGET_SIZE, vectors=True).double().eval()
    return regard.encoder_decoder(model, size, TARGET_SIZE).double().eval()


def read(preset: str, source: Tensor) -> Tensor:
    """The source as the model of a preset takes it: ids, or (…, S, 1 + F) with numbers that hang on each id."""
    if not preset.endswith(VECTORS):
        return source
    numbers = torch.sin(source[..., None] * torch.arange(1, NUMBERS + 1))
    return torch.cat((source[..., None], numbers * (source != PAD)[..., None]), -1)


def writes_alone(preset: str) -> bool:
    """Whether the preset makes a language model: it must not attend to a source."""
    model = settings(preset).model
    return not isinstance(model, RecurrentModel) or (model.decoder.kind == "context" and not model.reverse)


@cache
def writer(preset: str) -> LanguageModel:
    torch.manual_seed(0)
    return regard.language_model(settings(preset).model, TARGET_SIZE).double().eval()


@cache
def tagger(preset: str, pool: str | None = None) -> Labeller:
    torch.manual_seed(0)
    vectors = preset.endswith(VECTORS)
    size = NUMBERS if vectors else SOURCE_SIZE
    return regard.labeller(settings(preset).model, size, LABELS, pool, vectors=vectors).double().eval()


def rows(lengths: list[int], size: int, seed: int, first: int | None = None) -> Tensor:
    """Random right-padded rows of these lengths, ids from 4 up; with ``first``, each begins with it."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, size, (len(lengths), max(lengths)), generator=generator)
    for row, length in enumerate(lengths):
        ids[row, length:] = PAD
        if first is not None:
            ids[row, 0] = first
    return ids


@st.composite
def batches(draw: st.DrawFn, sides: int = 2) -> tuple[Tensor, Tensor]:
    """A batch of sources and of targets that begin with ``<start>``."""
    count = draw(st.integers(1, 4))
    seed = draw(st.integers(0, 2**31))
    lengths = [draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)) for _ in range(sides)]
    return rows(lengths[0], SOURCE_SIZE, seed), rows(lengths[1], TARGET_SIZE, seed + 1, first=START)
