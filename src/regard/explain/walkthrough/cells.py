"""Steps inside a recurrent cell, at one moment, and the loop over all moments."""

from __future__ import annotations

from dataclasses import dataclass

from regard.explain.walkthrough.board import Board, Value
from regard.explain.walkthrough.step import AxisLabels
from regard.nn.recurrent import Layer, elman_step, gru_step


@dataclass(frozen=True)
class Before:
    """What a cell goes on from."""

    hidden: Value  # (D,)
    cell: Value | None = None


@dataclass(frozen=True)
class CellStep:
    """One cell at one place of the text."""

    board: Board
    layer: Layer
    place: str  # encoder.0.cell.backward
    part: str
    row: int  # of the trace
    direction: str = ""  # or _reverse

    def weights(self, gate: int | None = None) -> dict[str, Value]:
        """``w_x, b_x, w_h, b_h``; of one gate, or whole."""
        found = {}
        for name, kernel in (("w_x", "weight_ih"), ("b_x", "bias_ih"), ("w_h", "weight_hh"), ("b_h", "bias_hh")):
            value = self.board.weight(getattr(self.layer.kernel, f"{kernel}_l0{self.direction}"))
            size = self.layer.hidden
            found[name] = value if gate is None else value.part(gate * size, (gate + 1) * size)
        return found

    def write(self, kind: str, name: str, inputs: dict[str, Value], snippet: str) -> Value:
        recorded = self.board.seen(f"{self.place}.{name}").at(self.row)
        return self.board.write(kind, f"{self.place}.{name}", self.part, inputs, snippet, recorded=recorded)

    def gate(self, number: int, kind: str, name: str, x: Value, before: Before) -> Value:
        """``σ(W_x x + b_x + W_h h' + b_h)``, or tanh for a candidate."""
        function = "tanh" if name == "candidate" else "sigmoid"
        snippet = f"result = torch.{function}(w_x @ x + b_x + w_h @ h + b_h)"
        return self.write(kind, name, {"x": x, "h": before.hidden, **self.weights(number)}, snippet)


def cell_steps(moment: CellStep, x: Value, before: Before) -> Value:
    """From an input (D,) and the state before it to the state after it."""
    if moment.layer.cell.step is elman_step:
        snippet = "result = torch.tanh(w_x @ x + b_x + w_h @ h + b_h)"
        return moment.write("elman", "hidden", {"x": x, "h": before.hidden, **moment.weights()}, snippet)
    if moment.layer.cell.step is gru_step:
        return _gru_steps(moment, x, before)
    return _lstm_steps(moment, x, before)


def _lstm_steps(moment: CellStep, x: Value, before: Before) -> Value:
    assert before.cell is not None
    write = moment.gate(0, "input_gate", "input", x, before)
    forget = moment.gate(1, "forget_gate", "forget", x, before)
    candidate = moment.gate(2, "candidate", "candidate", x, before)
    read = moment.gate(3, "output_gate", "output", x, before)
    parts = {"f": forget, "c": before.cell, "i": write, "g": candidate}
    cell = moment.write("cell", "cell", parts, "result = f * c + i * g")
    return moment.write("lstm_hidden", "hidden", {"o": read, "c": cell}, "result = o * torch.tanh(c)")


def _gru_steps(moment: CellStep, x: Value, before: Before) -> Value:
    reset = moment.gate(0, "reset", "reset", x, before)
    update = moment.gate(1, "update", "update", x, before)
    inputs = {"x": x, "h": before.hidden, "r": reset, **moment.weights(2)}
    snippet = "result = torch.tanh(w_x @ x + b_x + r * (w_h @ h + b_h))"
    candidate = moment.write("gru_candidate", "candidate", inputs, snippet)
    parts = {"z": update, "n": candidate, "h": before.hidden}
    return moment.write("gru_hidden", "hidden", parts, "result = (1 - z) * n + z * h")


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


def loop_steps(moment: CellStep, x: Value, axis: AxisLabels, *, backwards: bool) -> Value:
    """The states after every piece, (S, D), from zeros on."""
    cell = moment.layer.cell
    body = _BODY["elman" if cell.step is elman_step else "gru" if cell.step is gru_step else "lstm"]
    turn = ".flip(0)" if backwards else ""  # reads from the last piece to the first
    snippet = [
        f"h{' = c' if cell.has_cell else ''} = x.new_zeros({moment.layer.hidden})",
        "states = []",
        f"for now in (x @ w_x.T + b_x){turn}:",
        *body,
        "    states.append(h)",
        f"result = torch.stack(states){turn}",
    ]
    name = f"{moment.place}.hidden"
    recorded = moment.board.seen(name)
    inputs = {"x": x, **moment.weights()}
    return moment.board.write(
        "loop",
        f"{moment.place}.every",
        moment.part,
        inputs,
        snippet,
        axes=(axis,),
        recorded=recorded,
        row=moment.row,
    )
