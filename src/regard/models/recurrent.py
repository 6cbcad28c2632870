"""Recurrent encoder and decoders. The decoders differ in when they attend to the source:

- `ContextDecoder`: never. It gets only the encoder's last state (Sutskever et al., 2014).
- `BahdanauDecoder`: before each step, with the *previous* state; the context is an input of the cell.
- `LuongDecoder`: after each step, with the *current* state; the context is an input of the output layer.
- `ConditionalDecoder`: between the two cells of a step, with the first one's state; the context is an input of the
  second.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.models.generator import Encoded
from regard.nn import masks
from regard.nn.attention import Attention, Memory
from regard.nn.embeddings import OutputLayer, TargetEmbedding
from regard.nn.fast.dropout import Dropout
from regard.nn.layers import Chain, linear
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.recurrent import Cell, CellState, Layer, Stack
from regard.nn.state import State
from regard.nn.words import SourceEmbedding

Cells = tuple[CellState, ...]  # one for each layer
Fed = tuple[Cells, Tensor | None]  # the state of Luong's decoder: with input feeding, also the last s̃ (B, D)


class RecurrentEncoder(nn.Module):
    """Reads a source through a stack of recurrent layers.

    With ``reverse`` the source is read back to front, so that its first words are the last ones read when the decoder
    writes its first words (Sutskever et al., 2014); the states are still in source order. With a width for annotations,
    the states are ``tanh(W h + b)``.
    """

    def __init__(
        self,
        embedding: SourceEmbedding,
        stack: Stack,
        *,
        annotations: int | None = None,
        reverse: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.annotate = None if annotations is None else linear(stack.width, annotations)
        self.reverse = reverse
        self.dropout = Dropout(dropout)

    @property
    def width(self) -> int:
        return self.stack.width if self.annotate is None else self.annotate.out_features

    def forward(self, source: Tensor, mask: Tensor, observer: Observer = UNOBSERVED) -> Encoded:
        order = masks.reverse(source, mask) if self.reverse else source
        x = observer.see("embedded", self.dropout(self.embedding(order)))
        states, final = self.stack(x, None, mask, observer)
        states = masks.reverse(states, mask) if self.reverse else states
        states = states if self.annotate is None else torch.tanh(self.annotate(states))
        return Encoded(observer.see("states", self.dropout(states)), mask, final)


class Bridge(nn.Module):
    """The decoder's first states: ``s_0 = tanh(W h_last + b)``, ``c_0 = W' c_last + b'``.

    Needed if encoder and decoder differ in width, as after a bidirectional encoder. With ``mean``, the mean of all
    states takes the place of the last ones (Sennrich et al., 2017).
    """

    def __init__(self, depth: int, inputs: int, outputs: int, *, has_cell: bool, mean: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.hidden = Chain[nn.Linear](linear(inputs, outputs) for _ in range(depth))
        self.cell = Chain[nn.Linear](linear(inputs, outputs) for _ in range(depth if has_cell else 0))

    def forward(self, encoded: Encoded) -> Cells:
        assert encoded.final is not None
        states = []
        for level, state in enumerate(self._means(encoded) if self.mean else encoded.final):
            hidden = torch.tanh(self.hidden[level](state.hidden))
            states.append(CellState(hidden, None if state.cell is None else self.cell[level](state.cell)))
        return tuple(states)

    def _means(self, encoded: Encoded) -> Cells:
        real = encoded.mask.unsqueeze(-1).to(encoded.states.dtype)
        mean = (encoded.states * real).sum(1) / real.sum(1)  # (B, D)
        return tuple(CellState(mean, mean if self.cell else None) for _ in self.hidden)


class ZeroBridge(nn.Module):
    """The decoder begins with zeros, and gets the source by attention alone."""

    def __init__(self, cell: Cell, width: int, depth: int) -> None:
        super().__init__()
        self.cell = cell
        self.width = width
        self.depth = depth

    def forward(self, encoded: Encoded) -> Cells:
        return (self.cell.zero_state(len(encoded.states), self.width, encoded.states),) * self.depth


class ContextDecoder(nn.Module):
    """Begins with the encoder's last state, the context vector; without a source, with zeros."""

    def __init__(
        self,
        embedding: TargetEmbedding,
        stack: Stack,
        output: OutputLayer,
        *,
        bridge: Bridge | ZeroBridge | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.output = output
        self.bridge = bridge
        self.dropout = Dropout(dropout)

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[None, Cells]:  # noqa: ARG002
        return State(None, first_cells(encoded, self.bridge), 0)

    def start_free(self, rows: int) -> State[None, Cells]:
        return State(None, self.stack.zero_state(rows, self.output.bias), 0)

    def advance(
        self,
        tokens: Tensor,
        state: State[None, Cells],
        mask: Tensor | None = None,  # noqa: ARG002
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, State[None, Cells]]:
        x = observer.see("embedded", self.dropout(self.embedding(tokens)))
        states, cells = self.stack(x, state.target, None, observer)
        features = observer.see("features", self.dropout(states))
        return features, State(None, cells, state.length + tokens.shape[1])


class BahdanauDecoder(nn.Module):
    """Attends with ``s_{t−1}``, then steps (Bahdanau et al., 2015).

    ``c_t = attend(s_{t−1})``, ``s_t = cell([y_{t−1}; c_t], s_{t−1})``, and the output layer reads
    ``tanh(W [s_t; c_t; y_{t−1}])``; the paper has a maxout layer there.
    """

    def __init__(
        self,
        embedding: TargetEmbedding,
        stack: Stack,
        attention: Attention,
        output: OutputLayer,
        *,
        context_width: int,
        bridge: Bridge | ZeroBridge | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.attention = attention
        self.context_width = context_width
        self.readout = linear(stack.width + context_width + embedding.width, output.weight.shape[1])
        self.output = output
        self.bridge = bridge
        self.dropout = Dropout(dropout)

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[Memory, Cells]:
        memory = self.attention.remember(encoded.states, encoded.mask, observer=observer.at("cross"))
        return State(memory, first_cells(encoded, self.bridge), 0)

    def advance(
        self,
        tokens: Tensor,
        state: State[Memory, Cells],
        mask: Tensor | None = None,  # noqa: ARG002
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, State[Memory, Cells]]:
        x = observer.see("embedded", self.dropout(self.embedding(tokens)))
        bottom = self.stack.layers[0]
        rest, noises = bottom.rest(self.context_width), self.stack.noises(x)
        cells, states, contexts = state.target, [], []
        for time, known in enumerate(bottom.project(x).unbind(1)):
            query = cells[-1].hidden[:, None]
            context = self.attention(query, state.source, first=state.length + time, observer=observer.at("cross"))
            projected = known + F.linear(context[:, 0], rest)
            cells = self.stack.step(projected, cells, noises, time, observer)
            states.append(cells[-1].hidden)
            contexts.append(context)
        seen = torch.cat((torch.stack(states, 1), torch.cat(contexts, 1), x), -1)
        features = observer.see("features", self.dropout(torch.tanh(self.readout(seen))))
        return features, State(state.source, cells, state.length + tokens.shape[1])


class LuongDecoder(nn.Module):
    """Steps, then attends with ``s_t`` (Luong et al., 2015): the output layer reads ``s̃_t = tanh(W_c [c_t; s_t])``.

    With input feeding, ``s̃_{t−1}`` is part of the next input, so that a step knows the alignments before it. Without,
    no step depends on an attention: the whole target goes through the fused layers at once, and all positions attend in
    parallel.
    """

    def __init__(
        self,
        embedding: TargetEmbedding,
        stack: Stack,
        attention: Attention,
        output: OutputLayer,
        *,
        context_width: int,
        feeding: bool,
        bridge: Bridge | ZeroBridge | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.attention = attention
        self.combine = linear(context_width + stack.width, output.weight.shape[1], bias=False)
        self.output = output
        self.feeding = feeding
        self.bridge = bridge
        self.dropout = Dropout(dropout)

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[Memory, Fed]:
        memory = self.attention.remember(encoded.states, encoded.mask, observer=observer.at("cross"))
        rows, width = len(encoded.states), self.combine.out_features
        fed = encoded.states.new_zeros(rows, width) if self.feeding else None
        return State(memory, (first_cells(encoded, self.bridge), fed), 0)

    def advance(
        self,
        tokens: Tensor,
        state: State[Memory, Fed],
        mask: Tensor | None = None,  # noqa: ARG002
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, State[Memory, Fed]]:
        x = observer.see("embedded", self.dropout(self.embedding(tokens)))
        cells, fed = state.target
        if fed is None:
            states, cells = self.stack(x, cells, None, observer)
            features = self._attend(states, state, state.length, observer)
        else:
            features, cells, fed = self._feed(x, state, fed, observer)
        features = observer.see("features", self.dropout(features))
        return features, State(state.source, (cells, fed), state.length + tokens.shape[1])

    def _feed(
        self, x: Tensor, state: State[Memory, Fed], fed: Tensor, observer: Observer
    ) -> tuple[Tensor, Cells, Tensor]:
        """The loop that input feeding needs."""
        bottom = self.stack.layers[0]
        rest, noises = bottom.rest(fed.shape[1]), self.stack.noises(x)
        cells, features = state.target[0], []
        for time, known in enumerate(bottom.project(x).unbind(1)):
            cells = self.stack.step(known + F.linear(fed, rest), cells, noises, time, observer)
            combined = self._attend(cells[-1].hidden[:, None], state, state.length + time, observer)
            fed = combined[:, 0]
            features.append(combined)
        return torch.cat(features, 1), cells, fed

    def _attend(self, states: Tensor, state: State[Memory, Fed], first: int, observer: Observer) -> Tensor:
        context = self.attention(states, state.source, first=first, observer=observer.at("cross"))
        return torch.tanh(self.combine(torch.cat((context, states), -1)))


class ConditionalDecoder(nn.Module):
    """Steps, attends with the new state, and steps again with the context (Sennrich et al., 2017):

    ``s'_t = cell(y_{t−1}, s_{t−1})``, ``c_t = attend(s'_t)``. Either the second cell goes on from there,
    ``s_t = cell₂(c_t, s'_t)``, and the output layer reads ``tanh(W [s_t; c_t; y_{t−1}])``; or it is a layer with its
    own state, ``r_t = cell₂([s'_t; c_t], r_{t−1})``, which the output layer reads alone, and no step depends on an
    attention. The state has one entry for each layer; that of a second layer is the last.
    """

    def __init__(
        self,
        embedding: TargetEmbedding,
        stack: Stack,
        attention: Attention,
        second: Layer,
        output: OutputLayer,
        *,
        context_width: int,
        readout: bool,
        bridge: Bridge | ZeroBridge | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.attention = attention
        self.second = second
        inputs = second.width + context_width + embedding.width
        self.readout = linear(inputs, output.weight.shape[1]) if readout else None
        self.output = output
        self.bridge = bridge
        self.dropout = Dropout(dropout)

    def start(self, encoded: Encoded, observer: Observer = UNOBSERVED) -> State[Memory, Cells]:
        memory = self.attention.remember(encoded.states, encoded.mask, observer=observer.at("cross"))
        cells = first_cells(encoded, self.bridge)
        if self.readout is None:
            cells = (*cells, self.second.cell.zero_state(len(encoded.states), self.second.width, encoded.states))
        return State(memory, cells, 0)

    def advance(
        self,
        tokens: Tensor,
        state: State[Memory, Cells],
        mask: Tensor | None = None,  # noqa: ARG002
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, State[Memory, Cells]]:
        x = observer.see("embedded", self.dropout(self.embedding(tokens)))
        run = self._at_once if self.readout is None else self._by_steps
        states, cells = run(x, state, observer)
        features = observer.see("features", self.dropout(states))
        return features, State(state.source, cells, state.length + tokens.shape[1])

    def _at_once(self, x: Tensor, state: State[Memory, Cells], observer: Observer) -> tuple[Tensor, Cells]:
        """Two layers with an attention between them."""
        watch = observer.at(self.stack.depth)
        states, cells = self.stack(x, state.target[:-1], None, observer)
        context = self.attention(states, state.source, first=state.length, observer=observer.at("cross"))
        states, last = self.second(torch.cat((states, context), -1), state.target[-1], None, watch.at("cell"))
        return watch.see("states", states), (*cells, last)

    def _by_steps(self, x: Tensor, state: State[Memory, Cells], observer: Observer) -> tuple[Tensor, Cells]:
        """The loop for a second cell whose state is that of the first."""
        assert self.readout is not None
        watch, noises = observer.at(self.stack.depth), self.stack.noises(x)
        cells, states, contexts = state.target, [], []
        for time, known in enumerate(self.stack.layers[0].project(x).unbind(1)):
            cells = self.stack.step(known, cells, noises, time, observer)
            query, first = cells[-1].hidden[:, None], state.length + time
            context = self.attention(query, state.source, first=first, observer=observer.at("cross"))
            last = self.second.step(self.second.project(context[:, 0]), cells[-1], watch.at("cell"))
            last = replace(last, hidden=watch.see("states", last.hidden[:, None])[:, 0])
            cells = (*cells[:-1], last)
            states.append(last.hidden)
            contexts.append(context)
        seen = torch.cat((torch.stack(states, 1), torch.cat(contexts, 1), x), -1)
        return torch.tanh(self.readout(seen)), cells


def first_cells(encoded: Encoded, bridge: Bridge | ZeroBridge | None) -> Cells:
    """The decoder's first state: the encoder's last, or what a bridge makes of it."""
    assert encoded.final is not None
    return encoded.final if bridge is None else bridge(encoded)
