"""Steps of recurrent encoders and decoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.explain.walkthrough.attention import Asking, attention_steps
from regard.explain.walkthrough.beginning import embedding_steps
from regard.explain.walkthrough.board import Board, Value, positions
from regard.explain.walkthrough.cells import Before, CellStep, cell_steps, loop_steps
from regard.models.recurrent import (
    BahdanauDecoder,
    ConditionalDecoder,
    ContextDecoder,
    LuongDecoder,
    RecurrentEncoder,
    ZeroBridge,
)
from regard.nn.attention import Attention
from regard.nn.recurrent import Layer, Stack

RecurrentDecoder = ContextDecoder | BahdanauDecoder | LuongDecoder | ConditionalDecoder


def encoder_steps(board: Board, encoder: RecurrentEncoder, level: int, row: int) -> None:
    """Numbers, embeddings, and one layer at the chosen place, in each of its directions."""
    axis, layer = board.source, encoder.stack.layers[level]
    x = embedding_steps(board, "encoder", board.trace.source.ids, encoder.embedding, axis=axis, row=row)
    x = x if level == 0 else board.seen(f"encoder.{level - 1}.states")
    every = []
    for place, direction in _directions(level, layer.bidirectional):
        backwards = encoder.reverse != (direction == "_reverse")
        moment = CellStep(board, layer, place, "encoder", row, direction)
        cell_steps(moment, x.at(row), _state_before(board, moment, backwards=backwards))
        every.append(loop_steps(moment, x, axis, backwards=backwards))
    if layer.bidirectional:
        board.write(
            "both_ways",
            f"encoder.{level}.states",
            "encoder",
            {"forward": every[0], "backward": every[1]},
            "result = torch.cat((forward, backward), -1)",
            axes=(axis,),
            recorded=board.seen(f"encoder.{level}.states"),
            row=row,
        )
    if encoder.annotate is not None:
        inputs = {
            "h": board.seen(f"encoder.{encoder.stack.depth - 1}.states"),
            "w": board.weight(encoder.annotate.weight),
            "b": board.weight(encoder.annotate.bias),
        }
        snippet, recorded = "result = torch.tanh(h @ w.T + b)", board.seen("encoder.states")
        board.write(
            "annotations", "encoder.states", "encoder", inputs, snippet, axes=(axis,), recorded=recorded, row=row
        )


def _directions(level: int, bidirectional: bool) -> list[tuple[str, str]]:
    """The names of a layer's directions in a trace and in torch."""
    place = f"encoder.{level}.cell"
    return [(f"{place}.forward", ""), (f"{place}.backward", "_reverse")] if bidirectional else [(place, "")]


def _state_before(board: Board, moment: CellStep, *, backwards: bool) -> Before:
    """The state that an encoder's cell goes on from: that of the piece read before, or zeros."""
    last = moment.row + 1 if backwards else moment.row - 1
    has_cell, size = moment.layer.cell.has_cell, moment.layer.hidden
    if not 0 <= last < len(board.trace.source):
        return Before(board.zeros(size), board.zeros(size) if has_cell else None)
    cell = board.seen(f"{moment.place}.cell").at(last) if has_cell else None
    return Before(board.seen(f"{moment.place}.hidden").at(last), cell)


def context_steps(board: Board, encoder: RecurrentEncoder, level: int) -> Before:
    """The context vector: the state of a layer after all that was read."""
    layer, names = (
        encoder.stack.layers[level],
        ["hidden", "cell"] if encoder.stack.layers[level].cell.has_cell else ["hidden"],
    )
    found = []
    for name in names:
        places = [board.seen(f"{place}.{name}") for place, _ in _directions(level, layer.bidirectional)]
        if layer.bidirectional:
            inputs = {"forward": places[0], "backward": places[1]}
            snippet = "result = torch.cat((forward[-1], backward[0]))"
        else:
            inputs, snippet = {"states": places[0]}, f"result = states[{0 if encoder.reverse else -1}]"
        kind = "final_cell" if name == "cell" else "final_both" if layer.bidirectional else "final"
        found.append(board.write(kind, f"encoder.{level}.final.{name}", "context", inputs, snippet))
    return Before(*found)


