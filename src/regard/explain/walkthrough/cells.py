"""Steps inside a recurrent cell, at one moment, and the loop over all moments."""

from __future__ import annotations

from regard.explain.walkthrough.board import Board, Spot, Value
from regard.nn.recurrent import Layer, elman_step, gru_step

State = tuple[Value, Value | None]  # what a cell goes on from: hidden (D,) and, of an LSTM, cell


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
