"""The attention family: ``context_t = Σ_s α_ts v_s`` with ``α_t = normalise(score(q_t, k_·))``.

One class serves all members, which differ in projections, score and scale, normaliser, soft or hard selection, window
and number of heads. `Attention.remember` turns a source into a `Memory` once, `Attention.forward` attends to it.
Self-attention, cross-attention, a step of a recurrent decoder and a cached step of a Transformer are the same call
with another memory.

In cross-attention the queries come from the decoder, the keys and values from the encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import masks
from regard.nn.embeddings import Rotary
from regard.nn.fast import random as chance
from regard.nn.fast import short_attention
from regard.nn.fast.dropout import Dropout
from regard.nn.layers import linear, together
from regard.nn.observe import UNOBSERVED, Observer
from regard.settings.schema import head_width

# The scores of a query and a key.
#
# A score has separate heads: queries ``(B, H, T, K)`` and keys ``(B, H, S, K)`` give ``(B, H, T, S)``. What depends on
# the keys alone is computed once, in `prepare`, when a source is remembered.
#
# Most scores are inner products after a map of the query or of the keys. Torch's fused attention can compute these,
# and needs their `queries` and their `scale`.


class InnerScore(nn.Module):
    """``e = scale · qᵀ k``: dot (Luong, scale 1) and scaled dot (Vaswani, scale 1/√K)."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def prepare(self, keys: Tensor) -> Tensor:
        return keys

    def queries(self, query: Tensor) -> Tensor:
        return query

    def forward(self, query: Tensor, keys: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        products = observer.see("products", self.queries(query) @ keys.transpose(-1, -2))  # (B, H, T, S)
        return observer.see("scores", products * self.scale)


class GeneralScore(InnerScore):
    """``e = qᵀ W k`` with one W for each head (Luong et al., 2015): query and key may differ in width."""

    def __init__(self, heads: int, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, query_width, key_width))
        for matrix in self.weight.data:
            nn.init.xavier_uniform_(matrix)

    def prepare(self, keys: Tensor) -> Tensor:
        return by_head(keys, self.weight.mT)  # (B, H, S, K)


class CosineScore(InnerScore):
    """``e = β · cos(q, k)`` with one learned sharpness β for each head (Graves, Wayne and Danihelka, 2014).

    β begins at √K: for vectors of unit variance the scores then have the variance of scaled dot.
    """

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.full((heads, 1, 1), width**0.5))

    def prepare(self, keys: Tensor) -> Tensor:
        return _unit(keys)

    def queries(self, query: Tensor) -> Tensor:
        return self.sharpness * _unit(query)


def _unit(x: Tensor) -> Tensor:
    """``x / |x|``; zero stays zero. In float16 torch's epsilon 1e-12 would round to 0, and 0 / 0 is NaN."""
    return F.normalize(x, dim=-1, eps=max(1e-12, torch.finfo(x.dtype).tiny))


class AdditiveScore(nn.Module):
    """``e = vᵀ tanh(W [q; k] + b)`` (Bahdanau et al., 2015); without ``b`` it is Luong's concat.

    ``W [q; k] = W_q q + W_k k``, so that the keys' half is prepared once for a source.
    """

    def __init__(self, heads: int, query_width: int, key_width: int, hidden: int, *, bias: bool = True) -> None:
        super().__init__()
        self.query_weight = nn.Parameter(torch.empty(heads, query_width, hidden))
        self.key_weight = nn.Parameter(torch.empty(heads, key_width, hidden))
        self.combine = nn.Parameter(torch.empty(heads, hidden))
        self.bias = nn.Parameter(torch.zeros(heads, 1, hidden)) if bias else None
        bound = (6 / (query_width + key_width + hidden)) ** 0.5
        for parameter in (self.query_weight, self.key_weight):
            nn.init.uniform_(parameter, -bound, bound)
        nn.init.uniform_(self.combine, -(hidden**-0.5), hidden**-0.5)

    def prepare(self, keys: Tensor) -> Tensor:
        return by_head(keys, self.key_weight)  # (B, H, S, A)

    def forward(self, query: Tensor, keys: Tensor, observer: Observer = UNOBSERVED) -> Tensor:
        query = by_head(query, self.query_weight)  # (B, H, T, A)
        if self.bias is not None:
            query = query + self.bias
        hidden = torch.tanh(query[:, :, :, None] + keys[:, :, None])  # (B, H, T, S, A)
        return observer.see("scores", torch.einsum("bhtsa,ha->bhts", hidden, self.combine))


