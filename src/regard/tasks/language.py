"""Language modelling: each piece from those before it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.data.examples import Examples
from regard.models.language_model import LanguageModel
from regard.nn import masks
from regard.tasks.losses import drop_words, token_loss
from regard.tasks.task import Scores, Task, Tensors


class Language(Task):
    """A language model in training."""

    model: LanguageModel

    def __init__(
        self,
        model: LanguageModel,
        train: Examples,
        valid: Examples,
        *,
        smoothing: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(model, train, valid)
        self.smoothing = smoothing
        self.word_dropout = word_dropout

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:
        target = drop_words(batch.target_in, self.word_dropout if self.training else 0.0)
        _, state = self.model.start(len(target))
        features, _ = self.model.advance(target, state, masks.padding(target))
        smoothing = self.smoothing if self.training else 0.0
        return token_loss(self.model, features, batch.target_out, smoothing=smoothing, static=static)

    def validate(self, device: torch.device) -> Scores:
        """The score is the perplexity of a piece, e to the loss."""
        scores = super().validate(device)
        return Scores(scores.loss, math.exp(min(scores.loss, 50)), "perplexity", higher_is_better=False)

    def score(self, device: torch.device) -> tuple[float, str]:  # noqa: ARG002
        return 0.0, "perplexity"
