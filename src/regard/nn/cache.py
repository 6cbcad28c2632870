"""The key/value cache of a step-by-step Transformer: preallocated, written in place, yet persistent.

A step adds one key and one value a layer. Copying all the earlier ones every time would make a sentence
of length n cost n² copies, so a cache has a buffer with free positions and writes in place. Older caches that
share the buffer stay valid: they read only their own first ``length`` entries, and a cache whose next position
is already taken by another continuation is copied to a buffer of its own first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class _Buffer:
    """Space for keys and values, and how much of it is taken."""

    def __init__(self, keys: Tensor, values: Tensor, taken: int) -> None:
        self.keys = keys  # (B, H, capacity, K)
        self.values = values
        self.taken = taken

    def is_sealed(self) -> bool:
        """Whether it was made in torch's inference mode, which is over: it can be read and no longer written."""
        if torch.compiler.is_compiling():  # a compiled step cannot ask, and is not called across modes
            return False
        return self.keys.is_inference() and not torch.is_inference_mode_enabled()


@dataclass(frozen=True)
class Cache:
    """The keys and values of the first ``length`` positions."""

    length: int = 0
    buffer: _Buffer | None = None
    least: int = 64  # positions of the first buffer

    def append(self, keys: Tensor, values: Tensor) -> Cache:
        """The cache with the keys and values (B, H, T, K) of the next T positions."""
        if self.buffer is None:  # a whole sequence at once (training): nothing to copy
            return Cache(keys.shape[2], _Buffer(keys, values, keys.shape[2]), self.least)
        if any(part.requires_grad for part in (keys, values, *self.view())):
            # Gradients go through the steps: writing in place would overwrite what they need.
            joined = (torch.cat((old, new), 2) for old, new in zip(self.view(), (keys, values), strict=True))
            return Cache(0, None, self.least).append(*joined)
        end = self.length + keys.shape[2]
        buffer = self.buffer
        if buffer.taken != self.length or end > buffer.keys.shape[2] or buffer.is_sealed():
            buffer = self._moved(torch.arange(len(keys), device=keys.device), max(self.least, 2 * end))
        buffer.keys[:, :, self.length : end] = keys
        buffer.values[:, :, self.length : end] = values
        buffer.taken = end
        return Cache(end, buffer, self.least)

    def view(self) -> tuple[Tensor, Tensor]:
        """Keys and values so far, without a copy: two of (B, H, length, K)."""
        assert self.buffer is not None
        return self.buffer.keys[:, :, : self.length], self.buffer.values[:, :, : self.length]

    def select_rows(self, rows: Tensor) -> Cache:
        if self.buffer is None:
            return self
        return Cache(self.length, self._moved(rows, max(self.least, self.buffer.keys.shape[2])), self.least)

    def _moved(self, rows: Tensor, capacity: int) -> _Buffer:
        """These rows of what is there, in a new buffer; only positions in use are copied."""
        moved = []
        for old in self.view():
            new = old.new_empty(len(rows), old.shape[1], capacity, old.shape[3])
            if old.requires_grad or torch.compiler.is_compiling():  # neither knows `out`, which spares a copy
                new[:, :, : self.length] = old.index_select(0, rows)
            else:
                torch.index_select(old, 0, rows, out=new[:, :, : self.length])
            moved.append(new)
        return _Buffer(moved[0], moved[1], self.length)
