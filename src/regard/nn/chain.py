"""A list of modules of one kind that the type checker can see into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from torch import nn

Kind = TypeVar("Kind", bound=nn.Module)


class Chain(nn.ModuleList, Generic[Kind]):
    """`nn.ModuleList`, typed."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Kind]: ...
        def __getitem__(self, index: int) -> Kind: ...  # type: ignore[override]