@dataclass(frozen=True)
class Walk:
    """One step of a recurrent decoder."""

    board: Board
    decoder: RecurrentDecoder
    encoder: RecurrentEncoder | None  # of a language model: none
    level: int
    head: int
    row: int

    @property
    def stack(self) -> Stack:
        return self.decoder.stack

    def state(self, level: int) -> Before:
        """The state of a layer before the step."""
        return self.first(level) if self.row == 0 else self.after(level, self.row - 1)

    def after(self, level: int, row: int) -> Before:
        """The state of a layer after a step."""
        has_cell = self.stack.layers[0].cell.has_cell
        hidden, cell = (f"decoder.{level}.cell.{name}" for name in ("hidden", "cell"))
        return Before(self.board.seen(hidden).at(row), self.board.seen(cell).at(row) if has_cell else None)

    def zeros(self, layer: Layer) -> Before:
        zeros = self.board.zeros(layer.hidden)
        return Before(zeros, zeros if layer.cell.has_cell else None)

    def first(self, level: int) -> Before:
        """The state before the first step: the context vector, as it is or over the bridge; free, zeros."""
        bridge = self.decoder.bridge
        if self.encoder is None or isinstance(bridge, ZeroBridge):
            return self.zeros(self.stack.layers[level])
        if bridge is not None and bridge.mean:
            inputs = {"states": self.board.seen("encoder.states")}
            mean = self.board.write("mean_states", "encoder.mean", "context", inputs, "result = states.mean(0)")
            final = Before(mean, mean if bridge.cell else None)
        else:
            final = context_steps(self.board, self.encoder, level)
        if bridge is None:
            return final
        kinds = ("bridge_mean", "bridge_mean_cell") if bridge.mean else ("bridge", "bridge_cell")
        hidden = self._bridged(kinds[0], "hidden", final.hidden, bridge.hidden[level], level)
        if final.cell is None:
            return Before(hidden)
        return Before(hidden, self._bridged(kinds[1], "cell", final.cell, bridge.cell[level], level))

    def _bridged(self, kind: str, name: str, x: Value, layer: torch.nn.Linear, level: int) -> Value:
        inputs = {"x": x, "w": self.board.weight(layer.weight), "b": self.board.weight(layer.bias)}
        snippet = "result = w @ x + b" if kind.endswith("cell") else "result = torch.tanh(w @ x + b)"
        return self.board.write(kind, f"decoder.{level}.first.{name}", "decoder", inputs, snippet)

    def step(self, x: Value, before: Before) -> Value:
        """The chosen layer's cell; gives the state of the top layer after the step."""
        x = x if self.level == 0 else self.board.seen(f"decoder.{self.level - 1}.states").at(self.row)
        moment = CellStep(self.board, self.stack.layers[self.level], f"decoder.{self.level}.cell", "decoder", self.row)
        state = cell_steps(moment, x, before)
        top = self.stack.depth - 1
        return state if self.level == top else self.board.seen(f"decoder.{top}.states").at(self.row)

    def attend(self, attention: Attention, query: Value) -> Value:
        """What the source has to say to one query (D,)."""
        board = self.board
        asking = Asking(
            board=board,
            attention=attention,
            place="decoder.cross",
            part="cross",
            head=self.head,
            query=query.as_row(),
            source=board.seen("encoder.states"),
            asked_by=positions("target", board.trace.inputs[self.row : self.row + 1]),
            asked=board.source,
            first=self.row,
            predicts=positions("predicted", board.trace.target.pieces[self.row : self.row + 1]),
        )
        return attention_steps(asking).only_row()