Score = InnerScore | AdditiveScore


def by_head(x: Tensor, weight: Tensor) -> Tensor:
    """``x`` (B, H, T, K) times ``weight`` (H, K, A), each head with its own matrix: a product of H matrices, not of
    B · H, whose gradient would be a sum of B matrices."""
    rows, heads, length, _ = x.shape
    together = x.transpose(0, 1).reshape(heads, rows * length, -1) @ weight  # (H, B · T, A)
    return together.view(heads, rows, length, -1).transpose(0, 1)


# Local attention (Luong et al., 2015, §3.2): a query sees only keys near a centre, at least one of them real.

Window = tuple[Tensor, Tensor | None]  # what each query may see, and factors of its weights: (B, 1, T, S)


class MonotonicWindow(nn.Module):
    """local-m: the centre is the query's own position or, past the end of the source, its last token."""

    def __init__(self, reach: int) -> None:
        super().__init__()
        self.reach = reach

    def forward(
        self,
        query: Tensor,  # noqa: ARG002
        positions: Tensor,
        lengths: Tensor,
        size: int,
        observer: Observer = UNOBSERVED,
    ) -> Window:
        """From the queries' positions (T,) and the sources' lengths (B,)."""
        centre = torch.minimum(positions, lengths[:, None] - 1)[:, None]  # (B, 1, T)
        centre = observer.see("centre", centre.unsqueeze(-1)).squeeze(-1)
        return masks.window(centre, self.reach, size), None


class PredictedWindow(nn.Module):
    """local-p: the centre is ``p = length · sigmoid(vᵀ tanh(W q))``.

    The weights are multiplied by ``exp(−(s − p)² / 2σ²)`` with ``σ = reach / 2``, which passes the gradient to ``p``.
    As in the paper they are not normalised again, so that a row sums to less than one.
    """

    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.hidden = linear(width, width, bias=False)
        self.centre = linear(width, 1, bias=False)

    def forward(
        self,
        query: Tensor,
        positions: Tensor,  # noqa: ARG002
        lengths: Tensor,
        size: int,
        observer: Observer = UNOBSERVED,
    ) -> Window:
        share = torch.sigmoid(self.centre(torch.tanh(self.hidden(query))))  # (B, T, 1)
        share = share.to(torch.promote_types(share.dtype, torch.float32))  # bfloat16 has not all integers above 256
        centre = (share.squeeze(-1) * lengths[:, None])[:, None]  # (B, 1, T)
        centre = observer.see("centre", centre.unsqueeze(-1)).squeeze(-1)
        distance = torch.arange(size, device=query.device) - centre[..., None]  # (B, 1, T, S)
        focus = torch.exp(-distance.square() / (2 * (self.reach / 2) ** 2))
        return masks.window(centre.detach(), self.reach, size), focus.to(query.dtype)


Normaliser = Callable[[Tensor, Tensor | None], Tensor]


def softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """``exp(e) / Σ exp(e)`` over the visible keys; exactly zero where masked, also in a row without visible keys."""
    if mask is None:
        return scores.softmax(-1)
    hidden = ~mask
    return scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(hidden, 0.0)


