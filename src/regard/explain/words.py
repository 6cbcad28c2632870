"""Pieces into words: weights between pieces become weights between the words a reader sees.

The weight on a source word is the *sum* over its pieces: a row stays a distribution. The row of a target word
is the *mean* over the steps that wrote its pieces: each of them is a distribution, and so is their mean. Words
are those of the text at whitespace, for every tokenizer and script. Special tokens stay as they are, unless
they are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.explain.side import OUTSIDE, Side


@dataclass(frozen=True)
class Folded:
    """Weights between words, with the labels of both axes."""

    weights: Tensor  # (…, T, S)
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def fold(weights: Tensor, target: Side, source: Side, *, special: bool = True) -> Folded:
    """``weights`` (…, T, S) between pieces, folded on both sides.

    Without ``special``, ``<end>`` and its like have neither row nor column; rows then sum to what is left.
    """
    (down_places, rows), (places, columns) = members(target, special=special), members(source, special=special)
    down = _membership(down_places, len(target), weights)
    down = down / down.sum(1, keepdim=True)  # mean
    across = _membership(places, len(source), weights)  # sum
    return Folded(down @ weights @ across.T, rows, columns)


def members(side: Side, *, special: bool) -> tuple[list[list[int]], tuple[str, ...]]:
    """The places of each word's pieces and, on request, each special token by itself, in the order of the text; and
    what each is called."""
    groups: list[list[int]] = []
    labels: list[str] = []
    last: int | None = None
    for place, (piece, word) in enumerate(zip(side.pieces, side.word_of, strict=True)):
        if word == OUTSIDE:
            if special:
                groups.append([place])
                labels.append(piece)
        elif word == last:
            groups[-1].append(place)
        else:
            groups.append([place])
            labels.append(side.words[word])
        last = word
    return groups, tuple(labels)


def _membership(groups: list[list[int]], pieces: int, like: Tensor) -> Tensor:
    """One row a group, with ones at its pieces."""
    matrix = torch.zeros(len(groups), pieces, dtype=like.dtype, device=like.device)
    for number, group in enumerate(groups):
        matrix[number, group] = 1
    return matrix
