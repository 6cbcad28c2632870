"""Which target pieces a source piece tends to become, learned from the encoded training text.

IBM model 1 (Brown et al., 1993): every target piece comes from one piece of its source, whichever it is, so

    c(s, t) = Σ p(t | s) / Σ_s' p(t | s')   over all places where t stands beside s
    p(t | s) = c(s, t) / Σ_t' c(s, t')

until that changes little. `<end>`, which ends each source, is the empty word that the others leave the rest to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.examples import Examples, Ragged
from regard.text.special import PAD

MOST = 12_000_000  # places where two pieces stand side by side that are looked at; of a larger corpus, every n-th row
ROUNDS = 2


@dataclass(frozen=True)
class Lexicon:
    """For each source piece its likeliest targets, and how common targets are in themselves."""

    likely: NDArray[np.int32]  # (source size, depth), best first, filled up with <pad>
    frequent: NDArray[np.int32]  # (target size,) most frequent first


def learn_lexicon(examples: Examples, sizes: tuple[int, int], depth: int) -> Lexicon:
    """From rows of source and target; ``sizes`` are those of the two vocabularies."""
    source, target = examples.columns["source"], examples.columns["target"]
    counts = np.bincount(target.numbers, minlength=sizes[1])
    frequent = np.argsort(-counts, kind="stable").astype(np.int32)
    keys, places = _side_by_side(source, target, _chosen(source, target), sizes[1])
    pairs, which = np.unique(keys, return_inverse=True)  # (P,) s · V + t, and for each place which it is
    sources = pairs // sizes[1]
    odds = _estimate(which, places, sources)
    return Lexicon(_best(sources, pairs % sizes[1], odds, (sizes[0], depth)), frequent)


def _chosen(source: Ragged, target: Ragged) -> NDArray[np.int64]:
    """Rows that together have no more than `MOST` places, spread over the whole."""
    total = int((source.lengths().astype(np.int64) * target.lengths()).sum())
    return np.arange(0, len(source), max(1, -(-total // MOST)))


def _side_by_side(
    source: Ragged, target: Ragged, rows: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """For every source piece beside every target piece of its row: which pair they are, and which target it is."""
    keys, places, before = [np.empty(0, np.int64)], [np.empty(0, np.int32)], 0
    for row in rows.tolist():
        ours, theirs = source[row].astype(np.int64), target[row].astype(np.int64)
        keys.append((ours * size + theirs[:, None]).ravel())  # (T · S,)
        places.append(np.repeat(np.arange(before, before + len(theirs), dtype=np.int32), len(ours)))
        before += len(theirs)
    return np.concatenate(keys), np.concatenate(places)


def _estimate(which: NDArray[np.int64], places: NDArray[np.int32], sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """``p(t | s)`` of each pair."""
    odds: NDArray[np.float64] = np.ones(len(sources))
    for _ in range(ROUNDS):
        share = odds[which]
        share /= np.bincount(places, share)[places]
        counts = np.bincount(which, share)
        odds = counts / np.bincount(sources, counts)[sources]
    return odds


def _best(
    sources: NDArray[np.int64], targets: NDArray[np.int64], odds: NDArray[np.float64], shape: tuple[int, int]
) -> NDArray[np.int32]:
    order = np.lexsort((-odds, sources))
    sources, targets = sources[order], targets[order]
    begins = np.searchsorted(sources, np.arange(shape[0]))
    rank = np.arange(len(sources)) - begins[sources]
    likely = np.full(shape, PAD, dtype=np.int32)
    kept = rank < shape[1]
    likely[sources[kept], rank[kept]] = targets[kept]
    return likely