def relu(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """``max(e, 0) / Σ max(e, 0)`` over the visible keys: sparse, and all zero if no score is positive."""
    positive = scores.relu() if mask is None else scores.relu().masked_fill(~mask, 0.0)
    total = positive.sum(-1, keepdim=True)
    return positive / torch.where(total > 0, total, 1.0)


NORMALISERS: dict[str, Normaliser] = {"softmax": softmax, "relu": relu}  # by their names in the settings


def one_hot_choice(weights: Tensor, *, sample: bool) -> tuple[Tensor, Tensor]:
    """Hard attention: one key instead of a mixture. Returns the one-hot rows and their log-probabilities.

    Sampled in training, the most probable at inference. No gradient passes through the choice itself:
    REINFORCE uses the gradient of the log-probability (Xu et al., 2015), a straight-through estimator that
    of the weights (`Attention.straight`).
    """
    # Of exponential variables with rates α, that of s is the smallest with probability α_s: argmax of α / Exp(1).
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
    asked: Tensor | None = None  # (B, S, H · K), the queries of a source that attends to itself


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

    Without projections, queries, keys and values are the given vectors themselves. With several heads, each has its own
    slice of the (projected) features. Weights are always ``(B, H, T, S)``: a step of a recurrent decoder has T = 1.
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
        self.straight = straight  # hard attention learns without REINFORCE: a choice has the gradient of the mixture
        self.window = window
        self.rotary = rotary
        self.dropout = Dropout(dropout)

    @property
    def fusible(self) -> bool:
        """Whether torch's scaled_dot_product_attention computes this member."""
        inner = isinstance(self.score, InnerScore) and self.normaliser is softmax and not self.hard
        return inner and not isinstance(self.window, PredictedWindow)

    @property
    def plain(self) -> bool:
        """Whether it is the Transformer's: projected inner products, softmax, no window."""
        projected = self.projections is not None and type(self.score) is InnerScore
        return projected and self.fusible and self.window is None

    def remember(
        self,
        source: Tensor,
        mask: Tensor | None = None,
        *,
        first: int = 0,
        asks: bool = False,
        observer: Observer = UNOBSERVED,
    ) -> Memory:
        """Project and prepare ``source`` (B, S, D), whose first token has position ``first``; if it ``asks``, its
        queries too."""
        asked, keys, values = None, source, source
        if (maps := self.projections) is not None and asks:
            asked, keys, values = together(source, maps.query, maps.key, maps.value)
        elif maps is not None:
            keys, values = together(source, maps.key, maps.value)
        return replace(self.prepare(keys, values, mask, first=first, observer=observer), asked=asked)

    def prepare(
        self,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        *,
        first: int = 0,
        observer: Observer = UNOBSERVED,
    ) -> Memory:
        """The memory of keys and values (B, S, H · K) that are projected already."""
        keys = self.score.prepare(observer.see("keys", self._split(keys)))
        if self.rotary is not None:
            keys = self.rotary(keys, first)
        return Memory(keys, observer.see("values", self._split(values)), mask)

    def forward(
        self, query: Tensor, memory: Memory, *, first: int = 0, causal: bool = False, observer: Observer = UNOBSERVED
    ) -> Tensor:
        """The contexts (B, T, D) of ``query`` (B, T, D), whose first token has position ``first``.

        A memory with fewer rows than the query is shared by the W hypotheses of each sentence: these become W queries
        of one row, and nothing is copied.
        """
        rows, length, _ = query.shape
        positions = torch.arange(first, first + length, device=query.device)
        sentences = len(memory.keys)
        if sentences != rows:
            query = query.reshape(sentences, -1, query.shape[-1])  # (B, W · T, D)
            positions = positions.repeat(rows // sentences)
        inside, focus = self._window(query, memory, positions, observer)
        asked = self._ask(query, memory, first, length, observer)
        if self.fusible and not observer.active and not self._drops(query):
            contexts = self._fused(asked, memory, positions, inside, causal=causal, begins=first == 0)
        else:
            mask = _visible(memory, positions, causal, inside)
            contexts = self._written_out(asked, memory, mask, focus, observer)
        contexts = contexts.transpose(1, 2).reshape(rows, length, -1)  # heads side by side
        return contexts if self.projections is None else self.projections.output(contexts)

    def _drops(self, query: Tensor) -> bool:
        """Whether weights are dropped on a CPU, for which torch has no fused kernel."""
        return self.training and self.dropout.p > 0.0 and query.device.type == "cpu"

    def _ask(self, query: Tensor, memory: Memory, first: int, length: int, observer: Observer) -> Tensor:
        """The query of each head, (B, H, T, K); hypotheses side by side have the same positions."""
        projected = memory.asked
        if projected is None:
            projected = query if self.projections is None else self.projections.query(query)
        heads = observer.see("queries", self._split(projected))
        if self.rotary is None:
            return heads
        apart = heads.reshape(len(heads), -1, length, heads.shape[-1])  # (B, H · W, T, K)
        return self.rotary(apart, first).reshape(heads.shape)

    def _written_out(
        self, query: Tensor, memory: Memory, mask: Tensor | None, focus: Tensor | None, observer: Observer
    ) -> Tensor:
        scores = self.score(query, memory.keys, observer)  # (B, H, T, S)
        weights = self.normaliser(scores, mask)
        if self.hard:
            probabilities = observer.see("probabilities", weights)
            weights, log_probability = one_hot_choice(probabilities, sample=self.training)
            observer.see("log_probability", log_probability)  # nothing here depends on it
            if self.straight and self.training:
                # adds zeros, and their gradient (Bengio et al., 2013)
                weights = weights + (probabilities - probabilities.detach())
        if focus is not None:
            weights = weights * focus
        weights = observer.see("weights", weights)
        return observer.see("contexts", self.dropout(weights) @ memory.values)

    def _fused(
        self, query: Tensor, memory: Memory, positions: Tensor, inside: Tensor | None, *, causal: bool, begins: bool
    ) -> Tensor:
        """Torch's kernel. Its own causal mask is square: the queries must begin where the keys do and be as many."""
        assert isinstance(self.score, InnerScore)
        # A branch, not a value: under torch.compile a comparison of sizes is symbolic, which the kernel refuses.
        square = begins and memory.mask is None and inside is None and query.shape[2] == memory.keys.shape[2]
        if causal and square:
            mask, square = None, True
        else:
            mask, square = _visible(memory, positions, causal, inside), False
        dropout = self.dropout.p if self.training else 0.0
        given, scale = (self.score.queries(query), memory.keys, memory.values), self.score.scale
        if inside is None and square == causal and short_attention.can_compute(*given, dropout):
            return short_attention.attend(*given, memory.mask, causal=causal, scale=scale)
        return F.scaled_dot_product_attention(
            *given,
            attn_mask=mask,
            dropout_p=dropout,
            is_causal=square,
            scale=scale,
        )

    def _window(
        self, query: Tensor, memory: Memory, positions: Tensor, observer: Observer
    ) -> tuple[Tensor | None, Tensor | None]:
        """What a window makes visible, and the factors of the weights."""
        if self.window is None:
            return None, None
        rows, _, size, _ = memory.keys.shape
        whole = torch.full((rows,), size, device=query.device)
        lengths = whole if memory.mask is None else memory.mask.sum(1)
        return self.window(query, positions, lengths, size, observer)

    def _split(self, x: Tensor) -> Tensor:
        """(B, S, H · K) → (B, H, S, K)"""
        return x.reshape(*x.shape[:-1], self.heads, head_width(x.shape[-1], self.heads)).transpose(1, 2)


def _visible(memory: Memory, positions: Tensor, causal: bool, inside: Tensor | None) -> Tensor | None:
    """All masks as one that broadcasts to (B, H, T, S); None: everything is visible."""
    ahead = None
    if causal and len(positions) > 1:  # a single query is the newest: all keys are its past
        ahead = masks.causal(positions, torch.arange(memory.keys.shape[2], device=positions.device))
    return masks.combine(None if memory.mask is None else masks.over_keys(memory.mask), ahead, inside)
