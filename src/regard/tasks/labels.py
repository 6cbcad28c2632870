"""What tagging and classification share: how a labeller reads, predicts, learns and is scored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import NO_LABEL
from regard.data.encoding import Examples, LabelEncoder, RowEncoder, TagEncoder
from regard.decode.cancel import check_cancelled
from regard.decode.search import of_like_length
from regard.errors import ModelError
from regard.models import build
from regard.models.generator import Labeller
from regard.nn.fast.output_loss import widened
from regard.runs import checkpoint
from regard.runs.folder import Run
from regard.settings import Settings, TrainSettings
from regard.tasks.predictor import Rows
from regard.tasks.task import Pairs, Scores, Task, Tensors, column, drop_words, fitting
from regard.text.reading import KnownWords
from regard.text.tokenizers import Tokenizers, seen_words
from regard.text.vectors import Vectors
from regard.text.vocabulary import PAD, Tokenizer, Vocabulary
from regard.text.words import own_piece, spell, word_ids, word_letters

if TYPE_CHECKING:
    from regard.tasks.classify import Classifier
    from regard.tasks.tag import Tagger


BUDGET = 4096  # padded tokens in a batch; it changes no label


@dataclass(frozen=True)
class Reader:
    """What labellers read: ids, each followed by its letters where the model takes them."""

    tokenizer: Tokenizer
    letters: int
    device: torch.device
    known: KnownWords | None = None  # what the run has seen

    def words(self, words: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """One entry a piece, and the place of the piece of each word that has its label."""
        rows: list[list[int]] = []
        first = []
        for word in words:
            first.append(len(rows) + own_piece(self.tokenizer, word))
            letters = word_letters(self.tokenizer, word, self.letters) if self.letters else []
            rows += _with_letters(word_ids(self.tokenizer, word), letters, self.letters)
        return rows, first

    def units(self, text: str) -> tuple[tuple[str, ...], list[list[int]], list[int]]:
        """What a tagger labels one by one, words or vectors by their names; with the entries and places of `words`."""
        if isinstance(self.tokenizer, Vectors):
            rows = self.text(text)
            return tuple(self.tokenizer.pieces(text) if rows else ()), rows, list(range(len(rows)))
        words = tuple(text.split())
        return words, *self.words(words)

    def text(self, text: str) -> list[list[int]]:
        """One entry a piece, or a vector."""
        if isinstance(self.tokenizer, Vectors):
            return [list(vector) for vector in self.tokenizer.encode(text)]
        pieces = self.tokenizer.pieces(text) if self.letters else []
        letters = [letter for piece in pieces for letter in spell(piece, self.letters)]
        return _with_letters(self.tokenizer.encode(text), letters, self.letters)

    def batch(self, rows: Sequence[list[list[int]]]) -> Tensor:
        """Padded on the right: (B, S), or (B, S, 1 + L) with letters or the numbers of vectors."""
        width = max(map(len, rows))
        nothing = [PAD] * len(rows[0][0])
        padded = torch.tensor([row + [nothing] * (width - len(row)) for row in rows], device=self.device)
        return padded if len(nothing) > 1 else padded.squeeze(-1)


def _with_letters(ids: list[int], letters: list[int], places: int) -> list[list[int]]:
    return [[number, *letters[place * places : (place + 1) * places]] for place, number in enumerate(ids)]


@dataclass(frozen=True)
class LabelPredictor:
    """A labeller in use: what a tagger and a classifier have in common."""

    model: Labeller = field(repr=False)
    reader: Reader = field(repr=False)
    labels: Vocabulary = field(repr=False)
    run: Run | None = None

    @property
    def known(self) -> KnownWords | None:
        """The words it has seen."""
        return self.reader.known

    @torch.no_grad()
    def probabilities(self, rows: Sequence[list[list[int]]]) -> Iterator[tuple[int, Tensor]]:
        """The number of each row that is not empty, and its probabilities (S, C), or (C,) with a pool."""
        self.model.eval()
        for group in groups([len(row) for row in rows]):
            batch = self.reader.batch([rows[number] for number in group])
            yield from zip(group, self.model(batch).float().softmax(-1).cpu(), strict=True)


class LabelTask(Task):
    """A labeller in training. The model labels words or, with a pool, texts; the labels have the same shape."""

    model: Labeller
    labelled: ClassVar[type[TagEncoder] | type[LabelEncoder]]  # how its rows become numbers
    predictor: ClassVar[type[Tagger] | type[Classifier]]  # what it is in use

    def __init__(
        self,
        model: Labeller,
        reader: Reader,
        labels: Vocabulary,
        train: Examples,
        valid: Examples,
        *,
        learn: TrainSettings,
        samples: Pairs = (),
    ) -> None:
        super().__init__(model, train, valid, learn, samples)
        self.reader, self.labels = reader, labels

    @staticmethod
    @abstractmethod
    def labels_of(text: str) -> list[str]:
        """The labels that the second column of a row holds."""

    @staticmethod
    @abstractmethod
    def pool(settings: Settings) -> build.PoolName | None:
        """How a text is summed up; None where every piece is labelled."""

    @classmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:
        if not run.labels.exists():
            # a label in the validation rows alone will be predicted wrongly, which is no reason not to train
            texts = (text for rows in (train, valid) for text in column(rows, cls.columns, 1))
            labels = (label for text in texts for label in cls.labels_of(text))
            Vocabulary.count(labels, special=False).save(run.labels)
        return cls.labelled(tokenizers.source, Vocabulary.load(run.labels), run.settings.model.letters)

    @classmethod
    def build(cls, run: Run, tokenizers: Tokenizers) -> Labeller:
        settings, source = run.settings, tokenizers.source
        sizes = source.size, len(vocabulary(run.labels))
        vectors = isinstance(source, Vectors)
        return build.labeller(settings.model, *sizes, cls.pool(settings), seen=seen_words(source), vectors=vectors)

    @classmethod
    def open(cls, run: Run, tokenizers: Tokenizers, train: Examples, valid: Examples, held_out: Pairs) -> Self:
        model, source, settings = cls.build(run, tokenizers), tokenizers.source, run.settings
        reader = Reader(source, settings.model.letters, torch.device("cpu"))
        samples = fitting(held_out, model, lambda text: sum(map(len, map(source.encode, _units(source, text)))))
        return cls(model, reader, vocabulary(run.labels), train, valid, learn=settings.train, samples=samples)

    @classmethod
    def load(cls, run: Run, device: torch.device, checkpoint_name: str | None = None) -> Tagger | Classifier:
        tokenizers, labels = Tokenizers.load(run.tokenizer), vocabulary(run.labels)
        model = checkpoint.trained(lambda: cls.build(run, tokenizers), run, device, checkpoint_name)
        reader = Reader(tokenizers.source, run.settings.model.letters, device, tokenizers.known)
        return cls.predictor(model, reader, labels, run)

    def write(self, texts: Sequence[str], device: torch.device) -> list[str]:
        """The labels that the model gives now."""
        predictor = self.predictor(self.model, replace(self.reader, device=device), self.labels)
        return [str(each).replace("\t", " ") for each in predictor.predict(texts)]

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

    def score(self, device: torch.device, loss: float) -> Scores:
        """Accuracy in percent."""
        right, count = 0, 0
        for batch in self.valid_batches():
            tensors = Tensors.of(batch, device)
            guesses = self.model(tensors.source).argmax(-1).reshape(tensors.labels.shape)
            real = tensors.labels != NO_LABEL
            right += int((guesses == tensors.labels)[real].sum())
            count += int(real.sum())
        return Scores(loss, 100 * right / max(1, count), "accuracy")


def _units(source: Tokenizer, text: str) -> list[str]:
    """What is read one by one: words, or all vectors at once."""
    return [text] if isinstance(source, Vectors) else text.split()


def vocabulary(path: Path) -> Vocabulary:
    """The labels or the words that a run has written down."""
    if not path.is_file():
        raise ModelError(f"{path}: missing; a run for labels has this file, so the folder is not whole")
    return Vocabulary.load(path)


def groups(lengths: Sequence[int], budget: int = BUDGET) -> Iterator[list[int]]:
    """Rows of like length together, longest first; empty rows are in none."""
    filled = [row for row, length in enumerate(lengths) if length]
    for group in of_like_length([lengths[row] for row in filled], budget):
        check_cancelled()
        yield [filled[place] for place in group]