def decoder_steps(walk: Walk, read: Sequence[int]) -> Value:
    """One step of a recurrent decoder, from the piece it reads to the features (D,) that decide."""
    board, decoder, row = walk.board, walk.decoder, walk.row
    y = embedding_steps(board, "decoder", read, decoder.embedding, axis=board.read, row=row).at(row)
    if walk.row > 0 and walk.encoder is not None:
        walk.first(min(walk.level, walk.stack.depth - 1))  # where it all began
    if isinstance(decoder, ConditionalDecoder):
        return _conditional_steps(walk, decoder, y)
    before = walk.state(walk.level)
    match decoder:
        case ContextDecoder():
            return walk.step(y, before)
        case BahdanauDecoder():
            return _bahdanau_steps(walk, decoder, y, before)
        case LuongDecoder():
            return _luong_steps(walk, decoder, y, before)


def _bahdanau_steps(walk: Walk, decoder: BahdanauDecoder, y: Value, before: Before) -> Value:
    """Attend with the previous state, then step, then read out."""
    board, top = walk.board, walk.stack.depth - 1
    query = before.hidden if walk.level == top else walk.state(top).hidden
    context = walk.attend(decoder.attention, query)
    x = y
    if walk.level == 0:
        together = "result = torch.cat((y, c))"
        x = board.write("with_context", "decoder.input", "decoder", {"y": y, "c": context}, together)
    return _read_out(walk, decoder.readout, walk.step(x, before), context, y)


def _read_out(walk: Walk, readout: torch.nn.Linear, state: Value, context: Value, y: Value) -> Value:
    board = walk.board
    inputs = {"s": state, "c": context, "y": y}
    inputs |= {"w": board.weight(readout.weight), "b": board.weight(readout.bias)}
    snippet = "result = torch.tanh(w @ torch.cat((s, c, y)) + b)"
    recorded = board.seen("decoder.features").at(walk.row)
    return board.write("readout", "decoder.features", "decoder", inputs, snippet, recorded=recorded)


def _conditional_steps(walk: Walk, decoder: ConditionalDecoder, y: Value) -> Value:
    """Step, attend with the new state, and step again. The second cell is the layer after those of the stack."""
    board, row, depth = walk.board, walk.row, walk.stack.depth
    top, goes_on = depth - 1, decoder.readout is not None
    if walk.level < depth:
        after_second = row > 0 and goes_on and walk.level == top
        before = walk.after(depth, row - 1) if after_second else walk.state(walk.level)
        query = walk.step(y, before)
    else:
        query = board.seen(f"decoder.{top}.states").at(row)
    context = walk.attend(decoder.attention, query)
    state = board.seen(f"decoder.{depth}.states").at(row)
    if walk.level == depth:
        if goes_on:
            x, before = context, walk.after(top, row)
        else:
            inputs, snippet = {"s": query, "c": context}, "result = torch.cat((s, c))"
            x = board.write("with_found", "decoder.input", "decoder", inputs, snippet)
            before = walk.after(depth, row - 1) if row else walk.zeros(decoder.second)
        state = cell_steps(CellStep(board, decoder.second, f"decoder.{depth}.cell", "decoder", row), x, before)
    return state if decoder.readout is None else _read_out(walk, decoder.readout, state, context, y)


def _luong_steps(walk: Walk, decoder: LuongDecoder, y: Value, before: Before) -> Value:
    """Step, then attend with the current state, then combine."""
    board, x = walk.board, y
    if decoder.feeding and walk.level == 0:
        fed = board.seen("decoder.features").at(walk.row - 1) if walk.row else board.zeros(decoder.combine.out_features)
        together = "result = torch.cat((y, fed))"
        x = board.write("with_fed", "decoder.input", "decoder", {"y": y, "fed": fed}, together)
    state = walk.step(x, before)
    context = walk.attend(decoder.attention, state)
    inputs = {"c": context, "s": state, "w": board.weight(decoder.combine.weight)}
    snippet = "result = torch.tanh(w @ torch.cat((c, s)))"
    recorded = board.seen("decoder.features").at(walk.row)
    return board.write("combine", "decoder.features", "decoder", inputs, snippet, recorded=recorded)
