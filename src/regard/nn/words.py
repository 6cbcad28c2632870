"""A word as more than its id: a learned vector, a pretrained vector, and its letters.

In tagging and classification there are words that the training text does not have. Such a word has no learned vector,
but it may have a pretrained one, and it always has its letters.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import masks
from regard.nn.embeddings import Embedding, VectorEmbedding
from regard.nn.fast import random as chance
from regard.nn.layers import linear

SourceEmbedding: TypeAlias = "Embedding | VectorEmbedding | WordEmbedding"  # what an encoder reads through


class LetterConvolution(nn.Module):
    """``max_i relu(W [l_i; …; l_{i+2}] + b)``: a convolution over three letters, and its maximum over the word (dos
    Santos and Zadrozny, 2014; Ma and Hovy, 2016). It finds endings, capitals, digits and hyphens."""

    def __init__(self, letters: int, width: int, features: int, reach: int = 3) -> None:
        super().__init__()
        self.letters = Embedding(letters, width)
        self.filters = nn.Conv1d(width, features, reach, padding=reach // 2)

    @property
    def width(self) -> int:
        return self.filters.out_channels

    def forward(self, letters: Tensor) -> Tensor:
        """``(B, S, L) → (B, S, features)``"""
        each = letters.flatten(0, 1)  # (B · S, L)
        x = self.letters(each) * masks.padding(each).unsqueeze(-1)
        x = F.relu(self.filters(x.transpose(1, 2)))  # (B · S, features, L)
        return x.amax(2).reshape(*letters.shape[:2], -1)


class WordEmbedding(nn.Module):
    """``[E[id]; V[id]; spelling(letters)]``, the last two if there are V and letters.

    E is learned and has the words of the training text: other ids are ``unknown`` to it. V has pretrained vectors and
    never changes. Beside V, E begins at zero, so that a rare word is mostly its V. ``forget`` hides a share of E in
    training, so that the model learns to use V, too. ``project`` maps the sum of the widths to another width, for
    models that add to the embedding.
    """

    vectors: Tensor

    def __init__(
        self,
        learned: Embedding,
        *,
        unknown: int,
        vectors: tuple[int, int] = (0, 0),
        forget: float = 0.0,
        spelling: LetterConvolution | None = None,
        project: int | None = None,
    ) -> None:
        super().__init__()
        self.learned = learned
        self.unknown = unknown
        self.forget = forget
        self.spelling = spelling
        self.register_buffer("vectors", torch.zeros(vectors))  # (V, D')
        if vectors[1]:
            nn.init.zeros_(learned.weight)
        self.inside = learned.width + vectors[1] + (0 if spelling is None else spelling.width)
        self.project = None if project is None else linear(self.inside, project)

    @property
    def width(self) -> int:
        return self.inside if self.project is None else self.project.out_features

    def forward(self, source: Tensor) -> Tensor:
        """``(B, S) → (B, S, D)``, or ``(B, S, 1 + L)`` where letters follow each id."""
        ids = source if self.spelling is None else source[..., 0]
        parts = [self.learned(self._known(ids))]
        if self.vectors.shape[1]:
            parts.append(F.embedding(ids, self.vectors))
        if self.spelling is not None:
            parts.append(self.spelling(source[..., 1:]))
        together = torch.cat(parts, -1)
        return together if self.project is None else self.project(together)

    def _known(self, ids: Tensor) -> Tensor:
        """The ids with those that E does not have, or that are hidden, as ``unknown``."""
        hidden = ids >= self.learned.weight.shape[0]
        if self.training and self.forget:
            hidden = hidden | (chance.uniform(ids.shape, ids.device) < self.forget)
        return ids.masked_fill(hidden & (ids > self.unknown), self.unknown)

    @torch.no_grad()
    def load_vectors(self, vectors: Tensor, rows: Tensor) -> None:
        """Set the pretrained vectors of these ids; the others stay zero."""
        self.vectors[rows] = vectors.to(self.vectors)
