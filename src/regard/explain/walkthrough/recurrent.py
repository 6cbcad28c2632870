"""Steps of recurrent encoders and decoders, and inside their cells."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.explain.walkthrough.attention import Asking, attention_steps
from regard.explain.walkthrough.beginning import embedding_steps
from regard.explain.walkthrough.step import Board, Spot, Value, positions
from regard.models.recurrent import (
    BahdanauDecoder,
    ConditionalDecoder,
    ContextDecoder,
    LuongDecoder,
    RecurrentEncoder,
    ZeroBridge,
)
from regard.nn.attention import Attention
from regard.nn.recurrent import Layer, Stack, elman_step, gru_step

RecurrentDecoder = ContextDecoder | BahdanauDecoder | LuongDecoder | ConditionalDecoder
State = tuple[Value, Value | None]  # what a cell goes on from: hidden (D,) and, of an LSTM, cell


# Cells


def _weights(board: Board, layer: Layer, direction: str, gate: int | None = None) -> dict[str, Value]:
    """``w_x, b_x, w_h, b_h``; of one gate, or whole."""
    found, size = {}, layer.hidden
    for name, kernel in (("w_x", "weight_ih"), ("b_x", "bias_ih"), ("w_h", "weight_hh"), ("b_h", "bias_hh")):
        value = board.weight(getattr(layer.kernel, f"{kernel}_l0{direction}"))
        found[name] = value if gate is None else value.part(gate * size, (gate + 1) * size)
    return found


def cell_steps(spot: Spot, layer: Layer, place: str, x: Value, before: State, *, direction: str = "") -> Value:
    """From an input (D,) and the state before it to the state after it, in the cell at ``place``.

    ``direction`` is torch's name of it: ``_reverse``, or nothing.
    """
    board, (hidden, memory) = spot.board, before

    def write(kind: str, name: str, inputs: dict[str, Value], snippet: str) -> Value:
        recorded = board.seen(f"{place}.{name}").at(spot.row)
        return board.write(kind, f"{place}.{name}", spot.side, inputs, snippet, recorded=recorded)

    def gate(number: int | None, kind: str, name: str) -> Value:
        """``σ(W_x x + b_x + W_h h' + b_h)``; tanh for a candidate, and for the state of an Elman cell."""
        function = "tanh" if name in ("candidate", "hidden") else "sigmoid"
        snippet = f"result = torch.{function}(w_x @ x + b_x + w_h @ h + b_h)"
        return write(kind, name, {"x": x, "h": hidden, **_weights(board, layer, direction, number)}, snippet)

    if layer.cell.step is elman_step:
        return gate(None, "elman", "hidden")
    if layer.cell.step is gru_step:
        reset, update = gate(0, "reset", "reset"), gate(1, "update", "update")
        inputs = {"x": x, "h": hidden, "r": reset, **_weights(board, layer, direction, 2)}
        snippet = "result = torch.tanh(w_x @ x + b_x + r * (w_h @ h + b_h))"
        candidate = write("gru_candidate", "candidate", inputs, snippet)
        parts = {"z": update, "n": candidate, "h": hidden}
        return write("gru_hidden", "hidden", parts, "result = (1 - z) * n + z * h")
    assert memory is not None
    enter, forget = gate(0, "input_gate", "input"), gate(1, "forget_gate", "forget")
    candidate, leave = gate(2, "candidate", "candidate"), gate(3, "output_gate", "output")
    parts = {"f": forget, "c": memory, "i": enter, "g": candidate}
    cell = write("cell", "cell", parts, "result = f * c + i * g")
    return write("lstm_hidden", "hidden", {"o": leave, "c": cell}, "result = o * torch.tanh(c)")


_BODY = {
    "elman": ["    h = torch.tanh(now + w_h @ h + b_h)"],
    "lstm": [
        "    i, f, g, o = (now + w_h @ h + b_h).chunk(4)",
        "    c = f.sigmoid() * c + i.sigmoid() * g.tanh()",
        "    h = o.sigmoid() * c.tanh()",
    ],
    "gru": [
        "    (r, z, n), (r_h, z_h, n_h) = now.chunk(3), (w_h @ h + b_h).chunk(3)",
        "    r, z = (r + r_h).sigmoid(), (z + z_h).sigmoid()",
        "    h = (1 - z) * (n + r * n_h).tanh() + z * h",
    ],
}


def loop_steps(spot: Spot, layer: Layer, place: str, x: Value, *, direction: str, backwards: bool) -> Value:
    """The states after every piece, (S, D), from zeros on."""
    cell = layer.cell
    body = _BODY["elman" if cell.step is elman_step else "gru" if cell.step is gru_step else "lstm"]
    turn = ".flip(0)" if backwards else ""  # reads from the last piece to the first
    snippet = [
        f"h{' = c' if cell.has_cell else ''} = x.new_zeros({layer.hidden})",
        "states = []",
        f"for now in (x @ w_x.T + b_x){turn}:",
        *body,
        "    states.append(h)",
        f"result = torch.stack(states){turn}",
    ]
    inputs, recorded = {"x": x, **_weights(spot.board, layer, direction)}, spot.board.seen(f"{place}.hidden")
    return spot.write("loop", f"{place}.every", spot.side, inputs, snippet, recorded=recorded)


# Encoders


def encoder_steps(spot: Spot, encoder: RecurrentEncoder) -> None:
    """Numbers, embeddings, and one layer at the chosen place, in each of its directions."""
    board, layer = spot.board, encoder.stack.layers[spot.level]
    x = embedding_steps(spot, board.trace.source.ids, encoder.embedding)
    x = x if spot.level == 0 else board.seen(f"encoder.{spot.level - 1}.states")
    every = []
    for place, direction in _directions(spot.level, layer.bidirectional):
        backwards = encoder.reverse != (direction == "_reverse")
        before = _state_before(spot, layer, place, backwards=backwards)
        cell_steps(spot, layer, place, x.at(spot.row), before, direction=direction)
        every.append(loop_steps(spot, layer, place, x, direction=direction, backwards=backwards))
    if layer.bidirectional:
        both, snippet = {"forward": every[0], "backward": every[1]}, "result = torch.cat((forward, backward), -1)"
        spot.write("both_ways", f"{spot.place}.states", "encoder", both, snippet, recorded=spot.seen("states"))
    if encoder.annotate is not None:
        inputs = {"h": board.seen(f"encoder.{encoder.stack.depth - 1}.states"), **board.linear(encoder.annotate)}
        snippet, recorded = "result = torch.tanh(h @ w.T + b)", board.seen("encoder.states")
        spot.write("annotations", "encoder.states", "encoder", inputs, snippet, recorded=recorded)


def _directions(level: int, bidirectional: bool) -> list[tuple[str, str]]:
    """The names of a layer's directions in a trace and in torch."""
    place = f"encoder.{level}.cell"
    return [(f"{place}.forward", ""), (f"{place}.backward", "_reverse")] if bidirectional else [(place, "")]


def _state_before(spot: Spot, layer: Layer, place: str, *, backwards: bool) -> State:
    """The state that an encoder's cell goes on from: that of the piece read before, or zeros."""
    last = spot.row + 1 if backwards else spot.row - 1
    if not 0 <= last < len(spot.board.trace.source):
        return _zeros(spot.board, layer)
    return _recorded(spot.board, layer, place, last)


def _zeros(board: Board, layer: Layer) -> State:
    zeros = board.zeros(layer.hidden)
    return zeros, zeros if layer.cell.has_cell else None


def _recorded(board: Board, layer: Layer, place: str, row: int) -> State:
    """The state of a cell after it has read a piece, or written one."""
    cell = board.seen(f"{place}.cell").at(row) if layer.cell.has_cell else None
    return board.seen(f"{place}.hidden").at(row), cell


def context_steps(board: Board, encoder: RecurrentEncoder, level: int) -> State:
    """The context vector: the state of a layer after all that was read."""
    layer, found = encoder.stack.layers[level], []
    names = ["hidden", "cell"] if layer.cell.has_cell else ["hidden"]
    for name in names:
        places = [board.seen(f"{place}.{name}") for place, _ in _directions(level, layer.bidirectional)]
        if layer.bidirectional:
            inputs = {"forward": places[0], "backward": places[1]}
            snippet = "result = torch.cat((forward[-1], backward[0]))"
        else:
            inputs, snippet = {"states": places[0]}, f"result = states[{0 if encoder.reverse else -1}]"
        kind = "final_cell" if name == "cell" else "final_both" if layer.bidirectional else "final"
        found.append(board.write(kind, f"encoder.{level}.final.{name}", "context", inputs, snippet))
    return found[0], found[1] if len(found) > 1 else None


def _state(spot: Spot, decoder: RecurrentDecoder, encoder: RecurrentEncoder | None, level: int) -> State:
    """The state of a decoder's layer before the step."""
    if spot.row == 0:
        return _first(spot, decoder, encoder, level)
    return _recorded(spot.board, decoder.stack.layers[level], f"decoder.{level}.cell", spot.row - 1)


def _first(spot: Spot, decoder: RecurrentDecoder, encoder: RecurrentEncoder | None, level: int) -> State:
    """The state before the first step: the context vector, as it is or over the bridge; free, zeros."""
    board, bridge = spot.board, decoder.bridge
    if encoder is None or isinstance(bridge, ZeroBridge):
        return _zeros(board, decoder.stack.layers[level])
    if bridge is not None and bridge.mean:
        inputs = {"states": board.seen("encoder.states")}
        mean = board.write("mean_states", "encoder.mean", "context", inputs, "result = states.mean(0)")
        hidden, cell = mean, mean if bridge.cell else None
    else:
        hidden, cell = context_steps(board, encoder, level)
    if bridge is None:
        return hidden, cell

    def bridged(kind: str, name: str, x: Value, layer: torch.nn.Linear) -> Value:
        inputs = {"x": x, **board.linear(layer)}
        snippet = "result = w @ x + b" if kind.endswith("cell") else "result = torch.tanh(w @ x + b)"
        return board.write(kind, f"decoder.{level}.first.{name}", "decoder", inputs, snippet)

    kind = "bridge_mean" if bridge.mean else "bridge"
    hidden = bridged(kind, "hidden", hidden, bridge.hidden[level])
    return hidden, None if cell is None else bridged(f"{kind}_cell", "cell", cell, bridge.cell[level])


def _step(spot: Spot, stack: Stack, x: Value, before: State) -> Value:
    """The chosen layer's cell; gives the state of the top layer after the step."""
    x = x if spot.level == 0 else spot.board.seen(f"decoder.{spot.level - 1}.states").at(spot.row)
    state = cell_steps(spot, stack.layers[spot.level], f"{spot.place}.cell", x, before)
    top = stack.depth - 1
    return state if spot.level == top else spot.board.seen(f"decoder.{top}.states").at(spot.row)


def _attend(spot: Spot, attention: Attention, query: Value) -> Value:
    """What the source has to say to one query (D,)."""
    board, row = spot.board, spot.row
    asking = Asking(
        board=board,
        attention=attention,
        place="decoder.cross",
        part="cross",
        head=spot.head,
        query=query.as_row(),
        source=board.seen("encoder.states"),
        asked_by=positions("target", board.trace.inputs[row : row + 1]),
        asked=board.source,
        first=row,
        predicts=positions("predicted", board.trace.target.pieces[row : row + 1]),
    )
    return attention_steps(asking).at(0)


def decoder_steps(
    spot: Spot, decoder: RecurrentDecoder, encoder: RecurrentEncoder | None, read: Sequence[int]
) -> Value:
    """One step of a recurrent decoder, from the piece it reads to the features (D,) that decide.

    A language model has no encoder.
    """
    y = embedding_steps(spot, read, decoder.embedding).at(spot.row)
    if spot.row > 0 and encoder is not None:
        _first(spot, decoder, encoder, min(spot.level, decoder.stack.depth - 1))  # where it all began
    match decoder:
        case ContextDecoder():
            return _step(spot, decoder.stack, y, _state(spot, decoder, encoder, spot.level))
        case BahdanauDecoder():
            return _bahdanau_steps(spot, decoder, encoder, y)
        case LuongDecoder():
            return _luong_steps(spot, decoder, encoder, y)
        case ConditionalDecoder():
            return _conditional_steps(spot, decoder, encoder, y)


def _bahdanau_steps(spot: Spot, decoder: BahdanauDecoder, encoder: RecurrentEncoder | None, y: Value) -> Value:
    """Attend with the previous state, then step, then read out."""
    before, top = _state(spot, decoder, encoder, spot.level), decoder.stack.depth - 1
    query, _ = before if spot.level == top else _state(spot, decoder, encoder, top)
    context = _attend(spot, decoder.attention, query)
    x = y
    if spot.level == 0:
        inputs, snippet = {"y": y, "c": context}, "result = torch.cat((y, c))"
        x = spot.board.write("with_context", "decoder.input", "decoder", inputs, snippet)
    return _read_out(spot, decoder.readout, _step(spot, decoder.stack, x, before), context, y)


def _read_out(spot: Spot, readout: torch.nn.Linear, state: Value, context: Value, y: Value) -> Value:
    board = spot.board
    inputs = {"s": state, "c": context, "y": y, **board.linear(readout)}
    snippet = "result = torch.tanh(w @ torch.cat((s, c, y)) + b)"
    recorded = board.seen("decoder.features").at(spot.row)
    return board.write("readout", "decoder.features", "decoder", inputs, snippet, recorded=recorded)


def _conditional_steps(spot: Spot, decoder: ConditionalDecoder, encoder: RecurrentEncoder | None, y: Value) -> Value:
    """Step, attend with the new state, and step again. The second cell is the layer after those of the stack."""
    board, row, stack = spot.board, spot.row, decoder.stack
    depth, goes_on, second = stack.depth, decoder.readout is not None, f"decoder.{stack.depth}.cell"
    top = depth - 1
    if spot.level < depth:
        if row > 0 and goes_on and spot.level == top:
            before = _recorded(board, decoder.second, second, row - 1)
        else:
            before = _state(spot, decoder, encoder, spot.level)
        query = _step(spot, stack, y, before)
    else:
        query = board.seen(f"decoder.{top}.states").at(row)
    context = _attend(spot, decoder.attention, query)
    state = board.seen(f"decoder.{depth}.states").at(row)
    if spot.level == depth:
        if goes_on:
            x, before = context, _recorded(board, stack.layers[top], f"decoder.{top}.cell", row)
        else:
            inputs, snippet = {"s": query, "c": context}, "result = torch.cat((s, c))"
            x = board.write("with_found", "decoder.input", "decoder", inputs, snippet)
            before = _recorded(board, decoder.second, second, row - 1) if row else _zeros(board, decoder.second)
        state = cell_steps(spot, decoder.second, second, x, before)
    return state if decoder.readout is None else _read_out(spot, decoder.readout, state, context, y)


def _luong_steps(spot: Spot, decoder: LuongDecoder, encoder: RecurrentEncoder | None, y: Value) -> Value:
    """Step, then attend with the current state, then combine."""
    board, row, x = spot.board, spot.row, y
    before = _state(spot, decoder, encoder, spot.level)
    if decoder.feeding and spot.level == 0:
        fed = board.seen("decoder.features").at(row - 1) if row else board.zeros(decoder.combine.out_features)
        x = board.write("with_fed", "decoder.input", "decoder", {"y": y, "fed": fed}, "result = torch.cat((y, fed))")
    state = _step(spot, decoder.stack, x, before)
    context = _attend(spot, decoder.attention, state)
    inputs = {"c": context, "s": state, "w": board.weight(decoder.combine.weight)}
    snippet = "result = torch.tanh(w @ torch.cat((c, s)))"
    recorded = board.seen("decoder.features").at(row)
    return board.write("combine", "decoder.features", "decoder", inputs, snippet, recorded=recorded)
