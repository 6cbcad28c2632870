"""A model's step over fixed memory: that of a Transformer (`pooled`), of a recurrent decoder, and of several models.

A recurrent decoder's state has one size from the first step to the last, so its own `step` runs on slices of fixed
memory and needs no second form. Several models have a memory each; what they say is joined as in `Ensemble`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.decode.engines.pooled import Pooled, StepShape, rows_of
from regard.decode.rules import Rule
from regard.decode.search import log_softmax
from regard.models.generator import EncoderDecoder
from regard.models.recurrent import BahdanauDecoder, ConditionalDecoder, ContextDecoder, LuongDecoder
from regard.nn.attention import Memory, MonotonicWindow
from regard.nn.state import State, select_rows
from regard.text.vocabulary import END


class FixedMemory(Protocol):
    """What a model knows of the sentences in B slots, written in place."""

    def fill(self, slots: Tensor, encoded: Any) -> None:
        """New sentences, as the model's `encode` gives them, into these slots (n,)."""

    def move(self, old: Tensor, new: Tensor) -> None:
        """Copy slots (n,) to others."""

    def follow(self, parents: Tensor, shape: StepShape) -> None:
        """Each hypothesis goes on from its parent (B, W)."""


class FixedModel(Protocol):
    """Encodes and steps over fixed memory."""

    first: int  # the token that every output begins with

    @property
    def weight(self) -> Tensor:
        """Of the output layer, which has the model's device and dtype."""

    def memory(self, rule: Rule, shape: StepShape) -> Any:
        """A `FixedMemory` for so many sentences."""

    def bytes(self, width: int, source: int, target: int) -> int:
        """Of the memory of one sentence with ``width`` hypotheses, and of what a step needs for it."""

    def encode(self, source: Tensor) -> Any:
        """What `FixedMemory.fill` takes: a tree of tensors with a row for each source (n, S)."""

    def step(self, tokens: Tensor, written: Tensor, memory: Any, shape: StepShape) -> Tensor:
        """Read a token for each hypothesis (B, W), which stands at its sentence's position (B,): logits (B, W, V)."""


def fits(models: Sequence[EncoderDecoder]) -> bool:
    """Whether all of these can step over fixed memory; those that write with different vocabularies can not vote."""
    if len({len(model.decoder.output.weight) for model in models}) != 1:
        return False
    return all(Pooled.fits(model) or RecurrentSteps.fits(model) for model in models)


def fixed(models: Sequence[EncoderDecoder]) -> FixedModel:
    """One model of these, which fit."""
    each: list[FixedModel] = [Pooled(model) if Pooled.fits(model) else RecurrentSteps(model) for model in models]
    return each[0] if len(each) == 1 else Several(each)


# Recurrent decoders


@dataclass(frozen=True)
class CellMemory:
    """The memory of B sentences with W hypotheses."""

    source: Memory | None  # keys and values (B, H, S, K), mask (B, S); None without attention
    target: Any  # the decoder's own tree of tensors (B · W, …)
    width: int  # W

    def fill(self, slots: Tensor, encoded: State[Memory | None, Any]) -> None:
        if self.source is not None and encoded.source is not None:
            theirs, mask = encoded.source, self.source.mask
            assert mask is not None
            assert theirs.mask is not None
            size = theirs.keys.shape[2]
            self.source.keys[:, :, :size].index_copy_(0, slots, theirs.keys)
            self.source.values[:, :, :size].index_copy_(0, slots, theirs.values)
            mask.index_fill_(0, slots, False)  # noqa: FBT003
            mask[:, :size].index_copy_(0, slots, theirs.mask)
        rows = rows_of(slots, self.width)
        for own, new in zip(tensors(self.target), tensors(encoded.target), strict=True):
            own.index_copy_(0, rows, new[:, None].expand(-1, self.width, *new.shape[1:]).flatten(0, 1))

    def move(self, old: Tensor, new: Tensor) -> None:
        for column in tensors(self.source):
            column.index_copy_(0, new, column.index_select(0, old))
        from_rows, to_rows = rows_of(old, self.width), rows_of(new, self.width)
        for column in tensors(self.target):
            column.index_copy_(0, to_rows, column.index_select(0, from_rows))

    def follow(self, parents: Tensor, shape: StepShape) -> None:
        rows = torch.arange(shape.sentences, device=parents.device)[:, None] * self.width + parents
        for column in tensors(self.target):
            column[: rows.numel()].copy_(column.index_select(0, rows.flatten()))

    def state(self, shape: StepShape) -> State[Memory | None, Any]:
        """The part of it that a step reads, without a copy."""
        rows = shape.sentences * self.width
        return State(self._sources(shape), mapped(self.target, lambda column: column[:rows]), 0)

    def _sources(self, shape: StepShape) -> Memory | None:
        if self.source is None:
            return None
        count, size, mask = shape.sentences, shape.source, self.source.mask
        assert mask is not None
        keys, values = (each[:count, :, :size] for each in (self.source.keys, self.source.values))
        return Memory(keys, values, mask[:count, :size])


