"""Labels: one for each word (tagging) or one for the text (classification)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import NO_LABEL
from regard.models.labeller import Labeller
from regard.nn.fast.output_loss import widened
from regard.tasks.losses import drop_words
from regard.tasks.task import Task, Tensors


class Label(Task):
    """A labeller in training. Whether it labels words or texts is the model's affair: the labels' shape fits."""

    model: Labeller

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:  # noqa: ARG002
        source = drop_words(batch.source, self.word_dropout)
        logits = widened(self.model(source))
        return F.cross_entropy(
            logits.flatten(0, -2),
            batch.labels.flatten(),
            ignore_index=NO_LABEL,
            reduction="sum",
            label_smoothing=self.smoothing,
        )

    def score(self, device: torch.device) -> tuple[float, str]:
        """Accuracy in percent."""
        right, count = 0, 0
        for batch in self.valid_batches():
            tensors = Tensors.of(batch, device)
            guesses = self.model(tensors.source).argmax(-1).reshape(tensors.labels.shape)
            real = tensors.labels != NO_LABEL
            right += int((guesses == tensors.labels)[real].sum())
            count += int(real.sum())
        return 100 * right / max(1, count), "accuracy"
