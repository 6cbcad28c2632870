"""Ids to vectors on the way in, vectors to scores over the vocabulary on the way out."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import DataError


class Embedding(nn.Module):
    """``scale · E[id]``: one learned vector a token. With scale ``√width`` its features begin with variance one.

    ``zero`` is an id that reads as a vector of zeros, whatever its row is, which a tied output layer may use.
    """

    def __init__(self, size: int, width: int, scale: float = 1.0, zero: int | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, width))
        nn.init.normal_(self.weight, std=width**-0.5)
        self.scale = scale
        self.zero = zero

    @property
    def width(self) -> int:
        return self.weight.shape[1]

    def forward(self, ids: Tensor) -> Tensor:
        """``(B, T) → (B, T, D)``"""
        vectors = self.look_up(_inside(ids, self.weight.shape[0]))
        vectors = vectors if self.scale == 1.0 else vectors * self.scale
        return vectors if self.zero is None else vectors.masked_fill((ids == self.zero)[..., None], 0.0)

    def look_up(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight)

    @torch.no_grad()
    def load_vectors(self, vectors: Tensor, rows: Tensor) -> None:
        """Let the given tokens begin as word vectors learned elsewhere (word2vec, GloVe), whatever the scale."""
        if vectors.shape != (len(rows), self.width):
            raise DataError(
                f"word vectors = {tuple(vectors.shape)}: do not fit {len(rows)} tokens of width {self.width}; "
                f"set model.width = {vectors.shape[-1]} or bring other vectors"
            )
        self.weight[_inside(rows, self.weight.shape[0])] = vectors.to(self.weight) / self.scale


class OneHotEmbedding(Embedding):
    """``scale · one_hot(id) E``: how the first recurrent models read a word, as a product with a matrix.

    The same parameters and the same values as a look-up, at the cost of the whole product.
    """

    def look_up(self, ids: Tensor) -> Tensor:
        return F.one_hot(ids, self.weight.shape[0]).to(self.weight.dtype) @ self.weight


class OutputLayer(nn.Module):
    """``logits = W x + b``, the last layer. Tied, ``W`` *is* the embedding (Press and Wolf, 2017)."""

    def __init__(self, width: int, size: int, tied: Embedding | None = None) -> None:
        super().__init__()
        if tied is None:
            self.weight = nn.Parameter(torch.empty(size, width))
            nn.init.normal_(self.weight, std=width**-0.5)
        else:
            self.weight = tied.weight
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def _inside(ids: Tensor, size: int) -> Tensor:
    """The ids, if all lie in the vocabulary. To look, a GPU would have to be stalled; it is not."""
    if ids.device.type == "cpu" and not torch.compiler.is_compiling() and ids.numel():
        lowest, highest = (int(bound) for bound in ids.aminmax())
        if lowest < 0 or highest >= size:
            wrong = lowest if lowest < 0 else highest
            raise DataError(f"id = {wrong}: outside the vocabulary; ids run from 0 to {size - 1}")
    return ids
