"""Importance beside attention: what a source word *did*, measured by taking it away or by the gradient.

Attention says where a model looked; it need not be what decided (Jain and Wallace, 2019). Two other measures
of how much source word s matters for target word t:

- masking: ``log p(y_t | x) − log p(y_t | x without s)``, in nats; below zero, the word stood in the way;
- gradient × input: ``Σ_d x_sd · ∂ log (p / (1 − p)) / ∂ x_sd`` with x_s the word's embedding and p = p(y_t): a
  first-order guess of what taking the word away does (Shrikumar et al., 2017). Of log p itself the gradient
  vanishes just where the model is sure; of the log-odds it does not.

Both are folded into words by sums: log-probabilities of the pieces of a word add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

import torch
from torch import Tensor

from regard.decode.cancel import check_cancelled
from regard.errors import DataError
from regard.explain.replay import PLAIN, Model, Spelling, check, forward, forward_all, reads_backwards, resting
from regard.explain.side import Rows, Side, spell, with_letters
from regard.explain.words import Folded, members
from regard.nn.observe import UNOBSERVED, Observer
from regard.text.special import PAD, UNK

How = Literal["blank", "unknown", "remove"]
Under = Callable[[], Observer]  # makes what else acts on a pass, such as edits, anew for each
_NUMBERS = 1 << 25  # logits held at once


@dataclass(frozen=True)
class Embedded:
    """An observer at the embeddings of what is read: may change them, and remembers what went on."""

    place: str  # the full name to act at
    keep: Tensor | None = None  # (B, S), 0 where a piece is blanked out
    leaf: list[Tensor] | None = None  # gets the embeddings, as the start of a gradient
    here: str = ""

    @property
    def active(self) -> bool:
        return self.leaf is not None  # a gradient needs the written-out path; blanking needs no more than a look

    def at(self, place: str | int) -> Observer:
        return Embedded(self.place, self.keep, self.leaf, f"{self.here}{place}.")

    def see(self, name: str, value: Tensor) -> Tensor:
        if self.here + name != self.place:
            return value
        if self.keep is not None:
            value = value * self.keep.to(value)[:, :, None]
        if self.leaf is not None:
            value = value.detach().requires_grad_()
            self.leaf.append(value)
        return value


@dataclass(frozen=True)
class Both:
    """Two observers: the second sees what the first went on with."""

    first: Observer
    second: Observer

    @property
    def active(self) -> bool:
        return self.first.active or self.second.active

    def at(self, place: str | int) -> Observer:
        return Both(self.first.at(place), self.second.at(place))

    def see(self, name: str, value: Tensor) -> Tensor:
        return self.second.see(name, self.first.see(name, value))


def alone() -> Observer:
    """Nothing else acts."""
    return UNOBSERVED


def masking(
    model: Model,
    source_ids: Rows = (),
    target_ids: Sequence[int] | None = None,
    *,
    spelling: Spelling = PLAIN,
    how: How = "blank",
) -> Folded:
    """The effect (T words, S words) of each word of the source, taken away in turn.

    How: ``blank`` makes its embedding zero and leaves its place, the same for every model and tokenizer;
    ``unknown`` puts ``<unk>`` there, which a model has learned only if it was trained with rare words or word
    dropout; ``remove`` closes the gap, and so moves the words after it.
    """
    targets = _targets(model, source_ids, target_ids)
    read, written = _read(model, source_ids, targets, spelling), spelling.spell_target(model, targets)
    if how != "blank" and (model.task == "language" or (how == "remove" and model.task == "label")):
        raise DataError(f"how = {how}: would change what is written too; 'blank' would be right for this model")
    return masking_between(model, read, written, how)


def masking_between(model: Model, read: Side, written: Side, how: How = "blank", *, under: Under = alone) -> Folded:
    """The same for sides that are spelled already."""
    places, columns = members(read, special=False)
    sources: Rows = () if model.task == "language" else read.rows
    targets = written.ids
    with torch.no_grad(), resting(model):
        log_probabilities = forward_all(model, [sources], targets, under()).log_softmax(-1)
        rows = max(1, _NUMBERS // log_probabilities.numel())
        parts = [
            _without(model, sources, targets, places[first : first + rows], how=how, under=under())
            for first in range(0, len(places), rows)
        ]
    effect = (_own(log_probabilities, targets) - torch.cat(parts)).T  # (T, S words)
    return _by_word(effect, written, columns)


def gradient(
    model: Model,
    source_ids: Rows = (),
    target_ids: Sequence[int] | None = None,
    *,
    spelling: Spelling = PLAIN,
) -> Folded:
    """Gradient × input (T words, S words), with the embeddings as the input."""
    targets = _targets(model, source_ids, target_ids)
    read, written = _read(model, source_ids, targets, spelling), spelling.spell_target(model, targets)
    return gradient_between(model, read, written)


def gradient_between(model: Model, read: Side, written: Side, *, under: Under = alone) -> Folded:
    """The same for sides that are spelled already."""
    found, embedded = gradients(model, () if model.task == "language" else read.rows, written.ids, under=under)
    products = (found * embedded).sum(-1)  # (T, S)
    places, columns = members(read, special=False)
    effect = torch.stack([products[:, group].sum(1) for group in places], 1)
    return _by_word(effect, written, columns)


def gradients(
    model: Model, source_ids: Rows, target_ids: Sequence[int] | None = None, *, under: Under = alone
) -> tuple[Tensor, Tensor]:
    """``∂ log-odds(y_t) / ∂ x_s`` (T, S, D) and the embeddings x (S, D), in the order of the text."""
    targets = _targets(model, source_ids, target_ids)
    leaf: list[Tensor] = []
    with torch.enable_grad(), resting(model):
        logits = forward_all(model, [source_ids], targets, Both(Embedded(_place(model), leaf=leaf), under()))
        others = logits.scatter(2, torch.tensor(targets, device=logits.device)[None, :, None], -torch.inf)
        log_odds = _own(logits, targets)[0] - others.logsumexp(-1)[0]  # (T,)
        rows = [_gradient(one, leaf[0]) for one in log_odds]
    found, embedded = torch.stack(rows).detach(), leaf[0][0].detach()
    return (found.flip(1), embedded.flip(0)) if reads_backwards(model) else (found, embedded)


def _gradient(value: Tensor, at: Tensor) -> Tensor:
    """One gradient of several, (S, D); the graph stays for the others."""
    check_cancelled()
    found: Tensor = torch.autograd.grad(value, at, retain_graph=True)[0][0]
    return found


def _targets(model: Model, source_ids: Rows, target_ids: Sequence[int] | None) -> list[int]:
    check(model, source_ids, target_ids)
    if target_ids is not None:
        return list(target_ids)
    with torch.no_grad(), resting(model):
        return forward(model, source_ids, None, UNOBSERVED).argmax(-1).tolist()


def _read(model: Model, source_ids: Rows, targets: Sequence[int], spelling: Spelling) -> Side:
    """What is read: the source or, where there is none, the text so far."""
    if model.task == "language":
        return spell([model.first, *targets[:-1]], spelling.target)
    return spell(source_ids, spelling.source, spelling.source_text)


def _place(model: Model) -> str:
    return "decoder.embedded" if model.task == "language" else "encoder.embedded"


def _own(values: Tensor, targets: Sequence[int]) -> Tensor:
    """The target's own value of each step, (B, T, V) → (B, T)."""
    chosen = torch.tensor(targets, device=values.device)[None, :, None]
    return values.gather(2, chosen.expand(len(values), -1, 1)).squeeze(2)


