"""The shape of a model by its settings alone: layers, heads, and the names of its attentions."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from regard.settings import ContextDecoderSettings, RecurrentModel, Settings, TransformerModel


class ModelAnswer(BaseModel):
    """A model's shape."""

    kind: Annotated[str, Field(examples=["transformer"])]
    encoder_layers: int
    decoder_layers: int
    heads: int
    attentions: Annotated[list[str], Field(examples=[["encoder.0.self", "decoder.0.self", "decoder.0.cross"]])]


def attends(settings: Settings) -> bool:
    """Whether there is any attention to look at."""
    return bool(shape(settings).attentions)


def shape(settings: Settings) -> ModelAnswer:
    """A tagger or classifier has no decoder, a language model no encoder."""
    model, task = settings.model, settings.task
    reads, writes = task != "language", task in ("translate", "language")
    if isinstance(model, RecurrentModel):
        return _recurrent(model, reads, writes)
    return _transformer(model, reads, writes)


def _recurrent(model: RecurrentModel, reads: bool, writes: bool) -> ModelAnswer:
    both = reads and writes and not isinstance(model.decoder, ContextDecoderSettings)
    heads = 0 if isinstance(model.decoder, ContextDecoderSettings) or not both else model.decoder.attention.heads
    return ModelAnswer(
        kind=model.kind,
        encoder_layers=model.depth * reads,
        decoder_layers=(model.depth + (model.decoder.kind == "conditional")) * writes,
        heads=heads,
        attentions=["decoder.cross"] if both else [],
    )


def _transformer(model: TransformerModel, reads: bool, writes: bool) -> ModelAnswer:
    encoder, decoder = model.encoder_depth * reads, model.decoder_depth * writes
    names = [f"encoder.{layer}.self" for layer in range(encoder)]
    for layer in range(decoder):
        names += [f"decoder.{layer}.self"] * (model.autoregression == "attention") + [f"decoder.{layer}.cross"] * reads
    return ModelAnswer(
        kind=model.kind, encoder_layers=encoder, decoder_layers=decoder, heads=model.heads, attentions=names
    )
