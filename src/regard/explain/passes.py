"""The effect of each word, measured by changing it: passes without words, and gradients.

What is explained of step t is a number that `measure` makes of its logits: log p(y_t), its probability, the log-odds,
the entropy, or how much more probable y_t was than another piece. For each word of the source or the prefix:

- masking: the number, minus the number without the word; below zero, the word made the output less probable;
- gradient: ``∂ number / ∂ x`` with x the embedding. Its norm is *saliency* (Simonyan et al., 2014), its product with x
  *gradient × input* (Shrikumar et al., 2017), a first-order estimate of the effect of masking. The gradient of log p
  vanishes where the model is sure; that of the log-odds does not;
- integrated gradients (Sundararajan et al., 2017): the mean gradient on the straight line to x from the same text with
  every word unknown, or from another baseline, times the difference of the two. Their sum over all words is the
  difference of the number at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, assert_never

import numpy as np
import torch
from torch import Tensor

from regard.decode.cancel import check_cancelled
from regard.explain.replay import Model, forward_all, padded, reads_backwards, resting
from regard.explain.trace import Rows, with_letters
from regard.models.recurrent import RecurrentEncoder
from regard.models.transformer import TransformerEncoder
from regard.nn.observe import UNOBSERVED, Observer
from regard.text.vocabulary import END, PAD, START, UNK

How = Literal["blank", "unknown", "removed"]
Of = Literal["log-probability", "probability", "log-odds", "entropy"]
Under = Callable[[], Observer]  # makes the observer of a pass, such as one with edits, anew for each pass
Groups = Sequence[Sequence[int]]
Change = Callable[[Tensor], Tensor]
Found = tuple[dict[str, tuple[Tensor, Tensor]], Tensor]
SOURCE, PREFIX = "encoder.embedded", "decoder.embedded"
_NUMBERS = 1 << 23  # logits held at once
LINE = 16  # equal parts of the line of integrated gradients whose ends say where its points should lie
EVENLY = 0.01  # share of the points that lie evenly, wherever the numbers change
MOST_WORK = 1 << 37  # of all points (see `Subject.work`): some seconds of one core
LARGE, SHORTER = 1 << 32, 4  # work of one point from which steps are taken in so many groups, each without later steps
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
    size = _at_once(subject)
    parts = list[Tensor]()
    with torch.no_grad(), resting(model):
        before = subject.values()  # (R,)
        for start in range(0, len(groups), size):
            some = groups[start : start + size]
            begins = torch.tensor([min(group, default=0) if place == PREFIX else 0 for group in some], device=device)
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

    ``between`` makes of the embeddings of ``rows`` copies what they are to be. No step depends on later ones: of a
    large model, earlier steps go through it without them.
    """
    steps, length = subject.steps, len(subject.targets)
    short = subject.work > LARGE and subject.under is alone and subject.model.task != "label"
    size = math.ceil(len(steps) / SHORTER) if short else len(steps)
    parts, totals = list[dict[str, tuple[Tensor, Tensor]]](), list[Tensor]()
    for start in range(0, len(steps), size):
        some = steps[start : start + size]
        asked = replace(subject, targets=subject.targets[: some[-1] + 1]) if short else subject
        found, numbers = _gradients(asked, between, rows, some)
        parts.append(found)
        totals.append(numbers)
    ordered = dict[str, tuple[Tensor, Tensor]]()
    for place in subject.places:
        whole = length if place == PREFIX else parts[0][place][0].shape[2]
        grads = torch.cat([_lengthened(part[place][0], whole) for part in parts])
        given = _lengthened(parts[-1][place][1], whole)
        ordered[place] = subject.in_order(place, grads), subject.in_order(place, given)
    return ordered, torch.cat(totals, 1)


def _lengthened(values: Tensor, length: int) -> Tensor:
    """With zeros for later places, along the last axis but one."""
    return torch.nn.functional.pad(values, (0, 0, 0, length - values.shape[-2]))


