"""Translation: N → M, source and target of independent lengths. `translator.py` is the trained run in use."""

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
from regard.data.cuts import LARGEST, WordCuts
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
from regard.nn.attention import Attention, InnerScore
from regard.nn.consistency import Inconsistency, TokenCutoff
from regard.nn.fast import random as chance
from regard.nn.fast.output_loss import widened
from regard.nn.observe import UNOBSERVED, Observer, Unobserved
from regard.runs.folder import Run
from regard.runs.log import Watched
from regard.settings import ReinforceSettings, TrainSettings
from regard.settings.call import MeasureSettings
from regard.tasks.predictor import Rows
from regard.tasks.task import Pairs, Scores, Task, Tensors, drop_words
from regard.tasks.translator import Translator, attends, build_model
from regard.text.subwords import SubwordTokenizer
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import Vectors
from regard.text.vocabulary import END, PAD, UNK, Tokenizer

DRAWS = 8  # random cuts of a sentence that are tried before the usual one
MEASURED = 300  # sentences that are cut at random to measure how much longer they become
DIGITS = 4  # of an attention weight, in the log
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
        """``sampling`` cuts words at random; ``guided`` is the layer and head, from 0, that learns to align.

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
        how = learn.consistency
        self.inconsistency = None if how.kind == "none" else Inconsistency(how.kind, how.weight)
        self._cuts: tuple[WordCuts, WordCuts] | None = None
        if sampling and len(train):
            self._cuts = self._drawn()
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
        """One run alone; `regard.tasks.load.load` also makes ensembles and chooses an engine."""
        from regard.tasks.load import load

        return load(run.folder, device=str(device), checkpoint_name=checkpoint_name)

    def _measured(self) -> Stretch:
        """How much longer sampling makes sentences: at most this in three of four, measured on a few hundred."""
        some = np.unique(np.linspace(0, len(self.train_examples) - 1, MEASURED).astype(np.int64))
        drawn, usual = self._sampled(some, UNLIMITED, 0).columns, self.train_examples.columns
        source, target = (
            float(np.quantile((drawn[side].lengths() + 1) / (usual[side].lengths()[some] + 1), 0.75)) for side in SIDES
        )
        return source, target

    def prepare(self, batch: Batch, epoch: int) -> Batch:
        """With subword sampling, the same sentences cut at random. A cut that is too long for the batch is drawn again,
        and in the end the usual one is taken. Seed, epoch, row and the shape of the batch decide it."""
        if not self.sampling:
            return batch
        real = batch.rows[batch.rows != FILLER]
        shape = BatchShape(len(batch), batch.source.shape[1], batch.target_in.shape[1])
        sampled = collate(self._sampled(real, shape, epoch), np.arange(len(real)), shape)
        return replace(sampled, rows=batch.rows)

    def _sampled(self, rows: NDArray[np.int64], room: BatchShape, epoch: int) -> Examples:
        """Some sentences of the training text, cut at random where there is room for it."""
        columns, cuts = self.train_examples.columns, self._cuts
        if cuts is None:
            source, target = self._sampled_anew(rows, room, epoch)
        else:
            key = Random(f"{self.learn.seed} {epoch}").getrandbits(64)
            source, target = (
                cut.fitting(columns[side], rows, place, key + number, DRAWS)
                for number, (side, cut, place) in enumerate(
                    zip(SIDES, cuts, (room.source, room.target - 1), strict=True)
                )
            )
        found: dict[Column, Ragged] = {"source": source, "target": target}
        if "links" in columns:
            both = zip(rows.tolist(), range(len(rows)), strict=True)
            found["links"] = Ragged.of(
                [
                    moved(
                        columns["links"][row].tolist(),
                        self.tokenizers,
                        (columns["source"][row].tolist(), columns["target"][row].tolist()),
                        (source[place].tolist(), target[place].tolist()),
                    )
                    for row, place in both
                ]
            )
        return Examples(found)

    def _drawn(self) -> tuple[WordCuts, WordCuts] | None:
        """The ways to cut each word of the training text; None where they cannot be drawn beforehand."""
        sides = self.tokenizers.source, self.tokenizers.target
        columns = [self.train_examples.columns[side] for side in SIDES]
        if max(len(column.numbers) for column in columns) > LARGEST:
            return None
        source, target = (
            WordCuts.of(column, tokenizer, self.learn.seed + place) if isinstance(tokenizer, SubwordTokenizer) else None
            for place, (column, tokenizer) in enumerate(zip(columns, sides, strict=True))
        )
        return None if source is None or target is None else (source, target)

    def _sampled_anew(self, rows: NDArray[np.int64], room: BatchShape, epoch: int) -> tuple[Ragged, Ragged]:
        """Both sides of some sentences, each cut by the tokenizer itself."""
        columns, tokenizers = self.train_examples.columns, self.tokenizers
        begin, frame = tokenizers.begin, len(tokenizers.framed(()))
        sources, targets = list[list[int]](), list[list[int]]()
        for row in rows.tolist():
            chance = Random(f"{self.learn.seed} {epoch} {row}")
            source, target = (columns[side][row].tolist() for side in SIDES)
            sources.append(tokenizers.framed(_cut(tokenizers.source, source, room.source - frame, chance)))
            targets.append([*begin, *_cut(tokenizers.target, target, room.target - 1 - len(begin), chance)])
        return Ragged.of(sources), Ragged.of(targets)

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:
        twice = self.training and self.inconsistency is not None
        batch = batch.twice() if twice else batch
        source = drop_words(batch.source, self.word_dropout)
        own = self._own_share()
        target = self._own_words(source, batch, own) if own else batch.target_in
        target = drop_words(target, self.word_dropout)
        choices = Choices() if self.baseline is not None and self.training else None
        head = self._head() if self.training and batch.links.numel() else None
        cut = TokenCutoff(self.learn.consistency.cut) if twice and self.learn.consistency.kind == "simcut" else None
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
        assert self.inconsistency is not None
        (one, other), wanted = features.chunk(2), targets[: len(targets) // 2]
        if static:
            one, other, wanted = one.flatten(0, 1), other.flatten(0, 1), wanted.flatten()
        else:
            real = wanted != PAD
            one, other, wanted = one[real], other[real], wanted[real]
        return self.inconsistency(self.model.project(one), self.model.project(other), wanted, self.smoothing)

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
        """The alignment loss of the head.

        In a Transformer the step that *reads* a piece attends to its links, because the step that predicts it does not
        know the piece yet; a piece without links attends to the last token of the source, `<end>`. A recurrent decoder
        sees the source through this attention alone, so the step that *predicts* a piece attends to its links, and a
        piece without links counts nothing."""
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
        """How often the decoder reads its own words. ``progress`` is read only where it matters: a compiled step is
        compiled again whenever a number that it has read changes."""
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

    def score(self, device: torch.device, loss: float) -> Scores:
        """BLEU of greedy translations of the held-out sentences; exact matches where the source is vectors."""
        exact = isinstance(self.tokenizers.source, Vectors)
        name = "exact match" if exact else "BLEU"
        if not self.samples:
            return Scores(loss, 0.0, name)
        sources, references = zip(*self.samples, strict=True)
        written = self.write(sources, device)
        quality = measure(written, references, EXACT)[0] if exact else bleu(written, references)
        return Scores(loss, quality.score, name, written=written)

    def write(self, texts: Sequence[str], device: torch.device) -> list[str]:
        """Greedy translations."""
        return [output.text for output in self._search(texts, device)]

    def watched(self, sentence: str, device: torch.device) -> Watched:
        """The translation and, where one pass of a model with attention wrote it, the mean of each layer's heads."""
        from regard.explain.alignment import attend
        from regard.explain.trace import spell

        output = self._search([sentence], device)[0]
        if len(output.parts) != 1 or not attends(self.model):
            return Watched(sentence, output.text)
        part = output.parts[0]
        source = spell(self.tokenizers.read(part.source), self.tokenizers.source, part.source)
        target = spell([*part.tokens, END], self.tokenizers.target)
        layers: list[list[list[float]]] = attend(self.model, [(source, target)])[0].cross.mean(1).tolist()  # (L, T, S)
        rounded = (tuple(tuple(round(weight, DIGITS) for weight in row) for row in layer) for layer in layers)
        return Watched(sentence, output.text, source.pieces, target.pieces, tuple(rounded))

    def _search(self, texts: Sequence[str], device: torch.device) -> list[Output]:
        return [each[0] for each in TextSearch(Searcher(self.model), self.tokenizers, device)(texts, GREEDY)]


def _cut(tokenizer: Tokenizer, usual: list[int], room: int, chance: Random) -> list[int]:
    """A random cut of a text that fits; if none does, the usual one without its special tokens."""
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
    """The guess of the reward for the hard attention of recurrent decoders, trained with REINFORCE; not used after
    training."""
    decoder = model.decoder
    if not isinstance(decoder, BahdanauDecoder | LuongDecoder | ConditionalDecoder) or not decoder.attention.hard:
        return None
    return nn.Linear(decoder.stack.width, 1)


# What guided and hard attention lose besides the next token.


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
    """An observer of one cross-attention. Plain attention stays on its fused path: the weights of one head follow from
    queries and keys."""

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