def _without(
    model: Model,
    source_ids: Rows,
    targets: Sequence[int],
    groups: Sequence[Sequence[int]],
    *,
    how: How,
    under: Observer,
) -> Tensor:
    """The log-probabilities (B, T) when the pieces of each of the groups are not there."""
    sources: list[Rows] = [source_ids] * len(groups)
    ids, letters = with_letters(source_ids)
    observer: Observer = UNOBSERVED
    match how:
        case "blank":
            keep = torch.ones(len(groups), len(targets) if model.task == "language" else len(source_ids))
            for row, group in enumerate(groups):
                keep[row, list(group)] = 0
            observer = Embedded(_place(model), keep.flip(1) if reads_backwards(model) else keep)
        case "unknown":
            sources = [_with_unknown(ids, letters, group) for group in groups]
        case "remove":
            sources = [[number for place, number in enumerate(ids) if place not in group] for group in groups]
        case _:
            assert_never(how)
    return _own(forward_all(model, sources, targets, Both(observer, under)).log_softmax(-1), targets)


def _with_unknown(ids: Sequence[int], letters: Sequence[Sequence[int]], group: Sequence[int]) -> Rows:
    """``<unk>`` at these places; of a word that was written in letters, not one is left."""
    numbers = [UNK if place in group else number for place, number in enumerate(ids)]
    if not letters:
        return numbers
    written = [[PAD] * len(each) if place in group else each for place, each in enumerate(letters)]
    return [[number, *each] for number, each in zip(numbers, written, strict=True)]


def _by_word(effect: Tensor, written: Side, columns: tuple[str, ...]) -> Folded:
    """Rows of pieces into rows of words; special tokens keep theirs."""
    places, labels = members(written, special=True)
    return Folded(torch.stack([effect[group].sum(0) for group in places]), labels, columns)
