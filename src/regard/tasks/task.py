"""What the trainer sees of a task: examples, a loss, a validation. Nothing of what it is about."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.fx.experimental import _config as shapes

from regard.data.batches import Batch, Batches, Stretch
from regard.data.examples import Examples
from regard.models.generator import Generator
from regard.nn.fast.output_loss import linear_cross_entropy
from regard.nn.positions import longest_sequence
from regard.nn.transformer import DecoderLayer, EncoderLayer
from regard.tasks.losses import CrossEntropy
from regard.text.special import PAD

VALID_BUDGET = 4096  # tokens a batch when validating; it changes no number


@dataclass(frozen=True)
class Tensors:
    """A batch on the device. A column that the task does not have is (B, 0)."""

    source: Tensor  # (B, S)
    target_in: Tensor  # (B, T), begins with <start>
    target_out: Tensor  # (B, T), ends with <end>
    labels: Tensor  # (B, S) or (B, 1)

    @staticmethod
    def of(batch: Batch, device: torch.device) -> Tensors:
        """A batch of numbers, sent to the device without waiting for it."""
        columns = (batch.source, batch.target_in, batch.target_out, batch.labels)
        ready = [torch.from_numpy(column) for column in columns]
        if device.type == "cuda":
            ready = [column.pin_memory() for column in ready]
        return Tensors(*(column.to(device, non_blocking=True) for column in ready))

    def columns(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.source, self.target_in, self.target_out, self.labels

    def parts(self, count: int) -> list[Tensors]:
        """So many batches of nearly equally many rows."""
        columns = (column.tensor_split(count) for column in self.columns())
        return [Tensors(*part) for part in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Scores:
    """What validation found."""

    loss: float  # per prediction, without smoothing
    score: float  # the task's own measure
    name: str  # of that measure
    higher_is_better: bool = True


class Task(nn.Module, ABC):
    """A model in training. Calling it gives the loss, *summed* over the batch's predictions.

    The trainer divides by the predictions of the whole step, however many batches or processes it is made of,
    so that none of that changes the result. ``static`` asks for shapes that depend on the batch's shape alone.
    """

    model: nn.Module

    def __init__(
        self,
        model: nn.Module,
        train: Examples,
        valid: Examples,
        *,
        smoothing: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self._smoothing = smoothing
        self._word_dropout = word_dropout
        self.model = model
        self.cross_entropy = CrossEntropy()
        self.compiled = False
        self.train_examples = train
        self.valid_examples = valid
        self.stretch: Stretch = (1.0, 1.0)  # how much longer `prepare` makes rows: batches are planned with room for it
        self.progress = 0.0  # share of the training that lies behind; the trainer keeps it up to date

    @property
    def smoothing(self) -> float:
        """Of the labels; validation sees them as they are."""
        return self._smoothing if self.training else 0.0

    @property
    def word_dropout(self) -> float:
        """Share of input tokens to replace by ``<unk>``; none when validating."""
        return self._word_dropout if self.training else 0.0

    def prepare(self, batch: Batch, epoch: int) -> Batch:  # noqa: ARG002
        """The batch as training sees it in this epoch, in the same shape; subword sampling happens here."""
        return batch

    def compile_parts(self, backend: str = "inductor") -> None:
        """Compile the parts that a model repeats, each by itself: one compilation does for all that are alike."""
        self.compiled = True
        shapes.use_duck_shape = False  # lengths that happen to be equal at first need not stay so
        for message in ("The .grad attribute", "(?s).*Online softmax"):  # torch's notes to itself while it compiles
            warnings.filterwarnings("ignore", message)
        for part in self.modules():
            if isinstance(part, EncoderLayer | DecoderLayer | CrossEntropy):
                part.compile(dynamic=True, backend=backend)

    def token_loss(self, model: Generator, features: Tensor, targets: Tensor, *, static: bool = False) -> Tensor:
        """Cross-entropy of the next token, summed over the real ones.

        The output layer is most of the work of a small model, so only features that have a target go through it;
        ``static`` sends all of them, because a captured graph cannot have shapes that depend on the data.
        """
        if self.compiled or torch.compiler.is_compiling():
            return self.cross_entropy(model.project(features), targets, self.smoothing)
        real = targets != PAD
        rows, wanted = (features.flatten(0, 1), targets.flatten()) if static else (features[real], targets[real])
        output = model.decoder.output
        return linear_cross_entropy(rows, output.weight, output.bias, wanted, self.smoothing)

    @abstractmethod
    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor: ...

    @abstractmethod
    def score(self, device: torch.device) -> tuple[float, str]:
        """The task's own measure of the model as it is now, and its name."""

    @torch.no_grad()
    def validate(self, device: torch.device) -> Scores:
        """Loss and score on the validation examples."""
        training = self.training
        self.eval()
        total, count = 0.0, 0
        for batch in self.valid_batches():
            total += float(self(Tensors.of(batch, device)))
            count += batch.tokens
        value, name = self.score(device)
        self.train(training)
        return Scores(total / max(1, count), value, name)

    def valid_batches(self) -> Iterator[Batch]:
        """All rows; those that are too long, for a batch or for the model's positions, are cut off."""
        return Batches(self.valid_examples, VALID_BUDGET, longest=self.longest(VALID_BUDGET), truncate=True).epoch(0)

    def longest(self, wanted: int) -> int:
        """How long a sequence may be: as long as is wanted, and as there are positions for."""
        return min(wanted, longest_sequence(self.model) or wanted)
