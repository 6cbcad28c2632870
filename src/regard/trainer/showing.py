"""What a model in training writes now, for samples and for the sentence that is watched."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.decode.texts import Part
from regard.errors import DataError
from regard.explain.alignment import attend
from regard.explain.replay import resting
from regard.explain.trace import spell
from regard.models.generator import EncoderDecoder
from regard.runs.log import ValidationSample, Watched, Weights
from regard.tasks.task import Attended, Task
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import END, Tokenizer

SAMPLES = 5
DIGITS = 4  # of a weight, in the log


def sampled(task: Task, written: Sequence[str], device: torch.device) -> tuple[ValidationSample, ...]:
    """Some samples of a task as its model writes them now; what validation has ``written`` is not written again."""
    shown = task.samples[:SAMPLES]
    with resting(task.model):
        outputs = written[:SAMPLES] or task.write([text for text, _ in shown], device)
    return tuple(ValidationSample(*pair, output) for pair, output in zip(shown, outputs, strict=True))


def watched(task: Task, sentence: str, device: torch.device) -> Watched | None:
    """The sentence that is watched as the model writes it now; none if it is empty."""
    if not sentence:
        return None
    with resting(task.model):
        return task.watched(sentence, device, cross_attention)


def check_length(sentence: str, tokenizer: Tokenizer, longest: int) -> None:
    """A sentence longer than those of the training would show nothing of what is learned."""
    if (count := len(tokenizer.encode(sentence))) >= longest:
        raise DataError(
            f"train.watch = {sentence[:40]}…: has {count:,} pieces, and those of the training have fewer than "
            f"{longest:,} (data.longest, or learned positions); watch a shorter sentence"
        )


def cross_attention(model: EncoderDecoder, tokenizers: Tokenizers, part: Part) -> Attended:
    """The pieces of a source and of what was written for it, and the mean of each layer's heads between them."""
    source = spell(tokenizers.read(part.source), tokenizers.source, part.source)
    target = spell([*part.tokens, END], tokenizers.target)
    cross = attend(model, [(source, target)])[0].cross.mean(1)  # (L, T, S)
    layers: list[list[list[float]]] = cross.tolist()
    return source.pieces, target.pieces, tuple(_rounded(layer) for layer in layers)


def _rounded(rows: list[list[float]]) -> Weights:
    return tuple(tuple(round(weight, DIGITS) for weight in row) for row in rows)
