"""Translation: N → M, source and target of independent lengths."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, product
from random import Random
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.batches import FILLER, Batch, Stretch, collate
from regard.data.encoding import Column, Examples, PairEncoder, Ragged, RowEncoder, pieces_of_words
from regard.data.plan import BatchShape
from regard.decode.engines.engine import Searcher
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.texts import Output, TextSearch
from regard.errors import SettingsError
from regard.metrics.translation import bleu, measure
from regard.models.generator import EncoderDecoder
from regard.models.recurrent import BahdanauDecoder, ConditionalDecoder, LuongDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn import masks
from regard.nn.attention import Attention
from regard.nn.consistency import Cut, r_drop, sim_cut
from regard.nn.fast import random as chance
from regard.nn.observe import UNOBSERVED, Observer
from regard.runs.folder import Run
from regard.runs.log import Watched
from regard.settings import TrainSettings
from regard.settings.call import MeasureSettings
from regard.tasks.predictor import Rows
from regard.tasks.task import Attend, Choices, Head, Pairs, Task, Tensors, drop_words, guided_alignment, reinforce
from regard.tasks.translator import Translator, build_model
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import Vectors
from regard.text.vocabulary import PAD, UNK, Tokenizer

DRAWS = 8  # ways to cut a sentence that are tried before the usual one
MEASURED = 300  # sentences that are cut to see how much longer they become
UNLIMITED = BatchShape(0, sys.maxsize, sys.maxsize)
GREEDY = Options(Beam(width=1))
EXACT = MeasureSettings(metrics=("exact",), resamples=0)
SIDES: tuple[Column, Column] = ("source", "target")
Cuts = tuple[Sequence[int], Sequence[int]]  # the ids of a source and of its target


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
        learn: TrainSettings,
        sampling: bool = False,
        guided: tuple[int, int] | None = None,
        held_out: Pairs = (),
    ) -> None:
        """``learn`` says what training does besides predicting the next token; ``sampling`` cuts words at random,
        ``guided`` is the layer and head, from 0, that is taught to align.

        ``held_out`` sentences are translated at each validation and compared with their references.
        """
        super().__init__(model, train, valid, learn, held_out)
        self.tokenizers, self.learn, self.sampling, self.guided = tokenizers, learn, sampling, guided
        self.scheduled_sampling = learn.scheduled_sampling
        if learn.scheduled_sampling and isinstance(model.decoder, TransformerDecoder):
            raise SettingsError(
                "train.scheduled_sampling: feeds a decoder its own words one by one, and a Transformer trains on all "
                "at once; use a recurrent model, or 0"
            )
        self.baseline = _baseline(model)
        if sampling and len(train):
            self.stretch = self._measured()

    @classmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:  # noqa: ARG003
        return PairEncoder(tokenizers)

    @classmethod
    def build(cls, run: Run, tokenizers: Tokenizers) -> EncoderDecoder:
        return build_model(run, tokenizers)

    @classmethod
    def open(cls, run: Run, tokenizers: Tokenizers, train: Examples, valid: Examples, held_out: Pairs) -> Self:
        model, settings = cls.build(run, tokenizers), run.settings
        return cls(
            model,
            tokenizers,
            train,
            valid,
            learn=settings.train,
            sampling=settings.text.sampling,
            guided=settings.guided_head,
            held_out=held_out,
        )

    @classmethod
    def load(cls, run: Run, device: torch.device, checkpoint_name: str | None = None) -> Translator:
        """Alone; `regard.tasks.load.load` also makes ensembles, and asks who searches."""
        from regard.tasks.load import load

        return load(run.folder, device=str(device), checkpoint_name=checkpoint_name)

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
        if not self.sampling:
            return batch
        real = batch.rows[batch.rows != FILLER]
        shape = BatchShape(len(batch), batch.source.shape[1], batch.target_in.shape[1])
        sampled = collate(self._sampled(real, shape, epoch), np.arange(len(real)), shape)
        return replace(sampled, rows=batch.rows)

    def _sampled(self, rows: NDArray[np.int64], room: BatchShape, epoch: int) -> Examples:
        """Some sentences of the training text, cut at random where there is room for it."""
        columns, tokenizers = self.train_examples.columns, self.tokenizers
        begin, frame = tokenizers.begin, len(tokenizers.framed(()))
        sources, targets, links = list[list[int]](), list[list[int]](), list[list[int]]()
        for row in rows.tolist():
            chance = Random(f"{self.learn.seed} {epoch} {row}")
            source, target = (columns[side][row].tolist() for side in SIDES)
            sources.append(tokenizers.framed(_cut(tokenizers.source, source, room.source - frame, chance)))
            targets.append([*begin, *_cut(tokenizers.target, target, room.target - 1 - len(begin), chance)])
            if "links" in columns:
                links.append(
                    moved(columns["links"][row].tolist(), tokenizers, (source, target), (sources[-1], targets[-1]))
                )
        found: dict[Column, Ragged] = {"source": Ragged.of(sources), "target": Ragged.of(targets)}
        return Examples(found | ({"links": Ragged.of(links)} if "links" in columns else {}))

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:
        twice = self.training and self.learn.consistency.kind != "none"
        batch = batch.twice() if twice else batch
        source = drop_words(batch.source, self.word_dropout)
        own = self._own_share()
        target = self._own_words(source, batch, own) if own else batch.target_in
        target = drop_words(target, self.word_dropout)
        choices = Choices() if self.baseline is not None and self.training else None
        head = self._head() if self.training and batch.links.numel() else None
        cut = Cut(self.learn.consistency.cut) if twice and self.learn.consistency.kind == "simcut" else None
        observer: Observer = choices or head or cut or UNOBSERVED
        _, state = self.model.start(source, observer=observer)
        features, _ = self.model.advance(target, state, masks.padding(target), observer)
        share = 0.5 if twice else 1.0  # of what all rows lose
        if twice:
            total = self._inconsistent(features, batch.target_out, static=static)
        else:
            total = self.token_loss(self.model, features, batch.target_out, static=static)
        if head is not None:
            total = total + share * self.learn.alignment.weight * self._misaligned(head, source, batch)
        return total if choices is None else total + share * self._reinforce(choices, features, batch.target_out)

    def _inconsistent(self, features: Tensor, targets: Tensor, *, static: bool) -> Tensor:
        """What a batch loses that went through the model twice: in the right words, and where the passes differ.
        ``static`` as in `token_loss`."""
        how, (one, other), wanted = self.learn.consistency, features.chunk(2), targets[: len(targets) // 2]
        if static:
            one, other, wanted = one.flatten(0, 1), other.flatten(0, 1), wanted.flatten()
        else:
            real = wanted != PAD
            one, other, wanted = one[real], other[real], wanted[real]
        loss = r_drop if how.kind == "rdrop" else sim_cut
        return loss(self.model.project(one), self.model.project(other), wanted, self.smoothing, how.weight)

    def _head(self) -> Head | None:
        if self.guided is None:
            return None
        layer = (self.guided[0],) if isinstance(self.model.decoder, TransformerDecoder) else ()
        return Head(("decoder", *layer, "cross"), active=not self._guided().plain)

    def _guided(self) -> Attention:
        """The cross-attention that is taught to align."""
        decoder = self.model.decoder
        if isinstance(decoder, BahdanauDecoder | LuongDecoder | ConditionalDecoder):
            return decoder.attention
        assert isinstance(decoder, TransformerDecoder)
        assert self.guided is not None
        cross = decoder.layers[self.guided[0]].cross
        assert cross is not None
        return cross

    def _misaligned(self, head: Head, source: Tensor, batch: Tensors) -> Tensor:
        """What the head loses. In a Transformer it shows in the step that reads a piece where that came from: the step
        that predicts it does not know yet which it will be; and where it came from nothing, it looks at the last token
        of the source, `<end>`. A recurrent decoder, which sees the source through this attention alone, must look
        there to predict it, and wherever it likes where there is no link."""
        assert self.guided is not None
        real, links = masks.padding(source), batch.links
        weights = head.log_weights(self._guided(), self.guided[1], real)
        if isinstance(self.model.decoder, TransformerDecoder):
            last = torch.arange(source.shape[1], device=source.device) == real.sum(1, keepdim=True) - 1  # (B, S)
            alone = (batch.target_out > UNK) & ~links.any(2) & links.any(2).any(1, keepdim=True)  # (B, T)
            links = links | (alone[:, :, None] & last[:, None])
            weights, links = weights[:, 1:], links[:, :-1]
        return guided_alignment(weights, links)

    def _own_share(self) -> float:
        """How often the decoder reads its own words; ``progress`` is left alone where it has no say, for a compiled
        step is compiled anew whenever a number that it has read changes."""
        share = self.scheduled_sampling if self.training else 0.0
        return share * self.progress if share else 0.0

    def _reinforce(self, choices: Choices, features: Tensor, targets: Tensor) -> Tensor:
        assert self.baseline is not None
        with torch.no_grad():
            log_probabilities = self.model.project(features).log_softmax(-1)
            reward = log_probabilities.gather(-1, targets[:, :, None]).squeeze(-1)  # (B, T)
        return reinforce(choices, reward, targets != PAD, self.baseline, self.learn.reinforce)

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
        """BLEU of greedy translations of the held-out sentences; what is read off vectors is right or wrong."""
        exact = isinstance(self.tokenizers.source, Vectors)
        name = "exact match" if exact else "BLEU"
        if not self.samples:
            return 0.0, name, ()
        sources, references = zip(*self.samples, strict=True)
        written = self.write(sources, device)
        return (measure(written, references, EXACT)[0] if exact else bleu(written, references)).score, name, written

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


def moved(links: Sequence[int], tokenizers: Tokenizers, old: Cuts, new: Cuts) -> list[int]:
    """Links between pieces, when words are cut another way: each goes to all pieces of its word."""
    owners, pieces = list[dict[int, int]](), list[list[list[int]]]()
    for tokenizer, before, after in zip((tokenizers.source, tokenizers.target), old, new, strict=True):
        words = enumerate(pieces_of_words(tokenizer, before))
        owners.append({place: word for word, places in words for place in places})
        pieces.append(pieces_of_words(tokenizer, after))
    pairs = zip(links[::2], links[1::2], strict=True)
    words_linked = {(owners[0][source], owners[1][target]) for source, target in pairs}
    each = (
        product(pieces[0][source], pieces[1][target])
        for source, target in sorted(words_linked)
        if source < len(pieces[0]) and target < len(pieces[1])
    )
    return list(chain.from_iterable(chain.from_iterable(each)))


def _baseline(model: EncoderDecoder) -> nn.Linear | None:
    """For the hard attention of recurrent decoders, trained with REINFORCE: a guess of the reward, learned beside the
    model and of no use after training."""
    decoder = model.decoder
    if not isinstance(decoder, BahdanauDecoder | LuongDecoder | ConditionalDecoder) or not decoder.attention.hard:
        return None
    return nn.Linear(decoder.stack.width, 1)
