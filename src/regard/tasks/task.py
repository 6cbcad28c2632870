"""A task: what its rows are, how they become numbers, how its model is built, learns, is scored and is used.

Each task is one file beside this one, and `regard.tasks.load` knows them by name. The trainer sees of it examples, a
loss and a validation, and nothing of what it is about.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.fx.experimental import _config as shapes

from regard.data.batches import Batch, Batches, Stretch
from regard.data.encoding import Examples, RowEncoder
from regard.decode.texts import Part
from regard.models.generator import EncoderDecoder, Generator
from regard.nn.attention import Attention, InnerScore
from regard.nn.embeddings import longest_sequence
from regard.nn.fast import random as chance
from regard.nn.fast.output_loss import cross_entropy, linear_cross_entropy, widened
from regard.nn.observe import UNOBSERVED, Unobserved
from regard.nn.transformer import DecoderLayer, EncoderLayer
from regard.runs.folder import Run, best_checkpoint, named_checkpoint
from regard.runs.log import Watched, Weights
from regard.settings import ReinforceSettings, TrainSettings
from regard.tasks.predictor import Rows
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import PAD, UNK

if TYPE_CHECKING:
    from regard.settings import Settings
    from regard.tasks.corpus import Files, Material
    from regard.tasks.load import AnyTrained


# Losses over predictions, summed; and what training does to its inputs.


class CrossEntropy(nn.Module):
    """`cross_entropy` as a module, so that it can be compiled by itself: then wide logits are never written down."""

    def forward(self, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), smoothing)


def drop_words(ids: Tensor, rate: float) -> Tensor:
    """Replace a share of the ordinary tokens by ``<unk>``, so that the model learns to do without any one.

    Where letters follow the ids, (B, S, 1 + L), they stay: an unknown word is read by its letters.
    """
    if rate == 0.0:
        return ids
    if ids.dim() == 3:
        return torch.cat((drop_words(ids[..., :1].squeeze(-1), rate).unsqueeze(-1), ids[..., 1:]), -1)
    chosen = (chance.uniform(ids.shape, ids.device) < rate) & (ids > UNK)
    return ids.masked_fill(chosen, UNK)


class Choices:
    """An observer that records what a recurrent decoder's hard attention chose, and from which state."""

    active = True

    def __init__(self) -> None:
        self._seen: dict[str, list[Tensor]] = {"log_probability": [], "probabilities": [], "queries": []}

    def at(self, place: str | int) -> Choices | Unobserved:
        return self if place in ("decoder", "cross") else UNOBSERVED

    def see(self, name: str, value: Tensor) -> Tensor:
        if name in self._seen:
            self._seen[name].append(value)
        return value

    def __getitem__(self, name: str) -> Tensor:
        return torch.cat(self._seen[name], 2)  # (B, H, T, …)


class Head:
    """An observer of one cross-attention, which takes the fused path all the same where it can: then queries and keys
    are enough to find the weights of one head."""

    def __init__(
        self, places: tuple[str | int, ...], *, active: bool, seen: dict[str, list[Tensor]] | None = None
    ) -> None:
        self._places, self._active = places, active
        self._seen: dict[str, list[Tensor]] = {} if seen is None else seen

    @property
    def active(self) -> bool:
        return self._active and not self._places

    def at(self, place: str | int) -> Head | Unobserved:
        if self._places[:1] != (place,):
            return UNOBSERVED
        return Head(self._places[1:], active=self._active, seen=self._seen)

    def see(self, name: str, value: Tensor) -> Tensor:
        if not self._places and name in ("queries", "keys", "weights"):
            self._seen.setdefault(name, []).append(value)
        return value

    def log_weights(self, attention: Attention, head: int, mask: Tensor) -> Tensor:
        """The logarithms of the weights of one head, (B, T, S), in float32 at least; ``mask`` (B, S) of the source."""
        if not attention.plain:
            return widened(torch.cat(self._seen["weights"], 2)[:, head]).clamp_min(1e-9).log()
        assert isinstance(attention.score, InnerScore)
        queries, keys = (widened(torch.cat(self._seen[name], 2)[:, head]) for name in ("queries", "keys"))  # (B, T, K)
        with torch.autocast(queries.device.type, enabled=False):
            scores = queries @ keys.mT * attention.score.scale
        return scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min).log_softmax(-1)


def guided_alignment(log_weights: Tensor, links: Tensor) -> Tensor:
    """Cross-entropy between the links of each target piece, which share it evenly, and the weights of a head (Garg et
    al., 2019), summed over the pieces that have links. Both are (B, T, S)."""
    counts = links.sum(-1).clamp_min(1)
    return -(torch.where(links, log_weights, 0.0).sum(-1) / counts).sum()


def reinforce(
    choices: Choices, reward: Tensor, mask: Tensor, baseline: nn.Linear, settings: ReinforceSettings
) -> Tensor:
    """The loss whose gradient is REINFORCE's, for the choices of hard attention (Williams, 1992; Xu et al., 2015).

    ``−(R_t − b_t) · log α_t``, with ``R_t`` the discounted log-probabilities of the words from t on and ``b_t`` a
    learned guess of it from the state before the choice. Plus the guess's own squared error, and a reward
    for entropy.
    """
    chosen = choices["log_probability"].sum((1, 3))  # (B, T)
    states = choices["queries"].transpose(1, 2).flatten(2).detach()  # (B, T, D)
    returns = _discounted(reward.detach() * mask, settings.discount)
    guess = baseline(states).squeeze(-1)
    probabilities = choices["probabilities"]  # (B, H, T, S)
    entropy = -(probabilities * probabilities.clamp_min(1e-9).log()).sum((1, 3))  # (B, T)
    advantage = (returns - guess).detach()
    each = -advantage * chosen - settings.entropy * entropy + (returns - guess).square()
    return settings.weight * (each * mask).sum()


