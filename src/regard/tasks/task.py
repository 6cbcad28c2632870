"""A task: what its rows are, how they become numbers, how its model is built, learns, is scored and is used.

Each task is one file beside this one, and `regard.tasks.load` knows them by name. The trainer knows of it the examples,
the loss and the validation, and nothing else.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.fx.experimental import _config as shapes

from regard.data.batches import Batch, Batches, Stretch
from regard.data.encoding import Examples, RowEncoder
from regard.models.generator import Generator
from regard.nn.consistency import Inconsistency
from regard.nn.embeddings import longest_sequence
from regard.nn.fast import random as chance
from regard.nn.fast.output_loss import cross_entropy, linear_cross_entropy
from regard.nn.transformer import DecoderLayer, EncoderLayer
from regard.runs.folder import Run
from regard.runs.log import Watched
from regard.settings import TrainSettings
from regard.tasks.predictor import Rows
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import PAD, UNK

if TYPE_CHECKING:
    from regard.settings import Settings
    from regard.tasks.corpus import Files, Material
    from regard.tasks.load import AnyTrained

Pairs = Sequence[tuple[str, str]]  # texts with their right answers
VALID_BUDGET = 4096  # tokens a batch when validating; it changes no number

NOTES = (  # torch's to itself while it compiles
    "The .grad attribute",
    "(?s).*Online softmax",
    "TensorFloat32 tensor cores",  # float32 is meant, not less
    "`torch.jit.script_method` is deprecated",
)


class CrossEntropy(nn.Module):
    """`cross_entropy` as a module, so that it can be compiled by itself: then wide logits are never stored."""

    def forward(self, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), smoothing)


def drop_words(ids: Tensor, rate: float) -> Tensor:
    """Replace a share of the ordinary tokens by ``<unk>``, so that the model does not depend on any one token.

    Where letters follow the ids, (B, S, 1 + L), they stay: an unknown word is read by its letters.
    """
    if rate == 0.0:
        return ids
    if ids.dim() == 3:
        return torch.cat((drop_words(ids[..., :1].squeeze(-1), rate).unsqueeze(-1), ids[..., 1:]), -1)
    chosen = (chance.uniform(ids.shape, ids.device) < rate) & (ids > UNK)
    return ids.masked_fill(chosen, UNK)


@dataclass(frozen=True)
class Tensors:
    """A batch on the device. A column that the task does not have is (B, 0)."""

    source: Tensor  # (B, S)
    target_in: Tensor  # (B, T), begins with <start>
    target_out: Tensor  # (B, T), ends with <end>
    labels: Tensor  # (B, S) or (B, 1)
    links: Tensor  # (B, T, S), or (B, 0, 0)

    @staticmethod
    def of(batch: Batch, device: torch.device) -> Tensors:
        """A batch of numbers, sent to the device without waiting for it."""
        columns = (batch.source, batch.target_in, batch.target_out, batch.labels, batch.links)
        ready = [torch.from_numpy(column) for column in columns]
        if device.type == "cuda":
            ready = [column.pin_memory() for column in ready]
        return Tensors(*(column.to(device, non_blocking=True) for column in ready))

    def columns(self) -> tuple[Tensor, ...]:
        return self.source, self.target_in, self.target_out, self.labels, self.links

    def parts(self, count: int) -> list[Tensors]:
        """The batch in ``count`` parts of nearly equally many rows."""
        columns = (column.tensor_split(count) for column in self.columns())
        return [Tensors(*part) for part in zip(*columns, strict=True)]

    def twice(self) -> Tensors:
        """All rows, and then all of them again."""
        return Tensors(*(torch.cat((column, column)) for column in self.columns()))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Scores:
    """The result of a validation."""

    loss: float  # per prediction, without smoothing
    score: float  # the task's own metric
    name: str  # of that metric
    higher_is_better: bool = True
    written: Sequence[str] = ()  # outputs for the samples, where the score is that of outputs


class Task(nn.Module, ABC):
    """A model in training. Calling it gives the loss, *summed* over the batch's predictions.

    The trainer divides by the predictions of the whole step, however many batches or processes it is made of,
    so that none of that changes the result. ``static`` asks for shapes that depend on the batch's shape alone.
    """

    model: nn.Module
    columns: ClassVar[tuple[str, ...]]  # of a row of its corpus
    texts: ClassVar[int] = 1  # how many of them are running text; the others are labels of it
    counting: ClassVar[bool] = False  # whether counting words is a baseline to compare with

    def __init__(
        self,
        model: nn.Module,
        train: Examples,
        valid: Examples,
        learn: TrainSettings,
        samples: Pairs = (),
    ) -> None:
        super().__init__()
        self._smoothing = learn.smoothing
        self._word_dropout = learn.word_dropout
        self.model = model
        self.cross_entropy = CrossEntropy()
        self.compiled = False
        self.train_examples = train
        self.valid_examples = valid
        self.samples = samples  # texts whose outputs are shown at each validation
        self.stretch: Stretch = (1.0, 1.0)  # how much longer `prepare` makes rows: batches are planned with room for it
        self.progress = 0.0  # share of the training that is done; the trainer keeps it up to date

    @classmethod
    @abstractmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:
        """How rows become numbers. What it needs besides tokenizers, such as labels, is read from the rows and kept in
        the run."""

    @classmethod
    @abstractmethod
    def build(cls, run: Run, tokenizers: Tokenizers) -> nn.Module:
        """The model that the settings describe, not yet trained."""

    @classmethod
    @abstractmethod
    def open(cls, run: Run, tokenizers: Tokenizers, train: Examples, valid: Examples, held_out: Pairs) -> Self:
        """The task of a run, with a model not yet trained; ``held_out`` texts are for its score and its samples."""

    @classmethod
    @abstractmethod
    def load(cls, run: Run, device: torch.device, checkpoint_name: str | None = None) -> AnyTrained:
        """The predictor of a trained run: of its best checkpoint, or of another such as ``step-2000``."""

    @classmethod
    def material(cls, files: Files, settings: Settings) -> Material:  # noqa: ARG003
        """The rows of the user's files, or what is made of them."""
        return files

    @classmethod
    def samples_of(cls, rows: Rows, most: int) -> Pairs:
        """The texts that validation scores and shows, with their right answers."""
        return [(row[0], row[-1]) for _, row in islice(rows.rows(cls.columns), most)]

    @staticmethod
    def fault(row: Sequence[str]) -> str:  # noqa: ARG004
        """What is wrong with a row that has all its columns; empty if nothing is."""
        return ""

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
        from torch._dynamo import config as dynamo  # takes seconds
        from torch._inductor import config as inductor

        self.compiled = True
        shapes.use_duck_shape = False  # lengths that happen to be equal at first need not stay so
        dynamo.specialize_float = True  # of a part no number changes: as variables they have it traced twice
        # Row and column sums of a norm's gradient in one kernel take more than twice the time of two kernels.
        inductor.triton.mix_order_reduction = False
        for message in NOTES:
            warnings.filterwarnings("ignore", message)
        for part in self.modules():
            if isinstance(part, EncoderLayer | DecoderLayer | CrossEntropy | Inconsistency):
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
    def write(self, texts: Sequence[str], device: torch.device) -> list[str]:
        """The model's outputs for texts now; it is in evaluation mode."""

    def watched(self, sentence: str, device: torch.device) -> Watched:
        """The model's output for one sentence now, with its attention where there is any."""
        return Watched(sentence, self.write([sentence], device)[0])

    @abstractmethod
    def score(self, device: torch.device, loss: float) -> Scores:
        """The loss with the task's own metric of the model now."""

    @torch.no_grad()
    def validate(self, device: torch.device) -> Scores:
        """Loss and score on the validation examples."""
        training = self.training
        self.eval()
        total, count = 0.0, 0
        for batch in self.valid_batches():
            total += float(self(Tensors.of(batch, device)))
            count += batch.tokens
        scores = self.score(device, total / max(1, count))
        self.train(training)
        return scores

    def on(self, valid: Examples, samples: Pairs) -> Self:
        """The same model, with another text to validate on."""
        other = copy(self)
        other.valid_examples, other.samples = valid, samples
        return other

    def valid_batches(self) -> Iterator[Batch]:
        """All rows; those too long for a batch or for the model's positions are cut."""
        return Batches(self.valid_examples, VALID_BUDGET, longest=self.longest(VALID_BUDGET), truncate=True).epoch(0)

    def longest(self, wanted: int) -> int:
        """How long a sequence may be: ``wanted``, or as many as the model has positions."""
        return min(wanted, longest_sequence(self.model) or wanted)


def column(rows: Rows, names: Sequence[str], place: int) -> Iterator[str]:
    """One column of all rows."""
    return (row[place] for _, row in rows.rows(names))


def fitting(samples: Pairs, model: nn.Module, count: Callable[[str], int]) -> list[tuple[str, str]]:
    """The samples that the model has positions for. ``count`` gives the number of pieces of a text."""
    most = longest_sequence(model)
    return [sample for sample in samples if most is None or count(sample[0]) < most]
