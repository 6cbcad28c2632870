"""The effect of each word, measured by changing it: passes without words, and gradients.

What is explained of step t is a number that `measure` makes of its logits: log p(y_t), its probability, the log-odds,
the entropy, or how much more probable y_t was than another piece. For each word of the source or the prefix:

- masking: the number, minus the number without the word; below zero, the word made the output less probable;
- gradient: ``∂ number / ∂ x`` with x the embedding. Its norm is *saliency* (Simonyan et al., 2014), its product with x
  *gradient × input* (Shrikumar et al., 2017), a first-order estimate of the effect of masking. The gradient of log p
  vanishes where the model is sure; that of the log-odds does not;
- integrated gradients (Sundararajan et al., 2017): x times the mean gradient on the straight line from zero, or from
  another baseline, to x. Their sum over all words is the difference of the number at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, assert_never

import numpy as np
import torch
from torch import Tensor

from regard.decode.cancel import check_cancelled
from regard.explain.replay import Model, forward_all, padded, reads_backwards, resting
from regard.explain.trace import Rows, with_letters
from regard.nn.observe import UNOBSERVED, Observer
from regard.text.vocabulary import PAD, UNK

How = Literal["blank", "unknown", "removed"]
Of = Literal["log-probability", "probability", "log-odds", "entropy"]
Under = Callable[[], Observer]  # makes the observer of a pass, such as one with edits, anew for each pass
Groups = Sequence[Sequence[int]]
Change = Callable[[Tensor], Tensor]
Segment = tuple[float, float, float, Tensor, dict[str, Tensor]]  # -error, begin, end, what is missing (R,), parts
Found = tuple[dict[str, tuple[Tensor, Tensor]], Tensor]
SOURCE, PREFIX = "encoder.embedded", "decoder.embedded"
_NUMBERS = 1 << 23  # logits held at once
FEWER = 8  # points of integrated gradients in a segment that was cut
MOST_WORK = 1 << 37  # of all segments (see `Subject.work`): some seconds of one core
_STATES = 1 << 22  # numbers of one layer's states in the batch of a gradient


def alone() -> Observer:
    """No other observer."""
    return UNOBSERVED


@dataclass(frozen=True)
class Both:
    """Two observers: the second sees what the first returned."""

    first: Observer
    second: Observer

    @property
    def active(self) -> bool:
        return self.first.active or self.second.active

    def at(self, place: str | int) -> Observer:
        return Both(self.first.at(place), self.second.at(place))

    def see(self, name: str, value: Tensor) -> Tensor:
        return self.second.see(name, self.first.see(name, value))


@dataclass(frozen=True)
class Changed:
    """An observer that changes values, by their full names."""

    changes: Mapping[str, Change]
    active: bool = False  # embeddings are seen without it; gradients need the written-out path
    here: str = ""

    def at(self, place: str | int) -> Observer:
        return Changed(self.changes, self.active, f"{self.here}{place}.")

    def see(self, name: str, value: Tensor) -> Tensor:
        change = self.changes.get(self.here + name)
        return value if change is None else change(value)


@dataclass(frozen=True)
class Subject:
    """A finished output of a model: what is read, what is written, and what of it is explained."""

    model: Model
    source: Rows  # empty for a language model
    targets: tuple[int, ...]
    of: Of = "log-probability"
    against: tuple[int, int] | None = None  # a step and the piece that it might have written instead
    under: Under = field(default=alone, compare=False)

    @property
    def steps(self) -> list[int]:
        """Those that are explained."""
        return list(range(len(self.targets))) if self.against is None else [self.against[0]]

    @property
    def work(self) -> int:
        """What one point of integrated gradients costs: steps × pieces × parameters."""
        pieces = len(self.source) + len(self.targets)
        return len(self.steps) * pieces * sum(each.numel() for each in self.model.parameters())

    @property
    def places(self) -> list[str]:
        """Where something is read."""
        match self.model.task:
            case "translate":
                return [SOURCE, PREFIX]
            case "language":
                return [PREFIX]
            case "label":
                return [SOURCE]

    def measure(self, logits: Tensor, steps: Sequence[int] | Tensor) -> Tensor:
        """The number that is explained, of the logits of some steps: (…, N, V) → (…, N)."""
        chosen = torch.tensor(self.targets, device=logits.device)[steps].expand(logits.shape[:-1])[..., None]
        if self.against is not None:
            return (logits.gather(-1, chosen) - logits[..., self.against[1], None])[..., 0]
        match self.of:
            case "log-probability":  # torch's logsumexp takes as long as the output layer, its log_softmax a tenth
                return logits.log_softmax(-1).gather(-1, chosen)[..., 0]
            case "probability":
                return logits.softmax(-1).gather(-1, chosen)[..., 0]
            case "log-odds":
                return logits.gather(-1, chosen)[..., 0] - logits.scatter(-1, chosen, -torch.inf).logsumexp(-1)
            case "entropy":
                scores = logits.log_softmax(-1)
                return -(scores.exp() * scores.masked_fill(scores == -torch.inf, 0.0)).sum(-1)
            case _:
                assert_never(self.of)

    def numbers(self, sources: Sequence[Rows], observer: Observer) -> Tensor:
        """The number of each step after each of some sources, (B, R)."""
        return self.measure(forward_all(self.model, sources, self.targets, observer)[:, self.steps], self.steps)

    def values(self) -> Tensor:
        """The number of each step, (R,)."""
        with torch.no_grad(), resting(self.model):
            return self.numbers([self.source], self.under())[0]

    def in_order(self, place: str, value: Tensor) -> Tensor:
        """From the order of the text to that of reading, or back, along the last axis but one."""
        return value.flip(-2) if place == SOURCE and reads_backwards(self.model) else value


# Masking


def masking(subject: Subject, place: str, groups: Groups, how: How = "blank") -> Tensor:
    """How far the number of each step falls without the pieces of each group: (R, groups).

    How: ``blank`` makes an embedding zero and leaves its place, the same for every model and tokenizer; ``unknown``
    puts ``<unk>`` there, which a model has learned only if it was trained with rare words or word dropout; ``removed``
    closes the gap in the source, and so moves the words after it.

    What is the same for all groups is computed once: of a prefix, the source and the steps before the first change.
    Logits are made only of the steps that a change reaches.
    """
    model, device = subject.model, next(subject.model.parameters()).device
    steps = torch.tensor(subject.steps, device=device)
    size = max(1, _STATES // max(1, (len(subject.source) + len(subject.targets)) * _width(model)))
    parts = list[Tensor]()
    with torch.no_grad(), resting(model):
        before = subject.values()  # (R,)
        for start in range(0, len(groups), size):
            some = groups[start : start + size]
            begins = torch.tensor([min(group) if place == PREFIX else 0 for group in some], device=device)
            first = int(begins.min()) if subject.under is alone else 0
            outputs = _without(subject, place, some, how, first)  # (B, T - first, D or C)
            row, step = (steps >= begins[:, None]).nonzero(as_tuple=True)
            after = before.expand(len(some), -1).clone()
            after[row, step] = _of_outputs(subject, outputs[row, steps[step] - first], steps[step])
            parts.append(before - after)
    return torch.cat([before[None][:0], *parts]).T


def _of_outputs(subject: Subject, outputs: Tensor, steps: Tensor) -> Tensor:
    """The numbers of some steps (N,), of features (N, D) or, of a labeller, logits (N, C)."""
    model, parts = subject.model, list[Tensor]()
    size = max(1, _NUMBERS // (1 if model.task == "label" else len(model.decoder.output.weight)))
    for some, at in zip(torch.split(outputs, size), torch.split(steps, size), strict=True):
        check_cancelled()
        parts.append(subject.measure(some if model.task == "label" else model.project(some), at))
    return torch.cat(parts) if parts else outputs.new_zeros(0)


def _without(subject: Subject, place: str, groups: Groups, how: How, first: int) -> Tensor:
    """Features (B, T, D), of a labeller logits, from step ``first`` on, without the pieces of each group."""
    model, device = subject.model, next(subject.model.parameters()).device
    sources: list[Rows] = [subject.source] * len(groups)
    ids, letters = with_letters(subject.source)
    kept = torch.ones(len(groups), len(ids) if place == SOURCE else len(subject.targets), 1, device=device)
    for row, group in enumerate(groups):
        kept[row, list(group)] = 0
    kept, changes = subject.in_order(place, kept)[:, first:], dict[str, Change]()
    match how:
        case "blank":
            changes[place] = lambda value: value * kept.to(value)
        case "unknown" if place == SOURCE:
            sources = [_with_unknown(ids, letters, group) for group in groups]
        case "unknown":
            assert model.task != "label"
            unknown = model.decoder.embedding(torch.full((1, 1), UNK, device=device))
            changes[place] = lambda value: torch.where(kept.to(value) > 0, value, unknown.to(value))
        case "removed":
            sources = [_rows([at for at in range(len(ids)) if at not in group], ids, letters) for group in groups]
        case _:
            assert_never(how)
    under = subject.under()
    observer = Both(Changed(changes), under)
    if model.task == "label":
        return forward_all(model, sources, subject.targets, observer)
    read = torch.tensor([[model.first, *subject.targets[:-1]]], device=device)  # (1, T)
    if model.task == "language":
        _, state = model.start(1)
    elif place == PREFIX:
        _, state = model.start(padded([subject.source]).to(device), observer=under)
    else:
        _, state = model.start(padded(sources).to(device), observer=observer)
    if place == PREFIX:
        if first:
            _, state = model.advance(read[:, :first], state)
        rows = torch.zeros(len(groups), dtype=torch.long, device=device)
        state = state.select(rows[:, None], rows)
    return model.advance(read[:, first:].expand(len(groups), -1), state, observer=observer)[0]


def _with_unknown(ids: Sequence[int], letters: Sequence[Sequence[int]], group: Sequence[int]) -> Rows:
    """``<unk>`` at these places, without letters."""
    numbers = [UNK if place in group else number for place, number in enumerate(ids)]
    written = [[PAD] * len(each) if place in group else each for place, each in enumerate(letters)]
    return _rows(range(len(ids)), numbers, written)


def _rows(places: Sequence[int], ids: Sequence[int], letters: Sequence[Sequence[int]]) -> Rows:
    """What a model reads at these places: ids, each with its letters where there are some."""
    return [[ids[at], *letters[at]] for at in places] if letters else [ids[at] for at in places]


# Gradients


def gradients(subject: Subject, between: Mapping[str, Change] | None = None, rows: int = 1) -> Found:
    """``∂ number_r / ∂ x`` (R, B, S, D) at each place where something is read, and what was read there (B, S, D), in
    the order of the text; numbers (B, R) come with them.

    ``between`` makes of the embeddings of ``rows`` copies what they are to be. The number of a step depends only on
    its features, so one gradient through the output layer serves all steps.
    """
    seen, last = dict[str, Tensor](), "decoder.features" if subject.model.task != "label" else "logits"

    def leaf(place: str) -> Change:
        def begin(value: Tensor) -> Tensor:
            changed = value if between is None else between[place](value)
            seen[place] = changed.detach().requires_grad_()
            return seen[place]

        return begin

    def keep(value: Tensor) -> Tensor:
        seen[last] = value
        return value

    with torch.enable_grad(), resting(subject.model):
        watch = Changed({last: keep, **{place: leaf(place) for place in subject.places}}, active=True)
        numbers = subject.numbers([subject.source] * rows, Both(watch, subject.under()))  # (B, R)
        features = seen[last] if seen[last].dim() == 3 else seen[last][:, None]
        above = torch.autograd.grad(numbers.sum(), seen[last], retain_graph=True)[0].reshape(features.shape)
        leaves = [seen[place] for place in subject.places]
        size = max(1, _STATES // max(1, features.numel() + sum(leaf.numel() for leaf in leaves)))
        steps = subject.steps
        found = [_back(features, above, steps[first : first + size], leaves) for first in range(0, len(steps), size)]
    each = [torch.cat(grads).detach() for grads in zip(*found, strict=True)]
    pairs = zip(subject.places, each, leaves, strict=True)
    ordered = {
        place: (subject.in_order(place, grads), subject.in_order(place, given.detach()))
        for place, grads, given in pairs
    }
    return ordered, numbers.detach()


def _back(features: Tensor, above: Tensor, steps: Sequence[int], leaves: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The gradient of each of some steps at each of the leaves, (steps, B, S, D), in one pass back; the graph stays for
    the others."""
    check_cancelled()
    directions = above.new_zeros(len(steps), *above.shape)
    for number, step in enumerate(steps):
        directions[number, :, step] = above[:, step]
    found = torch.autograd.grad(
        features, leaves, directions, retain_graph=True, allow_unused=True, is_grads_batched=True
    )
    return tuple(
        leaf.new_zeros(len(steps), *leaf.shape) if grads is None else grads
        for grads, leaf in zip(found, leaves, strict=True)
    )