def _discounted(reward: Tensor, discount: float) -> Tensor:
    """``R_t = r_t + discount · R_{t+1}``"""
    if discount == 0.0:
        return reward
    returns, total = [], torch.zeros_like(reward[:, 0])
    for time in range(reward.shape[1] - 1, -1, -1):
        total = reward[:, time] + discount * total
        returns.append(total)
    return torch.stack(returns[::-1], 1)


Pairs = Sequence[tuple[str, str]]  # texts with their right answers
Attended = tuple[tuple[str, ...], tuple[str, ...], tuple[Weights, ...]]  # source and target pieces, each layer's mean
Attend = Callable[[EncoderDecoder, Tokenizers, Part], Attended]  # to a source, while the model wrote a part
VALID_BUDGET = 4096  # tokens a batch when validating; it changes no number

NOTES = (  # torch's to itself while it compiles
    "The .grad attribute",
    "(?s).*Online softmax",
    "TensorFloat32 tensor cores",  # float32 is meant, not less
    "`torch.jit.script_method` is deprecated",
)


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
    written: Sequence[str] = ()  # for the samples, where the score is a score of that


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
        self.samples = samples  # what it is shown to write, now and then
        self.stretch: Stretch = (1.0, 1.0)  # how much longer `prepare` makes rows: batches are planned with room for it
        self.progress = 0.0  # share of the training that lies behind; the trainer keeps it up to date

    @classmethod
    @abstractmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:
        """How rows become numbers. What that takes besides tokenizers is found in the rows, and kept in the run."""

    @classmethod
    @abstractmethod
    def build(cls, run: Run, tokenizers: Tokenizers) -> nn.Module:
        """The model that the settings describe, not yet trained."""

    @classmethod
    @abstractmethod
    def open(cls, run: Run, tokenizers: Tokenizers, train: Examples, valid: Examples, held_out: Pairs) -> Self:
        """The task of a run, with a model not yet trained. ``held_out`` texts are those it is scored or shown by."""

    @classmethod
    @abstractmethod
    def load(cls, run: Run, device: torch.device, checkpoint_name: str | None = None) -> AnyTrained:
        """A trained run, in use: its best checkpoint, or another such as ``step-2000``."""

    @classmethod
    def material(cls, files: Files, settings: Settings) -> Material:  # noqa: ARG003
        """The rows of the user's files, or what is made of them."""
        return files

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
        self.compiled = True
        shapes.use_duck_shape = False  # lengths that happen to be equal at first need not stay so
        for message in NOTES:
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
    def write(self, texts: Sequence[str], device: torch.device) -> list[str]:
        """What the model, at rest, makes of texts now."""

    def watched(self, sentence: str, device: torch.device, attend: Attend) -> Watched:  # noqa: ARG002
        """What it makes of the sentence that is watched; ``attend`` looks into it."""
        return Watched(sentence, self.write([sentence], device)[0])

    @abstractmethod
    def score(self, device: torch.device) -> tuple[float, str, Sequence[str]]:
        """The task's own measure of the model as it is now, its name, and what it wrote of the samples, if it did."""

    @torch.no_grad()
    def validate(self, device: torch.device) -> Scores:
        """Loss and score on the validation examples."""
        training = self.training
        self.eval()
        total, count = 0.0, 0
        for batch in self.valid_batches():
            total += float(self(Tensors.of(batch, device)))
            count += batch.tokens
        value, name, written = self.score(device)
        self.train(training)
        return Scores(total / max(1, count), value, name, written=written)

    def on(self, valid: Examples, samples: Pairs) -> Self:
        """The same model, with another text to validate on."""
        other = copy(self)
        other.valid_examples, other.samples = valid, samples
        return other

    def valid_batches(self) -> Iterator[Batch]:
        """All rows; those that are too long, for a batch or for the model's positions, are cut off."""
        return Batches(self.valid_examples, VALID_BUDGET, longest=self.longest(VALID_BUDGET), truncate=True).epoch(0)

    def longest(self, wanted: int) -> int:
        """How long a sequence may be: as long as is wanted, and as there are positions for."""
        return min(wanted, longest_sequence(self.model) or wanted)


def chosen_checkpoint(run: Run, name: str | None) -> Path:
    """The one that is named, else the best."""
    return best_checkpoint(run) if name is None else named_checkpoint(run, name)


def column(rows: Rows, names: Sequence[str], place: int) -> Iterator[str]:
    """One column of all rows."""
    return (row[place] for _, row in rows.rows(names))


def fitting(samples: Pairs, model: nn.Module, count: Callable[[str], int]) -> list[tuple[str, str]]:
    """The samples that the model has positions for. ``count`` tells how many pieces a text has."""
    most = longest_sequence(model)
    return [sample for sample in samples if most is None or count(sample[0]) < most]
