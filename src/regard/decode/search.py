"""Beam search over any `Generator`: greedy is a beam of one.

Everything stays on the device, finished sentences leave the batch, and a sentence's output does not depend
on its batch-mates: each has its own length limit and its own end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.models.generator import Generator
from regard.nn.state import State
from regard.text.special import END, PAD, START, UNK


@dataclass(frozen=True)
class Hypothesis:
    """One output, without ``<start>`` and ``<end>``."""

    tokens: list[int]
    score: float  # log-probability over length to the power of the penalty


@dataclass(frozen=True)
class _Beam:
    """B sentences with W hypotheses under way and the W best finished ones."""

    sentences: Tensor  # (B,) which sentence each is
    limit: Tensor  # (B,) tokens at the most, <end> included
    alive: Tensor  # (B, W, t) tokens written
    scores: Tensor  # (B, W) their log-probabilities
    done: Tensor  # (B, W, t) finished, padded
    done_scores: Tensor  # (B, W) normalised, best first

    def select(self, kept: Tensor) -> _Beam:
        return _Beam(*(part[kept] for part in vars(self).values()))


@torch.no_grad()
def search(
    model: Generator,
    first: Tensor,
    state: State[Any, Any],
    limit: Tensor,
    *,
    beam: int = 5,
    length_penalty: float = 1.0,
) -> list[Hypothesis]:
    """The best output of each sentence, from `start`'s first tokens (B,) and state; ``limit`` (B,) tokens."""
    results: list[Hypothesis | None] = [None] * len(first)
    rows = torch.arange(len(first), device=first.device)
    minus_infinity = torch.full((len(first), beam), -torch.inf, device=first.device)
    scores = minus_infinity.index_fill(1, rows[:1] * 0, 0.0)  # one way to begin
    empty = torch.zeros(len(first), beam, 0, dtype=torch.long, device=first.device)
    now = _Beam(rows, limit, empty, scores, empty, minus_infinity)
    state = state.select(rows[:, None].expand(-1, beam))
    token = first.repeat_interleave(beam)
    while True:
        logits, state = model.step(token, state)
        now, parents = _extend(now, logits, length_penalty)
        finished = _is_finished(now, length_penalty)
        if bool(finished.any()):
            _collect(now.select(finished), results)
            kept = (~finished).nonzero().squeeze(1)
            if not len(kept):
                return [result for result in results if result is not None]
            state = state.select(parents[kept], sentences=kept)
            now = now.select(kept)
        else:
            state = state.select(parents)
        token = now.alive[:, :, -1].flatten()


def _extend(now: _Beam, logits: Tensor, penalty: float) -> tuple[_Beam, Tensor]:
    """One token further: the W best that go on, the W best that have ended, and the rows they came from."""
    count, beam = now.scores.shape
    length = now.alive.shape[2] + 1
    odds = logits.float().log_softmax(-1).reshape(count, beam, -1)  # (B, W, V)
    size = odds.shape[2]
    odds[:, :, [PAD, START, UNK]] = -torch.inf
    last = now.limit == length  # those at their limit can only end
    odds = torch.where(last[:, None, None], _only(END, odds), odds)
    totals = (now.scores[:, :, None] + odds).flatten(1)  # (B, W · V)
    best, place = totals.topk(min(2 * beam, totals.shape[1]))  # at most W of them end
    parent, token = place // size, place % size
    written = torch.cat((_gather(now.alive, parent), token[:, :, None]), 2)  # (B, 2 W, t)
    ends = token == END

    within = torch.arange(best.shape[1], device=best.device) < beam  # an end counts if it is among the W best
    normalised = torch.where(ends & within, best / length**penalty, -torch.inf)
    widened = torch.nn.functional.pad(now.done, (0, 1), value=PAD)
    done_scores, order = torch.cat((now.done_scores, normalised), 1).topk(beam)
    done = _gather(torch.cat((widened, written), 1), order)

    scores, order = best.masked_fill(ends, -torch.inf).topk(beam)
    rows = torch.arange(count, device=logits.device)[:, None] * beam + parent.gather(1, order)
    alive = _gather(written, order)
    return replace(now, alive=alive, scores=scores, done=done, done_scores=done_scores), rows


def _only(token: int, odds: Tensor) -> Tensor:
    allowed = torch.full_like(odds, -torch.inf)
    allowed[:, :, token] = odds[:, :, token]
    return allowed


def _gather(hypotheses: Tensor, order: Tensor) -> Tensor:
    return hypotheses.gather(1, order[:, :, None].expand(-1, -1, hypotheses.shape[2]))


def _is_finished(now: _Beam, penalty: float) -> Tensor:
    """W have ended (a beam of one is greedy), or none under way can still beat the best: it can only fall."""
    longest = now.limit.float() ** penalty if penalty > 0 else torch.ones_like(now.limit, dtype=torch.float)
    beaten = now.scores[:, 0] / longest <= now.done_scores[:, 0]
    return beaten | now.done_scores[:, -1].isfinite() | (now.alive.shape[2] >= now.limit)


def _collect(finished: _Beam, results: list[Hypothesis | None]) -> None:
    rows, scores = finished.done[:, 0].tolist(), finished.done_scores[:, 0].tolist()
    for sentence, tokens, score in zip(finished.sentences.tolist(), rows, scores, strict=True):
        results[sentence] = Hypothesis(tokens[: tokens.index(END)] if END in tokens else tokens, score)
