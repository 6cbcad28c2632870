"""Ids to vectors on the way in, vectors to scores over the vocabulary on the way out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import DataError
from regard.nn.fast.rotation import rotate
from regard.text.vocabulary import START, UNK


class Embedding(nn.Module):
    """``scale · E[id]``: one learned vector for each token. With scale ``√width`` features begin with variance one.

    ``zero`` is an id that is embedded as zeros; its row is still there for a tied output layer.
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

    def first(self, rows: int, device: torch.device) -> Tensor:
        """What every output begins with, before it is written: ``<start>``, (B,)."""
        return torch.full((rows,), START, device=device)

    def look_up(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight)

    @torch.no_grad()
    def load_vectors(self, vectors: Tensor, rows: Tensor) -> None:
        """Set the embeddings of these tokens to pretrained word vectors (word2vec, GloVe), whatever the scale."""
        if vectors.shape != (len(rows), self.width):
            raise DataError(
                f"word vectors = {tuple(vectors.shape)}: do not fit {len(rows)} tokens of width {self.width}; "
                f"set model.width = {vectors.shape[-1]} or bring other vectors"
            )
        self.weight[_inside(rows, self.weight.shape[0])] = vectors.to(self.weight) / self.scale


class OneHotEmbedding(Embedding):
    """``scale · one_hot(id) E``, as in the first recurrent models: the same parameters and values as a look-up, at the
    cost of the whole product."""

    def look_up(self, ids: Tensor) -> Tensor:
        return F.one_hot(ids, self.weight.shape[0]).to(self.weight.dtype) @ self.weight


