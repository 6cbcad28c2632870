"""The attention family: ``context_t = Σ_s α_ts v_s`` with ``α_t = normalise(score(q_t, k_·))``.

One class serves every member. They differ in a table: which projections exist, the score and its scale,
the normaliser, soft or hard selection, the window, the number of heads. Two verbs: `Attention.remember`
turns a source into a `Memory` once, `Attention.forward` asks it. Self-attention, cross-attention, a step
of a recurrent decoder and a cached step of a Transformer are the same call with another memory.

In cross-attention the decoder asks (queries); the encoder is what is remembered (keys and values).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import masks
from regard.nn.fast import random as chance
from regard.nn.fast.dropout import Dropout
from regard.nn.linear import linear
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.positions import Rotary
from regard.nn.scores import InnerScore, Score
from regard.nn.windows import MonotonicWindow, PredictedWindow, Window
from regard.settings.widths import head_width

Normaliser = Callable[[Tensor, Tensor | None], Tensor]


def softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """``exp(e) / Σ exp(e)`` over the visible keys; exactly zero where masked, and in a row that sees nothing."""
    if mask is None:
        return scores.softmax(-1)
    hidden = ~mask
    return scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(hidden, 0.0)


def relu(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """``max(e, 0) / Σ max(e, 0)`` over the visible keys: sparse, and all zero where no score is positive."""
    positive = scores.relu() if mask is None else scores.relu().masked_fill(~mask, 0.0)
    total = positive.sum(-1, keepdim=True)
    return positive / torch.where(total > 0, total, 1.0)


def one_hot_choice(weights: Tensor, *, sample: bool) -> tuple[Tensor, Tensor]:
    """Hard attention: one key instead of a mixture. Returns the one-hot rows and their log-probabilities.

    Sampled in training, the most probable at inference. No gradient passes through the choice itself:
    REINFORCE uses the gradient of the log-probability (Xu et al., 2015), a straight-through estimator that
    of the weights (`Attention.straight`).
    """
    # The first of exponential clocks with rates α rings at s with probability α_s: argmax of α / Exp(1).
    race = weights / torch.empty_like(weights).exponential_(generator=chance.generator()) if sample else weights
    chosen = race.detach().argmax(-1, keepdim=True)  # (B, H, T, 1)
    probability = weights.gather(-1, chosen)
    one_hot = torch.zeros_like(weights).scatter(-1, chosen, (probability > 0).to(weights.dtype))
    return one_hot.detach(), probability.log()


@dataclass(frozen=True)
class Memory:
    """The keys and values of a source, projected once."""

    keys: Tensor  # (B, H, S, K), prepared for the score
    values: Tensor  # (B, H, S, K)
    mask: Tensor | None = None  # (B, S)


class Projections(nn.Module):
    """The learned ``W_q, W_k, W_v`` and ``W_o`` of multi-head attention."""

    def __init__(self, query_width: int, source_width: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.query = linear(query_width, width)
        self.key = linear(source_width, width)
        self.value = linear(source_width, width)
        self.output = linear(width, width)


class Attention(nn.Module):
    """One member of the family; see the module's first lines.

    Without projections, queries, keys and values are the given vectors themselves. With several heads
    each sees its own slice of the (projected) features. Weights are ``(B, H, T, S)`` always: a step of a
    recurrent decoder is T = 1, H = 1.
    """

    def __init__(
        self,
        score: Score,
        *,
        heads: int = 1,
        projections: Projections | None = None,
        normaliser: Normaliser = softmax,
        hard: bool = False,
        straight: bool = False,
        window: MonotonicWindow | PredictedWindow | None = None,
        rotary: Rotary | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if projections is not None:
            head_width(projections.width, heads)
        self.score = score
        self.heads = heads
        self.projections = projections
        self.normaliser = normaliser
        self.hard = hard
        self.straight = straight  # hard, and trained without REINFORCE: a choice has the gradient of the mixture
        self.window = window
        self.rotary = rotary
        self.dropout = Dropout(dropout)

    @property
    def fusible(self) -> bool:
        """Whether torch's scaled_dot_product_attention computes just this member."""
        inner = isinstance(self.score, InnerScore) and self.normaliser is softmax and not self.hard
        return inner and not isinstance(self.window, PredictedWindow)

    @property
    def plain(self) -> bool:
        """Whether it is the Transformer's own: projected inner products, softmax, every key in sight."""
        projected = self.projections is not None and type(self.score) is InnerScore
        return projected and self.fusible and self.window is None

    def remember(
        self, source: Tensor, mask: Tensor | None = None, *, first: int = 0, observer: Observer = UNOBSERVED
    ) -> Memory:
        """Project and prepare ``source`` (B, S, D), whose first token stands at position ``first``."""
        keys, values = source, source
        if self.projections is not None:
            keys, values = self.projections.key(source), self.projections.value(source)
        keys = observer.see("keys", self._split(keys))
        keys = self.score.prepare(keys)
        if self.rotary is not None:
            keys = self.rotary(keys, first)
        return Memory(keys, observer.see("values", self._split(values)), mask)

    def forward(
        self,
        query: Tensor,
        memory: Memory,
        *,
        first: int = 0,
        causal: bool = False,
        observer: Observer = UNOBSERVED,
    ) -> Tensor:
        """The contexts (B, T, D) of ``query`` (B, T, D), whose first token stands at position ``first``.

        A memory with fewer rows than the query is shared by the hypotheses of each sentence: its W rows
        then ask as W queries of one row, and nothing is copied.
        """
        rows, length, _ = query.shape
        positions = torch.arange(first, first + length, device=query.device)
        sentences = len(memory.keys)
        if sentences != rows:
            query = query.reshape(sentences, -1, query.shape[-1])  # (B, W · T, D)
            positions = positions.repeat(rows // sentences)
        window = self._window(query, memory, positions, observer)
        asked = self._ask(query, first, length, observer)
        if self.fusible and not observer.active and not self._drops(query):
            contexts = self._fused(asked, memory, positions, window, causal=causal, begins=first == 0)
        else:
            contexts = self._written_out(asked, memory, _visible(memory, positions, causal, window), window, observer)
        contexts = contexts.transpose(1, 2).reshape(rows, length, -1)  # heads side by side
        return contexts if self.projections is None else self.projections.output(contexts)

    def _drops(self, query: Tensor) -> bool:
        """Whether weights are dropped on a CPU, where torch's kernel would write everything out itself."""
        return self.training and self.dropout.p > 0.0 and query.device.type == "cpu"

    def _ask(self, query: Tensor, first: int, length: int, observer: Observer) -> Tensor:
        """The query as each head sees it, (B, H, T, K); hypotheses side by side stand at the same positions."""
        projected = query if self.projections is None else self.projections.query(query)
        heads = observer.see("queries", self._split(projected))
        if self.rotary is None:
            return heads
        apart = heads.reshape(len(heads), -1, length, heads.shape[-1])  # (B, H · W, T, K)
        return self.rotary(apart, first).reshape(heads.shape)

    def _written_out(
        self, query: Tensor, memory: Memory, mask: Tensor | None, window: Window | None, observer: Observer
    ) -> Tensor:
        scores = self.score(query, memory.keys, observer)  # (B, H, T, S)
        weights = self.normaliser(scores, mask)
        if self.hard:
            probabilities = observer.see("probabilities", weights)
            weights, log_probability = one_hot_choice(probabilities, sample=self.training)
            observer.see("log_probability", log_probability)  # shown alone: nothing here goes on from it
            if self.straight and self.training:
                # adds zeros, and their gradient (Bengio et al., 2013)
                weights = weights + (probabilities - probabilities.detach())
        if window is not None and window.focus is not None:
            weights = weights * window.focus
        weights = observer.see("weights", weights)
        return observer.see("contexts", self.dropout(weights) @ memory.values)

    def _fused(
        self, query: Tensor, memory: Memory, positions: Tensor, window: Window | None, *, causal: bool, begins: bool
    ) -> Tensor:
        """Torch's kernel. Its own causal mask is square: the queries must begin where the keys do and be as many."""
        assert isinstance(self.score, InnerScore)
        # A branch and not a value: under torch.compile a comparison of sizes is symbolic, which the kernel refuses.
        square = begins and memory.mask is None and window is None and query.shape[2] == memory.keys.shape[2]
        if causal and square:
            mask, square = None, True
        else:
            mask, square = _visible(memory, positions, causal, window), False
        return F.scaled_dot_product_attention(
            self.score.queries(query),
            memory.keys,
            memory.values,
            attn_mask=mask,
            dropout_p=self.dropout.p if self.training else 0.0,
            is_causal=square,
            scale=self.score.scale,
        )

    def _window(self, query: Tensor, memory: Memory, positions: Tensor, observer: Observer) -> Window | None:
        if self.window is None:
            return None
        rows, _, size, _ = memory.keys.shape
        whole = torch.full((rows,), size, device=query.device)
        lengths = whole if memory.mask is None else memory.mask.sum(1)
        return self.window(query, positions, lengths, size, observer)

    def _split(self, x: Tensor) -> Tensor:
        """(B, S, H · K) → (B, H, S, K)"""
        return x.reshape(*x.shape[:-1], self.heads, head_width(x.shape[-1], self.heads)).transpose(1, 2)


def _visible(memory: Memory, positions: Tensor, causal: bool, window: Window | None) -> Tensor | None:
    """Everything that limits sight, as one mask that broadcasts to (B, H, T, S); None: nothing does."""
    size = memory.keys.shape[2]
    ahead = None
    if causal and len(positions) > 1:  # a single query is the newest: all that is remembered is its past
        ahead = masks.causal(positions, torch.arange(size, device=positions.device))
    return masks.combine(
        None if memory.mask is None else masks.over_keys(memory.mask),
        ahead,
        None if window is None else window.mask,
    )