class RecurrentSteps:
    """Encodes and steps with the model itself, if it `fits`."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model, self.first = model, model.first
        self.one: State[Memory | None, Any] | None = None  # of a source with a single token

    @staticmethod
    def fits(model: EncoderDecoder) -> bool:
        """Whether it is recurrent, and attends alike at every position: sentences have lengths of their own."""
        decoder = model.decoder
        if isinstance(decoder, ContextDecoder):
            return True
        if not isinstance(decoder, BahdanauDecoder | LuongDecoder | ConditionalDecoder):
            return False
        return decoder.attention.rotary is None and not isinstance(decoder.attention.window, MonotonicWindow)

    @property
    def weight(self) -> Tensor:
        return self.model.decoder.output.weight

    def _example(self) -> State[Memory | None, Any]:
        """What there is to remember of one sentence; from a source of one token, or of one vector."""
        if self.one is None:
            source = torch.full((1, 1), END, device=self.weight.device)
            vectors = getattr(self.model.encoder.embedding, "filters", None)  # type: ignore[attr-defined]
            if vectors is not None:
                source = source[..., None].repeat(1, 1, 1 + vectors.in_channels).to(self.weight.dtype)
            self.one = self.encode(source)
        return self.one

    def memory(self, rule: Rule, shape: StepShape) -> CellMemory:
        one, rows = self._example(), shape.sentences * rule.rows
        source = one.source
        if source is not None:
            keys, values = (
                each.new_zeros(shape.sentences, each.shape[1], shape.source, each.shape[3])
                for each in (source.keys, source.values)
            )
            source = Memory(keys, values, torch.zeros(shape.sentences, shape.source, dtype=torch.bool).to(keys.device))
        everywhere = torch.zeros(rows, dtype=torch.long, device=self.weight.device)
        return CellMemory(source, select_rows(one.target, everywhere), rule.rows)

    def bytes(self, width: int, source: int, target: int) -> int:  # noqa: ARG002  a state does not grow
        """An additive score compares each hypothesis with each key, as a sum and its tanh."""
        one = self._example()
        keys = 0 if one.source is None else one.source.keys[0].numel() + one.source.values[0].numel()
        entries = source * keys * (1 + 2 * width) + 3 * width * sum(each[0].numel() for each in tensors(one.target))
        return entries * self.weight.element_size()

    def encode(self, source: Tensor) -> State[Memory | None, Any]:
        return self.model.start(source)[1]

    def step(self, tokens: Tensor, written: Tensor, memory: CellMemory, shape: StepShape) -> Tensor:  # noqa: ARG002
        logits, after = self.model.step(tokens.flatten(), memory.state(shape))
        for own, new in zip(tensors(memory.target), tensors(after.target), strict=True):
            own[: len(new)].copy_(new)
        return logits.view(*tokens.shape, -1)


# Several models that write as one


@dataclass(frozen=True)
class Memories:
    """One for each model."""

    each: tuple[FixedMemory, ...]

    def fill(self, slots: Tensor, encoded: tuple[Any, ...]) -> None:
        for memory, own in zip(self.each, encoded, strict=True):
            memory.fill(slots, own)

    def move(self, old: Tensor, new: Tensor) -> None:
        for memory in self.each:
            memory.move(old, new)

    def follow(self, parents: Tensor, shape: StepShape) -> None:
        for memory in self.each:
            memory.follow(parents, shape)


class Several:
    """The mean of the models' probabilities; `decode.search.Ensemble` is its twin."""

    def __init__(self, models: Sequence[FixedModel]) -> None:
        self.models, self.first = models, models[0].first

    @property
    def weight(self) -> Tensor:
        return self.models[0].weight

    def memory(self, rule: Rule, shape: StepShape) -> Memories:
        return Memories(tuple(model.memory(rule, shape) for model in self.models))

    def bytes(self, width: int, source: int, target: int) -> int:
        own = sum(model.bytes(width, source, target) for model in self.models)
        return own + 2 * 4 * len(self.models) * width * len(self.weight)

    def encode(self, source: Tensor) -> tuple[Any, ...]:
        return tuple(model.encode(source) for model in self.models)

    def step(self, tokens: Tensor, written: Tensor, memory: Memories, shape: StepShape) -> Tensor:
        pairs = zip(self.models, memory.each, strict=True)
        found = [log_softmax(model.step(tokens, written, own, shape)) for model, own in pairs]
        return torch.stack(found).logsumexp(0) - math.log(len(found))


# Trees of tensors


def tensors(tree: Any) -> Iterator[Tensor]:
    """All tensors of nested tuples and states of cells, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif tree is not None:
        children = tree if isinstance(tree, tuple) else vars(tree).values()
        for child in children:
            yield from tensors(child)


def mapped(tree: Any, work: Callable[[Tensor], Tensor]) -> Any:
    """The same tree of other tensors."""
    if isinstance(tree, Tensor):
        return work(tree)
    if isinstance(tree, tuple):
        return tuple(mapped(child, work) for child in tree)
    return tree if tree is None else type(tree)(*(mapped(child, work) for child in vars(tree).values()))