def _gradients(subject: Subject, between: Mapping[str, Change] | None, rows: int, steps: Sequence[int]) -> Found:
    """Of some steps, in the order of reading. The number of a step depends only on its features, so one gradient
    through the output layer serves all steps."""
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
        logits = forward_all(subject.model, [subject.source] * rows, subject.targets, Both(watch, subject.under()))
        numbers = subject.measure(logits[:, steps], steps)  # (B, R)
        features = seen[last] if seen[last].dim() == 3 else seen[last][:, None]
        above = torch.autograd.grad(numbers.sum(), seen[last], retain_graph=True)[0].reshape(features.shape)
        leaves = [seen[place] for place in subject.places]
        size = max(1, _STATES // max(1, features.numel() + sum(leaf.numel() for leaf in leaves)))
        found = [_back(features, above, steps[first : first + size], leaves) for first in range(0, len(steps), size)]
    each = [torch.cat(grads).detach() for grads in zip(*found, strict=True)]
    return {
        place: (grads, given.detach()) for place, grads, given in zip(subject.places, each, leaves, strict=True)
    }, numbers.detach()


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
) -> tuple[dict[str, Tensor], Tensor, Tensor, float]:
    """(R, S) at each place; the numbers (R,) at both ends of the line, which begins at ``baseline`` (S, D), by default
    the text with unknown words; and how far, relative to the difference of these, the sums were from it before the
    weights of the points were fitted.

    A deep model changes its mind on a small part of the line, all words at once. So the numbers on an even grid, which
    cost one pass each, say first where they change, and the points of a Gauss-Legendre quadrature lie evenly in what
    has changed so far (`placed`). While their sum misses the difference by more than the ``tolerance``, there are twice
    as many, as far as `MOST_WORK` allows. At last the weights of the points are fitted, row by row, so that what is
    known is exact (`fitted`).
    """
    start = unknown(subject) if baseline is None else baseline
    grid = torch.linspace(0, 1, LINE + 1, dtype=torch.float64)
    values = _numbers_at(subject, start, grid)  # (G, R)
    whole = values[-1] - values[0]
    while True:
        alphas, weights = placed(values.cpu(), points)
        parts = _parts_at(subject, start, alphas)
        sums = torch.stack([each.sum(-1) for each in parts.values()]).sum(0)  # (N, R)
        shares = weights.to(sums)[:, None].expand_as(sums)
        missed = float(((shares * sums).sum(0) - whole).abs().sum() / whole.abs().sum().clamp(min=1e-30))
        if missed <= tolerance or 2 * points * subject.work > MOST_WORK:
            break
        points *= 2
    shares = fitted(shares, sums, whole)
    found = {place: torch.einsum("nr,nrs->rs", shares, each) for place, each in parts.items()}
    return found, values[0], values[-1], missed


def unknown(subject: Subject) -> dict[str, Tensor]:
    """The embeddings (S, D) of the same text with ``<unk>`` in place of every word; ``<end>`` and ``<start>`` stay."""
    model, device, found = subject.model, next(subject.model.parameters()).device, dict[str, Tensor]()
    with torch.no_grad():
        if model.task != "language":
            ids, letters = with_letters(subject.source)
            words = [place for place, number in enumerate(ids) if number not in (PAD, START, END)]
            rows = padded([_with_unknown(ids, letters, words)]).to(device)
            assert isinstance(model.encoder, TransformerEncoder | RecurrentEncoder)
            found[SOURCE] = model.encoder.embedding(rows)[0]
        if model.task != "label":
            read = [model.first, *(each if each in (PAD, START, END) else UNK for each in subject.targets[:-1])]
            found[PREFIX] = model.decoder.embedding(torch.tensor([read], device=device))[0]
    return found


def placed(values: Tensor, points: int) -> tuple[Tensor, Tensor]:
    """Where on the line so many points lie, and their weights, from the numbers (G, R) on an even grid: as those of
    Gauss and Legendre, equidistant in how far all numbers together have changed."""
    changed = (values[1:] - values[:-1]).abs().double().sum(1)  # (G - 1,)
    changed = changed + EVENLY * changed.mean().clamp(min=1e-30)
    so_far = torch.cat((changed.new_zeros(1), changed.cumsum(0))) / changed.sum()
    nodes, weights = (torch.tensor(each) / 2 for each in np.polynomial.legendre.leggauss(points))
    alphas, slopes = _monotone_cubic(so_far, torch.linspace(0, 1, len(values), dtype=torch.float64), nodes + 0.5)
    return alphas, weights * slopes


