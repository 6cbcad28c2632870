"""What a training step must compute, counted on paper, and what this machine can compute, measured.

A matrix product of (rows, inner) by (inner, columns) takes ``2 · rows · inner · columns`` operations, and its two
gradients as many again each. Products are nearly all the work of these models; what is left out (softmax, norms,
dropout, the optimizer) is counted as waste, and so is every operation on padding.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from peers.protocol import PAD, Batch, Work

BEST_SIZES = (1024, 2048, 4096)


@dataclass(frozen=True)
class Product:
    """(rows, inner) times (inner, columns), so many times in a forward pass."""

    rows: int
    inner: int
    columns: int
    times: float = 1.0

    @property
    def operations(self) -> float:
        return 2.0 * self.rows * self.inner * self.columns * self.times

    def gradients(self) -> tuple[Product, Product]:
        """Of the left side, ``dY Wᵀ``, and of the right side, ``Xᵀ dY``."""
        left = Product(self.rows, self.columns, self.inner, self.times)
        return left, Product(self.inner, self.rows, self.columns, self.times)


def products(work: Work, batch: Batch) -> list[Product]:
    """The products with weights in a forward pass over the real tokens of a batch."""
    sources = int((batch.source != PAD).sum())
    return _transformer(work, sources, batch.predictions) if work.model == "transformer" else _recurrent(work, batch)


def _transformer(work: Work, sources: int, targets: int) -> list[Product]:
    """Four projections of each attention (keys and values of the source are the encoder's tokens), two layers of each
    feed-forward network, one output layer."""
    width, hidden, depth = work.width, work.hidden, work.depth
    feed_forward = [(width, hidden), (hidden, width)]
    return [
        Product(sources, width, width, 4 * depth),
        *(Product(sources, *shape, depth) for shape in feed_forward),
        Product(sources, width, width, 2 * depth),
        Product(targets, width, width, 6 * depth),
        *(Product(targets, *shape, depth) for shape in feed_forward),
        Product(targets, width, work.vocabulary),
    ]


def _recurrent(work: Work, batch: Batch) -> list[Product]:
    """What can be done for all steps at once, then what waits for the step before: those products have as many rows
    as the batch. Each direction of the encoder has half the width."""
    width, rows = work.width, len(batch.source)
    sources, targets = int((batch.source != PAD).sum()), batch.predictions
    steps = targets / rows
    additive = work.model == "bahdanau"
    return [
        Product(sources, width, 4 * width, work.depth),  # both directions side by side
        Product(rows, width // 2, 4 * width // 2, 2 * work.depth * sources / rows),
        Product(sources, width, width),  # keys
        Product(targets, width, 4 * width),
        Product(rows, 2 * width, 4 * width, steps),  # the state and what was attended to
        *(Product(rows, 2 * width, 4 * width, steps) for _ in range(work.depth - 1)),
        Product(rows, width, width, steps if additive else 0.0),  # queries
        Product(targets, 3 * width, width) if additive else Product(rows, 2 * width, width, steps),  # readout
        Product(targets, width, work.vocabulary),
    ]


def attention_operations(work: Work, batch: Batch) -> float:
    """``q·k`` and ``Σ weight · v`` of every pair that may look at each other: no weights take part in these."""
    sources, targets = (_lengths(side) for side in (batch.source, batch.target_out))
    across = float((sources * targets).sum())
    if work.model != "transformer":
        return 4.0 * work.width * across
    inside = float((sources * sources).sum() + (targets * (targets + 1)).sum() / 2)
    return 4.0 * work.width * work.depth * (across + inside)


def _lengths(side: Tensor) -> Tensor:
    return (side != PAD).sum(1).double()


def operations_per_token(work: Work, batches: Sequence[Batch]) -> float:
    """Of a training step, forward and backward, for each source and target token that is not padding."""
    total = sum(
        3 * (sum(product.operations for product in products(work, batch)) + attention_operations(work, batch))
        for batch in batches
    )
    return total / sum(batch.tokens for batch in batches)


def rate(product: Product, rounds: int = 3) -> float:
    """Operations a second of a product, the median of some tries after one that warms up."""
    left, right = torch.randn(product.rows, product.inner), torch.randn(product.inner, product.columns)
    out = torch.empty(product.rows, product.columns)
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        torch.mm(left, right, out=out)
        times.append(time.perf_counter() - began)
    return product.operations / product.times / statistics.median(times[1:])


def best_rate() -> float:
    """Operations a second at the best of some large squares: what this machine can do."""
    return max(rate(Product(size, size, size), rounds=2) for size in BEST_SIZES)


def model_rate(work: Work, batch: Batch) -> float:
    """Operations a second at the shapes of the model's own products, forward and backward, each as often as it comes.

    Nothing that uses the same products can be faster than this, however little else it does.
    """
    wanted = [one for product in products(work, batch) if product.times for one in (product, *product.gradients())]
    rates = {shape: rate(Product(*shape)) for shape in {(one.rows, one.inner, one.columns) for one in wanted}}
    seconds = sum(one.operations / rates[one.rows, one.inner, one.columns] for one in wanted)
    return sum(one.operations for one in wanted) / seconds
