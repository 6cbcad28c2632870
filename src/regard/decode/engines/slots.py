"""A search in fixed memory: every step is the same operations on the same tensors.

`decode.search` is its written-out twin: there, hypotheses grow by a token a step and sentences leave the batch. Here a
sentence has a slot, a place in every tensor, for as long as it is searched, and a length of its own; no operation
depends on a value that the host would have to read. So a step can be captured once as a CUDA graph and replayed.

The history keeps the token of each step and the hypothesis it continues, and is read backwards when a sentence is done:
nothing is moved during the search. Only constraints need the texts themselves, which are then kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.constraints import Constraint, restrict
from regard.decode.front import UnderWay, gather
from regard.decode.rules import Choose, Rule
from regard.decode.search import Hypothesis
from regard.text.vocabulary import PAD

Fetched = Callable[[], list[list[Hypothesis]]]  # outputs that are on their way to the host


@dataclass(frozen=True)
class Apart(UnderWay):
    """Sentences that have written different numbers of tokens."""

    lengths: Tensor  # (B,)

    @property
    def length(self) -> Tensor:
        return self.lengths


@dataclass(frozen=True)
class Slots:
    """B sentences, each with W hypotheses under way and its N best finished ones. All of it is written in place."""

    sentences: Tensor  # (B,) which sentence of the search each is
    tokens: Tensor  # (B, W) what each hypothesis wrote last
    totals: Tensor  # (B, W) log-probabilities; -inf: nothing is under way here
    written: Tensor  # (B,) tokens so far
    limits: Tensor  # (B,) tokens at the most, <end> included
    open: Tensor  # (B,) whether the sentence is still searched
    count: Tensor  # (B,) how many have finished so far, kept or not
    scores: Tensor  # (B, N) of the finished, best first; -inf: there is none yet
    ended: Tensor  # (B, N) their log-probabilities
    places: Tensor  # (B, N) where they are in the history: length · W + hypothesis
    history: Tensor  # (B, T, 2, W) at each step the token chosen for each slot, and which it goes on from
    texts: Tensor  # (B, W, T) the tokens so far, the last one last, where constraints ask for them

    @staticmethod
    def empty(rule: Rule, count: int, longest: int, like: Tensor) -> Slots:
        """All closed. ``like`` says where, and whether log-probabilities have double precision."""
        kind = torch.float64 if like.dtype == torch.float64 else torch.float32
        whole = torch.zeros(count, dtype=torch.long, device=like.device)
        nothing = torch.full((count, rule.rows), -torch.inf, dtype=kind, device=like.device)
        history = torch.zeros(count, longest, 2, rule.rows, dtype=torch.int32, device=like.device)
        tokens, places = (whole[:, None].repeat(1, size) for size in (rule.rows, rule.best))
        best = nothing[:, : rule.best]
        return Slots(
            *(whole.clone(), tokens, nothing, whole.clone(), whole + 1, whole > 0, whole.clone()),
            *(best.clone(), best.clone(), places, history, tokens[:, :, None].repeat(1, 1, longest)),
        )

    def clear(self) -> None:
        """Close all. Sentences of an earlier search must not be asked for in the next."""
        for column in (self.open, self.sentences, self.written):
            column.zero_()

    def first(self, count: int) -> Slots:
        """The first so many, without a copy."""
        return Slots(*(getattr(self, field.name)[:count] for field in fields(self)))

    def fill(self, slots: Tensor, sentences: Tensor, limits: Tensor, token: int, opening: Tensor) -> None:
        """Begin new sentences in these slots (n,), with the rule's ``opening`` totals (W,)."""
        for column, value in ((self.tokens, token), (self.written, 0), (self.open, True), (self.count, 0)):
            column.index_fill_(0, slots, value)
        self.scores.index_fill_(0, slots, -torch.inf)
        self.texts.index_fill_(0, slots, PAD)
        self.sentences.index_copy_(0, slots, sentences)
        self.limits.index_copy_(0, slots, limits)
        self.totals.index_copy_(0, slots, opening.to(self.totals).expand(len(slots), -1))

    def move(self, old: Tensor, new: Tensor) -> None:
        """Copy slots (n,) to others and close the old ones."""
        for field in fields(self):
            column = getattr(self, field.name)
            column.index_copy_(0, new, column.index_select(0, old))
        self.open.index_fill_(0, old, False)  # noqa: FBT003

    def advance(
        self,
        log_probabilities: Tensor,
        rule: Rule,
        choose: Choose,
        constraints: Sequence[Constraint] = (),
        longest: int = 0,
    ) -> Tensor | None:
        """One token further, from log-probabilities (B, W, V): the hypothesis each goes on from, (B, W), or None: each
        from itself. With constraints, no text has more than ``longest`` tokens."""
        texts = self.texts[:, :, self.texts.shape[2] - longest :]
        now = Apart(self.sentences, self.limits, texts, self.totals, self.written)
        if constraints:
            restrict(log_probabilities, now, constraints, unknown=rule.unknown)
        choice = choose(now, log_probabilities)
        assert choice.ended is not None
        if constraints:
            before = texts if choice.parents is None else gather(texts, choice.parents)
            texts.copy_(torch.cat((before[:, :, 1:], choice.tokens[:, :, None]), 2))
        length = (self.written + 1).to(log_probabilities.dtype)
        scores = rule.score(choice.ended, length[:, None])
        self._finish(choice.ended, scores)
        self._note(choice.tokens, choice.parents)
        self.tokens.copy_(choice.tokens)
        still = self.open & ~self._over(choice.totals, length, rule)
        self.open.copy_(still)
        self.totals.copy_(choice.totals.masked_fill(~still[:, None], -torch.inf))
        self.written.add_(still)
        return choice.parents

    def _finish(self, totals: Tensor, scores: Tensor) -> None:
        """Add the hypotheses that end (B, W) to the finished ones; only the N best of all stay."""
        width = scores.shape[1]
        places = self.written[:, None] * width + torch.arange(width, device=scores.device)
        best, order = torch.cat((self.scores, scores), 1).topk(self.scores.shape[1])
        self.ended.copy_(torch.cat((self.ended, totals), 1).gather(1, order))
        self.places.copy_(torch.cat((self.places, places), 1).gather(1, order))
        self.scores.copy_(best)
        self.count.add_(scores.isfinite().sum(1))

    def _note(self, tokens: Tensor, parents: Tensor | None) -> None:
        """Write into the history of each sentence, at its own step."""
        count, longest, _, width = self.history.shape
        parents = torch.arange(width, device=tokens.device).expand_as(tokens) if parents is None else parents
        rows = torch.arange(count, device=tokens.device) * longest + self.written
        self.history.view(-1, 2, width).index_copy_(0, rows, torch.stack((tokens, parents), 1).int())

    def _over(self, totals: Tensor, length: Tensor, rule: Rule) -> Tensor:
        """(B,) as in `decode.search`; at its limit a sentence is over even where its totals are NaN."""
        over = (self.count >= rule.rows) | totals.amax(1).isneginf() | (length >= self.limits)
        bound = rule.reachable(totals, self.limits, length)
        return over if bound is None else over | (bound < self.scores[:, -1])

    def fetch(self, slots: Tensor, longest: int) -> Fetched:
        """Copy the finished outputs of these slots to the host; none has more than ``longest`` tokens.

        The function that is returned waits for the copy and reads it.
        """
        columns = (self.scores, self.ended, self.places, self.history[:, :longest])
        found = [column.index_select(0, slots).to("cpu", non_blocking=True) for column in columns]
        if not slots.is_cuda:
            return partial(read_back, *found)
        here = torch.cuda.current_stream().record_event()

        def wait() -> list[list[Hypothesis]]:
            here.synchronize()
            return read_back(*found)

        return wait


