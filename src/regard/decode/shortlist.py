"""A lexical shortlist: of all target pieces only those that the words of the source make likely (Jean et al., 2015).

The output layer is a large part of a small model's step, and most of what it computes is never near to being chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.decode.search import Hypothesis
from regard.text.special import PAD, SPECIAL_TOKENS


@dataclass(frozen=True)
class Candidates:
    """The target pieces that a batch may write, numbered anew. Special tokens keep their numbers."""

    ids: Tensor  # (C,) ascending
    allowed: Tensor | None  # (B, C) those of each sentence: it must not depend on its company; None: all

    def spell(self, found: Hypothesis) -> Hypothesis:
        """The same output in ids."""
        return replace(found, tokens=self.ids[torch.tensor(found.tokens, dtype=torch.long)].tolist())


@dataclass(frozen=True)
class Shortlist:
    """What each source piece brings, and what is always there."""

    likely: Tensor  # (source size, N) target ids
    always: Tensor  # (K,) target ids, the special tokens among them
    size: int  # of the target vocabulary

    def candidates(self, source: Tensor) -> Candidates:
        """For sources (B, S), padded."""
        allowed = torch.zeros(len(source), self.size, dtype=torch.bool)
        allowed[:, self.always] = True
        allowed[:, : len(SPECIAL_TOKENS)] = True
        brought = self.likely[source].masked_fill_((source == PAD)[:, :, None], PAD)  # (B, S, N)
        allowed.scatter_(1, brought.flatten(1), value=True)
        ids = allowed.any(0).nonzero().squeeze(1)
        return Candidates(ids, None if len(source) == 1 else allowed[:, ids])