class VectorEmbedding(nn.Module):
    """``W x + b``: a vector of the source in the width of the model; with a ``reach`` of 3, 5, … a convolution over the
    sequence or, where so many are ``across`` a line, as patches of a picture are, over lines and columns."""

    def __init__(self, features: int, width: int, reach: int = 1, across: int = 0) -> None:
        super().__init__()
        self.across = across
        size, kind = ((reach, reach), nn.Conv2d) if across else (reach, nn.Conv1d)
        self.filters = kind(features, width, size, padding=reach // 2)  # type: ignore[arg-type]
        nn.init.normal_(self.filters.weight, std=self.filters.weight[0].numel() ** -0.5)
        nn.init.zeros_(self.filters.bias)  # type: ignore[arg-type]

    @property
    def width(self) -> int:
        return self.filters.out_channels

    def first(self, rows: int, device: torch.device) -> Tensor:
        """``<start>``, without numbers: (B, 1 + F)."""
        return F.pad(torch.full((rows, 1), float(START), device=device), (0, self.filters.in_channels))

    def forward(self, source: Tensor) -> Tensor:
        """``(B, S, 1 + F) → (B, S, D)``. Vectors whose id says that they are padding or hidden count as zero."""
        weight, length = self.filters.weight, source.shape[1]  # (D, F, reach) or (D, F, reach, reach)
        shown = (source[..., 1:] * (source[..., :1] > UNK)).to(weight.dtype)
        if weight.shape[2] == 1:
            return F.linear(shown, weight.flatten(1), self.filters.bias)
        if not self.across:
            return self.filters(shown.transpose(1, 2)).transpose(1, 2)
        lines = F.pad(shown, (0, 0, 0, -length % self.across)).transpose(1, 2)
        lines = lines.reshape(*lines.shape[:2], -1, self.across)  # (B, F, lines, across)
        return self.filters(lines).flatten(2).transpose(1, 2)[:, :length]


TargetEmbedding = Embedding | VectorEmbedding  # what a decoder reads through


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
    """The ids, if all are in the vocabulary. Not checked on a GPU, which would have to wait for it."""
    if ids.device.type == "cpu" and not torch.compiler.is_compiling() and ids.numel():
        lowest, highest = (int(bound) for bound in ids.aminmax())
        if lowest < 0 or highest >= size:
            wrong = lowest if lowest < 0 else highest
            raise DataError(f"id = {wrong}: outside the vocabulary; ids run from 0 to {size - 1}")
    return ids


# Positions: attention alone does not know the order of tokens.
#
# Sinusoidal and learned positions are added to the embeddings; rotary positions rotate queries and keys.
# All take ``first``, the position of the first token, so that a step is the same call as a sequence.


def angles(positions: Tensor, width: int, *, to_last: bool = False) -> Tensor:
    """``p / 10000^(2i / width)`` for each position and each pair of features: ``(T,) → (T, width / 2)``.

    With ``to_last`` the last pair has the frequency 1/10000: ``p / 10000^(i / (width / 2 − 1))``. In float64, because
    a late position times a high frequency is a large angle; and on the CPU, because not every GPU has float64.
    """
    pairs = torch.arange(0, width, 2, device=positions.device, dtype=torch.float64)
    exponents = pairs / max(float(pairs[-1]), 1.0) if to_last else pairs / width
    return positions[:, None].to(torch.float64) * 10000.0**-exponents


def sinusoid(positions: Tensor, width: int, *, to_last: bool = False, interleaved: bool = True) -> Tensor:
    """``PE(p, 2i) = sin(angle)``, ``PE(p, 2i+1) = cos(angle)`` (Vaswani et al., 2017). ``(T, width)``

    Not interleaved, all sines come before all cosines, as in most programs.
    """
    angle = angles(positions, width, to_last=to_last)
    return torch.stack((angle.sin(), angle.cos()), dim=-1 if interleaved else -2).flatten(-2)[:, :width]


class _Tables(nn.Module, ABC):
    """Stores the first positions. They stay in float32 if the model is cast to half precision."""

    @abstractmethod
    def make(self, positions: Tensor) -> dict[str, Tensor]:
        """Each table for these positions, by name, in float64."""

    def _keep(self, ready: int) -> None:
        if torch.get_default_device().type == "meta":  # a model without values
            return
        for name, table in self.make(torch.arange(ready)).items():
            self.register_buffer(name, table.to(torch.get_default_dtype()), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, table in list(self.named_buffers(recurse=False)):
            if table.dtype in (torch.bfloat16, torch.float16):
                again = self.make(torch.arange(len(table)))[name]
                setattr(self, name, again.to(table.device, torch.float32))
        return self


class Sinusoidal(_Tables):
    """``x + PE``, positions counted from ``begin``. It has no parameters and no longest length."""

    table: Tensor

    def __init__(
        self, width: int, ready: int = 512, *, to_last: bool = False, interleaved: bool = True, begin: int = 0
    ) -> None:
        super().__init__()
        self.width = width
        self.to_last = to_last
        self.interleaved = interleaved
        self.begin = begin
        self._keep(ready)

    def make(self, positions: Tensor) -> dict[str, Tensor]:
        table = sinusoid(positions + self.begin, self.width, to_last=self.to_last, interleaved=self.interleaved)
        return {"table": table}

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        last = first + x.shape[1]
        if last <= len(self.table):
            return x + self.table[first:last].to(x.dtype)
        return x + self.make(torch.arange(first, last))["table"].to(x)


class Learned(nn.Module):
    """``x + P[p]`` with one learned vector for each of ``longest`` positions."""

    def __init__(self, width: int, longest: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(longest, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        last, longest = first + x.shape[1], len(self.weight)
        if last > longest:
            raise DataError(
                f"sequence = {last} tokens: longer than the {longest} learned positions; "
                f"shorten it, or train with model.longest = {last} or with sinusoidal or rotary positions"
            )
        return x + self.weight[first:last]


def longest_sequence(model: nn.Module) -> int | None:
    """How many tokens a model can read or write at once: the number of learned positions, or None for any number."""
    return min((len(module.weight) for module in model.modules() if isinstance(module, Learned)), default=None)


class Unplaced(nn.Module):
    """``x``: no positions are added, because they are rotary or because there are none."""

    def forward(self, x: Tensor, first: int = 0) -> Tensor:  # noqa: ARG002
        return x


class Rotary(_Tables):
    """Rotate each pair of features of a query or key by an angle that grows with the position (Su et al., 2021).

    The inner product of two rotated vectors depends only on their distance, so that attention is relative.
    """

    cosine: Tensor
    sine: Tensor

    def __init__(self, width: int, ready: int = 512) -> None:
        super().__init__()
        self.width = width
        self._keep(ready)

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        """``x`` (B, H, T, K) → the same, rotated."""
        turn = self.turn if torch.compiler.is_compiling() else rotate
        return turn(x, *self.tables(first, first + x.shape[2]))

    def tables(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Cosine and sine of these positions, two of (T, K / 2)."""
        if last <= len(self.cosine):
            return self.cosine[first:last], self.sine[first:last]
        made = self.make(torch.arange(first, last))
        return made["cosine"].to(self.cosine), made["sine"].to(self.cosine)

    @staticmethod
    def turn(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Rotate ``x`` (…, K) by angles with these cosines and sines, (…, K / 2)."""
        even, odd = x[..., 0::2], x[..., 1::2]
        rotated = (even * cosine - odd * sine, even * sine + odd * cosine)
        return torch.stack(rotated, dim=-1).flatten(-2).to(x.dtype)

    def make(self, positions: Tensor) -> dict[str, Tensor]:
        angle = angles(positions, self.width)
        return {"cosine": angle.cos(), "sine": angle.sin()}
