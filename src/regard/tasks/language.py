"""Language modelling: each piece from those before it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.models.language_model import LanguageModel
from regard.nn import masks
from regard.tasks.losses import drop_words
from regard.tasks.task import Scores, Task, Tensors


class Language(Task):
    """A language model in training."""

    model: LanguageModel

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:
        target = drop_words(batch.target_in, self.word_dropout)
        _, state = self.model.start(len(target))
        features, _ = self.model.advance(target, state, masks.padding(target))
        return self.token_loss(self.model, features, batch.target_out, static=static)

    def validate(self, device: torch.device) -> Scores:
        """The score is the perplexity of a piece, e to the loss."""
        scores = super().validate(device)
        return Scores(scores.loss, math.exp(min(scores.loss, 50)), "perplexity", higher_is_better=False)

    def score(self, device: torch.device) -> tuple[float, str]:  # noqa: ARG002
        return 0.0, "perplexity"
