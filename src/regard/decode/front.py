"""The front of a search: hypotheses under way, finished outputs, and the choice of a rule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from regard.nn.state import select_rows
from regard.text.vocabulary import PAD

# The few largest of many values.

BLOCK = 64


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """``values.topk(count)`` over the last axis, in less time."""
    size = values.shape[-1]
    if size // BLOCK < 4 * count:
        return values.topk(min(count, size))
    return by_blocks(values, count)


def by_blocks(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """``values.topk(count)`` of more than ``count`` blocks of 64.

    The k largest values lie in the k blocks with the largest maxima: a block that is not among those has k
    blocks before it, each with a value at least as large. Maxima of blocks are one vectorised pass; only
    k · 64 values are then compared one by one.
    """
    size = values.shape[-1]
    whole = size // BLOCK * BLOCK
    _, blocks = values[..., :whole].reshape(*values.shape[:-1], -1, BLOCK).amax(-1).topk(count)
    within = torch.arange(BLOCK, device=values.device)
    places = (blocks[..., None] * BLOCK + within).flatten(-2)  # (…, count · 64)
    if whole < size:  # the values after the last whole block are always compared
        rest = torch.arange(whole, size, device=values.device).expand(*places.shape[:-1], -1)
        places = torch.cat((places, rest), -1)
    found, order = values.gather(-1, places).topk(count)
    return found, places.gather(-1, order)


def largest_sums(totals: Tensor, values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` largest ``totals[b, w] + values[b, w, v]`` of each b, and where they are in ``W · V``.

    ``totals`` (B, W), ``values`` (B, W, V). Blocks as in `largest`, but a sentence has only ``count`` of them in all:
    a sum rounds monotonically, so the largest of a block is the sum with the block's largest value.
    """
    rows, width, size = values.shape
    block = _divisor(size) if values.device.type == "cpu" else 0
    if not block or width * size < 4 * count * block:
        return (totals[:, :, None] + values).flatten(1).topk(min(count, width * size))
    maxima = values.view(rows, width, -1, block).amax(3).add_(totals[:, :, None]).flatten(1)  # (B, W · V / block)
    if count == 1:
        found, chosen = maxima.max(1, keepdim=True)
        within = values.view(rows, -1, block).gather(1, chosen[:, :, None].expand(-1, -1, block)).argmax(2)
        return found, within.add_(chosen, alpha=block)
    blocks = maxima.topk(count).indices  # (B, count)
    candidates = values.view(rows, -1, block).gather(1, blocks[:, :, None].expand(-1, -1, block))
    candidates += totals.gather(1, blocks // (size // block))[:, :, None]
    found, order = candidates.flatten(1).topk(count)
    places = blocks.gather(1, order // block).mul_(block).add_(order.remainder_(block))
    return found, places


@cache
def _divisor(size: int) -> int:
    """The divisor of ``size`` nearest to `BLOCK`, at most four times larger or smaller; 0 if there is none."""
    divisors = [block for block in range(BLOCK // 4, 4 * BLOCK + 1) if size % block == 0]
    return min(divisors, key=lambda block: abs(block - BLOCK), default=0)


@dataclass(frozen=True)
class Finished:
    """The N best finished outputs of each of B sentences, best first; a score of -inf: there is none yet."""

    tokens: Tensor  # (B, N, t), padded
    lengths: Tensor  # (B, N), without <end>
    totals: Tensor  # (B, N) log-probabilities
    scores: Tensor  # (B, N)

    @staticmethod
    def none(count: int, best: int, totals: Tensor) -> Finished:
        tokens = torch.zeros(count, best, 0, dtype=torch.long, device=totals.device)
        nothing = totals.new_full((count, best), -torch.inf)
        return Finished(tokens, torch.zeros_like(tokens.sum(2)), nothing, nothing)

    def merge(self, written: Tensor, totals: Tensor, scores: Tensor) -> Finished:
        """With these new outputs, (B, W, t) and (B, W); only the N best of all stay."""
        length = written.shape[2]
        padded = torch.nn.functional.pad(self.tokens, (0, length - self.tokens.shape[2]), value=PAD)
        best, order = torch.cat((self.scores, scores), 1).topk(self.scores.shape[1])
        lengths = torch.cat((self.lengths, torch.full_like(written[:, :, :1].sum(2), length)), 1)
        return Finished(
            gather(torch.cat((padded, written), 1), order),
            lengths.gather(1, order),
            torch.cat((self.totals, totals), 1).gather(1, order),
            best,
        )


@dataclass(frozen=True)
class UnderWay:
    """B sentences, each with W hypotheses under way: what constraints and rules see of a search."""

    sentences: Tensor  # (B,) which sentence of the search each is
    limits: Tensor  # (B,) tokens at the most, <end> included
    written: Tensor  # (B, W, t), the last token last; where a text is shorter, <pad> stands before it
    totals: Tensor  # (B, W) log-probabilities; -inf: nothing is under way here

    @property
    def length(self) -> int | Tensor:
        """Tokens that are written: one number for all sentences, or (B,)."""
        return self.written.shape[2]

    @property
    def near(self) -> bool:
        """Whether the next token of any sentence may have to be ``<end>``; known without waiting for the device."""
        return True

    @property
    def last(self) -> Tensor:
        """(B,) whether the next token has to be ``<end>``."""
        return self.limits <= self.length + 1


@dataclass(frozen=True)
class Front(UnderWay):
    """Sentences that all have written as much, with their best finished outputs."""

    finished: Finished
    count: Tensor  # (B,) how many have finished so far, kept or not
    open: Tensor  # (B,) whether the sentence is still searched; others leave the batch when that pays
    covered: Tensor | None = None  # (B, W, S) the attention to each source word so far
    nearest: int = 0  # no limit is below this
    any_finished: bool = False  # whether anything may have finished; if not, and no limit is near, no sentence is over

    @property
    def near(self) -> bool:
        return self.nearest <= self.written.shape[2] + 1

    def select(self, kept: Tensor) -> Front:
        """Only these sentences."""
        return select_rows(self, kept)


@dataclass(frozen=True)
class Considered:
    """All that a rule compared in one step: k continuations of each of the W hypotheses, and the end of each."""

    tokens: Tensor  # (B, W, k)
    totals: Tensor  # (B, W, k) log-probabilities; -inf: not possible
    kept: Tensor  # (B, W) which of the W · k go on, one a slot
    ending: Tensor  # (B, W) log-probabilities with <end>; -inf: not possible


@dataclass(frozen=True)
class Choice:
    """The hypotheses that go on after a step, and those that end."""

    parents: Tensor | None  # (B, W) the hypothesis each goes on from; None: each from itself
    tokens: Tensor  # (B, W)
    totals: Tensor  # (B, W) log-probabilities; -inf: nothing goes on here
    ended: Tensor | None  # (B, W) log-probability of each hypothesis with <end>; -inf: not ended; None: none has
    considered: Considered | None  # None without a listener


def gather(hypotheses: Tensor, order: Tensor) -> Tensor:
    """Pick hypotheses (B, N, …) by (B, W)."""
    index = order.reshape(*order.shape, *[1] * (hypotheses.dim() - 2))
    return hypotheses.gather(1, index.expand(-1, -1, *hypotheses.shape[2:]))