def read_back(scores: Tensor, ended: Tensor, places: Tensor, history: Tensor) -> list[list[Hypothesis]]:
    """The finished outputs of n sentences, best first, from (n, N) three times and (n, T, 2, W), on the host."""
    there = places.masked_fill(scores.isneginf(), 0)  # the others may stand anywhere
    tokens, lengths = _backwards(history.numpy(), there.numpy())
    columns: Sequence[list[list[float]]] = (ended.tolist(), scores.tolist())
    return [
        [
            Hypothesis(row[:length].tolist(), total, score)
            for row, length, total, score in zip(*each, strict=True)
            if score > -np.inf
        ]
        for each in zip(tokens, lengths.tolist(), *columns, strict=True)
    ]


def _backwards(history: NDArray[np.int32], places: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Tokens (n, N, t) and lengths (n, N) of the outputs that end at ``places``."""
    width = history.shape[3]
    lengths, slots = places // width, places % width
    rows = np.arange(len(places))[:, None]
    tokens = np.zeros((*places.shape, int(lengths.max(initial=0))), np.int32)
    for step in reversed(range(tokens.shape[2])):
        chosen = history[rows, step, :, slots]  # (n, N, 2)
        tokens[:, :, step] = chosen[:, :, 0]
        slots = np.where(step < lengths, chosen[:, :, 1], slots)
    return tokens, lengths
