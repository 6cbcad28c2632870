"""State is data: a tree of frozen dataclasses of tensors with the row as axis 0.

A decoder stores nothing on itself: what it needs from step to step is a `State`, which search changes only by
`State.select`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

Source = TypeVar("Source")
Target = TypeVar("Target")
Tree = TypeVar("Tree")


def select_rows(tree: Tree, rows: Tensor) -> Tree:
    """The same tree with only these rows, in this order; a row may appear more than once. A node may have its own
    method ``select_rows``."""
    node: Any = tree
    if isinstance(node, Tensor):
        return node.index_select(0, rows)  # type: ignore[return-value]
    if hasattr(type(node), "select_rows"):
        return node.select_rows(rows)
    if isinstance(node, tuple):
        return tuple(select_rows(child, rows) for child in node)  # type: ignore[return-value]
    if is_dataclass(node) and not isinstance(node, type):
        chosen = {field.name: select_rows(getattr(node, field.name), rows) for field in fields(node)}
        return replace(node, **chosen)  # type: ignore[return-value]
    return tree


@dataclass(frozen=True)
class State(Generic[Source, Target]):
    """A decoder between two steps: B sentences, each with W hypotheses side by side.

    What belongs to the sentence (its encoded source) has B rows and is shared by all its hypotheses;
    what belongs to a hypothesis (recurrent states, the key/value cache) has B · W rows.
    """

    source: Source
    target: Target
    length: int  # tokens read so far

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> State[Source, Target]:
        """Expand to a beam, follow winners, drop the finished.

        ``rows`` (B', W'): the present row from which the w-th hypothesis of the b-th sentence goes on.
        ``sentences`` (B'): which of the present sentences these are; None means all of them in order, and then the
        source side is not copied.
        """
        source = self.source if sentences is None else select_rows(self.source, sentences)
        return replace(self, source=source, target=select_rows(self.target, rows.flatten()))


# The key/value cache of a Transformer that writes step by step.
#
# A step adds one key and one value in each layer. Copying the earlier ones every time would cost n² copies for a
# sentence of length n, so a cache has a buffer with free positions and writes in place. Older caches that share the
# buffer stay valid: they read only their own first ``length`` entries, and a cache whose next position is already used
# by another continuation is copied to a new buffer first.


class _Buffer:
    """Space for keys and values, and how much of it is used."""

    def __init__(self, keys: Tensor, values: Tensor, taken: int) -> None:
        self.keys = keys  # (B, H, capacity, K)
        self.values = values
        self.taken = taken

    def is_sealed(self) -> bool:
        """Whether it was made in torch's inference mode, which has ended: it can no longer be written."""
        if torch.compiler.is_compiling():  # a compiled step cannot check this, and does not change the mode
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
            # The backward pass needs the earlier values: do not write in place.
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
        if self.length == self.buffer.keys.shape[2]:  # a slice of all would be copied in the backward pass
            return self.buffer.keys, self.buffer.values
        return self.buffer.keys[:, :, : self.length], self.buffer.values[:, :, : self.length]

    def select_rows(self, rows: Tensor) -> Cache:
        if self.buffer is None:
            return self
        return Cache(self.length, self._moved(rows, max(self.least, self.buffer.keys.shape[2])), self.least)

    def _moved(self, rows: Tensor, capacity: int) -> _Buffer:
        """These rows in a new buffer; only positions in use are copied."""
        moved = []
        for old in self.view():
            new = old.new_empty(len(rows), old.shape[1], capacity, old.shape[3])
            if old.requires_grad or torch.compiler.is_compiling():  # neither supports `out`, which saves a copy
                new[:, :, : self.length] = old.index_select(0, rows)
            else:
                torch.index_select(old, 0, rows, out=new[:, :, : self.length])
            moved.append(new)
        return _Buffer(moved[0], moved[1], self.length)
