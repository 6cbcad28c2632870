"""The seam where another program may search in place of our own loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Protocol

from torch import Tensor, nn

from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.search import Hypothesis


class Engine(Protocol):
    """Searches sources for the outputs that `decode.search` would find; what it cannot do goes to that."""

    @property
    def name(self) -> str:
        """As the user asks for it."""

    def refuses(self, options: Options) -> str:
        """Which of these options it does not know; empty if it can do all of it. Somebody who listens is told."""

    def search(
        self, sources: Sequence[Sequence[int]], limits: Sequence[int], rule: Beam, budget: int
    ) -> list[list[Hypothesis] | None]:
        """For each source, ``<end>`` included, its outputs, best first; None where they might not be those of ours."""


def held(*things: object) -> int:
    """Bytes of all tensors that these hold, one that is shared once."""
    found = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in _tensors(things, set())}
    return sum(found.values())


def _tensors(thing: object, seen: set[int]) -> Iterator[Tensor]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    inside: tuple[object, ...] = ()
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, nn.Module):
        inside = (*thing.parameters(), *thing.buffers())
    elif isinstance(thing, list | tuple | set):
        inside = tuple(thing)
    elif isinstance(thing, dict):
        inside = tuple(thing.values())
    elif isinstance(thing, partial):
        inside = (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, FunctionType):
        inside = tuple(cell.cell_contents for cell in thing.__closure__ or ())
    elif isinstance(thing, MethodType):
        inside = (thing.__self__,)
    elif type(thing).__module__.startswith("regard."):
        inside = tuple(getattr(thing, "__dict__", {}).values())
    for each in inside:
        yield from _tensors(each, seen)
