"""Who searches: our own loop, or an engine in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Protocol

from torch import Tensor, nn

from regard.decode.constraints import Constraint
from regard.decode.fused import Fused
from regard.decode.options import Options
from regard.decode.rules import Beam, Rule, Sample
from regard.decode.search import Ensemble, Hypothesis
from regard.models.generator import EncoderDecoder


class Engine(Protocol):
    """Finds the outputs that `decode.search` would find; what it cannot do goes to that."""

    @property
    def name(self) -> str:
        """As the user asks for it."""

    @property
    def bytes(self) -> int:
        """Of memory that it has outside torch."""

    def refuses(self, options: Options) -> str:
        """Which of these options it does not support; empty if it supports all."""

    def search(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        rule: Beam | Sample,
        budget: int,
        *,
        constraints: Sequence[Constraint] = (),
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """For each source, ``<end>`` included, its outputs, best first; none where our own might be others.

        The rest is as in `decode.search`. An engine that refuses an option need not know its constraint.
        """


@dataclass(frozen=True)
class Searcher:
    """A model and who searches with it, decided once, when a run is loaded."""

    model: EncoderDecoder | Ensemble
    fused: Fused | None = None  # the same model, laid out for one token at a time
    engine: Engine | None = None  # asked first; our own loop does what it leaves

    @staticmethod
    def of(models: Sequence[EncoderDecoder], engine: Engine | None = None) -> Searcher:
        """For a model, or an ensemble of several; with the fused form where there is one."""
        if len(models) != 1:
            return Searcher(Ensemble(models).eval(), engine=engine)
        return Searcher(models[0], Fused(models[0]) if Fused.fits(models[0]) else None, engine)

    @property
    def name(self) -> str:
        """Of the engine; our own loop is `native`."""
        return "native" if self.engine is None else self.engine.name

    @property
    def bytes(self) -> int:
        """Of memory that the engine has outside torch."""
        return 0 if self.engine is None else self.engine.bytes

    def serves(self, options: Options) -> bool:
        """Whether there is an engine, and it does not refuse these options."""
        return self.engine is not None and not self.engine.refuses(options)

    def writer(self, rule: Rule) -> EncoderDecoder | Ensemble | Fused:
        """The model that our own loop steps. Coverage observes attention, which the fused form cannot show."""
        return self.model if self.fused is None or rule.coverage_penalty else self.fused


def held(*things: object) -> int:
    """Bytes of all tensors that these objects hold; a shared one counts once."""
    storages = [tensor.untyped_storage() for tensor in _tensors(things, set())]
    return sum({each.data_ptr(): each.nbytes() for each in storages}.values())


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