def _monotone_cubic(x: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """Values and slopes of the smooth curve through rising points that rises everywhere: cubic, with harmonic means of
    neighbouring slopes (Fritsch and Butland, 1984)."""
    width, rise = x.diff(), y.diff() / x.diff()
    one, other = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    inner = (one + other) / (one / rise[:-1] + other / rise[1:])
    slope = torch.cat((rise[:1], inner, rise[-1:]))
    part = (torch.searchsorted(x, at, right=True) - 1).clamp(0, len(width) - 1)
    h, t = width[part], (at - x[part]) / width[part]
    left, right, whole = slope[part] * h, slope[part + 1] * h, rise[part] * h
    second, third = 3 * whole - 2 * left - right, left + right - 2 * whole
    return y[part] + t * (left + t * (second + t * third)), (left + t * (2 * second + 3 * t * third)) / h


def fitted(weights: Tensor, sums: Tensor, whole: Tensor) -> Tensor:
    """The weights (N, R) nearest to those given, each relative to itself, with which the ``sums`` (N, R) of the parts
    at all points make the ``whole`` (R,)."""
    missing, direction = whole - (weights * sums).sum(0), weights.square() * sums
    along = (direction * sums).sum(0)
    return weights + torch.where(along > 0, missing / along.clamp(min=1e-30), 0.0) * direction


def _interpolated(subject: Subject, baseline: Mapping[str, Tensor], alphas: Tensor) -> dict[str, Change]:
    """Embeddings at ``baseline + α (x − baseline)`` for some α (B,), as changes of B copies."""

    def change(place: str) -> Change:
        def go(value: Tensor) -> Tensor:
            begin = subject.in_order(place, baseline[place]).to(value)[: value.shape[-2]]
            return begin + alphas.to(value)[:, None, None] * (value - begin)

        return go

    return {place: change(place) for place in subject.places}


def _at_once(subject: Subject) -> int:
    """How many copies go through the model together."""
    pieces = len(subject.source) + len(subject.targets)
    return max(1, _STATES // max(1, pieces * _width(subject.model)))


def _numbers_at(subject: Subject, baseline: Mapping[str, Tensor], alphas: Tensor) -> Tensor:
    """The numbers at some α, (N, R)."""
    found, size = list[Tensor](), max(1, min(_at_once(subject), _NUMBERS // max(1, _logits(subject))))
    with torch.no_grad(), resting(subject.model):
        for some in torch.split(alphas, size):
            watch = Both(Changed(_interpolated(subject, baseline, some)), subject.under())
            found.append(subject.numbers([subject.source] * len(some), watch))
    return torch.cat(found)


def _logits(subject: Subject) -> int:
    """Of one copy."""
    model = subject.model
    return 1 if model.task == "label" else len(subject.targets) * len(model.decoder.output.weight)


def _parts_at(subject: Subject, baseline: Mapping[str, Tensor], alphas: Tensor) -> dict[str, Tensor]:
    """Gradient at some α times the whole difference to the baseline: (N, R, S) at each place."""
    found: dict[str, list[Tensor]] = {place: [] for place in subject.places}
    for some in torch.split(alphas, _at_once(subject)):
        for place, (grads, given) in gradients(subject, _interpolated(subject, baseline, some), len(some))[0].items():
            difference = (given[-1] - baseline[place].to(given)) / some[-1].to(given)
            found[place].append(torch.einsum("rbsd,sd->brs", grads, difference))
    return {place: torch.cat(each) for place, each in found.items()}


def _width(model: Model) -> int:
    """Of its states."""
    return model.encoder.width if model.task == "label" else model.decoder.output.weight.shape[1]
