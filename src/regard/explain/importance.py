"""Attention beside what each word did: one row a word that was written, one column a word that was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from regard.explain.alignment import Attended
from regard.explain.answer import OfSentence, PackedTensor
from regard.explain.attribution import gradient_between, masking_between
from regard.explain.looked import Looked
from regard.explain.views import shares, spoken
from regard.explain.words import fold, members


@dataclass(frozen=True)
class Importance(OfSentence):
    """Attention beside what each word did, (words written, words read)."""

    rows: tuple[str, ...]  # special tokens left out
    columns: tuple[str, ...]
    attention: Annotated[
        PackedTensor | None, Field(description="Null where no row of attention belongs to a word written.")
    ]
    attention_origin: str
    masking: Annotated[PackedTensor, Field(description="Nats by which log p falls when the word is blanked out.")]
    gradient: Annotated[PackedTensor, Field(description="Gradient of the log-odds times the embedding.")]
    difference: Annotated[
        PackedTensor | None, Field(description="Share of attention, less share of masking effects above zero.")
    ]

    @property
    def output(self) -> str:
        return " ".join(self.rows)


def importance(looked: Looked) -> Importance:
    """Attention, masking and gradient of one output, under the edits it was written with."""
    if not looked.explanation.speaks:
        return _nothing(looked)
    looked.check_gradients()
    model, trace, read = looked.explanation.model, looked.trace, looked.explanation.read
    effect = spoken(trace, masking_between(model, read, trace.target, under=looked.under))
    gradients = spoken(trace, gradient_between(model, read, trace.target, under=looked.under))
    attention, origin = _attention(looked)
    difference = None
    if attention is not None:
        difference = shares(attention) - shares(effect.weights.clamp(min=0).to(attention))
    return Importance(effect.rows, effect.columns, attention, origin, effect.weights, gradients.weights, difference)


def _nothing(looked: Looked) -> Importance:
    """Where no word was read before, or none was written, none can have mattered."""
    rows, columns = (members(side, special=False)[1] for side in (looked.trace.target, looked.explanation.read))
    empty = torch.zeros(len(rows), len(columns))
    return Importance(rows, columns, None, "", empty, empty, None)


def _attention(looked: Looked) -> tuple[Tensor | None, str]:
    """Between words: to the source by the run's aligner, else of a text to itself, the mean of all heads."""
    trace, aligner = looked.trace, looked.explanation.aligner
    if aligner is not None:
        pair = Attended.of(trace)
        return aligner.weights((pair.late if aligner.late else pair).by_word), aligner.describe()
    if "pool.weights" in trace.tensors:
        weights, origin = trace.tensors["pool.weights"].mean(0), "the attention that pools the states"
    elif looked.task == "language" and trace.has("decoder", "self"):
        weights, origin = trace.decoder_self.mean((0, 1)), "self-attention, mean of all heads"
    elif looked.task == "tag" and trace.has("encoder", "self"):
        weights, origin = trace.encoder_self.mean((0, 1)), "self-attention, mean of all heads"
    else:
        return None, ""
    return fold(weights, trace.target, looked.explanation.read, special=False).weights, origin