def gradient_times_input(subject: Subject) -> dict[str, Tensor]:
    """(R, S) at each place."""
    return {place: (grads[:, 0] * given[0]).sum(-1) for place, (grads, given) in gradients(subject)[0].items()}


def saliency(subject: Subject) -> dict[str, Tensor]:
    """``‖∂ number_r / ∂ x_s‖₂`` (R, S) at each place."""
    return {place: grads[:, 0].norm(dim=-1) for place, (grads, _) in gradients(subject)[0].items()}


def integrated_gradients(
    subject: Subject, points: int, baseline: Mapping[str, Tensor] | None = None, tolerance: float = math.inf
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """(R, S) at each place, by Gauss-Legendre quadrature with so many points; and the numbers (R,) at both ends of the
    line, which begins at ``baseline`` (S, D), by default zeros.

    The parts of any segment of the line sum to the difference of the numbers at its ends. While they miss more than the
    ``tolerance``, relative to the whole difference, the segment that misses most is cut in two, as far as `MOST_WORK`
    allows. This is needed where a norm is the first to read an embedding, as with rotary positions: it removes the
    scale, and every further norm magnifies what is left of it, so that the number changes in the first thousandths of
    a line from zero, or far below.
    """
    begin, end = _numbers_at(subject, baseline, (0.0, 1.0))
    allowed = tolerance * float((end - begin).abs().sum())

    def segment(first: float, last: float, points: int) -> Segment:
        found = _segment(subject, baseline, first, last, points)
        low, high = (begin, end) if last - first == 1 else _numbers_at(subject, baseline, (first, last))
        missing = torch.stack([each.sum(-1) for each in found.values()]).sum(0) - (high - low)
        return -float(missing.abs().sum()), first, last, missing, found

    most = MOST_WORK // (FEWER * subject.work)
    segments = [segment(0.0, 1.0, points)]  # a heap, the worst first
    while len(segments) < most:
        error = float(torch.stack([each[3] for each in segments]).sum(0).abs().sum())
        if error <= allowed and -sum(each[0] for each in segments) <= 3 * allowed:  # not by chance alone
            break
        _, first, last, *_ = heappop(segments)
        middle = math.sqrt(first * last) if first else last / 1000
        heappush(segments, segment(first, middle, FEWER))
        heappush(segments, segment(middle, last, FEWER))
    return {place: torch.stack([each[4][place] for each in segments]).sum(0) for place in subject.places}, begin, end


def _on_line(subject: Subject, baseline: Mapping[str, Tensor] | None, ways: Tensor) -> dict[str, Change]:
    """Embeddings at some shares (B,) of the way from the baseline, as changes of B copies."""

    def change(place: str) -> Change:
        def go(value: Tensor) -> Tensor:
            begin = 0 if baseline is None else subject.in_order(place, baseline[place]).to(value)
            return begin + ways.to(value)[:, None, None] * (value - begin)

        return go

    return {place: change(place) for place in subject.places}


def _numbers_at(
    subject: Subject, baseline: Mapping[str, Tensor] | None, ways: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    with torch.no_grad(), resting(subject.model):
        watch = Both(Changed(_on_line(subject, baseline, torch.tensor(ways))), subject.under())
        found = subject.numbers([subject.source] * 2, watch)
    return found[0], found[1]


def _segment(
    subject: Subject, baseline: Mapping[str, Tensor] | None, first: float, last: float, points: int
) -> dict[str, Tensor]:
    """The integral over one segment of the line, times the whole way: (R, S) at each place."""
    nodes, shares = (torch.tensor(each) / 2 for each in np.polynomial.legendre.leggauss(points))
    if first:  # equidistant in the logarithm, because scales below one count for a norm
        ways = first * (last / first) ** (nodes + 0.5)
        shares = shares * ways * math.log(last / first)
    else:
        ways, shares = last * (nodes + 0.5), last * shares
    totals, length = dict[str, Tensor](), len(subject.targets)
    size = max(1, _STATES // max(1, (len(subject.source) + length) * _width(subject.model)))
    for start in range(0, points, size):
        part, share = ways[start : start + size], shares[start : start + size]
        found, _ = gradients(subject, _on_line(subject, baseline, part), len(part))
        for place, (grads, given) in found.items():
            way = (given[-1] - (0 if baseline is None else baseline[place].to(given))) / part[-1].to(given)
            mean = torch.einsum("rbsd,b->rsd", grads, share.to(grads))
            totals[place] = totals.get(place, 0) + (mean * way).sum(-1)
    return totals


def _width(model: Model) -> int:
    """Of its states."""
    return model.encoder.width if model.task == "label" else model.decoder.output.weight.shape[1]
