"""Translation: N → M, source and target of independent lengths."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.batches import FILLER, Batch, Stretch, collate
from regard.data.encoding import Column, PairEncoder, RowEncoder
from regard.data.examples import Examples, Ragged
from regard.data.menu import BatchShape
from regard.decode.engines.engine import Searcher
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.texts import Output, TextSearch
from regard.errors import SettingsError
from regard.metrics.translation import bleu
from regard.models import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.recurrent import BahdanauDecoder, ConditionalDecoder, LuongDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn import masks
from regard.nn.attention import Attention
from regard.nn.fast import random as chance
from regard.nn.observe import UNOBSERVED, Observer
from regard.runs.folder import Run
from regard.runs.samples import Watched
from regard.settings import ReinforceSettings
from regard.tasks.losses import Choices, drop_words, reinforce
from regard.tasks.predictor import Opening, Rows
from regard.tasks.task import Attend, Pairs, Task, Tensors
from regard.tasks.translator import Translator
from regard.text.special import PAD
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizers import Tokenizers

DRAWS = 8  # ways to cut a sentence that are tried before the usual one
MEASURED = 300  # sentences that are cut to see how much longer they become
UNLIMITED = BatchShape(0, sys.maxsize, sys.maxsize)
GREEDY = Options(Beam(width=1))
SIDES: tuple[Column, Column] = ("source", "target")


@dataclass(frozen=True)
class Regularisation:
    """What training does besides predicting the next token."""

    smoothing: float = 0.0
    word_dropout: float = 0.0
    subword_sampling: bool = False
    scheduled_sampling: float = 0.0
    reinforce: ReinforceSettings = field(default_factory=ReinforceSettings)
    seed: int = 0


class TranslateTask(Task):
    """A translator in training."""

    model: EncoderDecoder
    columns = PairEncoder.names
    texts = 2

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizers: Tokenizers,
        train: Examples,
        valid: Examples,
        *,
        habits: Regularisation,
        held_out: Pairs = (),
    ) -> None:
        """``held_out`` sentences are translated at each validation and compared with their references."""
        smoothing, word_dropout = habits.smoothing, habits.word_dropout
        super().__init__(model, train, valid, samples=held_out, smoothing=smoothing, word_dropout=word_dropout)
        self.tokenizers = tokenizers
        self.habits = habits
        if habits.scheduled_sampling and isinstance(model.decoder, TransformerDecoder):
            raise SettingsError(
                "train.scheduled_sampling: feeds a decoder its own words one by one, and a Transformer trains on all "
                "at once; use a recurrent model, or 0"
            )
        self.baseline = _baseline(model)
        if habits.subword_sampling and len(train):
            self.stretch = self._measured()

    @classmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:  # noqa: ARG003
        return PairEncoder(tokenizers)

    @classmethod
    def build(cls, run: Run, tokenizers: Tokenizers) -> EncoderDecoder:
        return build.encoder_decoder(run.settings.model, tokenizers.source.size, tokenizers.target.size)

    @classmethod
    def open(cls, run: Run, tokenizers: Tokenizers, train: Examples, valid: Examples, held_out: Pairs) -> Self:
        learn = run.settings.train
        habits = Regularisation(
            smoothing=learn.smoothing,
            word_dropout=learn.word_dropout,
            subword_sampling=run.settings.text.sampling,
            scheduled_sampling=learn.scheduled_sampling,
            reinforce=learn.reinforce,
            seed=learn.seed,
        )
        return cls(cls.build(run, tokenizers), tokenizers, train, valid, habits=habits, held_out=held_out)

    @classmethod
    def load(cls, run: Run, device: torch.device, opening: Opening) -> Translator:
        """Alone; `regard.tasks.load.load` also makes ensembles."""
        from regard.tasks.load import load

        return load(
            run.folder,
            device=str(device),
            engine=opening.engine,
            tell=opening.tell,
            checkpoint_name=opening.checkpoint,
        )

    def _measured(self) -> Stretch:
        """How much longer sampling makes sentences: nine of ten no more than this, as far as a few hundred tell."""
        some = np.unique(np.linspace(0, len(self.train_examples) - 1, MEASURED).astype(np.int64))
        drawn, usual = self._sampled(some, UNLIMITED, 0).columns, self.train_examples.columns
        source, target = (
            float(np.quantile((drawn[side].lengths() + 1) / (usual[side].lengths()[some] + 1), 0.9)) for side in SIDES
        )
        return source, target

    def prepare(self, batch: Batch, epoch: int) -> Batch:
        """With subword sampling, the same sentences cut another way. A cut that is too long for the batch is drawn
        again, and at last the usual one is taken; seed, epoch, row and the shape of the batch alone decide."""
        if not self.habits.subword_sampling:
            return batch
        real = batch.rows[batch.rows != FILLER]
        shape = BatchShape(len(batch), batch.source.shape[1], batch.target_in.shape[1])
        sampled = collate(self._sampled(real, shape, epoch), np.arange(len(real)), shape)
        return replace(sampled, rows=batch.rows)

    def _sampled(self, rows: NDArray[np.int64], room: BatchShape, epoch: int) -> Examples:
        """Some sentences of the training text, cut at random where there is room for it."""
        columns, tokenizers = self.train_examples.columns, self.tokenizers
        begin, frame = tokenizers.begin, len(tokenizers.framed(()))
        sources, targets = list[list[int]](), list[list[int]]()
        for row in rows.tolist():
            chance = Random(f"{self.habits.seed} {epoch} {row}")
            source, target = (columns[side][row].tolist() for side in SIDES)
            sources.append(tokenizers.framed(_cut(tokenizers.source, source, room.source - frame, chance)))
            targets.append([*begin, *_cut(tokenizers.target, target, room.target - 1 - len(begin), chance)])
        return Examples({"source": Ragged.of(sources), "target": Ragged.of(targets)})

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:
        source = drop_words(batch.source, self.word_dropout)
        share = self._own_share()
        target = self._own_words(source, batch, share) if share else batch.target_in
        target = drop_words(target, self.word_dropout)
        choices = Choices() if self.baseline is not None and self.training else None
        observer: Observer = UNOBSERVED if choices is None else choices
        _, state = self.model.start(source, observer=observer)
        features, _ = self.model.advance(target, state, masks.padding(target), observer)
        total = self.token_loss(self.model, features, batch.target_out, static=static)
        return total if choices is None else total + self._reinforce(choices, features, batch.target_out)

    def _own_share(self) -> float:
        """How often the decoder reads its own words; ``progress`` is left alone where it has no say, for a compiled
        step is compiled anew whenever a number that it has read changes."""
        share = self.habits.scheduled_sampling if self.training else 0.0
        return share * self.progress if share else 0.0

    def _reinforce(self, choices: Choices, features: Tensor, targets: Tensor) -> Tensor:
        assert self.baseline is not None
        with torch.no_grad():
            log_probabilities = self.model.project(features).log_softmax(-1)
            reward = log_probabilities.gather(-1, targets[:, :, None]).squeeze(-1)  # (B, T)
        return reinforce(choices, reward, targets != PAD, self.baseline, self.habits.reinforce)

    @torch.no_grad()
    def _own_words(self, source: Tensor, batch: Tensors, share: float) -> Tensor:
        """Scheduled sampling (Bengio et al., 2015): at each step the true word or, by chance, the model's own."""
        token, state = self.model.start(source)
        written = [token]
        for time in range(1, batch.target_in.shape[1]):
            logits, state = self.model.step(token, state)
            true = batch.target_in[:, time]
            own = (chance.uniform(true.shape, true.device) < share) & (true != PAD)
            token = torch.where(own, logits.argmax(-1), true)
            written.append(token)
        return torch.stack(written, 1)

    def score(self, device: torch.device) -> tuple[float, str, Sequence[str]]:
        """BLEU of greedy translations of the held-out sentences."""
        if not self.samples:
            return 0.0, "BLEU", ()
        sources, references = zip(*self.samples, strict=True)
        written = self.write(sources, device)
        return bleu(written, references).score, "BLEU", written

    def write(self, texts: Sequence[str], device: torch.device) -> list[str]:
        """Greedy translations."""
        return [output.text for output in self._search(texts, device)]

    def watched(self, sentence: str, device: torch.device, attend: Attend) -> Watched:
        """The translation and, where one pass of a model with attention wrote it, the cross-attention."""
        output = self._search([sentence], device)[0]
        if len(output.parts) != 1 or not any(isinstance(module, Attention) for module in self.model.modules()):
            return Watched(sentence, output.text)
        return Watched(sentence, output.text, *attend(self.model, self.tokenizers, output.parts[0]))

    def _search(self, texts: Sequence[str], device: torch.device) -> list[Output]:
        return [each[0] for each in TextSearch(Searcher(self.model), self.tokenizers, device)(texts, GREEDY)]


def _cut(tokenizer: Tokenizer, usual: list[int], room: int, chance: Random) -> list[int]:
    """Another way to cut a text, of those that fit; the usual one, without what stands around it, fits always."""
    usual = [number for number in usual if number not in tokenizer.silent]
    text = tokenizer.decode(usual)
    for _ in range(DRAWS):
        if len(drawn := tokenizer.sample(text, chance)) <= room:
            return drawn
    return usual


def _baseline(model: EncoderDecoder) -> nn.Linear | None:
    """For the hard attention of recurrent decoders, trained with REINFORCE: a guess of the reward, learned beside the
    model and of no use after training."""
    decoder = model.decoder
    if not isinstance(decoder, BahdanauDecoder | LuongDecoder | ConditionalDecoder) or not decoder.attention.hard:
        return None
    return nn.Linear(decoder.stack.width, 1)
